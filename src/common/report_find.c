/*
 * --find-bad on stdout: units, the matrix of pairs if it is small, retests, and the
 * verdict. Written at the end, whatever end that is, from what is known by then.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "common/find.h"
#include "common/report_int.h"
#include "common/version.h"

enum { MATRIX_UNITS = 16, NAME_WIDTH = 16 };

/* A figure, or what happened instead. */
static const char *figure(const struct cm_find_run *r, char buf[16])
{
    if (r == NULL)
        return "-";
    if (r->outcome == CM_FIND_HUNG)
        return "hung";
    if (r->outcome == CM_FIND_WRONG)
        return "wrong";
    snprintf(buf, 16, "%.2f", r->gbs);
    return buf;
}

/* Of the rounds; NULL: they did not meet. */
static const struct cm_find_run *run_of(const struct cm_find *f, int a, int b)
{
    for (size_t k = 0; k < f->nruns; k++)
        if (!f->runs[k].again && f->runs[k].a == (a < b ? a : b) && f->runs[k].b == (a < b ? b : a))
            return &f->runs[k];
    return NULL;
}

static void print_plan(FILE *f, const struct cm_find *find)
{
    const struct cm_opts *o = find->rank->opts;
    char size[32];

    fprintf(f,
            "#\n# Search for bad %ss: %d of them, each by itself, then %d of %d rounds of pairs\n",
            find->units.nodes ? "node" : "rank", find->units.n, find->rounds, find->plan.rounds);
    fprintf(f, "# of %s %s %s %s %s, %d iterations\n", cm_colls[find->bench->coll].name,
            cm_dtypes[o->sweep.dtype].name, cm_ops[o->sweep.op].name,
            cm_format_size(o->sweep.max_bytes, size),
            o->run.placement == CM_PLACE_IN ? "in place" : "out of place", o->run.iters);
}

static void print_units(FILE *f, const struct cm_find *find, const struct cm_find_verdict *v)
{
    char alone[16];

    fprintf(f, "#\n#%*s %5s %9s %9s %9s %8s  %s\n", NAME_WIDTH, "unit", "ranks", "by itself",
            "pairs", "expected", "partners", "verdict");
    fprintf(f, "#%*s %5s %9s %9s %9s\n", NAME_WIDTH, "", "", "(GB/s)", "(GB/s)", "(GB/s)");
    for (int u = 0; u < find->units.n; u++) {
        const struct cm_find_unit *unit = &v->units[u];

        fprintf(f, " %*.63s %5d %9s", NAME_WIDTH, find->units.name[u], find->units.ranks[u],
                figure(run_of(find, u, u), alone));
        if (unit->by_itself || isnan(unit->gbs))
            fprintf(f, " %9s %9s", "-", "-");
        else
            fprintf(f, " %9.2f %9.2f", unit->gbs, unit->expected);
        fprintf(f, " %8d  %s\n", unit->partners, cm_find_class_name(unit->class));
    }
}

static void print_matrix(FILE *f, const struct cm_find *find)
{
    char text[16];

    if (find->units.n > MATRIX_UNITS)
        return;
    fprintf(f, "#\n# Bus bandwidth of pairs, GB/s\n#%*s", NAME_WIDTH, "");
    for (int b = 0; b < find->units.n; b++)
        fprintf(f, " %8.8s", find->units.name[b]);
    fputc('\n', f);
    for (int a = 0; a < find->units.n; a++) {
        fprintf(f, " %*.63s", NAME_WIDTH, find->units.name[a]);
        for (int b = 0; b < find->units.n; b++)
            fprintf(f, " %8s", a == b ? "." : figure(run_of(find, a, b), text));
        fputc('\n', f);
    }
}

static void print_again(FILE *f, const struct cm_find *find)
{
    const char *title = "#\n# Again, while nothing else ran:\n";
    char text[16];

    for (size_t k = 0; k < find->nruns; k++) {
        const struct cm_find_run *r = &find->runs[k];

        if (!r->again)
            continue;
        fputs(title, f);
        title = "";
        fprintf(f, "#   %s", find->units.name[r->a]);
        if (r->a != r->b)
            fprintf(f, " - %s", find->units.name[r->b]);
        fprintf(f, ": %s\n", figure(r, text));
    }
}

static void print_bad(FILE *f, const struct cm_find *find, const struct cm_find_verdict *v)
{
    char why[CM_FIND_TEXT];

    for (int u = 0; u < find->units.n; u++)
        if (v->units[u].class >= CM_FIND_SLOW)
            fprintf(f, "# Bad %s: %s: %s%s, collmark %s\n", find->units.nodes ? "node" : "rank",
                    find->units.name[u], cm_find_why(&v->units[u], why),
                    v->units[u].again ? ", retested" : "", cm_version);
    for (size_t i = 0; i < v->nlinks; i++)
        fprintf(f, "# Bad link: %s - %s: %s%s\n", find->units.name[v->links[i].a],
                find->units.name[v->links[i].b], cm_find_why_link(&v->links[i], why),
                v->links[i].again ? ", retested" : "");
}

enum { HOPELESS_PCT = 98 }; /* nodes that are this much slower are hardly ever in use */

/* What the verdict rests on, and what it cannot say. */
static void print_grounds(FILE *f, const struct cm_find *find, const struct cm_find_verdict *v)
{
    if (v->compared)
        fprintf(f,
                "# Slow is: below %.3g GB/s by more than %.0f %% (--find-bad-limit, or 5 x "
                "deviation)\n",
                v->expected, v->limit_pct);
    else
        fputs("# Note: too few to compare with each other; --min-busbw compares with a figure\n",
              f);
    if (v->compared && find->limits.slow_pct > find->rank->opts->find.slow_pct)
        fprintf(f, "# Note: ranks share CPUs, so less than %.0f %% proves nothing here\n",
                find->limits.slow_pct);
    if (v->compared && v->limit_pct >= HOPELESS_PCT)
        fputs(
            "# Note: the figures scatter too much for a comparison: run it on a quiet machine, or "
            "with a larger -n\n",
            f);
    if (v->compared && find->limits.min_gbs <= 0)
        fputs("# Note: whether all are slow alike only --min-busbw can tell\n", f);
    if (v->uneven > 0)
        fprintf(f,
                "# Note: %zu pairs of good units are slow, too many for single links: the "
                "network is uneven\n",
                v->uneven);
}

static void print_all(FILE *f, const struct cm_report *rep, const struct cm_end *end,
                      const struct cm_find_verdict *v)
{
    const struct cm_find *find = rep->find;
    char text[CM_FIND_TEXT];

    print_plan(f, find);
    print_units(f, find, v);
    print_matrix(f, find);
    print_again(f, find);
    fputs("#\n", f);
    print_grounds(f, find, v);
    print_bad(f, find, v);
    if (end->summary.truncated)
        fprintf(f, "# Truncated : %s\n", end->summary.why_truncated);
    fprintf(f, "# Verdict   : %s\n#\n\n", cm_find_summary(find, v, text));
}

static bool find_wanted(const struct cm_opts *o)
{
    return o->find.on && cm_report_shows(o);
}

static enum cm_status put(struct cm_report *rep, struct cm_page *page)
{
    enum cm_status st;

    if (atomic_load(&rep->deaf)) {
        cm_page_drop(page);
        return CM_OK;
    }
    st = cm_page_end(page, STDOUT_FILENO, "stdout");
    if (st != CM_OK)
        atomic_store(&rep->deaf, true);
    return st;
}

static enum cm_status find_open(struct cm_report *rep, void **state)
{
    struct cm_page page;

    *state = NULL;
    cm_page_begin(&page);
    if (page.f != NULL)
        cm_header_print(page.f, rep);
    return put(rep, &page);
}

static enum cm_status find_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    struct cm_find_verdict v;
    struct cm_find_data d;
    struct cm_page page;
    enum cm_status st;

    (void)state;
    if (end == NULL || rep->find == NULL)
        return CM_OK;
    d = cm_find_data(rep->find);
    st = cm_find_judge(&d, &rep->find->limits, &v);
    if (st == CM_OK) {
        cm_page_begin(&page);
        if (page.f != NULL)
            print_all(page.f, rep, end, &v);
        st = put(rep, &page);
    }
    cm_find_verdict_free(&v);
    return st;
}

const struct cm_sink_kind cm_sink_find = {
    .name = "find", .wanted = find_wanted, .open = find_open, .close = find_close, .late = true};
