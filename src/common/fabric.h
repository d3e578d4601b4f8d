/*
 * The fabric: how the processes of different domains of memory reach each
 * other. It chooses the interface, connects each process with those that it
 * has plan edges or control messages with, and carries their ports.
 */
#ifndef CM_COMMON_FABRIC_H
#define CM_COMMON_FABRIC_H

#include "base/boot.h"
#include "base/wait.h"
#include "common/control.h"
#include "common/opts.h"

struct cm_fabric;
struct cm_network;
struct cm_pairs;
struct cm_world;

/* Everything must outlive the fabric. */
struct cm_fabric_args {
    const struct cm_boot *boot;
    const struct cm_opts *opts;
    const struct cm_world *world;
    void *base; /* of my domain's segment */
    const struct cm_layout *layout;
    int64_t setup_ns; /* so long the neighbours may take to come */
    int64_t rows_ns;  /* deadline of a wait while rows run */
};

/*
 * Open it. Collective over the processes of the boot; returns the same status
 * on all, logged by those who failed. Blocks until all neighbours are connected:
 * CM_ETIMEOUT and CM_ESYS name those that are not, with address and interface.
 * CM_EINVAL: --ifname or --port-range fit nothing. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_fabric_open(const struct cm_fabric_args *a, struct cm_fabric **out);

/* For struct cm_waiter, struct cm_team and the header. NULL fabric: NULL. */
const struct cm_remote *cm_fabric_remote(const struct cm_fabric *f);
struct cm_control *cm_fabric_control(const struct cm_fabric *f);
const struct cm_network *cm_fabric_network(const struct cm_fabric *f);
const struct cm_pairs *cm_fabric_pairs(const struct cm_fabric *f);

/*
 * The ranks have ended. orderly: all neighbours take leave, until `until_ns`
 * (cm_now_ns() time) at most; else why the job ends is told and passed on, within a
 * second. CM_ETIMEOUT, CM_ESYS: a neighbour did not take leave (logged). NULL is fine.
 */
enum cm_status cm_fabric_close(struct cm_fabric *f, bool orderly, int64_t until_ns);

#endif
