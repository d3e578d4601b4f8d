/*
 * A star of TCP connections: every process of a job is connected with process
 * 0, which gathers for all. For start and end only; data take other ways.
 *
 * A gather is a linear fan-in and fan-out at process 0: n messages to it, n
 * results of n * bytes from it. That is fine for set-up (a thousand processes
 * with a kilobyte each: a gigabyte leaves process 0), not for anything timed.
 *
 * Who connects shows the protocol and its version, a token (shake.h), then the
 * number of processes and its rank. One thread of each process at a time calls these
 * functions. Messages say "rank" for the number that the environment gave a process.
 */
#ifndef CM_TRANSPORT_HUB_H
#define CM_TRANSPORT_HUB_H

#include "transport/net.h"

struct cm_hub;

struct cm_hub_args {
    int proc, nprocs;                  /* mine, and how many; nprocs >= 2 */
    const char *rank_name, *size_name; /* how users call them: "RANK", "WORLD_SIZE" */
    const char *host;                  /* where I am, for messages of others */
    uint64_t machine;                  /* the same for processes whose messages a user sees in
                                           one place: process 0 speaks for all of its machine */
    unsigned char token[CM_NET_TOKEN]; /* of process 0: what the others must show */
    int64_t meet_ns;                   /* so long all may take to come */
    int64_t note_ns;                   /* a gather that takes longer says who is missing */
    int64_t patience_ns;               /* one that takes longer fails */
    int64_t end_ns;                    /* so long all may take to come to the end */
};

/* Where process 0 may be. */
struct cm_hub_target {
    struct cm_net_addr addr;
    unsigned scope; /* of a link-local address */
    unsigned char token[CM_NET_TOKEN];
};

/* How the others find it; asked before each try. */
struct cm_hub_finder {
    void *arg;
    /* False: not known yet. May block as long as a name server or a file system does. */
    bool (*next)(void *arg, struct cm_hub_target *out);
    /* "MASTER_ADDR=a MASTER_PORT=1", and what is wrong with it if next() said false. */
    void (*describe)(void *arg, char *buf, size_t size);
};

/*
 * Process 0: wait until all others have joined. `listener` is from
 * cm_net_listen() and stays the caller's, `where` is for messages. Whoever
 * else comes is dropped, with a note for the first few, and holds nobody up.
 * Raises the soft limit of open files if it must.
 *
 * CM_ETIMEOUT: some did not come; they are named. CM_EINVAL: two have the same
 * rank, or another idea of how many they are. CM_ESYS: one died meanwhile, or
 * too few files may be open. CM_ENOMEM. The others end with the same exit code.
 */
CM_MUST_CHECK enum cm_status cm_hub_host(const struct cm_hub_args *a, int listener,
                                         const char *where, struct cm_hub **out);

/*
 * The others: connect with process 0, which may come later, and wait until it
 * says that all are there. CM_ETIMEOUT: it was not found, logged with the
 * reason; or it did not say so. Else what process 0 found (it logs).
 */
CM_MUST_CHECK enum cm_status cm_hub_join(const struct cm_hub_args *a, const struct cm_hub_finder *f,
                                         struct cm_hub **out);

/* Does a process 0 wait there that knows the token? Blocks for `limit_ns` at most. It notes a
   dropped connection. */
bool cm_hub_waits_at(const struct cm_hub_target *t, int64_t limit_ns);

/*
 * As cm_boot.gather has it. Sizes may differ from call to call, not between
 * processes (CM_EMISMATCH). CM_ESYS: a process died, it is named;
 * CM_ETIMEOUT: one stayed away for too long. After a failure all processes
 * fail, now and in later calls, with statuses of the same exit code.
 */
CM_MUST_CHECK enum cm_status cm_hub_gather(struct cm_hub *h, const void *mine, size_t bytes,
                                           void *all);

/*
 * The end: wait for all, so that nobody sees a connection break that it still
 * needs. The exit code of the job, the same in all processes: that of process
 * 0 if it is not 0, else the first that is not; CM_EXIT_SYSTEM or
 * CM_EXIT_TIMEOUT (named) if one died before or did not come within end_ns.
 */
CM_MUST_CHECK enum cm_exit cm_hub_finish(struct cm_hub *h, enum cm_exit code);

/* Tell the others that the job ends with `code`: they learn it in the call they are in, or in the
   next. Process 0 passes it on. Blocks for half a second at most. */
void cm_hub_kill(struct cm_hub *h, enum cm_exit code);

/* Hang up. NULL is fine. */
void cm_hub_close(struct cm_hub *h);

#endif
