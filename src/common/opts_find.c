/* --find-bad measures one thing over many pairs: what cannot be had with it is refused. */
#include "common/opts_table.h"

#include "common/find_plan.h"
#include "engine/algo.h"

bool cm_valid_pairs(const char *text)
{
    struct cm_find_choice c;

    return cm_find_parse_pairs(text, &c);
}

static bool is_set(const struct cm_parse *p, const char *option)
{
    return p->from[cm_option_named(option) - cm_options] != CM_FROM_PRESET;
}

/* An option in use that has no place in such a run; NULL: none. */
static const char *misplaced(const struct cm_opts *o)
{
    const struct {
        bool used;
        const char *option;
    } rows[] = {
        {o->launch.split != CM_SPLIT_NONE, "--split"},
        {o->sweep.dtype == CM_ALL, "-d all"},
        {o->sweep.op == CM_ALL, "-o all"},
        {o->sweep.root != 0, "-r"},
        {o->sweep.cycles != 1, "-N"},
        {o->run.graph > 0, "-G"},
        {o->run.per_iter, "-I"},
        {o->run.cpu_time, "-C"},
        {o->run.cache != CM_CACHE_HOT, "--cache"},
        {o->report.timestamps, "-S"},
        {o->report.memory, "-M"},
        {o->report.junit != NULL, "--junit"},
        {o->report.prometheus != NULL, "--prometheus"},
        {o->report.github, "--github"},
        {o->report.min_bw_gbs > 0, "--min-bw"},
        {o->report.max_time_us > 0, "--max-time-us"},
        {o->report.thresholds != NULL, "--thresholds"},
        {o->report.peak != NULL, "--peak"},
        {o->report.plan, "--plan"},
        {o->report.topo != NULL, "--topo"},
        {o->alltoallv.matrix_file != NULL, "--alltoallv-matrix-file"},
        {o->alltoallv.print_summary, "--alltoallv-print-summary"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++)
        if (rows[i].used)
            return rows[i].option;
    return NULL;
}

enum cm_status cm_opts_check_find(const struct cm_parse *p)
{
    static const char *const belong[] = {"pairs", "find-bad-out", "find-bad-limit"};
    const struct cm_opts *o = p->o;
    const struct cm_algo *algo = o->engine.algo != NULL ? cm_algo_find(o->engine.algo) : NULL;

    for (size_t i = 0; !o->find.on && i < CM_LEN(belong); i++)
        if (is_set(p, belong[i]))
            return CM_FAIL(CM_EINVAL, "--%s goes with --find-bad", belong[i]);
    if (!o->find.on)
        return CM_OK;
    if (misplaced(o) != NULL)
        return CM_FAIL(CM_EINVAL, "%s and --find-bad exclude each other", misplaced(o));
    if (o->sweep.min_bytes != o->sweep.max_bytes)
        return CM_FAIL(CM_EINVAL, "--find-bad compares pairs at one size: -b must equal -e");
    if (algo != NULL && algo->build[CM_ALL_REDUCE] == NULL)
        return CM_FAIL(CM_EUNSUP, "--find-bad needs all_reduce, which --algo %s does not have",
                       algo->name);
    return CM_OK;
}
