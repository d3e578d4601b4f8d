/*
 * Why the job ends: the reasons that domains give are ranked, each leader keeps
 * the best one it knows and tells all neighbours whenever that changes. So all
 * end up with the same, and a leader knows that a neighbour knows once that has
 * told it the same note. Each domain's own word is raised on the way.
 *
 * The user should read one report. Domain 0 prints the first text it knows of.
 * That it is printed makes a note the best of all; then the others keep their
 * own to themselves. If domain 0 does not say so (it is dead, stopped or cut
 * off), the origin of the best text prints it after a while.
 */
#include <stddef.h>
#include <string.h>

#include "base/stuck.h"
#include "common/control_int.h"

/* Of domain 0, to say that it printed; well below SETTLE_MS of control.c, after which all print. */
static const int64_t grace_ns = 400LL * CM_NS_PER_MS;
static const int64_t writing_ns = 200LL * CM_NS_PER_MS; /* of the rank that writes a note */

/* Less is better: printed before unprinted before without a text; then the lower domain. */
static uint32_t note_key(const struct cm_control *c, const struct cm_control_note *n)
{
    uint32_t class = n->bytes == 0 ? 2 : n->said ? 0 : 1;

    return class * (uint32_t)c->a.domains->n + n->origin;
}

/* Once in a domain, whoever does it. */
static void say(struct cm_control *c, const char *bytes, size_t n)
{
    struct cm_text text = {.len = n < sizeof(text.buf) ? n : sizeof(text.buf)};

    if (atomic_exchange(&c->shared->note.said, 1) != 0)
        return;
    memcpy(text.buf, bytes, text.len);
    cm_text_write(&text);
}

static void print_best(struct cm_control *c)
{
    struct cm_control_note *best = &c->notes.best;

    say(c, best->text, best->bytes);
    best->said = 1;
    c->notes.key = note_key(c, best);
}

/* All domains end with the status of the best note, so that exit codes are alike. */
static void tell_all(struct cm_control *c)
{
    const struct cm_control_note *best = &c->notes.best;

    if (best->said)
        atomic_store(&c->shared->note.said, 1);
    atomic_store(&c->shared->abort.status, best->status);
    cm_control_flood(c, CM_CONTROL_NOTE, best, offsetof(struct cm_control_note, text) + best->bytes,
                     -1);
}

/* A note is known: take it if it is better than what we have. */
static void offer(struct cm_control *c, const struct cm_control_note *n)
{
    if (note_key(c, n) >= c->notes.key)
        return;
    memcpy(&c->notes.best, n, offsetof(struct cm_control_note, text) + n->bytes);
    c->notes.key = note_key(c, n);
    if (c->a.domains->mine == 0 && n->bytes > 0 && !n->said)
        print_best(c);
    tell_all(c);
}

static bool plausible(const struct cm_control *c, const struct cm_control_note *n, size_t bytes)
{
    return bytes >= offsetof(struct cm_control_note, text) && n->bytes <= CM_NOTE &&
           bytes == offsetof(struct cm_control_note, text) + n->bytes && n->status != CM_OK &&
           n->origin < (uint32_t)c->a.domains->n;
}

void cm_control_hear_note(struct cm_control *c, const struct cm_letter *l)
{
    struct cm_control_note n = {.status = CM_OK};

    memcpy(&n, l->bytes, l->n < sizeof(n) ? l->n : sizeof(n));
    if (!c->leads || !plausible(c, &n, l->n))
        return; /* of no neighbour of ours: nobody else sends such */
    for (int i = 0; i < c->nneighbours; i++)
        if (c->neighbours[i].proc == l->proc)
            c->neighbours[i].told = note_key(c, &n);
    if (cm_abort_raise(&c->shared->abort, (enum cm_status)n.status, (int)n.rank))
        c->notes.seen = true; /* there is no note of our own */
    offer(c, &n);
}

/* If it is news to a leader, look_at_word() takes it for an abort of its own domain. */
void cm_control_hear_word(struct cm_control *c, const struct cm_letter *l)
{
    struct cm_control_word w;

    if (l->n != sizeof(w))
        return;
    memcpy(&w, l->bytes, sizeof(w));
    if (w.status != CM_OK)
        cm_abort_raise(&c->shared->abort, (enum cm_status)w.status, (int)w.rank);
}

void cm_control_pass_word(struct cm_control *c)
{
    const struct cm_control_word w = {cm_control_aborted(c), atomic_load(&c->shared->abort.rank)};

    pthread_mutex_lock(&c->gate);
    if (c->proxy != NULL)
        cm_proxy_send_all(c->proxy, CM_CONTROL_WORD, &w, sizeof(w));
    pthread_mutex_unlock(&c->gate);
}

/* Has a rank or the watchdog of this domain raised the word? */
static void look_at_word(struct cm_control *c, int64_t now)
{
    struct cm_abort_note *note = &c->shared->note;
    struct cm_control_note own = {.status = cm_control_aborted(c)};

    if (c->notes.seen || own.status == CM_OK)
        return;
    if (c->notes.seen_ns == 0)
        c->notes.seen_ns = now;
    if (atomic_load(&note->writers) > 0 && now - c->notes.seen_ns < writing_ns)
        return;
    c->notes.seen = true;
    own.rank = atomic_load(&c->shared->abort.rank);
    own.origin = (uint32_t)c->a.domains->mine;
    own.bytes = atomic_load_explicit(&note->bytes, memory_order_acquire);
    memcpy(own.text, note->text, own.bytes);
    offer(c, &own);
}

/* Everybody has heard, and one has printed what there is to print. */
static bool settled(const struct cm_control *c)
{
    const struct cm_control_note *best = &c->notes.best;

    if (c->notes.key == UINT32_MAX || (best->bytes > 0 && !best->said))
        return false;
    for (int i = 0; i < c->nneighbours; i++)
        if (!c->neighbours[i].gone && c->neighbours[i].told != c->notes.key)
            return false;
    return true;
}

void cm_control_tick_notes(struct cm_control *c, int64_t now)
{
    const struct cm_control_note *best = &c->notes.best;

    look_at_word(c, now);
    if (best->bytes > 0 && !best->said && best->origin == (uint32_t)c->a.domains->mine &&
        now - c->notes.seen_ns > grace_ns) {
        print_best(c);
        tell_all(c);
    }
    if (settled(c))
        atomic_store(&c->shared->note.passed, 1);
}

void cm_control_say_alone(struct cm_control *c)
{
    const struct cm_abort_note *note = &c->shared->note;
    uint32_t bytes = atomic_load_explicit(&note->bytes, memory_order_acquire);

    if (bytes > 0)
        say(c, note->text, bytes);
}
