/* What looks wrong with a topology, or with the ranks that are put on it. */
#include <stdarg.h>

#include "engine/topo_int.h"

static void CM_PRINTF(3, 4) say(cm_topo_tell *tell, void *arg, const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    tell(arg, line);
}

/* The value that more than half of v[n] have, or -1. */
static int majority(const int *v, int n)
{
    for (int i = 0; i < n; i++) {
        int same = 0;

        for (int j = 0; j < n; j++)
            same += v[j] == v[i];
        if (2 * same > n)
            return v[i];
    }
    return -1;
}

static int count_links(const struct cm_topo *t, int gpu)
{
    int n = t->nvlinks[gpu][CM_TOPO_SWITCH].links;

    for (int peer = 0; peer < t->ngpus; peer++)
        n += t->nvlinks[gpu][peer].links;
    return n;
}

static int count_peers(const struct cm_topo *t, int gpu)
{
    int n = 0;

    for (int peer = 0; peer < t->ngpus; peer++)
        n += cm_topo_link(t, gpu, peer).kind == CM_TOPO_NV;
    return n;
}

/*
 * Not every pair has NVLink in a healthy machine (bridges join two GPUs, a
 * cube mesh four of seven), but all GPUs are connected alike.
 */
int cm_topo_warn_nvlink(const struct cm_topo *t, cm_topo_tell *tell, void *arg)
{
    int links[CM_TOPO_GPUS], peers[CM_TOPO_GPUS], most_links, most_peers, told = 0;

    for (int i = 0; i < t->ngpus; i++) {
        links[i] = count_links(t, i);
        peers[i] = count_peers(t, i);
    }
    most_links = majority(links, t->ngpus);
    most_peers = majority(peers, t->ngpus);
    for (int i = 0; i < t->ngpus; i++) {
        if (links[i] >= most_links && peers[i] >= most_peers)
            continue;
        say(tell, arg,
            "GPU%d (%s) has %d NVLinks and reaches %d GPUs over them; most GPUs have %d and "
            "reach %d",
            i, t->gpus[i].bus_id, links[i], peers[i], most_links, most_peers);
        told++;
    }
    return told;
}

/* The ranks from `first` on whose CPU is of this core, as "1, 4"; their number. */
static int ranks_of(const struct cm_topo *t, const int32_t *cpu_of, int n, int core, char *buf,
                    size_t size)
{
    size_t len = 0;
    int found = 0;

    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        if (cpu_of[i] < 0 || cpu_of[i] >= CM_TOPO_CPUS || t->core_of[cpu_of[i]] != core)
            continue;
        if (len < size)
            len += (size_t)snprintf(buf + len, size - len, "%s%d", found > 0 ? ", " : "", i);
        found++;
    }
    return found;
}

int cm_topo_warn_cores(const struct cm_topo *t, const int32_t *cpu_of, int n, cm_topo_tell *tell,
                       void *arg)
{
    int told = 0;

    for (int core = 0; core < CM_TOPO_CPUS; core++) {
        char ranks[256];

        if (t->core_of[core] < 0 || ranks_of(t, cpu_of, n, core, ranks, sizeof(ranks)) < 2)
            continue;
        say(tell, arg, "ranks %s share the core of cpu %d", ranks, core);
        told++;
    }
    return told;
}
