/*
 * The table of collectives: what the engine, the harness and the tests walk.
 * Rows stand in the order of enum cm_coll.
 */
#include "base/plan.h"

#include <string.h>

/* clang-format off */
const struct cm_coll_info cm_colls[CM_NCOLLS] = {
    /*                     name              rooted reduces in/rank out/rank in place */
    [CM_ALL_REDUCE]     = {"all_reduce",     false, true,   false,  false,   true},
    [CM_ALL_GATHER]     = {"all_gather",     false, false,  false,  true,    true},
    [CM_REDUCE_SCATTER] = {"reduce_scatter", false, true,   true,   false,   true},
    [CM_BROADCAST]      = {"broadcast",      true,  false,  false,  false,   true},
    [CM_REDUCE]         = {"reduce",         true,  true,   false,  false,   true},
    [CM_ALLTOALL]       = {"alltoall",       false, false,  true,   true,    false},
    [CM_ALLTOALLV]      = {"alltoallv",      false, false,  true,   true,    false},
    [CM_GATHER]         = {"gather",         true,  false,  false,  true,    true},
    [CM_SCATTER]        = {"scatter",        true,  false,  true,   false,   true},
    [CM_SENDRECV]       = {"sendrecv",       false, false,  false,  false,   false},
    [CM_HYPERCUBE]      = {"hypercube",      false, false,  false,  true,    true},
};
/* clang-format on */

int cm_coll_find(const char *name)
{
    for (int c = 0; c < CM_NCOLLS; c++) {
        if (strcmp(cm_colls[c].name, name) == 0)
            return c;
    }
    return -1;
}
