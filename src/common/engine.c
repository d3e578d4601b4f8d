/*
 * The table of engines, and what is settled before any of them runs: is it in
 * this build, can it serve the job, has it anything of what is asked for.
 */
#include "common/engine.h"

#include "common/measure.h"

#define BUILTIN "builtin"
#define MPI "mpi"
#define NCCL "nccl"

const struct cm_engine_row cm_engines[CM_NENGINES] = {
    [CM_ENGINE_BUILTIN] = {BUILTIN, "the engine of this program", NULL, NULL},
    [CM_ENGINE_MPI] = {MPI, "collectives of the MPI library that started the job", &cm_engine_mpi,
                       "this build has no MPI"},
    [CM_ENGINE_NCCL] = {NCCL, "NVIDIA's NCCL, loaded at run time", &cm_engine_nccl,
                        "this build has no CUDA"},
};

const char *const cm_engine_names[CM_NENGINES + 1] = {BUILTIN, MPI, NCCL, NULL};

const char *cm_engine_absent(int id)
{
    return cm_engines[id].engine == NULL ? cm_engines[id].absent : NULL;
}

/* First and last index of what is swept: one, or CM_ALL. */
static void range_of(int choice, int n, int *first, int *last)
{
    *first = choice == CM_ALL ? 0 : choice;
    *last = choice == CM_ALL ? n - 1 : choice;
}

static enum cm_coll coll_of(const struct cm_opts *o)
{
    int coll = 0;

    while (coll < CM_NCOLLS - 1 && (o->colls & 1u << coll) == 0)
        coll++;
    return (enum cm_coll)coll;
}

/* Why the engine has nothing of the sweep, by its first row; NULL: it has something. */
static const char *has_nothing(const struct cm_opts *o, const struct cm_engine *e, int n)
{
    enum cm_coll coll = coll_of(o);
    int dtypes[2], ops[2];
    const char *first = NULL;

    range_of(o->sweep.dtype, CM_NDTYPES, &dtypes[0], &dtypes[1]);
    range_of(cm_colls[coll].reduces ? o->sweep.op : CM_SUM, CM_NOPS, &ops[0], &ops[1]);
    for (int d = dtypes[0]; d <= dtypes[1]; d++) {
        for (int k = 0; k < 2 * (ops[1] - ops[0] + 1); k++) {
            struct cm_op_args op = {.coll = coll,
                                    .dtype = (enum cm_dtype)d,
                                    .op = (enum cm_op)(ops[0] + k / 2),
                                    .count = 1,
                                    .in_place = k % 2 == 1};
            bool asked = o->run.placement == CM_PLACE_BOTH ||
                         op.in_place == (o->run.placement == CM_PLACE_IN);
            const char *why = e->refuses(&op, n);

            if (!asked || (op.in_place && !cm_colls[coll].in_place))
                continue;
            if (why == NULL)
                return NULL;
            first = first == NULL ? why : first;
        }
    }
    return first;
}

enum cm_status cm_engines_check(const struct cm_opts *o, const struct cm_engine_job *job)
{
    const struct cm_sides *sides = &o->sides.list;
    const char *option = o->sides.compare != NULL ? "compare" : "engine", *nothing;
    char why[CM_ENGINE_WHY];

    for (int i = 0; i < sides->n; i++) {
        const struct cm_engine_row *row = &cm_engines[sides->of[i].id];

        if (row->engine == NULL)
            continue;
        if (!row->engine->serves(job, why))
            return CM_FAIL(CM_EUNSUP, "--%s: %s cannot run here: %s", option, row->name, why);
        nothing = has_nothing(o, row->engine, job->ranks);
        if (nothing != NULL)
            return CM_FAIL(CM_EUNSUP, "--%s: %s has nothing of what is asked for: %s", option,
                           row->name, nothing);
    }
    return CM_OK;
}

enum cm_status cm_engines_open(struct cm_meter *m, struct cm_side *sides)
{
    const struct cm_sides *list = &m->rank->opts->sides.list;
    enum cm_status st = CM_OK;

    for (int i = 0; i < CM_MAX_SIDES; i++)
        sides[i] = (struct cm_side){0};
    for (int i = 0; i < list->n && st == CM_OK; i++) {
        sides[i].name = list->of[i].name;
        sides[i].engine = cm_engines[list->of[i].id].engine;
        if (sides[i].engine != NULL)
            st = sides[i].engine->open(m, &sides[i].state);
    }
    return st;
}

void cm_engines_close(struct cm_side *sides, bool orderly)
{
    for (int i = 0; i < CM_MAX_SIDES; i++) {
        if (sides[i].engine != NULL)
            sides[i].engine->close(sides[i].state, orderly);
        sides[i] = (struct cm_side){0};
    }
}
