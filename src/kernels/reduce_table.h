/* The kernels of one instruction set, from reduce_generic.c and reduce_avx2.c. Internal. */
#ifndef CM_KERNELS_REDUCE_TABLE_H
#define CM_KERNELS_REDUCE_TABLE_H

#include "kernels/kernels.h"

struct cm_reduce_table {
    cm_reduce_fn *fn[CM_NDTYPES][CM_NOPS];
};

/* Any CPU; cached stores. */
const struct cm_reduce_table *cm_reduce_table_generic(void);

/*
 * `stream`: the kernels with non-temporal stores. NULL where this set was not compiled in.
 * Whether the CPU has it is the caller's question.
 */
const struct cm_reduce_table *cm_reduce_table_avx2(bool stream);

#endif
