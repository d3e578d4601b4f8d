/*
 * The JSON document (-J): one object with all rows, built by cJSON at the end
 * of the run, whatever end that is, and renamed into place.
 *
 * scripts/result.schema.json describes it. Names that nccl-tests has keep
 * their meaning; values are real numbers, booleans and null. A number that is
 * not finite becomes null. Of the environment only an allow-list is told.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/opts_table.h"
#include "common/report_int.h"
#include "common/version.h"

extern char **environ;

/* The only parts of the environment that a report may tell. */
static const char *const allowed[] = {"COLLMARK_", "NCCL_", "UCX_", "OMPI_MCA_",
                                      "CUDA_VISIBLE_DEVICES="};

enum { NAME_BYTES = 128 };

/* ---- values; what got no memory is missing, and is_whole() looks for it at the end ---- */

/* A text, or null. */
static cJSON *text(const char *value)
{
    char *copy = value != NULL ? strdup(value) : NULL;
    cJSON *item;

    if (value == NULL)
        return cJSON_CreateNull();
    if (copy != NULL)
        cm_utf8_repair(copy);
    item = copy != NULL ? cJSON_CreateString(copy) : NULL;
    free(copy);
    return item;
}

static void add_text(cJSON *to, const char *key, const char *value)
{
    cJSON_AddItemToObject(to, key, text(value));
}

static void add_number(cJSON *to, const char *key, bool valid, double v)
{
    cJSON_AddItemToObject(to, key,
                          valid && isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

static void add_whole(cJSON *to, const char *key, int64_t v)
{
    cJSON_AddNumberToObject(to, key, (double)v);
}

static void add_bool(cJSON *to, const char *key, bool v)
{
    cJSON_AddBoolToObject(to, key, v);
}

static void add_time(cJSON *to, const char *key, int64_t unix_ms)
{
    char utc[CM_UTC_BYTES];

    add_text(to, key, cm_utc(unix_ms, true, utc));
}

/* ---- what ran, and where ---- */

static void add_config(cJSON *doc, const struct cm_opts *o)
{
    cJSON *config = cJSON_AddObjectToObject(doc, "config");
    struct cm_option_value v;
    char key[NAME_BYTES];

    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (row->kind == CM_OPTION_PRINT || row->kind == CM_OPTION_REFUSED)
            continue;
        snprintf(key, sizeof(key), "%s", row->name);
        for (char *c = key; *c != '\0'; c++)
            *c = *c == '-' ? '_' : *c;
        cm_option_get(row, o, &v);
        if (v.type == CM_VALUE_BOOL)
            add_bool(config, key, v.whole != 0);
        else if (v.type == CM_VALUE_WHOLE)
            add_whole(config, key, v.whole);
        else if (v.type == CM_VALUE_REAL)
            add_number(config, key, true, v.real);
        else
            add_text(config, key, v.type == CM_VALUE_TEXT ? v.text : NULL);
    }
}

static void add_environment(cJSON *doc, const struct cm_opts *o)
{
    cJSON *env = cJSON_AddObjectToObject(doc, "environment");
    cJSON *used = cJSON_AddArrayToObject(doc, "from_environment");

    for (char **e = environ; *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        char name[NAME_BYTES];

        for (size_t i = 0; equals != NULL && i < CM_LEN(allowed); i++) {
            if (strncmp(*e, allowed[i], strlen(allowed[i])) != 0)
                continue;
            snprintf(name, sizeof(name), "%.*s", (int)(equals - *e), *e);
            cm_utf8_repair(name);
            add_text(env, name, equals + 1);
        }
    }
    for (char **line = o->from_env; line != NULL && *line != NULL; line++)
        cJSON_AddItemToArray(used, text(*line));
}

static void add_machine(cJSON *doc, const struct cm_report *rep)
{
    cJSON *m = cJSON_AddObjectToObject(doc, "machine");
    struct cm_share share = cm_header_share(rep);
    const struct cm_rank *r = rep->rank;
    char version[CM_VERSION_BYTES];

    add_text(m, "backend", cm_header_backend(r));
    add_text(m, "no_gpu", r->no_gpu);
    add_text(m, "cuda_driver", cm_cuda_version(r->gpu_driver, version));
    add_text(m, "cuda_runtime", cm_cuda_version(r->gpu_runtime, version));
    add_bool(m, "shared_gpus", r->shared_gpus);
    add_bool(m, "staged", r->gpu.staged);
    add_text(m, "wire", r->wire);
    add_text(m, "kernels", cm_header_kernels(r));
    add_text(m, "clock", cm_header_clock(r));
    add_text(m, "mpi", r->library);
    add_whole(m, "local_ranks", share.ranks);
    add_whole(m, "local_cpus", share.cpus);
    add_bool(m, "oversubscribed", r->oversubscribed);
    add_whole(m, "arena_bytes", (int64_t)r->arena_bytes);
    if (rep->memory.peak > 0) {
        m = cJSON_AddObjectToObject(m, "gpu_memory");
        add_whole(m, "initialization", (int64_t)rep->memory.init);
        add_whole(m, "buffers", (int64_t)rep->memory.buffers);
        add_whole(m, "peak", (int64_t)rep->memory.peak);
    }
}

static void add_devices(cJSON *doc, const struct cm_report *rep)
{
    cJSON *devices = cJSON_AddArrayToObject(doc, "devices");

    for (int r = 0; r < rep->rank->n; r++) {
        const struct cm_rank_info *i = &rep->rank->infos[r];
        cJSON *d = cJSON_CreateObject();

        add_whole(d, "rank", i->rank);
        add_whole(d, "group", i->group);
        add_whole(d, "group_rank", i->group_rank);
        add_whole(d, "node", i->node);
        add_whole(d, "process", i->proc);
        add_whole(d, "thread", i->thread);
        add_whole(d, "pid", i->pid);
        add_text(d, "hostname", i->host);
        add_text(d, "boot_id", i->boot_id);
        add_whole(d, "device", i->device);
        add_text(d, "device_info", cm_header_device(i));
        add_text(d, "bus_id", i->bus_id[0] != '\0' ? i->bus_id : NULL);
        add_text(d, "cpus", i->cpus);
        add_whole(d, "numa", i->numa);
        cJSON_AddItemToArray(devices, d);
    }
}

/* ---- rows ---- */

static void add_half(cJSON *row, const char *key, const struct cm_result *h)
{
    cJSON *o = cJSON_AddObjectToObject(row, key);
    bool ok = h->measured;

    add_number(o, "time", ok, h->time_us);
    add_number(o, "cpu_time", ok && h->cpu_us >= 0, h->cpu_us);
    add_number(o, "alg_bw", ok, h->alg_gbs);
    add_number(o, "bus_bw", ok, h->bus_gbs);
    add_number(o, "nwrong", ok && h->checked, (double)h->wrong);
    add_number(o, "first_time", ok, h->first_us);
    add_number(o, "rank_min", ok, h->rank_min_us);
    add_number(o, "rank_avg", ok, h->rank_avg_us);
    add_number(o, "rank_max", ok, h->rank_max_us);
    add_number(o, "slowest_rank", ok, h->slowest);
    add_text(o, "why_not", ok ? NULL : h->why);
}

static void add_samples(cJSON *row, const char *key, const struct cm_result *h, int skipped)
{
    const struct cm_stats *s = &h->samples;
    cJSON *o;

    if (!h->measured || !h->has_samples)
        return;
    o = cJSON_AddObjectToObject(row, key);
    add_whole(o, "samples", (int64_t)s->n);
    add_whole(o, "skipped_iterations", skipped);
    add_number(o, "min_us", true, s->min);
    add_number(o, "max_us", true, s->max);
    add_number(o, "avg_us", true, s->mean);
    add_number(o, "p50_us", true, s->p50);
    add_number(o, "p95_us", true, s->p95);
    add_number(o, "p99_us", true, s->p99);
    add_number(o, "stdev_us", true, s->stdev);
    add_number(o, "cv_pct", true, s->cv_pct);
    if (h->sample_us != NULL)
        cJSON_AddItemToObject(o, "times_us", cJSON_CreateDoubleArray(h->sample_us, (int)s->n));
}

static void add_results(cJSON *doc, const struct cm_report *rep)
{
    cJSON *results = cJSON_AddArrayToObject(doc, "results");
    int skipped = rep->opts->run.per_iter_skip;

    for (size_t i = 0; i < rep->nrows; i++) {
        const struct cm_row *r = &rep->rows[i];
        cJSON *row = cJSON_CreateObject();

        add_whole(row, "cycle", r->cycle);
        add_whole(row, "group", r->group);
        add_whole(row, "size", (int64_t)r->bytes);
        add_whole(row, "count", (int64_t)r->count);
        add_text(row, "type", cm_report_type(r));
        add_text(row, "redop", r->redop);
        add_whole(row, "root", r->root);
        add_text(row, "algorithm", r->algo);
        add_text(row, "mode", r->mode);
        add_text(row, "protocol", r->proto);
        add_whole(row, "channels", r->channels);
        add_time(row, "start_time", r->start_unix_ms);
        add_bool(row, "counted", r->counted);
        add_text(row, "note", r->note);
        add_half(row, "out_of_place", &r->half[0]);
        add_samples(row, "out_of_place_per_iter", &r->half[0], skipped);
        add_half(row, "in_place", &r->half[1]);
        add_samples(row, "in_place_per_iter", &r->half[1], skipped);
        cJSON_AddItemToArray(results, row);
    }
}

static void add_groups(cJSON *doc, const struct cm_report *rep)
{
    cJSON *groups = cJSON_AddArrayToObject(doc, "groups");

    for (int g = 0; g < rep->rank->ngroups; g++) {
        cJSON *group = cJSON_CreateObject(), *ranks;

        add_whole(group, "group", g);
        ranks = cJSON_AddArrayToObject(group, "ranks");
        for (int r = 0; r < rep->rank->n; r++) {
            if (rep->rank->infos[r].group == g)
                cJSON_AddItemToArray(ranks, cJSON_CreateNumber(r));
        }
        add_number(group, "average_bus_bandwidth", true, cm_report_average(rep, g));
        cJSON_AddItemToArray(groups, group);
    }
}

/* Nothing checked, no threshold: then nobody knows whether it is okay, and it is null. */
static void add_okay(cJSON *to, bool known, bool okay)
{
    cJSON_AddItemToObject(to, "okay", known ? cJSON_CreateBool(okay) : cJSON_CreateNull());
}

static void add_summary(cJSON *doc, const struct cm_report *rep, const struct cm_end *end)
{
    const struct cm_summary *s = &end->summary;
    bool checked = rep->checked > 0 || s->wrong > 0;
    double average = cm_report_average(rep, 0);
    cJSON *o = cJSON_AddObjectToObject(doc, "out_of_bounds");

    add_number(o, "count", checked, (double)s->wrong);
    add_okay(o, checked, s->wrong == 0);
    o = cJSON_AddObjectToObject(doc, "average_bus_bandwidth");
    add_number(o, "bandwidth", true, average);
    add_okay(o, rep->opts->report.min_bw_gbs > 0, !cm_report_is_below(rep));

    o = cJSON_AddObjectToObject(doc, "summary");
    add_bool(o, "okay", end->exit == CM_EXIT_OK);
    add_whole(o, "exit_code", end->exit);
    add_text(o, "status", cm_status_text(s->status));
    add_whole(o, "rows", (int64_t)rep->nrows);
    add_whole(o, "bad_rows", s->bad_rows);
    add_number(o, "wrong", checked, (double)s->wrong);
    add_number(o, "average_bus_bandwidth", true, average);
    add_number(o, "slowest_group", cm_report_slowest(rep) >= 0, cm_report_slowest(rep));
    add_bool(o, "truncated", s->truncated);
    add_text(o, "why_truncated", s->truncated ? s->why_truncated : NULL);
}

/* ---- the sink ---- */

static cJSON *document(const struct cm_report *rep, const struct cm_end *end)
{
    cJSON *doc = cJSON_CreateObject(), *args, *units;

    add_whole(doc, "schema", CM_JSON_SCHEMA);
    add_text(doc, "collmark", cm_version);
    add_text(doc, "program", rep->opts->program);
    add_text(doc, "collective", cm_colls[rep->bench->coll].name);
    args = cJSON_AddArrayToObject(doc, "args");
    for (int i = 0; i < rep->argc; i++)
        cJSON_AddItemToArray(args, text(rep->argv[i]));
    add_time(doc, "start_time", rep->start_unix_ms);
    add_time(doc, "end_time", end->unix_ms);
    units = cJSON_AddObjectToObject(doc, "units");
    add_text(units, "time", "us");
    add_text(units, "bandwidth", "1e9 B/s");
    add_text(units, "size", "B");
    add_text(doc, "time_definition", cm_report_time_over(rep->opts));
    add_whole(doc, "ranks", rep->rank->n);
    add_machine(doc, rep);
    add_config(doc, rep->opts);
    add_environment(doc, rep->opts);
    add_devices(doc, rep);
    add_groups(doc, rep);
    add_results(doc, rep);
    add_summary(doc, rep, end);
    return doc;
}

/* Did memory last for every row and for the summary behind them? */
static bool is_whole(const cJSON *doc, const struct cm_report *rep)
{
    const cJSON *results = cJSON_GetObjectItem(doc, "results");
    const cJSON *summary = cJSON_GetObjectItem(doc, "summary");

    return results != NULL && (size_t)cJSON_GetArraySize(results) == rep->nrows &&
           cJSON_GetObjectItem(summary, "why_truncated") != NULL;
}

static bool json_wanted(const struct cm_opts *o)
{
    return o->report.json != NULL;
}

static enum cm_status json_open(struct cm_report *rep, void **state)
{
    struct cm_outfile *file = malloc(sizeof(*file));
    enum cm_status st;

    if (file == NULL)
        return CM_FAIL(CM_ENOMEM, "-J/--output_file '%s'", rep->opts->report.json);
    st = cm_outfile_open(rep->opts->report.json, true, file);
    if (st != CM_OK) {
        free(file);
        return st;
    }
    *state = file;
    return CM_OK;
}

static enum cm_status json_row(struct cm_report *rep, void *state, const struct cm_row *row)
{
    (void)rep; /* it keeps the rows */
    (void)state;
    (void)row;
    return CM_OK;
}

static enum cm_status json_write(struct cm_report *rep, struct cm_outfile *file,
                                 const struct cm_end *end)
{
    cJSON *doc = document(rep, end);
    char *printed = is_whole(doc, rep) ? cJSON_Print(doc) : NULL;
    enum cm_status st;

    cJSON_Delete(doc);
    if (printed == NULL)
        return CM_FAIL(CM_ENOMEM, "JSON document of %zu rows", rep->nrows);
    st = cm_outfile_begin(file);
    if (st == CM_OK)
        st = cm_write_all(file->fd, printed, strlen(printed), file->path);
    if (st == CM_OK)
        st = cm_write_all(file->fd, "\n", 1, file->path);
    cJSON_free(printed);
    return st;
}

static enum cm_status json_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    struct cm_outfile *file = state;
    enum cm_status st = end != NULL ? json_write(rep, file, end) : CM_OK;

    if (end != NULL && st == CM_OK)
        st = cm_outfile_keep(file);
    else
        cm_outfile_drop(file);
    free(file);
    return st;
}

const struct cm_sink_kind cm_sink_json = {"json",   json_wanted, json_open,
                                          json_row, json_close,  false};
