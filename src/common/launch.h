/*
 * From a process to ranks: bootstrap (alone, MPI or TCP), the node's segment, one
 * thread per rank, the watchdog, and the end of all of them.
 */
#ifndef CM_COMMON_LAUNCH_H
#define CM_COMMON_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/boot.h"
#include "base/trace.h"
#include "base/wait.h"
#include "common/backend.h"
#include "common/inject.h"
#include "common/opts.h"
#include "common/team.h"
#include "transport/wire.h"

/*
 * A way to start processes. All of it runs on the process's main thread.
 * mpi.h is included by launch_mpi.c only, which is linked only when built with
 * MPI: the weak symbol is NULL otherwise.
 */
struct cm_launcher {
    const char *name; /* "alone", "mpi", "env" */
    enum cm_status (*start)(int *argc, char ***argv, const struct cm_opts *o, struct cm_boot *out);
    /* Orderly end. The exit code of the process: `code`, or that of the others if it is 0. */
    enum cm_exit (*finish)(struct cm_boot *b, enum cm_exit code);
    void (*kill)(struct cm_boot *b, enum cm_exit code); /* end the whole job now; does not return */
    /* "Open MPI v4.1.4, /usr/lib/.../libmpi.so.40" into buf, or how it went without; false:
       there is nothing to say */
    bool (*library)(const struct cm_boot *b, char *buf, size_t size);
};
extern const struct cm_launcher cm_launcher_alone, cm_launcher_net;
extern const struct cm_launcher cm_launcher_mpi __attribute__((weak));

/* Facts about one world rank, known everywhere before anything is printed. */
struct cm_rank_info {
    int32_t rank, proc, thread, device, node, group, group_rank, pid;
    int32_t numa;  /* node of those CPUs, -1: several or unknown */
    char host[64]; /* short host name */
    char boot_id[40];
    char cpus[64]; /* CPUs of the rank's thread, "0-1"; one if it is pinned */
    char cpu[64];  /* model name of the CPU */
    /* CUDA backend: `device` is CUDA's index in the rank's process */
    char gpu[64];    /* name of the device, "" on the host */
    char bus_id[16]; /* "0000:1b:00.0" */
};

/* Are two ranks on the same GPU? */
bool cm_same_gpu(const struct cm_rank_info *a, const struct cm_rank_info *b);

struct cm_bootstrap;
struct cm_tune;
struct cm_network;
struct cm_probes;
struct cm_pairs;
struct cm_watchdog;

/* What a rank's thread gets. Pointers are valid until the thread returns. */
struct cm_rank {
    int rank, n;        /* world */
    int group, ngroups; /* index of its split group; groups numbered by lowest rank */
    int group_rank, group_n;
    const int32_t *group_world; /* world ranks of the group, group_n entries */
    const int32_t *node_of;     /* node of every world rank */
    const struct cm_topo *topo; /* --topo FILE; NULL: the machine is as it shows itself */
    const int32_t *topo_gpu;    /* with it: the GPU of every world rank */
    const struct cm_opts *opts;
    const struct cm_tune *rules;        /* --tuning, or NULL */
    const struct cm_inject *inject;     /* as it concerns this rank in its group */
    const struct cm_inject *job_inject; /* as given */
    const struct cm_rank_info *infos;   /* of all n ranks */
    struct cm_segment *segment;
    const struct cm_layout *layout;
    void *base;
    struct cm_waiter waiter; /* timeout_ns may be changed by the rank */
    struct cm_team team;
    struct cm_watchdog *watchdog;         /* of the process, see cm_watchdog_last_words() */
    const struct cm_trace *trace;         /* --debug */
    const _Atomic int *signal;            /* != 0: SIGINT or SIGTERM came to this process */
    const char *wire;                     /* name of the wire in use, inside of a domain */
    const struct cm_network *network;     /* between domains; NULL: all ranks share memory */
    const struct cm_pairs *pairs;         /* who has ports to other domains; NULL likewise */
    const struct cm_probes *probes;       /* how far cores are apart; NULL: not probed */
    const struct cm_bootstrap *bootstrap; /* how long the start took; NULL: not known */
    const char *library;                  /* MPI library text or NULL */
    bool oversubscribed;                  /* more local ranks than allowed CPUs */
    size_t arena_bytes;                   /* of the rank's buffers, where the backend has them */
    const struct cm_backend *backend;     /* NULL: host */
    struct cm_rank_gpu gpu;
    int gpu_driver, gpu_runtime; /* CUDA versions, 13000 is 13.0; 0 on the host */
    bool shared_gpus;            /* some ranks share a GPU */
    const char *no_gpu;          /* --backend auto fell back to the host: why, else NULL */
};

/*
 * Body of a rank. Its status joins the job's: the worst of all ranks decides
 * every exit code. CM_OK, CM_EDATA and CM_ETRUNC are orderly: all ranks run to
 * their end. Any other ends the job at once, because ranks may wait for this one.
 */
typedef enum cm_status cm_rank_fn(struct cm_rank *r, void *arg);
typedef enum cm_status cm_arena_fn(const struct cm_opts *o, int n, const struct cm_room *room,
                                   void *arg, size_t *out);

/*
 * Run `body` on every rank of the job and return this process's exit code, the
 * same in all processes. `arena` tells how many bytes each rank's arena needs
 * for n ranks, of which room->ranks share room->bytes (called once the number
 * of ranks is known; it may refuse with a logged status, which ends the job
 * with that code). Owns bootstrap, segment,
 * threads, signals and watchdog, and the faults of the phases init and finalize.
 * When `body` starts, all ranks have passed a barrier and the rank's arena is
 * reserved; its records in the segment say phase init, iteration 0.
 */
enum cm_exit cm_launch(int *argc, char ***argv, const struct cm_opts *o, cm_arena_fn *arena,
                       cm_rank_fn *body, void *arg);

#endif
