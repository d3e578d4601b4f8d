/*
 * The simulator's side for hosts: run kernels of src/kernels on CPU fibers.
 *
 * One fiber per CUDA thread; every block of every launch is resident at once.
 * Fibers run on the host thread that calls cmsim_step(), one at a time, in an
 * order drawn from the seed. Any host thread may call, but only one at a time:
 * the caller serialises all calls (a lock, or one thread for all).
 *
 * What a kernel did is visible to the host once its launch has ended; host
 * stores made before cmsim_add() are visible to the kernel. While a launch is
 * live, host and kernel meet through atomics only, as on a real machine.
 */
#ifndef CM_TESTS_SIM_CMSIM_HOST_H
#define CM_TESTS_SIM_CMSIM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cmsim_launch {
    void (*thunk)(void **args); /* NAME_thunk of the kernel */
    const void *args;           /* its one struct; copied */
    size_t argbytes;            /* must be NAME_argbytes; the caller checks */
    unsigned grid_x, grid_y;    /* blocks */
    unsigned threads;           /* per block, 1 to CM_MAX_THREADS */
    int device;                 /* the instance of .gpu scope */
    unsigned first, count;      /* blocks of the grid to start; count 0: all from `first` on */
};

struct cmsim_options {
    uint64_t seed;             /* same seed and same calls: same order */
    bool in_order;             /* each fiber in its turn instead of a random one */
    unsigned preempt_permille; /* chance of a switch at an access of memory */
    bool external;             /* others may store flags too: no deadlock verdict */
    unsigned tear_permille;    /* chance of a switch between the 8-byte units of an access */
};

/* Applies from the next step on and seeds the order anew. Before the first call all is 0. */
void cmsim_configure(const struct cmsim_options *options);

/*
 * Start a kernel; it runs in cmsim_step(). Returns an id >= 0, counted from 0
 * since the last reset, or -1 for a bad geometry or no memory (cmsim_error).
 */
int cmsim_add(const struct cmsim_launch *launch);

/*
 * Run fibers until there are none, max_switches of them were resumed, or
 * something is wrong. Returns the number of launches that have not ended,
 * or -1 if there is an error; then nothing runs until cmsim_reset().
 */
int cmsim_step(unsigned max_switches);

/* All threads of the launch have returned. False for an id that was never given. */
bool cmsim_ended(int id);

/*
 * NULL, or what went wrong first: misuse of a barrier, a thread that left
 * before the last barrier, a misaligned access, a deadlock with who waits
 * where ... Several lines, without a final newline; valid until cmsim_reset().
 */
const char *cmsim_error(void);

/* Every live thread only waits: the caller may sleep before the next step. */
bool cmsim_idle_hint(void);

/* Forget all launches, ids and the error, and start the order anew; the options stay. */
void cmsim_reset(void);

#ifdef __cplusplus
}
#endif

#endif
