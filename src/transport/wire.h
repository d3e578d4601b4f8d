/*
 * Wires: how the ranks of a node come to share one segment of memory.
 *
 *   loop  one process, many threads: private memory with huge pages
 *   shm   several processes: a memfd, handed over a local socket by SCM_RIGHTS,
 *         so that the size of /dev/shm does not matter
 *
 * Memory is the wire: after opening nobody helps, ranks load and store.
 */
#ifndef CM_TRANSPORT_WIRE_H
#define CM_TRANSPORT_WIRE_H

#include <stdint.h>

#include "base/boot.h"
#include "base/shared.h"

struct cm_segment; /* one mapping of the node's memory; one per process */

enum { CM_WIRE_GATHERS = 3 }; /* of the boot, that cm_segment_open() makes at most */

struct cm_wire {
    const char *name;
    const char *what;                         /* one line for --list */
    bool (*reaches)(const struct cm_boot *b); /* can it connect these processes? */
    enum cm_status (*open)(const struct cm_boot *b, const struct cm_layout *l, int64_t timeout_ns,
                           struct cm_segment **out);
};

/* Rows in order of preference, NULL-terminated. */
extern const struct cm_wire *const cm_wires[];
const struct cm_wire *cm_wire_find(const char *name);          /* NULL: no such wire */
const struct cm_wire *cm_wire_choose(const struct cm_boot *b); /* first that reaches; NULL: none */

/* Wires between processes that share no memory. What opens them is elsewhere (tcp.h). */
struct cm_net_wire {
    const char *name;
    const char *what; /* one line for --list */
};
extern const struct cm_net_wire cm_net_wires[];               /* the last has no name */
const struct cm_net_wire *cm_net_wire_find(const char *name); /* NULL: no such wire */

/*
 * Open the segment described by `l` (offsets filled). Collective over the
 * processes of `b`; blocks until all are attached or `timeout_ns` passed.
 * Memory is zero. *out is untouched unless CM_OK; close it with
 * cm_segment_close(). CM_ENOMEM: the machine or the memory limit of the
 * process refuses (needed and available bytes are logged). CM_ETIMEOUT,
 * CM_ESYS: a process did not come, or is not ours (token).
 */
CM_MUST_CHECK enum cm_status cm_segment_open(const struct cm_wire *w, const struct cm_boot *b,
                                             const struct cm_layout *l, int64_t timeout_ns,
                                             struct cm_segment **out);

/* Unmap and close; peers that still have it mapped keep their mapping. NULL is fine. */
void cm_segment_close(struct cm_segment *s);

/* Where this process has it mapped. */
void *cm_segment_base(const struct cm_segment *s);

/*
 * A process of the job whose connection broke (it died), or -1. Never blocks;
 * any one thread may call it. For `loop` always -1.
 */
int cm_segment_dead_proc(struct cm_segment *s);

/*
 * Reserve the physical pages of [offset, offset + bytes) now, on the calling
 * thread's NUMA node, so that later use cannot fault for lack of memory.
 * CM_ENOMEM with the numbers logged.
 */
CM_MUST_CHECK enum cm_status cm_segment_reserve(struct cm_segment *s, size_t offset, size_t bytes);

/* Bytes this machine would still give us, the least of MemAvailable, cgroups and RLIMIT_AS. */
size_t cm_memory_available(void);

#endif
