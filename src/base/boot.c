/* What can be built on a gather alone. */
#include "base/boot.h"

#include <stdint.h>
#include <stdlib.h>

enum cm_status cm_boot_agree(const struct cm_boot *b, enum cm_status mine)
{
    uint32_t st = mine, *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status gathered;

    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);
    gathered = b->gather(b, &st, sizeof(st), all);
    for (int p = b->nprocs - 1; gathered == CM_OK && p >= 0; p--)
        if (all[p] != CM_OK)
            st = all[p];
    free(all);
    return gathered == CM_OK ? (enum cm_status)st : gathered;
}
