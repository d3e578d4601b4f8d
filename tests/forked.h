/*
 * Processes for tests, without MPI: forked children that find each other
 * through a page of shared memory. forked_run() forks n of them; each gets a
 * cm_boot and ends with the result of its function as exit code.
 */
#ifndef CM_TESTS_FORKED_H
#define CM_TESTS_FORKED_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/boot.h"
#include "base/clock.h"

enum { FORKED_MAX = 16, FORKED_BYTES = 4096, FORKED_GATHER_S = 20 };

/* Shared by the children. Two buffers: nobody starts gather k+2 before all have read k. */
struct forked_area {
    _Atomic int arrived[FORKED_MAX]; /* gathers so far */
    _Atomic int64_t note;            /* free for the test */
    unsigned char bytes[2][FORKED_MAX][FORKED_BYTES];
};

static inline enum cm_status forked_gather(const struct cm_boot *b, const void *mine, size_t bytes,
                                           void *all)
{
    struct forked_area *a = b->ctx;
    int turn = atomic_load(&a->arrived[b->proc]);
    int64_t until = cm_now_ns() + FORKED_GATHER_S * (int64_t)CM_NS_PER_S;

    if (bytes > FORKED_BYTES)
        return CM_EINVAL;
    memcpy(a->bytes[turn % 2][b->proc], mine, bytes);
    atomic_store(&a->arrived[b->proc], turn + 1);
    for (int p = 0; p < b->nprocs; p++) {
        while (atomic_load(&a->arrived[p]) <= turn) {
            if (cm_now_ns() > until)
                return CM_ETIMEOUT;
            sched_yield();
        }
        memcpy((char *)all + (size_t)p * bytes, a->bytes[turn % 2][p], bytes);
    }
    return CM_OK;
}

typedef int forked_fn(struct cm_boot *b, void *arg);

/* status[n]: as waitpid() gives it. False: the processes could not be made. */
static inline bool forked_run(int n, forked_fn *child, void *arg, int *status)
{
    struct forked_area *a =
        mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[FORKED_MAX];
    int made = 0;

    if (a == MAP_FAILED)
        return false;
    fflush(NULL);
    for (; made < n && (pid[made] = fork()) >= 0; made++) {
        struct cm_boot b = {.proc = made, .nprocs = n, .ctx = a, .gather = forked_gather};

        if (pid[made] == 0) {
            int rc = child(&b, arg);

            fflush(NULL);
            _exit(rc);
        }
    }
    for (int p = 0; p < made; p++)
        waitpid(pid[p], &status[p], 0);
    munmap(a, sizeof(*a));
    return made == n;
}

/* Wait for all children of the run. */
static inline bool forked_meet(const struct cm_boot *b)
{
    char mine = 0, all[FORKED_MAX];

    return forked_gather(b, &mine, 1, all) == CM_OK;
}

#endif
