/*
 * Who starts the processes, which of them this is, and the token they share.
 */
#define _GNU_SOURCE
#include "common/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "base/units.h"
#include "common/launch_env.h"

enum { RUN_ID_BYTES = 512 };

static bool is_set(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0';
}

enum cm_status cm_rendezvous_choose(const char *how, bool has_mpi, enum cm_start *out)
{
    if (how != NULL && strcmp(how, "mpi") == 0 && !has_mpi)
        return CM_FAIL(CM_EUNSUP, "--rendezvous mpi: this build has no MPI");
    if (how != NULL)
        *out = strcmp(how, "mpi") == 0 ? CM_START_MPI : CM_START_NET;
    else if (has_mpi && cm_env_mpi())
        *out = CM_START_MPI;
    else if ((is_set("RANK") && is_set("WORLD_SIZE")) || cm_env_slurm_tasks() > 1)
        *out = CM_START_NET;
    else
        *out = has_mpi && cm_env_launched() ? CM_START_MPI : CM_START_ALONE;
    return CM_OK;
}

/* ---- which process ---- */

static const struct {
    const char *rank, *size;
} pairs[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PMIX_RANK", "PMIX_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static enum cm_status read_number(const char *variable, int lo, int hi, int *out)
{
    int64_t v;

    if (!cm_parse_int(getenv(variable), lo, hi, &v))
        return CM_FAIL(CM_EINVAL, "%s=%s: want a number from %d to %d", variable, getenv(variable),
                       lo, hi);
    *out = (int)v;
    return CM_OK;
}

enum cm_status cm_rendezvous_whoami(struct cm_identity *out)
{
    size_t half = CM_LEN(pairs);
    enum cm_status st;

    for (size_t i = 0; i < CM_LEN(pairs); i++) {
        if (!is_set(pairs[i].rank))
            continue;
        half = half < i ? half : i;
        if (!is_set(pairs[i].size))
            continue;
        out->rank_name = pairs[i].rank;
        out->size_name = pairs[i].size;
        st = read_number(pairs[i].size, 1, CM_MAX_RANKS, &out->size);
        return st == CM_OK ? read_number(pairs[i].rank, 0, out->size - 1, &out->rank) : st;
    }
    if (half < CM_LEN(pairs))
        return CM_FAIL(CM_EINVAL, "%s=%s is set, but %s is not", pairs[half].rank,
                       getenv(pairs[half].rank), pairs[half].size);
    return CM_FAIL(CM_EINVAL, "--rendezvous: RANK is not set: nothing says which process this is "
                              "(RANK, WORLD_SIZE)");
}

/* ---- the token ---- */

/* What processes of one run have in common, and other runs have not. */
static void run_id(char buf[RUN_ID_BYTES])
{
    const char *restarts = getenv("TORCHELASTIC_RESTART_COUNT");

    buf[0] = '\0';
    if (is_set("COLLMARK_JOB"))
        snprintf(buf, RUN_ID_BYTES, "job %s", getenv("COLLMARK_JOB"));
    else if (is_set("TORCHELASTIC_RUN_ID"))
        snprintf(buf, RUN_ID_BYTES, "torch %s restart %s", getenv("TORCHELASTIC_RUN_ID"),
                 restarts != NULL ? restarts : "");
    else if (cm_env_slurm_tasks() > 0 && is_set("SLURM_JOB_ID"))
        snprintf(buf, RUN_ID_BYTES, "slurm %s.%s", getenv("SLURM_JOB_ID"),
                 is_set("SLURM_STEP_ID") ? getenv("SLURM_STEP_ID") : "");
}

/* FNV-1a of 128 bits (Fowler, Noll, Vo): spreads, and is no secret. */
void cm_rendezvous_token(unsigned char token[CM_NET_TOKEN])
{
    unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
    unsigned __int128 h = ((unsigned __int128)0x6c62272e07bb0142U << 64) | 0x62b821756295c58dU;
    char id[RUN_ID_BYTES];

    run_id(id);
    memset(token, 0, CM_NET_TOKEN);
    if (id[0] == '\0')
        return;
    for (const char *c = id; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * prime;
    for (int i = 0; i < CM_NET_TOKEN; i++)
        token[i] = (unsigned char)(h >> (8 * i));
}
