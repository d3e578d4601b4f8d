/*
 * The runtime's own data: launches, blocks, fibers and the scheduler's state.
 * Included by cmsim*.cc only.
 *
 * These files are compiled without sanitizers, and what runs on a fiber here
 * calls neither malloc nor mem* nor str*: a sanitizer would take the runtime's
 * bookkeeping for accesses of the kernel.
 */
#ifndef CM_TESTS_SIM_CMSIM_CORE_H
#define CM_TESTS_SIM_CMSIM_CORE_H

#include "kernels/cm_device.h"
#include "cmsim_host.h"

enum {
    CMSIM_SHARED_BYTES = 48 << 10, /* static shared memory of a block, as in CUDA */
    CMSIM_SHARED_VARS = 32,        /* CM_SHARED variables of a block */
    CMSIM_TEXT = 8192,             /* bytes of an error's text */
    CMSIM_AHEAD = 3,               /* fibers drawn before their turn */
    CMSIM_IDLE = 4,                /* mappings of ended launches kept for the next */
    /*
     * A thread waits in vain if it has polled that often since the last
     * progress. More than the polls between two looks at the abort word
     * (CM_GPU_POLLS): a thread that is about to look still moves.
     */
    CMSIM_POLLS = 6144
};

struct cmsim_block;
struct cmsim_run;

enum cmsim_state { CMSIM_READY, CMSIM_BLOCKED, CMSIM_RETURNED };

struct cmsim_fiber {
    struct cmsim_thread self;
    enum cmsim_state state;
    struct cmsim_block *block;
    size_t place; /* in core.ready, if CMSIM_READY */
    /* the last wait: a barrier if BLOCKED, else a poll if polls > 0 */
    struct cmsim_site at;
    const void *address;
    uint64_t value;
    uint64_t seen;  /* core.progress at these polls */
    uint32_t polls; /* since then */
    char *stack;    /* lowest address */
    size_t stack_bytes;
    void *context; /* where to resume it */
    void *tsan;    /* ThreadSanitizer's name for it */
    void *fake;    /* AddressSanitizer's frames of it */
};

struct cmsim_block {
    struct cmsim_run *run;
    struct cmsim_fiber *fibers;
    uint32_t number; /* in the grid */
    uint32_t arrived, returned;
    /* the barrier that gathers now; threads of the one before may still be leaving theirs */
    uint32_t generation;
    enum cmsim_barrier kind;
    struct cmsim_site at;
    bool any;
    bool result[2]; /* by parity of the generation; its addresses are the barriers' tokens, too */
    uint64_t token[2];
    /* shared memory */
    char *shared;
    size_t shared_used;
    uint32_t nvars;
    struct {
        const void *key;
        void *at;
    } vars[CMSIM_SHARED_VARS];
};

/* A launch that has not ended. All of it is one mapping, which starts with this. */
struct cmsim_run {
    struct cmsim_run *next; /* in core.runs */
    int id, device;
    void (*thunk)(void **);
    void *args;
    uint32_t nblocks, threads; /* blocks: of this part of the grid */
    size_t nfibers, live;      /* live: fibers that have not returned */
    struct cmsim_block *blocks;
    struct cmsim_fiber *fibers;
    size_t bytes;  /* of the mapping */
    uint64_t done; /* token: what the fibers did, for the host */
};

enum cmsim_fault {
    CMSIM_FINE,
    CMSIM_BARRIER_MIXED, /* threads of a block wait in different barriers */
    CMSIM_BARRIER_LEFT,  /* one returned, others wait */
    CMSIM_MISALIGNED,
    CMSIM_OTHER_DEVICE, /* .gpu scope between devices */
    CMSIM_SHARED_FULL,
    CMSIM_STACK_FULL,
    CMSIM_TOKENS_FULL,
    CMSIM_DEADLOCK,
    CMSIM_GEOMETRY,
    CMSIM_NO_MEMORY
};

/* A fault is noted where it happens, on a fiber, and put into words on the host's stack. */
struct cmsim_failure {
    enum cmsim_fault fault;
    const struct cmsim_fiber *who;
    struct cmsim_site at;
    const void *address;
    uint64_t number; /* what the fault's text needs: an alignment, a device, bytes ... */
};

/*
 * All of the simulator's state. A plain global on purpose: a fiber may be
 * resumed by another host thread than the one that ran it before, and a
 * compiler may keep the address of a thread-local variable over the switch.
 */
struct cmsim_core {
    struct cmsim_options options;
    uint64_t random;            /* state of the generator */
    struct cmsim_fiber *now;    /* the running fiber, or NULL */
    struct cmsim_fiber **ready; /* nready of them may run */
    size_t nready, nfibers, ready_cap, turn;
    struct cmsim_fiber *ahead[CMSIM_AHEAD]; /* the next ones if still ready; or NULL */
    uint64_t slow;                          /* a bit per block, modulo 64: held back for a while */
    uint64_t switches, next_scan;
    uint64_t progress;                 /* stores, atomics and returns so far */
    int64_t until_preempt, until_tear; /* accesses left before a switch */
    struct cmsim_run *runs;            /* live launches, newest first */
    int nlive, next_id;
    struct cmsim_failure failure;
    char text[CMSIM_TEXT];
    struct {
        char *base;
        size_t bytes;
    } idle[CMSIM_IDLE];
    unsigned next_idle; /* the place for the next one */
    /* the host thread that runs fibers now */
    void *host_context, *host_tsan;
    const void *host_stack;
    size_t host_stack_bytes;
};
extern struct cmsim_core cmsim_core;

/* ---- cmsim.cc: for calls on a fiber --------------------------------------------------------- */

/* Accesses up to the next switch. */
int64_t cmsim_preempt_gap(void);
int64_t cmsim_tear_gap(void);
/* Let others run; the fiber stays ready, or is BLOCKED until cmsim_wake(). */
void cmsim_yield(void);
void cmsim_block_self(void);
void cmsim_wake(struct cmsim_fiber *f);
/* Note a fault of the running fiber and leave it for good. */
[[noreturn]] void cmsim_fail(enum cmsim_fault fault, struct cmsim_site at, const void *address,
                             uint64_t number);

/* ---- the others ----------------------------------------------------------------------------- */

/* cmsim_run.cc: launch->count > 0 blocks, ready to be scheduled; NULL: no memory. */
struct cmsim_run *cmsim_run_create(const struct cmsim_launch *launch, void (*entry)(void));
/* All that fibers did becomes visible to the host; their memory goes. */
void cmsim_run_destroy(struct cmsim_run *run);

/* cmsim_scope.cc: a launch has ended; after the last one all tokens and owners are forgotten. */
void cmsim_scope_end(const struct cmsim_run *run);

/* cmsim_report.cc: put core.failure into words. */
void cmsim_report(void);

/* A thread that only polled since the last progress, at least so often. */
static inline bool cmsim_waits(const struct cmsim_fiber *f, uint32_t polls)
{
    return f->state != CMSIM_READY || (f->seen == cmsim_core.progress && f->polls >= polls);
}

#endif
