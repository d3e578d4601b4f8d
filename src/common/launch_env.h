/* What the environment says about how this process was started. Private to launchers and main. */
#ifndef CM_COMMON_LAUNCH_ENV_H
#define CM_COMMON_LAUNCH_ENV_H

#include <stdbool.h>

#include "base/status.h"

/* Does any variable show that an MPI or batch launcher started this process? */
bool cm_env_launched(void);

/* Does one show a launcher that MPI can start from (PMI, PMIx, Open MPI, ...)? */
bool cm_env_mpi(void);

/* Tasks of the step of Slurm that this process is one of, at least 1; 0: it is in none. The shells
   of salloc and sbatch are in none. */
int cm_env_slurm_tasks(void);

/*
 * Is it up to this process to say what all processes of its launch would say
 * alike, before MPI is started: usage errors, --help, --plan? True for rank 0,
 * without a launcher, and where a launch has several command lines.
 */
bool cm_env_speaks(void);

/* For the others, before they end with a failure: launchers end a job, and the one that speaks,
   as soon as one process failed. Sleeps for a third of a second. */
void cm_env_let_speak(void);

/*
 * A process that is alone in its world, although its launcher started several,
 * would measure nothing and look fine. CM_ESYS, one logged line that names the
 * variable: the launcher and this program do not fit. `library`: the MPI in
 * use, or NULL. `has_mpi`: this build could use MPI.
 */
CM_MUST_CHECK enum cm_status cm_env_check_alone(const char *library, bool has_mpi);

#endif
