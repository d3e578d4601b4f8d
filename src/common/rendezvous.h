/*
 * Start-up without MPI: which process am I, where is process 0, and what proves
 * that we belong together. Reads the environment; private to the launchers.
 *
 * Who starts the processes ("launcher" of launch.h), first that fits:
 *   1. --rendezvous mpi, env or file:PATH says so.
 *   2. MPI, if it is built in and variables of an MPI launcher are there (PMI,
 *      PMIx, Open MPI, ...): under mpirun and srun --mpi=... it wins even if
 *      RANK is set as well.
 *   3. This file, if RANK and WORLD_SIZE are set (torchrun, or by hand).
 *   4. This file, in a step of Slurm with several tasks (srun without --mpi).
 *   5. A process alone.
 *
 * Which process: RANK and WORLD_SIZE; else the variables of an MPI launcher;
 * else SLURM_PROCID and SLURM_STEP_NUM_TASKS.
 *
 * Where process 0 is: MASTER_ADDR, else the first host of SLURM_STEP_NODELIST;
 * MASTER_PORT, else in a step of Slurm a port from 20000 to 28191 that job and
 * step decide on. Where torchrun itself listens at MASTER_PORT
 * (TORCHELASTIC_USE_AGENT_STORE=True), it is the port after that.
 *
 * What proves it: a token made of COLLMARK_JOB; else of TORCHELASTIC_RUN_ID and
 * TORCHELASTIC_RESTART_COUNT; else of a Slurm step's job and number; else none.
 * It keeps out mistakes; a secret COLLMARK_JOB or file:PATH, whose token is
 * random, keep out other users too.
 *
 * LOCAL_RANK is not needed: processes that see the same GPUs share them out in
 * the order of their ranks (world_gpu.c).
 */
#ifndef CM_COMMON_RENDEZVOUS_H
#define CM_COMMON_RENDEZVOUS_H

#include <stdint.h>

#include "transport/hub.h"

enum cm_start { CM_START_ALONE, CM_START_MPI, CM_START_NET };

/* By the rule above. `how`: --rendezvous, or NULL. CM_EUNSUP, logged: mpi, without MPI. */
CM_MUST_CHECK enum cm_status cm_rendezvous_choose(const char *how, bool has_mpi,
                                                  enum cm_start *out);

struct cm_identity {
    int rank, size;                    /* 0 <= rank < size <= CM_MAX_RANKS */
    const char *rank_name, *size_name; /* the variables */
};

/* CM_EINVAL, logged with the variable: not set, no number, or out of range. */
CM_MUST_CHECK enum cm_status cm_rendezvous_whoami(struct cm_identity *out);

/* ---- --rendezvous env ---- */

enum { CM_PLACE_HOST = 256, CM_PLACE_TEXT = 400, CM_PLACE_ADDRS = 8 };

struct cm_place {
    char host[CM_PLACE_HOST]; /* name or address */
    uint16_t port;
    char text[CM_PLACE_TEXT]; /* "MASTER_ADDR=a MASTER_PORT=1", for messages */
    struct cm_hub_target addrs[CM_PLACE_ADDRS];
    int naddrs, next;
};

/* Where process 0 is, by the environment; no addresses yet. CM_EINVAL, logged. */
CM_MUST_CHECK enum cm_status cm_place_read(struct cm_place *out);

/*
 * Ask for the addresses of the host, all with `token`. Blocks: what fails is
 * tried again for `limit_ns`, and the system's own time-outs come on top.
 * CM_EINVAL, logged: there are none.
 */
CM_MUST_CHECK enum cm_status cm_place_resolve(struct cm_place *p,
                                              const unsigned char token[CM_NET_TOKEN],
                                              int64_t limit_ns);

/*
 * Listen there: at the first address that is this machine's; at all of the
 * machine's if none is (the name may belong to a service that leads here), or
 * if a name leads to loopback here only. CM_ESYS, logged.
 */
CM_MUST_CHECK enum cm_status cm_place_listen(const struct cm_place *p, int *listener,
                                             struct cm_net_addr *at);

/* For cm_hub_join(): all addresses in turn. `arg`: a struct cm_place. */
bool cm_place_next(void *arg, struct cm_hub_target *out);
void cm_place_describe(void *arg, char *buf, size_t size);

/* The token of the environment; all zero: it has none. */
void cm_rendezvous_token(unsigned char token[CM_NET_TOKEN]);

/* First host of "node[01-04,7],b3" into host[size]; false: it does not parse or fit. */
bool cm_hostlist_first(const char *list, char *host, size_t size);

/* The port of a step of Slurm, 20000 to 28191. */
uint16_t cm_slurm_port(int64_t job, int64_t step);

/* ---- --rendezvous file:PATH ---- */

struct cm_meeting_file {
    const char *path;
    unsigned scope;          /* index of the interface here, for an address of the link only */
    char why[CM_PLACE_TEXT]; /* nothing was found, because */
};

/*
 * Process 0: put address and token into `path`, for this user's eyes only and
 * at once (rename). A file of an older job goes; any other file, or one whose
 * job still waits, is refused (CM_EINVAL). CM_ESYS. All logged.
 */
CM_MUST_CHECK enum cm_status cm_meeting_publish(const char *path, const struct cm_hub_target *at);

/* Process 0: remove it, if it is still the one with this token. */
void cm_meeting_withdraw(const char *path, const struct cm_hub_target *at);

/* For cm_hub_join(): read it. `arg`: a struct cm_meeting_file. */
bool cm_meeting_next(void *arg, struct cm_hub_target *out);
void cm_meeting_describe(void *arg, char *buf, size_t size);

#endif
