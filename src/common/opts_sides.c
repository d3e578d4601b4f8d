/* --engine and --compare: which engines run, and what cannot be had with them. */
#include <string.h>

#include "common/engine.h"
#include "common/opts_table.h"

bool cm_valid_compare(const char *text)
{
    struct cm_sides s;

    return cm_sides_parse(text, &s);
}

static bool is_set(const struct cm_parse *p, const char *option)
{
    return p->from[cm_option_named(option) - cm_options] != CM_FROM_PRESET;
}

/* "--compare 'builtin,mpi'", or "--engine 'mpi'". */
static const char *chosen(const struct cm_opts *o, char *buf, size_t size)
{
    const char *engine = cm_engine_names[o->sides.engine];

    if (o->sides.compare != NULL)
        snprintf(buf, size, "--compare '%s'", o->sides.compare);
    else
        snprintf(buf, size, "--engine '%s'", engine);
    return buf;
}

/* What is used and cannot be had of other engines, or only of one that runs alone; or NULL. */
static const char *misplaced(const struct cm_opts *o)
{
    const struct {
        bool used, alone; /* alone: a single engine has it, whichever it is */
        const char *what;
    } rows[] = {
        {o->run.per_iter, true, "-I/--per_iter_timing: rounds are timed, not single iterations"},
        {o->run.cpu_time, true, "-C/--report_cputime: it compares times"},
        {o->alltoallv.print_summary, true,
         "--alltoallv-print-summary: its times are of one engine"},
        {o->report.peak != NULL, true, "--peak: its table has no such columns"},
        {o->run.graph > 0, false, "-G/--cudagraph: a library's calls may not be captured"},
        {o->find.on, false, "--find-bad: it runs the built-in engine"},
        {o->report.plan, false, "--plan: only the built-in engine has plans"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        if (rows[i].used && (o->sides.compare != NULL || !rows[i].alone))
            return rows[i].what;
    }
    return NULL;
}

/* NCCL's variables are meant for NCCL too; what else forces the built-in engine is refused. */
static enum cm_status check_forced(const struct cm_parse *p)
{
    char by[CM_SET_BY_BYTES], which[CM_WANT_BYTES];

    if (cm_sides_have(&p->o->sides.list, CM_ENGINE_BUILTIN))
        return CM_OK;
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (row->group != CM_GROUP_ENGINE || !is_set(p, row->name))
            continue;
        if (strncmp(cm_opts_set_by(p->o, row->name, by), "NCCL_", 5) != 0)
            return CM_FAIL(CM_EINVAL, "%s is for the engine builtin, which %s leaves out", by,
                           chosen(p->o, which, sizeof(which)));
    }
    return CM_OK;
}

static enum cm_status check_built(const struct cm_opts *o)
{
    char which[CM_WANT_BYTES];

    for (int i = 0; i < o->sides.list.n; i++) {
        const char *why = cm_engine_absent((int)o->sides.list.of[i].id);

        if (why != NULL)
            return CM_FAIL(CM_EUNSUP, "%s: %s", chosen(o, which, sizeof(which)), why);
    }
    if (cm_sides_have(&o->sides.list, CM_ENGINE_NCCL) && o->launch.backend == CM_BACKEND_HOST)
        return CM_FAIL(CM_EUNSUP, "%s: NCCL needs GPUs, but --backend 'host' was chosen",
                       chosen(o, which, sizeof(which)));
    return CM_OK;
}

enum cm_status cm_opts_check_sides(const struct cm_parse *p)
{
    struct cm_opts *o = p->o;
    bool other = o->sides.compare != NULL || o->sides.engine != CM_ENGINE_BUILTIN;
    char which[CM_WANT_BYTES];
    enum cm_status st;

    if (o->sides.compare != NULL && is_set(p, "engine"))
        return CM_FAIL(CM_EINVAL, "--engine '%s' and --compare '%s' exclude each other",
                       cm_engine_names[o->sides.engine], o->sides.compare);
    if (o->sides.compare == NULL && is_set(p, "compare-rounds"))
        return CM_FAIL(CM_EINVAL, "--compare-rounds '%d' needs --compare", o->sides.rounds);
    if (o->sides.compare == NULL || !cm_sides_parse(o->sides.compare, &o->sides.list))
        cm_sides_one((enum cm_engine_id)o->sides.engine, &o->sides.list);
    if (other && misplaced(o) != NULL)
        return CM_FAIL(CM_EINVAL, "%s cannot be had with %s", chosen(o, which, sizeof(which)),
                       misplaced(o));
    st = check_built(o);
    return st == CM_OK ? check_forced(p) : st;
}
