/*
 * What the host and the kernels share about a rank's GPU memory.
 *
 * Plain data that C, CUDA C++ and the simulator's C++ lay out alike: fixed
 * widths, addresses as uint64_t. Positions are offsets from an area's base.
 *
 * Areas. Each rank owns one device allocation, its area: state, lines, port
 * words and slots, LL inbox, then the harness's arena (IN, OUT, scratch).
 * Peers that can address it ("near") write there. For pairs without peer
 * access both ranks have a second area with the same offsets in pinned host
 * memory ("far"); its arena is unused. So for every peer there are two bases,
 * `mine` (where it writes for me) and `theirs` (where I write for it), and all
 * code above them is the same.
 *
 * Ranks that share no memory ("remote": on another node) have ports only, of
 * protocol simple, and those of the node's segment (base/shared.h), which a wire
 * carries: both ends are in pinned host memory here.
 *
 * Every synchronisation word has one writer and a 128-byte line of its own.
 * Zero-filled memory is the valid initial state. All counters live here and
 * never in kernel parameters, so that a captured graph can be replayed.
 */
#ifndef CM_BASE_GPU_H
#define CM_BASE_GPU_H

#include <stdint.h>

enum {
    CM_GPU_RANKS = 72,   /* ranks of a communicator on GPUs */
    CM_GPU_BLOCKS = 128, /* thread blocks of a rank in one operation */
    CM_GPU_GANG = 16,    /* ranks in one launch */
    CM_GPU_PROTOS = 2,   /* a channel has a port of protocol simple and one of LL: payload of the
                            one must never be read as flags of the other */
    CM_GPU_LINE = 128,
    CM_GPU_SLOT_HEAD = 16, /* bytes before a slot's payload: signature, reserved */
    CM_GPU_POLLS = 2048    /* polls between two looks at the abort word */
};

/*
 * Line of one block of one rank, in a reader's area. seq = (operation <<
 * CM_PHASE_BITS) | phase, written last with release.sys. in, out: offsets in
 * the writer's area of this operation's buffers, by parity of the operation;
 * sig: its signature. Valid once phase >= 1 is seen.
 */
struct cm_gpu_line {
    uint64_t seq;
    uint64_t in[2], out[2], sig[2];
    uint64_t reserved[9];
};

/* tail: slots filled, in the receiver's area; head: slots freed, in the sender's. release.sys. */
struct cm_gpu_word {
    uint64_t value;
    uint64_t reserved[15];
};

/* A port to or from a remote rank as kernels see it: struct cm_port_lines, then its slots. */
struct cm_gpu_port {
    struct cm_gpu_word tail, head;
};

/* Head of such a slot: struct cm_slot_head. Kernels leave flag and far alone, both ends. */
struct cm_gpu_slot_head {
    uint64_t flag;
    uint64_t sig;
    uint64_t bytes; /* of the payload, which is `near` if it fits there, else behind us */
    unsigned char near[24];
    uint64_t far[2];
};

/* Slots filled and freed so far on the two ports between me and a peer, one channel. Own use. */
struct cm_gpu_count {
    uint64_t sent, received;
};

/* LL: 8 bytes of payload and twice the same flag; each half is stored and loaded whole. */
struct cm_gpu_ll {
    uint32_t data0, flag0, data1, flag1;
};

/* Sizes and offsets of an area, computed alike by all ranks: cm_gpu_area_fill(). */
struct cm_gpu_area {
    uint32_t n, channels, depth; /* ranks; channels of a pair; slots of a port */
    uint32_t ll_mask;            /* LL flags count modulo this + 1; 0xffffffff but in tests */
    uint64_t slot_bytes;         /* payload of a slot (LL: half of it), multiple of 128 */
    uint64_t inbox_bytes;        /* payload of an LL inbox per peer, multiple of 128 */
    uint64_t arena_bytes;        /* multiple of 4096 */
    /* filled; ports = CM_GPU_PROTOS x channels, those of LL behind the simple ones */
    uint64_t slot_stride; /* bytes from slot to slot */
    uint64_t lines_at;    /* [n][CM_GPU_BLOCKS] cm_gpu_line: of block b of rank r */
    uint64_t tails_at;    /* [n][ports] cm_gpu_word: of the port from r to me */
    uint64_t heads_at;    /* [n][ports] cm_gpu_word: of the port from me to r */
    uint64_t counts_at;   /* [n][ports] cm_gpu_count: device area only */
    uint64_t slots_at;    /* [n][ports][depth] slots of the ports from r to me */
    uint64_t inbox_at;    /* [2][n] LL lines of 2 * inbox_bytes, by parity of the LL epoch */
    uint64_t arena_at;
    uint64_t sync_bytes; /* all but the arena: size of a far area */
    uint64_t bytes;      /* all */
};

/* Where a peer is, as addressed by this rank's device. */
struct cm_gpu_peer {
    uint64_t mine, theirs; /* bases, see above; for oneself both are the own area; 0: remote */
    uint64_t data;         /* the peer's area for pull and push; 0: out of reach */
    uint64_t scratch;      /* address of its scratch; 0: out of reach */
    uint64_t send, recv;   /* remote: struct cm_gpu_port of channel 0 to it, from it; 0: not used */
};

/* Progress of a waiting block, for the report of a time-out; in pinned host memory. */
struct cm_gpu_hint {
    uint32_t beats;    /* grows while a block of the rank waits */
    uint32_t peer;     /* rank it waits for */
    uint32_t stranger; /* 0, or 1 + a rank that runs another operation */
    uint32_t done;     /* operations that ended, modulo 2^32: while it grows, no wait is too long */
};

/* Start of a rank's device area. Written by the host before the first launch, then by kernels. */
struct cm_gpu_state {
    uint64_t magic;
    uint32_t rank;
    uint32_t stopped; /* not 0: the job was aborted; launches still queued leave at once */
    uint64_t abort;   /* address of a uint32_t in pinned host memory: not 0 ends all waits */
    uint64_t hint;    /* address of this rank's struct cm_gpu_hint */
    struct cm_gpu_area area;
    uint64_t remote_port, remote_slot; /* bytes from channel to channel, from slot to slot */
    struct cm_gpu_peer peers[CM_GPU_RANKS];
    /* operations done, LL inbox epochs done; entry b is block b's, kept equal for all blocks */
    uint64_t op[CM_GPU_BLOCKS], epoch[CM_GPU_BLOCKS];
};
#define CM_GPU_MAGIC 0x6b72616d6c6c6f63ull

/* ---- a bound plan on the device -------------------------------------------------------------- */

struct cm_gpu_operand {
    uint64_t at;    /* bytes from the space's start */
    int32_t rank;   /* owner, or a port's peer */
    uint32_t space; /* enum cm_space */
};

struct cm_gpu_wait {
    int32_t rank;
    uint32_t line;  /* worker of that rank */
    uint32_t phase; /* > 0 */
    uint32_t learn; /* 1: the line also tells where that rank's buffers are */
};

enum { CM_GPU_POST = 1, CM_GPU_DIVIDE = 2, CM_GPU_DONE_FIRST = 4 };
struct cm_gpu_fold {
    uint32_t from, nfrom, to, nto, wait, nwait; /* ranges of the plan's pools; to == from + nfrom */
    uint32_t flags;
    uint32_t reserved;
    uint64_t len;  /* elements, over all passes and repetitions */
    uint64_t each; /* of one repetition: [rep * each, ...), cut at len (cm_share_each) */
};

struct cm_gpu_worker {
    uint32_t first, nfolds;
    uint32_t channel, line;
};

/* The workers of a plan; each is run by `reps` blocks, which share every chunk (cm_share). */
struct cm_gpu_plan {
    uint64_t folds, operands, waits; /* addresses of arrays */
    uint64_t cap, npasses;           /* elements of a slot; passes over the folds */
    uint64_t scratch_step;           /* bytes from one block's part of SCRATCH to the next one's */
    uint32_t nworkers, reps;
    uint32_t ports; /* some operand is a port, or some rank is remote: there are no lines to post */
    uint32_t reserved;
    struct cm_gpu_worker workers[16]; /* CM_MAX_WORKERS */
};

/* ---- arguments of the kernels ---------------------------------------------------------------- */

enum { CM_GPU_ALL = -1, CM_GPU_NOBODY = -2 };

/*
 * What one rank does in one launch. PLAN kernels use `plan`. SHOT (one
 * exchange through the LL inboxes): send `bytes` from in + q * send_step to
 * each q of send_to; take `bytes` from each p of recv_from, reduce all of them
 * to `out` or store that of p at out + p * recv_step. PASS (one direct fold
 * between an arrive and an exit barrier): reduce `len` elements at `from_at`
 * of IN of ranks [from, from + nfrom) into `to_at` of OUT of [to, to + nto).
 */
struct cm_gpu_rank {
    uint64_t base;    /* the rank's area: struct cm_gpu_state */
    uint64_t in, out; /* this rank's buffers, inside its area */
    uint64_t plan;    /* struct cm_gpu_plan */
    int32_t send_to, recv_from;
    uint64_t bytes, send_step, recv_step;
    uint64_t from_at, to_at, len, each; /* each: elements of one block's share */
    int32_t from, nfrom, to, nto;
};

/*
 * One launch: grid (blocks, nranks). The constants of the operation are the
 * same for all ranks. The element type and the functor choose the kernel.
 */
struct cm_gpu_args {
    uint32_t nranks;  /* ranks played by this launch: 1, or the gang on this device */
    uint32_t blocks;  /* of each rank */
    uint32_t n;       /* ranks of the communicator */
    uint32_t reduces; /* SHOT: reduce, else concatenate */
    uint64_t sig;
    int32_t divisor;    /* avg: n, else 1 */
    uint32_t is_signed; /* integers: how to divide */
    uint32_t premul;    /* mulsum: IN of odd ranks counts twice */
    uint32_t reserved;
    uint64_t flip; /* min, max: bits turned before and after taking the maximum */
    struct cm_gpu_rank rank[CM_GPU_GANG];
};

#ifndef __cplusplus
#include "base/status.h"

_Static_assert(sizeof(struct cm_gpu_line) == CM_GPU_LINE, "one line");
_Static_assert(sizeof(struct cm_gpu_word) == CM_GPU_LINE, "one line");
_Static_assert(sizeof(struct cm_gpu_fold) == 48, "read by kernels");
_Static_assert(sizeof(struct cm_gpu_operand) == 16, "read by kernels");
_Static_assert(sizeof(struct cm_gpu_args) <= 4096, "limit of kernel parameters");

/* Fill the offsets. CM_EINVAL: bad geometry, or a size overflows. */
CM_MUST_CHECK enum cm_status cm_gpu_area_fill(struct cm_gpu_area *a);
#endif

#endif
