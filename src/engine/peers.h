/*
 * Which ranks exchange slots: what must be connected before a communicator
 * runs. Plans are built and looked through, so that this cannot differ from
 * what runs. Both ends find the same pairs: send here is recv there.
 */
#ifndef CM_ENGINE_PEERS_H
#define CM_ENGINE_PEERS_H

#include "engine/comm.h"

struct cm_tune;

struct cm_peers_args {
    enum cm_coll coll;
    int rank, n;
    int root;                    /* CM_ANY_ROOT: each in turn */
    const int32_t *node;         /* as in struct cm_comm_args, or NULL: one node */
    const int32_t *order;        /* ring order as in struct cm_build_args, or NULL */
    struct cm_force force;       /* as of the communicator */
    const struct cm_tune *rules; /* as of the communicator, or NULL */
    const char *shipped;         /* the executor's table; NULL: the host's */
};

enum { CM_ANY_ROOT = -1 };

/*
 * Mark in send[n] and recv[n] the ranks that `rank` sends to and receives from
 * through ports in any operation that the choice may take, of any size, on
 * this node map. Others stay as they are: calls for several collectives add up.
 *
 * Local, builds a plan for each root and algorithm: O(n) each, hierarchical
 * ones O(n^2). Nothing is marked for what has no such form; to say so is up to
 * the communicator. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_peers(const struct cm_peers_args *a, bool *send, bool *recv);

/* The same for one plan. */
void cm_plan_peers(const struct cm_plan *p, bool *send, bool *recv);

#endif
