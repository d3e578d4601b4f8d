/*
 * What a perf driver is: a descriptor and CM_MAIN. The harness owns all loops.
 */
#ifndef CM_COMMON_COLL_H
#define CM_COMMON_COLL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"

/*
 * Sizes of one row, in elements. in_step, out_step: where this collective's
 * in-place form puts IN and OUT inside one buffer, as a multiple of the rank
 * (all_gather: IN at rank x base, OUT at 0).
 */
struct cm_counts {
    size_t send, recv;        /* elements of IN and OUT */
    size_t param;             /* the count column; also cm_op_args.count */
    size_t alg;               /* elements that algbw counts */
    size_t in_step, out_step; /* in place: offset = step * rank */
};

struct cm_bench {
    enum cm_coll coll;
    const char *what;            /* one line for --help */
    double (*bus_factor)(int n); /* busbw = algbw x this */
    bool without_own;            /* algbw counts all blocks but the rank's own */
    /* redop column: NULL: the operation's name, and -o all loops; else this text */
    const char *redop_column;
};

/*
 * Sizes of the row of `elems` elements of `bytes` each on n ranks. They follow
 * from the blocks of IN and OUT in cm_colls and are rounded as nccl-tests does:
 * where ranks have blocks, a block is elems / n, a multiple of 16 bytes.
 */
void cm_counts_of(const struct cm_bench *b, size_t elems, size_t bytes, int n,
                  struct cm_counts *out);

/* Of n equal shares one stays where it is: (n - 1) / n. */
static inline double cm_bus_all_but_own(int n)
{
    return (double)(n - 1) / n;
}

static inline double cm_bus_once(int n)
{
    (void)n;
    return 1;
}

/* The whole program. Returns the exit code. */
int cm_bench_main(const struct cm_bench *b, int argc, char **argv);

#define CM_MAIN(bench)                              \
    int main(int argc, char **argv)                 \
    {                                               \
        return cm_bench_main(&(bench), argc, argv); \
    }

#endif
