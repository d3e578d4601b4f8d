/* --topo: how the machine's devices are connected, to be shown or to be taken for true. */
#ifndef CM_COMMON_TOPO_MODE_H
#define CM_COMMON_TOPO_MODE_H

#include <stdbool.h>

#include "base/status.h"

/* Does --topo name a file that a run takes its topology from? NULL is fine: no. */
bool cm_topo_is_file(const char *what);

/*
 * "dump": the topology of this machine as a topology file. "matrix": for
 * people, with what looks wrong on stderr; "matrix:FILE": the same of a file.
 * On stdout. CM_EINVAL: the file; CM_ENOMEM, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_topo_mode(const char *what);

#endif
