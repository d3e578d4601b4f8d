/*
 * One descriptor per process, opened before its ranks run; each line is one
 * write with the rank's prefix, so the lines of ranks never mix.
 */
#include "common/debug.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "common/version.h"

enum { PATH_BYTES = 4096 };

/* Other levels (none) tell nothing; abort is NCCL's, between warn and info. */
static enum cm_trace_level level_of(const char *word)
{
    static const struct {
        const char *word;
        enum cm_trace_level level;
    } levels[] = {
        {"version", CM_TRACE_VERSION}, {"warn", CM_TRACE_WARN}, {"abort", CM_TRACE_WARN},
        {"info", CM_TRACE_INFO},       {"trace", CM_TRACE_ALL},
    };

    for (size_t i = 0; word != NULL && i < CM_LEN(levels); i++)
        if (strcmp(levels[i].word, word) == 0)
            return levels[i].level;
    return CM_TRACE_NONE;
}

/* What stands for the letter behind a '%' of the path; NULL: nothing, the two stay as they are. */
static const char *part_of(char letter, const struct cm_rank_info *i, char room[16])
{
    switch (letter) {
    case 'h':
        return i->host;
    case 'p':
        snprintf(room, 16, "%d", (int)i->pid);
        return room;
    case 'r':
        snprintf(room, 16, "%d", (int)i->rank);
        return room;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

/* False: too long. *own: only this process has that name. */
static bool expand(const char *path, const struct cm_rank_info *i, char *out, bool *own)
{
    size_t at = 0;

    *own = false;
    while (*path != '\0') {
        char room[16], one[] = {*path, '\0'};
        const char *part = *path == '%' ? part_of(path[1], i, room) : NULL;
        size_t n;

        if (part != NULL)
            *own = *own || path[1] == 'p' || path[1] == 'r';
        path += part != NULL ? 2 : 1;
        part = part != NULL ? part : one;
        n = strlen(part);
        if (at + n >= PATH_BYTES)
            return false;
        memcpy(out + at, part, n);
        at += n;
    }
    out[at] = '\0';
    return true;
}

enum cm_status cm_debug_open(const struct cm_opts_report *o, const struct cm_rank_info *first,
                             struct cm_trace *out)
{
    char path[PATH_BYTES];
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    bool own;

    *out = (struct cm_trace){level_of(o->debug), STDERR_FILENO};
    if (out->level == CM_TRACE_NONE || o->debug_file == NULL)
        return CM_OK;
    if (!expand(o->debug_file, first, path, &own))
        return CM_FAIL(CM_ESYS, "--debug-file: the path is longer than %d bytes", PATH_BYTES - 1);
    out->fd = open(path, own || first->proc == 0 ? flags | O_TRUNC : flags, 0666);
    if (out->fd >= 0)
        return CM_OK;
    *out = (struct cm_trace){CM_TRACE_NONE, STDERR_FILENO};
    return CM_FAIL(CM_ESYS, "--debug-file '%s': %m", path);
}

void cm_debug_close(struct cm_trace *t)
{
    if (t->level != CM_TRACE_NONE && t->fd != STDERR_FILENO)
        close(t->fd);
    *t = (struct cm_trace){CM_TRACE_NONE, STDERR_FILENO};
}

void cm_debug_rank(const struct cm_rank *r)
{
    const struct cm_layout *l = r->layout;
    const struct cm_rank_info *i = &r->infos[r->rank];
    char all[32], arena[32], slot[32];

    if (r->rank == 0 && cm_traces(r->trace, CM_TRACE_VERSION))
        cm_log_to(r->trace->fd, "collmark version %s", cm_version);
    if (!cm_traces(r->trace, CM_TRACE_INFO))
        return;
    cm_log_to(
        r->trace->fd,
        "wire %s, segment %s: per rank buffers %s at %zu, ports to each peer %d channels x %d "
        "slots x %s",
        r->wire, cm_format_size(l->total, all), cm_format_size(l->arena_bytes, arena),
        cm_arena_at(l, r->rank), l->channels, l->depth, cm_format_size(l->slot_bytes, slot));
    cm_log_to(
        r->trace->fd,
        "process %d pid %d thread %d device %d node %d numa %d cpus %s, waits: %d polls, then "
        "yields, then sleeps%s; time-out %.1f s",
        (int)i->proc, (int)i->pid, (int)i->thread, (int)i->device, (int)i->node, (int)i->numa,
        i->cpus, r->waiter.spins, r->oversubscribed ? " (ranks share CPUs)" : "",
        (double)r->waiter.timeout_ns / CM_NS_PER_S);
}
