/*
 * Files of --find-bad: CSV of all runs; in the folder of --find-bad-out a list each of
 * units that passed, failed and are not known, one a line and sorted, and `reasons`:
 * the name of each bad one, a tab, and a line for scontrol or a ticket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/find.h"
#include "common/report_int.h"
#include "common/version.h"

/* ---- CSV ---- */

static void put_name(FILE *f, const char *name)
{
    if (strpbrk(name, ",\"\n") == NULL) {
        fputs(name, f);
        return;
    }
    fputc('"', f);
    for (; *name != '\0'; name++)
        fprintf(f, *name == '"' ? "\"\"" : "%c", *name);
    fputc('"', f);
}

static void put_run(FILE *f, const struct cm_find *find, const struct cm_find_run *r)
{
    static const char *const outcomes[] = {
        [CM_FIND_RIGHT] = "right", [CM_FIND_WRONG] = "wrong", [CM_FIND_HUNG] = "hung"};

    put_name(f, find->units.name[r->a]);
    fputc(',', f);
    put_name(f, find->units.name[r->b]);
    fprintf(f, ",%d,%d,%s,", r->again,
            find->units.ranks[r->a] + (r->a == r->b ? 0 : find->units.ranks[r->b]),
            outcomes[r->outcome]);
    if (r->outcome != CM_FIND_HUNG)
        fprintf(f, "%.2f,%.4f", r->us, r->gbs);
    else
        fputc(',', f);
    if (r->wrong_rank >= 0)
        fprintf(f, ",%d\n", r->wrong_rank);
    else
        fputs(",\n", f);
}

static enum cm_status write_csv(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    fputs("a,b,again,ranks,outcome,time_us,busbw_gbs,wrong_rank\n", f);
    for (size_t k = 0; rep->find != NULL && k < rep->find->nruns; k++)
        put_run(f, rep->find, &rep->find->runs[k]);
    return CM_OK;
}

static bool csv_wanted(const struct cm_opts *o)
{
    return o->find.on && o->report.csv != NULL;
}

static enum cm_status csv_open(struct cm_report *rep, void **state)
{
    return cm_document_open("--csv", rep->opts->report.csv, state);
}

static enum cm_status csv_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    return cm_document_close(rep, state, end, write_csv);
}

const struct cm_sink_kind cm_sink_find_csv = {
    .name = "find-csv", .wanted = csv_wanted, .open = csv_open, .close = csv_close, .late = true};

/* ---- lists ---- */

enum list { PASSED, FAILED, UNKNOWN, REASONS, NLISTS };

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool in_list(const struct cm_find_verdict *v, int unit, enum list list)
{
    bool failed = v->units[unit].class >= CM_FIND_SLOW, open = cm_find_doubtful(v, unit);

    return list == PASSED ? !failed && !open : list == UNKNOWN ? open : failed;
}

/* Lines that sort as they are. */
static char *line_of(const struct cm_find *find, const struct cm_find_verdict *v, int unit,
                     enum list list)
{
    char why[CM_FIND_TEXT], *line = malloc(CM_FIND_NAME + CM_FIND_TEXT + 32);

    if (line == NULL)
        return NULL;
    strcpy(line, find->units.name[unit]);
    if (list == REASONS)
        sprintf(line + strlen(line), "\t%s, collmark %s", cm_find_why(&v->units[unit], why),
                cm_version);
    return line;
}

static enum cm_status write_list(FILE *f, const struct cm_find *find,
                                 const struct cm_find_verdict *v, enum list list)
{
    char **lines = calloc((size_t)find->units.n, sizeof(*lines));
    enum cm_status st = lines != NULL ? CM_OK : CM_ENOMEM;
    size_t n = 0;

    for (int u = 0; st == CM_OK && u < find->units.n; u++) {
        if (!in_list(v, u, list))
            continue;
        lines[n] = line_of(find, v, u, list);
        if (lines[n++] == NULL)
            st = CM_ENOMEM;
    }
    if (st == CM_OK)
        qsort(lines, n, sizeof(*lines), compare);
    for (size_t i = 0; i < n; i++) {
        if (st == CM_OK)
            fprintf(f, "%s\n", lines[i]);
        free(lines[i]);
    }
    free(lines);
    return st == CM_OK ? st : CM_FAIL(st, "--find-bad-out: list of %d", find->units.n);
}

static enum cm_status judge_list(FILE *f, const struct cm_report *rep, enum list list)
{
    struct cm_find_verdict v;
    struct cm_find_data d;
    enum cm_status st;

    if (rep->find == NULL)
        return CM_OK;
    d = cm_find_data(rep->find);
    st = cm_find_judge(&d, &rep->find->limits, &v);
    if (st == CM_OK)
        st = write_list(f, rep->find, &v, list);
    cm_find_verdict_free(&v);
    return st;
}

static enum cm_status write_passed(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return judge_list(f, rep, PASSED);
}

static enum cm_status write_failed(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return judge_list(f, rep, FAILED);
}

static enum cm_status write_unknown(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return judge_list(f, rep, UNKNOWN);
}

static enum cm_status write_reasons(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return judge_list(f, rep, REASONS);
}

static const struct {
    const char *name;
    cm_document_fn *write;
} lists[NLISTS] = {[PASSED] = {"passed", write_passed},
                   [FAILED] = {"failed", write_failed},
                   [UNKNOWN] = {"unknown", write_unknown},
                   [REASONS] = {"reasons", write_reasons}};

struct lists_state {
    void *file[NLISTS];
};

static bool lists_wanted(const struct cm_opts *o)
{
    return o->find.on && o->find.out != NULL;
}

static enum cm_status lists_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    struct lists_state *s = state;
    enum cm_status st = CM_OK;

    for (int i = 0; i < NLISTS; i++) {
        enum cm_status one = CM_OK;

        if (s->file[i] != NULL)
            one = cm_document_close(rep, s->file[i], end, lists[i].write);
        st = st == CM_OK ? one : st;
    }
    free(s);
    return st;
}

static enum cm_status lists_open(struct cm_report *rep, void **state)
{
    const char *dir = rep->opts->find.out;
    struct lists_state *s = calloc(1, sizeof(*s));
    size_t room = strlen(dir) + 16;
    char *path = malloc(room);
    enum cm_status st = CM_OK;

    if (s == NULL || path == NULL)
        st = CM_FAIL(CM_ENOMEM, "--find-bad-out '%s'", dir);
    else if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        st = CM_FAIL(CM_ESYS, "--find-bad-out '%s': %s", dir, strerror(errno));
    for (int i = 0; st == CM_OK && i < NLISTS; i++) {
        snprintf(path, room, "%s/%s", dir, lists[i].name);
        st = cm_document_open("--find-bad-out", path, &s->file[i]);
    }
    free(path);
    if (st == CM_OK)
        *state = s;
    else if (s != NULL)
        (void)!lists_close(rep, s, NULL);
    return st;
}

const struct cm_sink_kind cm_sink_find_lists = {.name = "find-lists",
                                                .wanted = lists_wanted,
                                                .open = lists_open,
                                                .close = lists_close,
                                                .late = true};
