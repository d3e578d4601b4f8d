/* --topo: print how the machine's devices are connected; nothing runs. */
#ifndef CM_COMMON_TOPO_MODE_H
#define CM_COMMON_TOPO_MODE_H

#include "base/status.h"

/*
 * "dump": the topology of this machine as a topology file. "matrix": for
 * people, with what looks wrong on stderr. Any other text names a file whose
 * matrix is shown. On stdout. CM_EINVAL: the file; CM_ENOMEM, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_topo_mode(const char *what);

#endif
