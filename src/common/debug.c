/*
 * One file per process, opened before its ranks run; each line is one write
 * with the rank's prefix, so the lines of ranks never mix.
 */
#include "common/debug.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "common/network.h"
#include "common/topo_run.h"
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
    const char *word = o->debug == NULL && o->log != NULL ? "info" : o->debug;
    char path[PATH_BYTES];
    enum cm_status st;
    bool own;

    *out = (struct cm_trace){level_of(word), NULL};
    if (out->level == CM_TRACE_NONE || o->log == NULL)
        return CM_OK;
    if (expand(o->log, first, path, &own))
        st = cm_trace_open(out, path, own || first->proc == 0);
    else
        st = CM_FAIL(CM_ESYS, "--log: the path is longer than %d bytes", PATH_BYTES - 1);
    if (st != CM_OK)
        out->level = CM_TRACE_NONE;
    return st;
}

/* A process has one; its first rank tells. */
static void tell_network(const struct cm_rank *r)
{
    const struct cm_network *n = r->network;
    const struct cm_network_way *way;

    if (n == NULL || (r->rank > 0 && r->infos[r->rank - 1].proc == r->infos[r->rank].proc))
        return;
    way = &n->mine;
    cm_trace_line(r->trace,
                  "network: %s over %s%s%s address %s, %d Mb/s (%s); connected to %d processes of "
                  "other domains with %d ports, progress %s",
                  way->wire, way->device, way->device[0] != '\0' ? ", set up over " : "",
                  way->interface, way->address, (int)way->mbit, way->why, n->neighbours, n->ports,
                  n->progress);
}

static void tell(void *arg, const char *text)
{
    cm_trace_line(arg, "warning: %s", text);
}

void cm_debug_rank(const struct cm_rank *r)
{
    const struct cm_layout *l = r->layout;
    const struct cm_rank_info *i = &r->infos[r->rank];
    char all[32], arena[32], slot[32];

    if (r->rank == 0 && cm_traces(r->trace, CM_TRACE_VERSION))
        cm_trace_line(r->trace, "collmark version %s", cm_version);
    if (cm_traces(r->trace, CM_TRACE_WARN))
        (void)cm_topo_run_warnings(r, tell, (void *)(uintptr_t)r->trace);
    if (!cm_traces(r->trace, CM_TRACE_INFO))
        return;
    tell_network(r);
    cm_trace_line(
        r->trace,
        "wire %s, segment %s: per rank buffers %s at %zu, ports to each peer %d channels x %d "
        "slots x %s",
        r->wire, cm_format_size(l->total, all), cm_format_size(l->arena_bytes, arena),
        cm_arena_at(l, r->rank), l->channels, l->depth, cm_format_size(l->slot_bytes, slot));
    cm_trace_line(
        r->trace,
        "process %d pid %d thread %d device %d node %d numa %d cpus %s, waits: %d polls, then "
        "yields, then sleeps%s; time-out %.1f s",
        (int)i->proc, (int)i->pid, (int)i->thread, (int)i->device, (int)i->node, (int)i->numa,
        i->cpus, r->waiter.spins, r->oversubscribed ? " (ranks share CPUs)" : "",
        (double)r->waiter.timeout_ns / CM_NS_PER_S);
}
