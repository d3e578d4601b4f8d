/*
 * The JSON document (-J): one object with all rows, built by cJSON at the end
 * of the run, whatever end that is (report_json_sink.c).
 *
 * scripts/result.schema.json describes it. Names that nccl-tests has keep
 * their meaning; values are real numbers, booleans and null. A number that is
 * not finite becomes null. Of the environment only an allow-list is told.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/network.h"
#include "common/opts_table.h"
#include "common/peaks.h"
#include "common/probe.h"
#include "common/report_json_int.h"
#include "common/version.h"

extern char **environ;

/* The only parts of the environment that a report may tell. */
static const char *const allowed[] = {"COLLMARK_", "NCCL_", "UCX_", "OMPI_MCA_",
                                      "CUDA_VISIBLE_DEVICES="};

enum { NAME_BYTES = 128 };

/* ---- values; what got no memory is missing, and is_whole() looks for it at the end ---- */

cJSON *cm_json_text(const char *value)
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

void cm_json_add_text(cJSON *to, const char *key, const char *value)
{
    cJSON_AddItemToObject(to, key, cm_json_text(value));
}

void cm_json_add_number(cJSON *to, const char *key, bool valid, double v)
{
    cJSON_AddItemToObject(to, key,
                          valid && isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

void cm_json_add_whole(cJSON *to, const char *key, int64_t v)
{
    cJSON_AddNumberToObject(to, key, (double)v);
}

void cm_json_add_bool(cJSON *to, const char *key, bool v)
{
    cJSON_AddBoolToObject(to, key, v);
}

void cm_json_add_time(cJSON *to, const char *key, int64_t unix_ms)
{
    char utc[CM_UTC_BYTES];

    cm_json_add_text(to, key, cm_utc(unix_ms, true, utc));
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
            cm_json_add_bool(config, key, v.whole != 0);
        else if (v.type == CM_VALUE_WHOLE)
            cm_json_add_whole(config, key, v.whole);
        else if (v.type == CM_VALUE_REAL)
            cm_json_add_number(config, key, true, v.real);
        else
            cm_json_add_text(config, key, v.type == CM_VALUE_TEXT ? v.text : NULL);
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
            cm_json_add_text(env, name, equals + 1);
        }
    }
    for (char **line = o->from_env; line != NULL && *line != NULL; line++)
        cJSON_AddItemToArray(used, cm_json_text(*line));
}

static void add_machine(cJSON *doc, const struct cm_report *rep)
{
    cJSON *m = cJSON_AddObjectToObject(doc, "machine");
    struct cm_share share = cm_header_share(rep);
    const struct cm_rank *r = rep->rank;
    char version[CM_VERSION_BYTES], wire[CM_WIRE_BYTES], library[CM_LIBRARY_BYTES];

    cm_json_add_text(m, "backend", cm_header_backend(r));
    cm_json_add_text(m, "no_gpu", r->no_gpu);
    cm_json_add_text(m, "cuda_driver", cm_cuda_version(r->gpu_driver, version));
    cm_json_add_text(m, "cuda_runtime", cm_cuda_version(r->gpu_runtime, version));
    cm_json_add_bool(m, "shared_gpus", r->shared_gpus);
    cm_json_add_bool(m, "staged", r->gpu.staged);
    cm_json_add_text(m, "wire", cm_header_wire(r, wire));
    cm_json_add_text(m, "kernels", cm_header_kernels(r));
    cm_json_add_text(m, "clock", cm_header_clock(r));
    cm_json_add_text(m, "mpi", r->library);
    cm_json_add_text(m, "nccl", cm_report_library(r, library) ? library : NULL);
    cm_json_add_whole(m, "local_ranks", share.ranks);
    cm_json_add_whole(m, "local_cpus", share.cpus);
    cm_json_add_bool(m, "oversubscribed", r->oversubscribed);
    cm_json_add_whole(m, "arena_bytes", (int64_t)r->arena_bytes);
    if (rep->memory.peak > 0) {
        m = cJSON_AddObjectToObject(m, "gpu_memory");
        cm_json_add_whole(m, "initialization", (int64_t)rep->memory.init);
        cm_json_add_whole(m, "buffers", (int64_t)rep->memory.buffers);
        cm_json_add_whole(m, "peak", (int64_t)rep->memory.peak);
    }
}

static void add_devices(cJSON *doc, const struct cm_report *rep)
{
    cJSON *devices = cJSON_AddArrayToObject(doc, "devices");

    for (int r = 0; r < rep->rank->n; r++) {
        const struct cm_rank_info *i = &rep->rank->infos[r];
        cJSON *d = cJSON_CreateObject();

        cm_json_add_whole(d, "rank", i->rank);
        cm_json_add_whole(d, "group", i->group);
        cm_json_add_whole(d, "group_rank", i->group_rank);
        cm_json_add_whole(d, "node", i->node);
        cm_json_add_whole(d, "process", i->proc);
        cm_json_add_whole(d, "thread", i->thread);
        cm_json_add_whole(d, "pid", i->pid);
        cm_json_add_text(d, "hostname", i->host);
        cm_json_add_text(d, "boot_id", i->boot_id);
        cm_json_add_whole(d, "device", i->device);
        cm_json_add_text(d, "device_info", cm_header_device(i));
        cm_json_add_text(d, "bus_id", i->bus_id[0] != '\0' ? i->bus_id : NULL);
        cm_json_add_text(d, "cpus", i->cpus);
        cm_json_add_whole(d, "numa", i->numa);
        cJSON_AddItemToArray(devices, d);
    }
}

/* ---- between nodes ---- */

static void add_way(cJSON *to, const struct cm_network_way *w)
{
    cJSON *way = cJSON_CreateObject();

    cm_json_add_whole(way, "processes", w->procs);
    cm_json_add_whole(way, "first_rank", w->first);
    cm_json_add_text(way, "hostname", w->host);
    cm_json_add_text(way, "wire", w->wire);
    cm_json_add_text(way, "interface", w->interface);
    cm_json_add_text(way, "address", w->address);
    cm_json_add_text(way, "device", w->device[0] != '\0' ? w->device : NULL);
    cm_json_add_number(way, "mbit_per_s", w->mbit > 0, w->mbit);
    cm_json_add_text(way, "why", w->why);
    cJSON_AddItemToArray(to, way);
}

static void add_network(cJSON *doc, const struct cm_rank *r)
{
    const struct cm_network *n = r->network;
    cJSON *o = n != NULL ? cJSON_CreateObject() : cJSON_CreateNull(), *ways;

    cJSON_AddItemToObject(doc, "network", o);
    if (n == NULL)
        return;
    cm_json_add_whole(o, "domains", n->domains);
    cm_json_add_text(o, "inside", n->most_ranks > 1 ? r->wire : NULL);
    cm_json_add_number(o, "lanes", n->lanes > 0, n->lanes);
    cm_json_add_whole(o, "neighbours", n->neighbours);
    cm_json_add_whole(o, "ports", n->ports);
    cm_json_add_text(o, "progress", n->progress);
    ways = cJSON_AddArrayToObject(o, "ways");
    for (int i = 0; i < n->ways.n; i++)
        add_way(ways, &n->ways.of[i]);
    cm_json_add_whole(o, "other_processes", n->ways.others);
}

/* ---- between cores ---- */

static void add_probe(cJSON *to, const char *key, const struct cm_probe *p)
{
    cJSON *o, *pairs;

    if (p->pairs == 0) {
        cJSON_AddNullToObject(to, key);
        return;
    }
    o = cJSON_AddObjectToObject(to, key);
    cm_json_add_whole(o, "pairs_probed", p->pairs);
    cm_json_add_number(o, "nearest_ns", true, p->least_ns);
    cm_json_add_number(o, "farthest_ns", true, p->most_ns);
    pairs = cJSON_AddArrayToObject(o, "pairs");
    for (int i = 0; i < p->listed; i++) {
        cJSON *pair = cJSON_CreateObject();

        cm_json_add_whole(pair, "rank", p->pair[i].a);
        cm_json_add_whole(pair, "peer", p->pair[i].b);
        cm_json_add_number(pair, "ns", true, p->pair[i].ns);
        cJSON_AddItemToArray(pairs, pair);
    }
}

static void add_placement(cJSON *doc, const struct cm_probes *p)
{
    cJSON *o;

    if (p == NULL) {
        cJSON_AddNullToObject(doc, "placement");
        return;
    }
    o = cJSON_AddObjectToObject(doc, "placement");
    cm_json_add_text(o, "tag", cm_probes_tag(p));
    cm_json_add_text(o, "why_not", p->before.why);
    add_probe(o, "before", &p->before);
    add_probe(o, "after", &p->after);
}

static void add_bootstrap(cJSON *doc, const struct cm_report *rep)
{
    const struct cm_bootstrap none = {0, 0, 0}, *b = rep->rank->bootstrap;
    cJSON *o = cJSON_AddObjectToObject(doc, "bootstrap");

    b = b != NULL ? b : &none;
    cm_json_add_number(o, "start", b->start_s > 0, b->start_s);
    cm_json_add_number(o, "discover", b->discover_s > 0, b->discover_s);
    cm_json_add_number(o, "connect", b->connect_s > 0, b->connect_s);
    cm_json_add_number(o, "first_operation", rep->first_us > 0, rep->first_us / 1e6);
}

static void add_groups(cJSON *doc, const struct cm_report *rep)
{
    cJSON *groups = cJSON_AddArrayToObject(doc, "groups");

    for (int g = 0; g < rep->rank->ngroups; g++) {
        cJSON *group = cJSON_CreateObject(), *ranks;

        cm_json_add_whole(group, "group", g);
        ranks = cJSON_AddArrayToObject(group, "ranks");
        for (int r = 0; r < rep->rank->n; r++) {
            if (rep->rank->infos[r].group == g)
                cJSON_AddItemToArray(ranks, cJSON_CreateNumber(r));
        }
        cm_json_add_number(group, "average_bus_bandwidth", true, cm_report_average(rep, g));
        cJSON_AddItemToArray(groups, group);
    }
}

/* Nothing checked, no threshold: then nobody knows whether it is okay, and it is null. */
static void add_okay(cJSON *to, bool known, bool okay)
{
    cJSON_AddItemToObject(to, "okay", known ? cJSON_CreateBool(okay) : cJSON_CreateNull());
}

/* Of thresholds for rows, and what %peak is a part of. */
static void add_verdict(cJSON *doc, const struct cm_report *rep, const struct cm_end *end)
{
    bool asks = cm_judge_asks(rep->judge), ended = !end->summary.truncated;
    const struct cm_machine *m = cm_judge_machine(rep->judge);
    cJSON *o = cJSON_AddObjectToObject(doc, "verdict");
    double peak = rep->opts->report.peak != NULL ? cm_peak_number(rep->opts->report.peak) : 0;

    cm_json_add_number(o, "rows", asks, (double)rep->verdicts.rows);
    cm_json_add_number(o, "failed", asks, (double)rep->verdicts.failed);
    add_okay(o, asks, ended && rep->verdicts.rows > 0 && rep->verdicts.failed == 0);
    cm_json_add_text(o, "machine", m != NULL ? m->name : NULL);
    cm_json_add_number(o, "peak_bus_bw", peak > 0, peak);
}

static void add_summary(cJSON *doc, const struct cm_report *rep, const struct cm_end *end)
{
    const struct cm_summary *s = &end->summary;
    bool checked = rep->checked > 0 || s->wrong > 0;
    double average = cm_report_average(rep, 0);
    cJSON *o = cJSON_AddObjectToObject(doc, "out_of_bounds");

    cm_json_add_number(o, "count", checked, (double)s->wrong);
    add_okay(o, checked, s->wrong == 0);
    o = cJSON_AddObjectToObject(doc, "average_bus_bandwidth");
    cm_json_add_number(o, "bandwidth", true, average);
    add_okay(o, rep->opts->report.min_bw_gbs > 0, !cm_report_average_is_below(rep));

    add_verdict(doc, rep, end);
    o = cJSON_AddObjectToObject(doc, "summary");
    cm_json_add_bool(o, "okay", end->exit == CM_EXIT_OK);
    cm_json_add_whole(o, "exit_code", end->exit);
    cm_json_add_text(o, "status", cm_status_text(s->status));
    cm_json_add_whole(o, "rows", (int64_t)rep->nrows);
    cm_json_add_whole(o, "bad_rows", s->bad_rows);
    cm_json_add_number(o, "wrong", checked, (double)s->wrong);
    cm_json_add_number(o, "average_bus_bandwidth", true, average);
    cm_json_add_number(o, "slowest_group", cm_report_slowest(rep) >= 0, cm_report_slowest(rep));
    cm_json_add_bool(o, "truncated", s->truncated);
    cm_json_add_text(o, "why_truncated", s->truncated ? s->why_truncated : NULL);
}

/* ---- the whole ---- */

static cJSON *document(const struct cm_report *rep, const struct cm_end *end)
{
    cJSON *doc = cJSON_CreateObject(), *args, *units;

    cm_json_add_whole(doc, "schema", CM_JSON_SCHEMA);
    cm_json_add_text(doc, "collmark", cm_version);
    cm_json_add_text(doc, "program", rep->opts->program);
    cm_json_add_text(doc, "collective", cm_colls[rep->bench->coll].name);
    args = cJSON_AddArrayToObject(doc, "args");
    for (int i = 0; i < rep->argc; i++)
        cJSON_AddItemToArray(args, cm_json_text(rep->argv[i]));
    cm_json_add_time(doc, "start_time", rep->start_unix_ms);
    cm_json_add_time(doc, "end_time", end->unix_ms);
    units = cJSON_AddObjectToObject(doc, "units");
    cm_json_add_text(units, "time", "us");
    cm_json_add_text(units, "bandwidth", "1e9 B/s");
    cm_json_add_text(units, "size", "B");
    cm_json_add_text(doc, "time_definition", cm_report_time_over(rep->opts));
    cm_json_add_whole(doc, "ranks", rep->rank->n);
    add_machine(doc, rep);
    add_network(doc, rep->rank);
    add_placement(doc, rep->rank->probes);
    add_bootstrap(doc, rep);
    add_config(doc, rep->opts);
    add_environment(doc, rep->opts);
    add_devices(doc, rep);
    add_groups(doc, rep);
    cm_json_add_results(doc, rep);
    cm_json_add_pairs(doc, rep);
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

const bool cm_json_built = true;

char *cm_json_document(const struct cm_report *rep, const struct cm_end *end)
{
    cJSON *doc = document(rep, end);
    char *printed = is_whole(doc, rep) ? cJSON_Print(doc) : NULL;

    cJSON_Delete(doc);
    return printed; /* cJSON takes its memory from malloc() */
}
