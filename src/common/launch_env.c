/*
 * Reading the launchers' variables. Three questions, three tables: was there a
 * launcher at all (then MPI is asked), did it start more than one process (then
 * a world of one is a mistake), and which of its processes is this (one speaks).
 */
#define _GNU_SOURCE
#include "common/launch_env.h"

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

enum { PATIENCE_MS = 333 };

/* Beginnings of the names that launchers set for the processes they start: those whose processes
   MPI can start from, and those of Slurm, which does not always offer it. */
static const char *const mpi_marks[] = {
    "OMPI_COMM_WORLD_", "PMI_",  "PMI2_",    "PMIX_", "MPI_LOCAL",
    "MV2_COMM_WORLD_",  "PALS_", "FLUX_JOB", "JSM_",  "HYDI_",
};
static const char *const slurm_marks[] = {"SLURM_STEP_ID=", "SLURM_PROCID="};

/* `launched`: NULL, or a check that the variable speaks of this very process. */
struct evidence {
    const char *variable;
    int64_t from; /* values from here on prove a world of more than one */
    bool (*launched)(void);
};

static int64_t number(const char *variable)
{
    const char *text = getenv(variable);
    int64_t v;

    return text != NULL && cm_parse_int(text, 0, INT64_MAX, &v) ? v : -1;
}

/* Numbers of steps from 2^32 - 16 on name the batch and the interactive step. */
static bool in_slurm_step(void)
{
    enum { FIRST_SPECIAL_STEP = -16 };
    int64_t step = number("SLURM_STEP_ID");

    return step >= 0 && step < (int64_t)UINT32_MAX + 1 + FIRST_SPECIAL_STEP &&
           number("SLURM_PROCID") >= 0;
}

/*
 * A shell in an allocation inherits SLURM_NTASKS, and a batch script has
 * SLURM_PROCID=0 besides. Only a real step, or a higher rank, is a launch.
 */
static bool slurm_launched(void)
{
    return number("SLURM_PROCID") > 0 || in_slurm_step();
}

/* RANK alone may be anything. */
static bool torch_launched(void)
{
    return number("WORLD_SIZE") > 0;
}

static const struct evidence table[] = {
    {"OMPI_COMM_WORLD_SIZE", 2, NULL},
    {"PMI_SIZE", 2, NULL},
    {"PMIX_SIZE", 2, NULL},
    {"PMIX_RANK", 1, NULL},
    {"PMI_RANK", 1, NULL},
    {"MV2_COMM_WORLD_SIZE", 2, NULL},
    {"JSM_NAMESPACE_SIZE", 2, NULL},
    {"FLUX_JOB_SIZE", 2, NULL},
    {"MPI_LOCALNRANKS", 2, NULL},
    {"SLURM_STEP_NUM_TASKS", 2, slurm_launched},
    {"SLURM_NTASKS", 2, slurm_launched},
};

/* This process's rank in its launch; the first row that is set counts. */
static const struct evidence ranks[] = {
    {"OMPI_COMM_WORLD_RANK", 0, NULL},
    {"PMIX_RANK", 0, NULL},
    {"PMI_RANK", 0, NULL},
    {"MV2_COMM_WORLD_RANK", 0, NULL},
    {"PALS_RANKID", 0, NULL},
    {"FLUX_TASK_RANK", 0, NULL},
    {"JSM_NAMESPACE_RANK", 0, NULL},
    {"RANK", 0, torch_launched},
    {"SLURM_PROCID", 0, slurm_launched},
};

/* Several command lines in one launch (mpirun -np 1 a : -np 1 b) may differ in what they say. */
bool cm_env_speaks(void)
{
    if (number("OMPI_NUM_APP_CTX") > 1)
        return true;
    for (size_t i = 0; i < CM_LEN(ranks); i++) {
        int64_t rank = number(ranks[i].variable);

        if (rank >= ranks[i].from && (ranks[i].launched == NULL || ranks[i].launched()))
            return rank == 0;
    }
    return true;
}

void cm_env_let_speak(void)
{
    poll(NULL, 0, PATIENCE_MS);
}

/* Does a variable's name begin with one of the marks? */
static bool any_marked(const char *const *marks, size_t n)
{
    for (char **entry = environ; *entry != NULL; entry++)
        for (size_t i = 0; i < n; i++)
            if (strncmp(*entry, marks[i], strlen(marks[i])) == 0)
                return true;
    return false;
}

bool cm_env_mpi(void)
{
    return any_marked(mpi_marks, CM_LEN(mpi_marks));
}

bool cm_env_launched(void)
{
    return cm_env_mpi() || any_marked(slurm_marks, CM_LEN(slurm_marks));
}

int cm_env_slurm_tasks(void)
{
    int64_t n = number("SLURM_STEP_NUM_TASKS");

    if (!in_slurm_step())
        return 0;
    n = n > 0 ? n : number("SLURM_NTASKS");
    return n > 0 && n < INT32_MAX ? (int)n : 1;
}

enum cm_status cm_env_check_alone(const char *library, bool has_mpi)
{
    for (size_t i = 0; i < CM_LEN(table); i++) {
        const struct evidence *e = &table[i];

        if (number(e->variable) < e->from || (e->launched != NULL && !e->launched()))
            continue;
        if (number("WORLD_SIZE") == 1)
            return CM_FAIL(CM_ESYS,
                           "%s=%s shows a launcher with several processes, but WORLD_SIZE=1",
                           e->variable, getenv(e->variable));
        if (!has_mpi)
            return CM_FAIL(CM_ESYS,
                           "%s=%s shows a launcher with several processes, but this build has no "
                           "MPI: build with MPI, use --rendezvous, or start one process and use "
                           "-t or -g",
                           e->variable, getenv(e->variable));
        return CM_FAIL(CM_ESYS,
                       "%s=%s shows a launcher with several processes, but MPI sees a world of 1: "
                       "the launcher does not belong to %s; use that library's mpirun",
                       e->variable, getenv(e->variable), library != NULL ? library : "this MPI");
    }
    return CM_OK;
}
