/* A mapping of the node's memory, as its wires make it. Private to src/transport. */
#ifndef CM_TRANSPORT_SEGMENT_H
#define CM_TRANSPORT_SEGMENT_H

#include <stdint.h>

#include "transport/wire.h"

struct cm_segment {
    void *base; /* NULL: not mapped */
    size_t bytes;
    int fd; /* memfd, or -1: private memory */
    /* Connections that live as long as their process: the leader (process 0) has one
       to each other process, at its number; the others have one, to the leader, at 0. */
    int *links; /* nprocs entries, -1: none; NULL: one process */
    int nprocs;
};

extern const struct cm_wire cm_wire_loop, cm_wire_shm;

/* An unmapped segment. NULL: no memory (logged). cm_segment_close() frees it. */
struct cm_segment *cm_segment_new(const struct cm_layout *l, int nprocs);

/* Ask for huge pages where they pay: in the arenas. Ports stay on small pages, most of each
   is never touched. */
void cm_segment_advise(struct cm_segment *s, const struct cm_layout *l);

/* CM_ENOMEM, logged, unless the machine can give what the layout's arenas and lines need. */
CM_MUST_CHECK enum cm_status cm_memory_check(const struct cm_layout *l);

/* As cm_memory_available(), but without the address space limit: for memory already mapped. */
size_t cm_memory_physical(void);

#endif
