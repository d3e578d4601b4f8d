/*
 * The memory that ranks of one node share: who owns which line of it.
 *
 * One segment per node, mapped by every process at its own address; so
 * positions in it are offsets from the segment's start. Layout:
 *   struct cm_shared        the head: abort word, sizes
 *   struct cm_rank_shared   one per world rank: lines and LL slots of the engine,
 *                           team lines and the diagnostic record of the harness
 *   ports                   FIFOs between pairs (touched only when used)
 *   arenas                  one per world rank: its send, receive and scratch buffers
 *
 * Every synchronisation word has one writer and a cache line of its own (128
 * bytes: adjacent lines are fetched together). Zero-filled memory is the
 * valid initial state.
 */
#ifndef CM_BASE_SHARED_H
#define CM_BASE_SHARED_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gpu.h"
#include "base/plan.h"

enum {
    CM_LINE = 128,
    CM_PAGE = 4096,
    CM_LL_DEPTH = 8,      /* LL slots of a rank */
    CM_LL_BYTES = 8192,   /* payload of one LL slot */
    CM_LL_INLINE = 48,    /* payload that fits beside the flag */
    CM_TEAM_BYTES = 4096, /* largest record of cm_team_gather */
    CM_TEXT = 512,
    CM_NOTE = 3584 /* text that travels in one control message */
};

/*
 * A worker's line. seq = (operation << CM_PHASE_BITS) | phase; written by the
 * owner with release, read by peers with acquire. in/out/scratch: where the
 * owner's buffers of this operation start (segment offsets), by parity of the
 * operation, valid once phase >= 1 is seen. sig: the operation's signature.
 */
struct cm_line {
    alignas(CM_LINE) _Atomic uint64_t seq;
    uint64_t in[2], out[2], scratch[2];
    _Atomic uint64_t sig[2]; /* a reader that finds a difference looks at seq again */
};

/*
 * LL slot: flag and up to CM_LL_INLINE bytes in one cache line, longer payloads
 * behind it. flag = (operation << 24) | 24 bits of the signature, release.
 */
struct cm_ll_slot {
    alignas(64) _Atomic uint64_t flag;
    uint64_t reserved;
    unsigned char near[CM_LL_INLINE];
    unsigned char far[CM_LL_BYTES];
};

/* Where a rank is in the program; cm_phase_text() gives the word. */
enum cm_phase_name {
    CM_AT_SETUP,
    CM_AT_WARMUP,
    CM_AT_TIMED,
    CM_AT_CHECK,
    CM_AT_SYNC,
    CM_AT_FINALIZE,
    CM_AT_DONE,
    CM_AT_SILENT, /* a rank on another node whose process does not answer */
    CM_NPHASES
};

/*
 * What a rank is doing, for the report of a time-out. Written by the owner,
 * relaxed. waits_for holds while beat_ns is fresh: a wait that succeeds has no
 * last call in which to take it back, so a waiting rank renews beat_ns instead.
 */
struct cm_diag {
    alignas(CM_LINE) _Atomic uint32_t phase; /* enum cm_phase_name */
    _Atomic int32_t waits_for;               /* world rank, -1: not waiting, -2: several/unknown */
    _Atomic int64_t beat_ns;                 /* cm_now_ns() of the last slow poll */
    _Atomic int64_t iter;                    /* iteration in the phase */
    _Atomic uint64_t bytes;                  /* size of the row */
    _Atomic uint32_t coll;                   /* enum cm_coll */
    _Atomic uint64_t op;                     /* operations started on the communicator */
    _Atomic uint64_t sig;                    /* signature of the current one */
    _Atomic uint32_t sig_parts[6];           /* coll, dtype, op, root, count low, count high */
    _Atomic uint32_t pid;
    _Atomic int32_t proc; /* the rank's process; of one elsewhere: who speaks for it */
    char host[64];        /* written once before the team's first barrier */
};

/* One rank's slot of the team (barrier and small all-gather of the harness). */
struct cm_team_slot {
    alignas(CM_LINE) _Atomic uint64_t seq;
    uint32_t length[2];                                     /* bytes in use, by parity of seq */
    alignas(CM_LINE) unsigned char bytes[2][CM_TEAM_BYTES]; /* by parity of seq */
};

struct cm_rank_shared {
    struct cm_line lines[CM_MAX_WORKERS];
    struct cm_ll_slot ll[CM_LL_DEPTH];
    struct cm_diag diag;
    struct cm_team_slot team;
    alignas(CM_PAGE) struct cm_gpu_hint hint; /* written by the rank's kernels: pinned by itself */
};

/* Abort: the first rank that fails wins the word; all waits look at it. */
struct cm_abort {
    alignas(CM_LINE) _Atomic uint32_t status; /* enum cm_status of the job, 0 = running */
    _Atomic uint32_t rank;                    /* who raised it */
};

/*
 * Why the job ended, where several domains of memory may find it out at once:
 * written by the rank that won the abort word, printed by the domain's leader.
 */
struct cm_abort_note {
    alignas(CM_LINE) _Atomic uint32_t bytes; /* of the text, release; 0: none */
    _Atomic uint32_t writers;                /* ranks that may be about to write it */
    _Atomic uint32_t said;                   /* it is printed, or another domain's in its place */
    _Atomic uint32_t passed;                 /* all domains know: processes may end */
    char text[CM_NOTE];
};

/* Who is about to report draws a number; the domain's leader then asks the other domains. */
struct cm_survey_line {
    alignas(CM_LINE) _Atomic uint32_t asked;
    _Atomic uint32_t answered; /* the highest number served, release */
};

struct cm_shared {
    struct cm_abort abort; /* the first page of the segment: kernels look at it */
    uint64_t bytes;        /* of the whole segment */
    uint32_t nranks;
    unsigned char token[16]; /* the job's random token; a mapper compares it */
    struct cm_abort_note note;
    struct cm_survey_line survey;
};
_Static_assert(sizeof(struct cm_shared) <= CM_PAGE, "the head of a segment is one page");

/* One FIFO's control lines; head and tail count slots, never wrap. */
struct cm_port_lines {
    alignas(CM_LINE) _Atomic uint64_t tail; /* slots filled: sender, release (protocol simple) */
    alignas(CM_LINE) _Atomic uint64_t head; /* slots freed: receiver, release */
};
/*
 * Head of one slot. flag: LL protocol, (slot number + 1), release after the payload.
 *
 * far_at: between nodes a payload of CM_FAR_BYTES or more need not go through the
 * slot. It is an address of the process that has this end of the port.
 *   Sending end: where the payload lies, 0: behind the head. The executor writes
 * it before tail, and leaves the memory alone until head has passed the slot.
 *   Receiving end: the executor may offer a place for a payload of far_bytes
 * (0 -> address, by exchange, release). Who carries the port closes the offer when
 * the slot begins to arrive (exchange, acquire): CM_FAR_CLOSED, the payload comes
 * behind the head; or the address again, it comes there. The executor stores 0
 * before it frees the slot.
 */
struct cm_slot_head {
    alignas(64) _Atomic uint64_t flag;
    uint64_t sig;           /* signature of the operation */
    uint64_t bytes;         /* of the payload */
    unsigned char near[24]; /* it, if it fits here; else it follows the head, or is far */
    _Atomic uint64_t far_at;
    uint64_t far_bytes;
};
enum { CM_FAR_CLOSED = 1, CM_FAR_BYTES = 16 << 10 };

/*
 * Sizes and offsets of a segment, computed alike by every process that maps it.
 * Ranks that do not share it have records in it (copies, which control.c keeps)
 * and ports with the ranks that do, but no arenas.
 */
struct cm_layout {
    int nranks;              /* world ranks */
    const int32_t *local_of; /* nranks: index among those that share it, -1: elsewhere; NULL: all
                                do, in world order */
    int nlocal;              /* how many share it; with local_of only */
    int channels, depth;     /* ports per ordered pair; slots per port, power of two */
    size_t slot_bytes;       /* payload of a slot, multiple of 64 */
    size_t arena_bytes;      /* of each rank, page multiple */
    size_t ranks_at, ports_at, arenas_at, total; /* filled by cm_layout_fill() */
};

/* Fill the offsets. CM_EINVAL if a size overflows. */
CM_MUST_CHECK enum cm_status cm_layout_fill(struct cm_layout *l);

static inline struct cm_rank_shared *cm_rank_shared(void *base, const struct cm_layout *l, int rank)
{
    return (struct cm_rank_shared *)((char *)base + l->ranks_at) + rank;
}

/* Index of a rank among those that share the segment, or -1. */
static inline int cm_local_of(const struct cm_layout *l, int rank)
{
    return l->local_of != NULL ? l->local_of[rank] : rank;
}

/* Offset of rank's arena; it must share the segment. */
static inline size_t cm_arena_at(const struct cm_layout *l, int rank)
{
    return l->arenas_at + (size_t)cm_local_of(l, rank) * l->arena_bytes;
}

/* Offset of the port src -> dst on `channel`, of which one at least must share the segment:
   struct cm_port_lines, then `depth` slots of cm_slot_stride() bytes. */
size_t cm_port_at(const struct cm_layout *l, int src, int dst, int channel);
size_t cm_slot_stride(const struct cm_layout *l);
size_t cm_port_stride(const struct cm_layout *l); /* from channel to channel, whole pages */

#endif
