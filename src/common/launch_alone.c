/* The launcher of a job of one process: nothing to start, nobody to tell. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/launch.h"

static enum cm_status alone_gather(const struct cm_boot *b, const void *mine, size_t bytes,
                                   void *all)
{
    (void)b;
    memcpy(all, mine, bytes);
    return CM_OK;
}

static enum cm_status alone_start(int *argc, char ***argv, const struct cm_opts *o,
                                  struct cm_boot *out)
{
    (void)argc;
    (void)argv;
    (void)o;
    *out = (struct cm_boot){.proc = 0, .nprocs = 1, .gather = alone_gather};
    return CM_OK;
}

static enum cm_exit alone_finish(struct cm_boot *b, enum cm_exit code)
{
    (void)b;
    return code;
}

static void alone_kill(struct cm_boot *b, enum cm_exit code)
{
    (void)b;
    fflush(NULL);
    _exit((int)code);
}

static bool alone_library(const struct cm_boot *b, char *buf, size_t size)
{
    (void)b;
    (void)buf;
    (void)size;
    return false;
}

const struct cm_launcher cm_launcher_alone = {
    .name = "alone",
    .start = alone_start,
    .finish = alone_finish,
    .kill = alone_kill,
    .library = alone_library,
};
