/*
 * Puts a fault into words: one line that says what, then who waits where,
 * a line for all threads of a block that do the same at the same place.
 * Runs on the host's stack, so it may use the C library.
 */
#include "cmsim_core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    GROUPS = 16, /* places of one block that are told apart */
    LINES = 24   /* of the list */
};

/* Threads of a block that do the same. */
struct group {
    const struct cmsim_fiber *first;
    uint32_t count;
};

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    const size_t used = strlen(cmsim_core.text);
    va_list args;

    va_start(args, format);
    vsnprintf(cmsim_core.text + used, sizeof(cmsim_core.text) - used, format, args);
    va_end(args);
}

static void say_site(struct cmsim_site at)
{
    if (at.file != nullptr)
        say(" at %s:%d", at.file, at.line);
}

static void say_block(const struct cmsim_block *b)
{
    say("device %d block (%u,%u)", b->run->device, b->fibers->self.bid_x, b->fibers->self.bid_y);
}

static void say_thread(const struct cmsim_fiber *f)
{
    say("thread %u of ", f->self.tid);
    say_block(f->block);
}

static const char *barrier_name(enum cmsim_barrier kind)
{
    return kind == CMSIM_BAR ? "cm_bar" : "cm_bar_or";
}

static bool polls(const struct cmsim_fiber *f)
{
    return f->state == CMSIM_READY && cmsim_waits(f, 1);
}

/* ---- who waits where ------------------------------------------------------------------------ */

static bool same_place(const struct cmsim_fiber *a, const struct cmsim_fiber *b)
{
    if (a->state != b->state || polls(a) != polls(b))
        return false;
    if (!polls(a))
        return true;
    return a->at.line == b->at.line && a->at.file == b->at.file;
}

static void add_to_group(struct group *groups, const struct cmsim_fiber *f)
{
    int i = 0;

    while (i < GROUPS - 1 && groups[i].count > 0 && !same_place(groups[i].first, f))
        i++;
    if (groups[i].count++ == 0)
        groups[i].first = f;
}

static void say_group(const struct group *g)
{
    const struct cmsim_fiber *f = g->first;

    say("\n  ");
    say_block(f->block);
    if (g->count == 1)
        say(": thread %u ", f->self.tid);
    else
        say(": %u threads (%u first) ", g->count, f->self.tid);
    if (f->state == CMSIM_BLOCKED) {
        say("in %s", barrier_name(f->block->kind));
        say_site(f->block->at);
    } else if (polls(f)) {
        say("polling %p = %" PRIu64, f->address, f->value);
        say_site(f->at);
    } else {
        say("running");
    }
}

/* Adds to *lines, also those that are too many to be written. */
static void say_waits(const struct cmsim_block *b, int *lines)
{
    struct group groups[GROUPS] = {};

    for (uint32_t t = 0; t < b->run->threads; t++)
        if (b->fibers[t].state != CMSIM_RETURNED)
            add_to_group(groups, &b->fibers[t]);
    for (int i = 0; i < GROUPS && groups[i].count > 0; i++)
        if ((*lines)++ < LINES)
            say_group(&groups[i]);
}

static void say_all_waits(void)
{
    int lines = 0;

    for (const struct cmsim_run *run = cmsim_core.runs; run != nullptr; run = run->next)
        for (uint32_t b = 0; b < run->nblocks; b++)
            say_waits(&run->blocks[b], &lines);
    if (lines > LINES)
        say("\n  and %d more", lines - LINES);
}

/* ---- what happened -------------------------------------------------------------------------- */

static void say_barrier_mixed(const struct cmsim_failure *f)
{
    const struct cmsim_block *b = f->who->block;

    say("barrier misuse: ");
    say_thread(f->who);
    say(" arrives in %s", barrier_name((enum cmsim_barrier)f->number));
    say_site(f->at);
    say(" while %u threads wait in %s", b->arrived, barrier_name(b->kind));
    say_site(b->at);
}

static void say_barrier_left(const struct cmsim_failure *f)
{
    const struct cmsim_block *b = f->who->block;

    say("divergent exit: %u threads of ", b->returned);
    say_block(b);
    say(" returned, others need them in a barrier");
    say_site(f->at);
}

static void say_on_thread(const struct cmsim_failure *f)
{
    const char *p = (const char *)f->address;

    if (f->fault == CMSIM_MISALIGNED)
        say("misaligned access: %p is not a multiple of %" PRIu64, (const void *)p, f->number);
    else if (f->fault == CMSIM_OTHER_DEVICE)
        say("scope: %p is used with .gpu scope by device %" PRIu64 " and at the same time",
            (const void *)p, f->number);
    else if (f->fault == CMSIM_SHARED_FULL)
        say("shared memory: %" PRIu64 " bytes more do not fit", f->number);
    else if (f->fault == CMSIM_STACK_FULL)
        say("stack: %" PRIu64 " bytes are not enough", f->number);
    else
        say("more than %" PRIu64 " flags", f->number);
    say(", ");
    say_thread(f->who);
    say_site(f->at);
}

void cmsim_report(void)
{
    const struct cmsim_failure *f = &cmsim_core.failure;

    cmsim_core.text[0] = '\0';
    switch (f->fault) {
    case CMSIM_BARRIER_MIXED:
        say_barrier_mixed(f);
        break;
    case CMSIM_BARRIER_LEFT:
        say_barrier_left(f);
        break;
    case CMSIM_DEADLOCK:
        say("deadlock: every thread waits, %d launches", cmsim_core.nlive);
        break;
    case CMSIM_GEOMETRY:
        say("a launch with too many or no threads: %" PRIu64 " per block", f->number);
        break;
    case CMSIM_NO_MEMORY:
        say("no memory for %" PRIu64 " threads", f->number);
        break;
    default:
        say_on_thread(f);
    }
    say_all_waits();
}
