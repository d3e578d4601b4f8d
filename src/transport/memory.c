/*
 * How much memory is left: asked before it is taken, because Linux grants
 * memory it does not have and later kills for it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "transport/segment.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* MemAvailable: what the kernel could give without swapping. */
static size_t machine_available(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    size_t kib, found = SIZE_MAX;

    if (f == NULL)
        return SIZE_MAX;
    while (found == SIZE_MAX && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
            found = kib * 1024;
    fclose(f);
    return found;
}

/* What one group still allows; its page cache can be dropped and does not count as used. */
static size_t group_available(const char *dir, bool v2)
{
    unsigned long long max, used;
    unsigned long long cache;

    if (!cm_cgroup_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &max) ||
        !cm_cgroup_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used))
        return SIZE_MAX;
    cache = cm_cgroup_keyed(dir, "memory.stat", v2 ? "inactive_file" : "total_inactive_file");
    used -= cache < used ? cache : used;
    return used < max ? (size_t)(max - used) : 0;
}

size_t cm_memory_physical(void)
{
    size_t bytes = machine_available();
    char dir[CM_CGROUP_PATH];
    bool v2;

    for (int up = 0; cm_cgroup_dir("memory", up, dir, &v2); up++)
        bytes = least(bytes, group_available(dir, v2));
    return bytes;
}

/* Address space that RLIMIT_AS leaves us. */
static size_t address_space_available(void)
{
    size_t pages = 0, used, page = (size_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    FILE *f;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    f = fopen("/proc/self/statm", "re");
    if (f != NULL) {
        if (fscanf(f, "%zu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    used = pages * page;
    return used < limit.rlim_cur ? (size_t)limit.rlim_cur - used : 0;
}

size_t cm_memory_available(void)
{
    return least(cm_memory_physical(), address_space_available());
}

enum cm_status cm_memory_check(const struct cm_layout *l)
{
    size_t needed = l->total - l->arenas_at + l->ports_at; /* ports take what they use */
    size_t available = cm_memory_physical(), room = address_space_available();

    if (needed > available)
        return CM_FAIL(CM_ENOMEM,
                       "memory: %zu bytes needed for the buffers of %d ranks, %zu available",
                       needed, l->nranks, available);
    if (l->total > room)
        return CM_FAIL(CM_ENOMEM, "address space: %zu bytes needed for %d ranks, %zu available",
                       l->total, l->nranks, room);
    return CM_OK;
}
