/*
 * The launcher of processes that mpirun, mpiexec or srun started. MPI finds
 * the processes and ends them; between set-up and tear-down no thread calls it.
 *
 * MPI_THREAD_FUNNELED is enough: only the main thread calls MPI, unless it is an
 * engine as well (engine_mpi.c), whose calls come from the rank's thread. MPI reports
 * its own failures and ends the job (its default error handler), so there is
 * little to check.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/launch.h"

static enum cm_status mpi_gather(const struct cm_boot *b, const void *mine, size_t bytes, void *all)
{
    (void)b;
    if (bytes > INT32_MAX)
        return CM_FAIL(CM_EINVAL, "cannot gather %zu bytes", bytes);
    if (MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) !=
        MPI_SUCCESS)
        return CM_FAIL(CM_ESYS, "MPI_Allgather failed");
    return CM_OK;
}

static enum cm_status mpi_start(int *argc, char ***argv, const struct cm_opts *o,
                                struct cm_boot *out)
{
    bool engine = cm_sides_have(&o->sides.list, CM_ENGINE_MPI);
    int provided, level = engine ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;

    if (MPI_Init_thread(argc, argv, level, &provided) != MPI_SUCCESS)
        return CM_FAIL(CM_ESYS, "MPI_Init_thread failed");
    if (provided < MPI_THREAD_FUNNELED)
        return CM_FAIL(CM_ESYS, "this MPI library does not allow threads");
    *out = (struct cm_boot){.gather = mpi_gather};
    MPI_Comm_rank(MPI_COMM_WORLD, &out->proc);
    MPI_Comm_size(MPI_COMM_WORLD, &out->nprocs);
    return CM_OK;
}

static enum cm_exit mpi_finish(struct cm_boot *b, enum cm_exit code)
{
    (void)b;
    MPI_Finalize();
    return code;
}

static void mpi_kill(struct cm_boot *b, enum cm_exit code)
{
    (void)b;
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, (int)code);
    _Exit((int)code);
}

/* The version's first line or clause, and the file that the loader really took. */
static bool mpi_library(const struct cm_boot *b, char *buf, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    Dl_info info = {.dli_fname = "statically linked"};
    int len;

    (void)b;
    MPI_Get_library_version(version, &len);
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    dladdr((void *)(uintptr_t)&MPI_Get_library_version, &info);
    snprintf(buf, size, "%s, %s", version, info.dli_fname);
    return true;
}

const struct cm_launcher cm_launcher_mpi = {
    .name = "mpi",
    .start = mpi_start,
    .finish = mpi_finish,
    .kill = mpi_kill,
    .library = mpi_library,
};
