/*
 * Every process reads the file itself, so a folder that the nodes share is not
 * needed; that they read the same is found out before anything depends on it.
 */
#include "common/same_file.h"

#include <stdlib.h>

static enum cm_status compare(const struct cm_boot *b, const struct cm_same_file *f, uint64_t mine)
{
    uint64_t *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = cm_boot_agree(
        b, all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs));

    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    for (int p = 1; st == CM_OK && p < b->nprocs; p++)
        if (all[p] != all[0])
            st = CM_REFUSE(b, CM_EINVAL,
                           "%s '%s': process %d reads something else there than process 0",
                           f->option, f->path, p);
    free(all);
    return st;
}

enum cm_status cm_same_file_read(const struct cm_boot *b, const struct cm_same_file *f)
{
    uint64_t hash = 0;
    enum cm_status st = b->proc == 0 ? f->read(f->arg, f->path, &hash) : CM_OK;

    st = cm_boot_agree(b, st);
    if (st != CM_OK)
        return st;
    if (b->proc != 0)
        st = f->read(f->arg, f->path, &hash);
    st = cm_boot_agree(b, st);
    return st == CM_OK ? compare(b, f, hash) : st;
}
