/*
 * CPUs of ranks. With a CPU for each, every rank is pinned to its own, so that
 * the scheduler neither stacks two spinning ranks nor moves one away from its
 * memory; with fewer, masks stay as they are and ranks yield instead of spin.
 *
 * Invariant: the assignment is a pure function of what all processes know, and
 * a process takes CPUs from its own mask only.
 */
#define _GNU_SOURCE
#include "common/affinity.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"

enum { MAX_NUMA = 256, PATH = 128 };

int cm_cpus_count(const struct cm_cpus *s)
{
    int n = 0;

    for (int i = 0; i < CM_CPU_WORDS; i++)
        n += __builtin_popcountll(s->bits[i]);
    return n;
}

void cm_cpus_format(const struct cm_cpus *s, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (int cpu = 0; cpu < CM_MAX_CPUS; cpu++) {
        char range[32];
        int last = cpu, n;

        if (!cm_cpus_has(s, cpu))
            continue;
        while (last + 1 < CM_MAX_CPUS && cm_cpus_has(s, last + 1))
            last++;
        n = last > cpu ? snprintf(range, sizeof(range), "%s%d-%d", len > 0 ? "," : "", cpu, last)
                       : snprintf(range, sizeof(range), "%s%d", len > 0 ? "," : "", cpu);
        if (len + (size_t)n + sizeof("...") > size) {
            snprintf(buf + len, size - len, "...");
            return;
        }
        memcpy(buf + len, range, (size_t)n + 1);
        len += (size_t)n;
        cpu = last;
    }
}

void cm_cpus_allowed(struct cm_cpus *out)
{
    cpu_set_t set;

    memset(out, 0, sizeof(*out));
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    for (int cpu = 0; cpu < CM_MAX_CPUS && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            cm_cpus_add(out, cpu);
}

/* Microseconds of CPU time per period that one group allows, as CPUs; CM_MAX_CPUS: no limit. */
static int group_quota(const char *dir, bool v2)
{
    unsigned long long quota, period;
    char path[CM_CGROUP_PATH + 16];
    FILE *f;
    int got;

    if (!v2) { /* an unlimited group has quota -1, which is no number here */
        if (!cm_cgroup_number(dir, "cpu.cfs_quota_us", &quota) ||
            !cm_cgroup_number(dir, "cpu.cfs_period_us", &period))
            return CM_MAX_CPUS;
    } else {
        snprintf(path, sizeof(path), "%s/cpu.max", dir);
        f = fopen(path, "re");
        if (f == NULL)
            return CM_MAX_CPUS;
        got = fscanf(f, "%llu %llu", &quota, &period);
        fclose(f);
        if (got != 2)
            return CM_MAX_CPUS;
    }
    if (period == 0 || quota == 0 || quota / period >= CM_MAX_CPUS)
        return CM_MAX_CPUS;
    return (int)((quota + period - 1) / period);
}

int cm_cpu_quota(void)
{
    int least = CM_MAX_CPUS;
    char dir[CM_CGROUP_PATH];
    bool v2;

    for (int up = 0; cm_cgroup_dir("cpu", up, dir, &v2); up++) {
        int quota = group_quota(dir, v2);

        least = quota < least ? quota : least;
    }
    return least;
}

void cm_cpu_pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static int numa_of(int cpu)
{
    char path[PATH];

    for (int node = 0; node < MAX_NUMA; node++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return -1;
}

int cm_cpus_numa(const struct cm_cpus *s)
{
    int node = -1;

    for (int cpu = 0; cpu < CM_MAX_CPUS; cpu++) {
        int here;

        if (!cm_cpus_has(s, cpu))
            continue;
        here = numa_of(cpu);
        if (here < 0 || (node >= 0 && here != node))
            return -1;
        node = here;
    }
    return node;
}

void cm_cpu_model(char *buf, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    struct utsname machine;
    char line[256];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(buf, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        found = true;
    }
    if (f != NULL)
        fclose(f);
    if (!found)
        snprintf(buf, size, "%s", uname(&machine) == 0 ? machine.machine : "unknown");
}

/* Is `cpu` the first of its core? CPUs that are come first: their siblings stay idle. */
static bool is_first_sibling(int cpu)
{
    char path[PATH];
    int first = cpu;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    f = fopen(path, "re");
    if (f == NULL)
        return true;
    if (fscanf(f, "%d", &first) != 1)
        first = cpu;
    fclose(f);
    return first == cpu;
}

/* All CPUs of the masks in order of preference; returns how many. */
static int preference(const struct cm_cpu_plan *p, int order[CM_MAX_CPUS])
{
    struct cm_cpus all = {.bits = {0}}, first = {.bits = {0}};
    int n = 0;

    for (int i = 0; i < p->nprocs; i++)
        for (int word = 0; word < CM_CPU_WORDS; word++)
            all.bits[word] |= p->masks[i].bits[word];
    for (int cpu = 0; cpu < CM_MAX_CPUS; cpu++)
        if (cm_cpus_has(&all, cpu) && is_first_sibling(cpu)) {
            cm_cpus_add(&first, cpu);
            order[n++] = cpu;
        }
    for (int cpu = 0; cpu < CM_MAX_CPUS; cpu++)
        if (cm_cpus_has(&all, cpu) && !cm_cpus_has(&first, cpu))
            order[n++] = cpu;
    return n;
}

/* Take CPUs for the ranks of process i; false if its mask has too few left. */
static bool assign_process(const struct cm_cpu_plan *p, int i, int order[CM_MAX_CPUS], int ncpus,
                           int32_t *cpu_of)
{
    int rank = p->first_of[i];

    for (int k = 0; k < ncpus && rank < p->first_of[i + 1]; k++) {
        if (order[k] < 0 || !cm_cpus_has(&p->masks[i], order[k]))
            continue;
        cpu_of[rank++] = order[k];
        order[k] = -1; /* taken */
    }
    return rank == p->first_of[i + 1];
}

/*
 * Small masks choose first. Launchers give masks that are equal, disjoint or
 * nested, and for those this order finds an assignment whenever there is one.
 */
bool cm_cpu_assign(const struct cm_cpu_plan *p, int32_t *cpu_of)
{
    int n = p->first_of[p->nprocs], order[CM_MAX_CPUS], ncpus = preference(p, order);
    bool enough = n <= ncpus && n <= p->quota;

    for (int size = 1; enough && size <= ncpus; size++)
        for (int i = 0; enough && i < p->nprocs; i++)
            if (cm_cpus_count(&p->masks[i]) == size)
                enough = assign_process(p, i, order, ncpus, cpu_of);
    for (int i = 0; enough && i < p->nprocs; i++)
        enough = cm_cpus_count(&p->masks[i]) > 0;
    for (int rank = 0; !enough && rank < n; rank++)
        cpu_of[rank] = -1;
    return enough;
}
