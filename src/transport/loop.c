/*
 * The wire between threads of one process: private memory. The segment starts
 * on a huge page, so that the arenas, which the layout aligns alike, do too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/segment.h"

enum { HUGE_PAGE = 2 << 20 };

static bool loop_reaches(const struct cm_boot *b)
{
    return b->nprocs == 1;
}

/* Map `bytes` at a multiple of HUGE_PAGE; NULL if refused. */
static void *map_aligned(size_t bytes)
{
    size_t slack = bytes + HUGE_PAGE, head;
    char *at = mmap(NULL, slack, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    head = (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    if (head > 0)
        munmap(at, head);
    munmap(at + head + bytes, slack - head - bytes);
    return at + head;
}

static enum cm_status loop_open(const struct cm_boot *b, const struct cm_layout *l,
                                int64_t timeout_ns, struct cm_segment **out)
{
    enum cm_status st = cm_memory_check(l);
    struct cm_segment *s;

    (void)timeout_ns; /* nobody to wait for */
    if (st != CM_OK)
        return st;
    s = cm_segment_new(l, b->nprocs);
    if (s == NULL)
        return CM_ENOMEM;
    /* To whole pages of the size that munmap must give back. */
    s->bytes = (l->total + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    s->base = map_aligned(s->bytes);
    if (s->base == NULL) {
        st = CM_FAIL(CM_ENOMEM, "address space: %zu bytes needed, %zu available: %s", s->bytes,
                     cm_memory_available(), strerror(errno));
        cm_segment_close(s);
        return st;
    }
    cm_segment_advise(s, l);
    *out = s;
    return CM_OK;
}

const struct cm_wire cm_wire_loop = {
    .name = "loop",
    .what = "threads of one process: private memory with huge pages",
    .reaches = loop_reaches,
    .open = loop_open,
};
