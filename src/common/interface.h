/* Which of this machine's interfaces a job between nodes uses. */
#ifndef CM_COMMON_INTERFACE_H
#define CM_COMMON_INTERFACE_H

#include "common/opts.h"
#include "transport/net.h"

/*
 * The best address that --ip and --ifname allow: looks at this machine, does
 * not block. CM_EINVAL: there is none, logged with what there is. CM_ESYS,
 * CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_interface_choose(const struct cm_opts_net *o,
                                                 struct cm_net_if *out);

/* The same from a given list of n, which is reordered: for tests. */
CM_MUST_CHECK enum cm_status cm_interface_choose_from(const struct cm_opts_net *o,
                                                      struct cm_net_if *ifs, int n,
                                                      struct cm_net_if *out);

#endif
