/*
 * CSV (RFC 4180): a header, then one line per row and placement, written as
 * they come so that a killed run leaves what it measured. What was not
 * measured is an empty field. One table gives header and cells.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cache.h"
#include "common/report_int.h"

/* What a line is made from. */
struct line {
    const struct cm_report *rep;
    const struct cm_row *row;
    const struct cm_result *half;
    bool in_place;
    struct cm_judged judged;
};

struct column {
    const char *name;
    void (*print)(FILE *f, const struct line *l);
};

static void put_text(FILE *f, const char *text)
{
    if (text == NULL)
        return;
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void put_real(FILE *f, bool valid, double v)
{
    if (valid && isfinite(v))
        fprintf(f, "%.9g", v);
}

static void put_whole(FILE *f, bool valid, int64_t v)
{
    if (valid)
        fprintf(f, "%" PRId64, v);
}

/* One cell per function would be a page of braces; these lines are a table. */
#define CELL(name, ...)                             \
    static void name(FILE *f, const struct line *l) \
    {                                               \
        __VA_ARGS__;                                \
    }

CELL(p_cycle, put_whole(f, true, l->row->cycle))
CELL(p_group, put_whole(f, true, l->row->group))
CELL(p_coll, put_text(f, cm_colls[l->rep->bench->coll].name))
CELL(p_ranks, put_whole(f, true, l->rep->groups[l->row->group].ranks))
CELL(p_size, put_whole(f, true, (int64_t)l->row->bytes))
CELL(p_count, put_whole(f, true, (int64_t)l->row->count))
CELL(p_type, put_text(f, cm_report_type(l->row)))
CELL(p_redop, put_text(f, l->row->redop))
CELL(p_root, put_whole(f, true, l->row->root))
CELL(p_inplace, put_whole(f, true, l->in_place))
CELL(p_time, put_real(f, l->half->measured, l->half->time_us))
CELL(p_algbw, put_real(f, l->half->measured, l->half->alg_gbs))
CELL(p_busbw, put_real(f, l->half->measured, l->half->bus_gbs))
CELL(p_wrong, put_whole(f, l->half->measured && l->half->checked, l->half->wrong))
CELL(p_first, put_real(f, l->half->measured, l->half->first_us))
CELL(p_rank_min, put_real(f, l->half->measured, l->half->rank_min_us))
CELL(p_rank_avg, put_real(f, l->half->measured, l->half->rank_avg_us))
CELL(p_rank_max, put_real(f, l->half->measured, l->half->rank_max_us))
CELL(p_slowest, put_whole(f, l->half->measured, l->half->slowest))
CELL(p_min, put_real(f, l->half->has_samples, l->half->samples.min))
CELL(p_p50, put_real(f, l->half->has_samples, l->half->samples.p50))
CELL(p_p99, put_real(f, l->half->has_samples, l->half->samples.p99))
CELL(p_max, put_real(f, l->half->has_samples, l->half->samples.max))
CELL(p_cv, put_real(f, l->half->has_samples, l->half->samples.cv_pct))
CELL(p_algo, put_text(f, l->row->algo))
CELL(p_mode, put_text(f, l->row->mode))
CELL(p_proto, put_text(f, l->row->proto))
CELL(p_channels, put_whole(f, true, l->row->channels))
CELL(p_counted, put_whole(f, true, l->row->counted))
CELL(p_cache, put_text(f, cm_cache_name(l->rep->opts->run.cache)))
CELL(p_peak, put_real(f, isfinite(l->judged.peak_pct), l->judged.peak_pct))
CELL(p_verdict, put_text(f, cm_judgement_name(l->judged.verdict)))
CELL(p_engine, put_text(f, cm_report_engine(l->row)))
CELL(p_spread, put_real(f, l->half->measured && l->half->rounds > 0, l->half->spread_pct))
CELL(p_ratio, put_real(f, l->half->ratio.known, l->half->ratio.mid))
CELL(p_ratio_low, put_real(f, l->half->ratio.known, l->half->ratio.low))
CELL(p_ratio_high, put_real(f, l->half->ratio.known, l->half->ratio.high))
CELL(p_note, put_text(f, l->half->measured ? l->row->note : l->half->why))

static void p_start(FILE *f, const struct line *l)
{
    char utc[CM_UTC_BYTES];

    fputs(cm_utc(l->row->start_unix_ms, true, utc), f);
}

static const struct column columns[] = {
    {"cycle", p_cycle},
    {"group", p_group},
    {"collective", p_coll},
    {"ranks", p_ranks},
    {"size", p_size},
    {"count", p_count},
    {"type", p_type},
    {"redop", p_redop},
    {"root", p_root},
    {"inplace", p_inplace},
    {"time_us", p_time},
    {"algbw_gbs", p_algbw},
    {"busbw_gbs", p_busbw},
    {"wrong", p_wrong},
    {"first_us", p_first},
    {"rank_min_us", p_rank_min},
    {"rank_avg_us", p_rank_avg},
    {"rank_max_us", p_rank_max},
    {"slowest_rank", p_slowest},
    {"iter_min_us", p_min},
    {"iter_p50_us", p_p50},
    {"iter_p99_us", p_p99},
    {"iter_max_us", p_max},
    {"iter_cv_pct", p_cv},
    {"algorithm", p_algo},
    {"mode", p_mode},
    {"protocol", p_proto},
    {"channels", p_channels},
    {"counted", p_counted},
    {"start", p_start},
    {"note", p_note},
    {"peak_pct", p_peak},
    {"verdict", p_verdict},
    {"cache", p_cache},
    {"engine", p_engine},
    {"spread_pct", p_spread},
    {"ratio", p_ratio},
    {"ratio_low", p_ratio_low},
    {"ratio_high", p_ratio_high},
};

static void print_line(FILE *f, const struct line *l)
{
    for (size_t i = 0; i < CM_LEN(columns); i++) {
        if (i > 0)
            fputc(',', f);
        if (l == NULL)
            fputs(columns[i].name, f);
        else
            columns[i].print(f, l);
    }
    fputc('\n', f);
}

static bool csv_wanted(const struct cm_opts *o)
{
    return o->report.csv != NULL && !o->find.on;
}

static enum cm_status csv_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    enum cm_status st = cm_outfile_keep(state); /* nothing is buffered, nothing to take back */

    (void)rep;
    (void)end;
    free(state);
    return st;
}

static enum cm_status csv_open(struct cm_report *rep, void **state)
{
    struct cm_outfile *file = malloc(sizeof(*file));
    struct cm_page page;
    enum cm_status st;

    if (file == NULL)
        return CM_FAIL(CM_ENOMEM, "--csv '%s'", rep->opts->report.csv);
    st = cm_outfile_open("--csv", rep->opts->report.csv, false, file);
    if (st != CM_OK) {
        free(file);
        return st;
    }
    cm_page_begin(&page);
    if (page.f != NULL)
        print_line(page.f, NULL);
    st = cm_page_end(&page, file->fd, file->what);
    if (st != CM_OK) {
        cm_outfile_drop(file);
        free(file);
        return st;
    }
    *state = file;
    return CM_OK;
}

static enum cm_status csv_row(struct cm_report *rep, void *state, const struct cm_row *row)
{
    const struct cm_outfile *file = state;
    struct cm_page page;

    cm_page_begin(&page);
    for (int h = 0; page.f != NULL && h < 2; h++) {
        struct line l = {.rep = rep, .row = row, .half = &row->half[h], .in_place = h == 1};

        cm_report_judge(rep, row, h, &l.judged);
        print_line(page.f, &l);
    }
    return cm_page_end(&page, file->fd, file->what);
}

const struct cm_sink_kind cm_sink_csv = {
    .name = "csv", .wanted = csv_wanted, .open = csv_open, .row = csv_row, .close = csv_close};
