/* The rows of the JSON document. */
#include <cjson/cJSON.h>

#include "common/report_json_int.h"

static void add_half(cJSON *row, const char *key, const struct cm_result *h,
                     const struct cm_judged *judged)
{
    cJSON *o = cJSON_AddObjectToObject(row, key);
    bool ok = h->measured;

    cm_json_add_number(o, "time", ok, h->time_us);
    cm_json_add_number(o, "cpu_time", ok && h->cpu_us >= 0, h->cpu_us);
    cm_json_add_number(o, "alg_bw", ok, h->alg_gbs);
    cm_json_add_number(o, "bus_bw", ok, h->bus_gbs);
    cm_json_add_number(o, "nwrong", ok && h->checked, (double)h->wrong);
    cm_json_add_number(o, "first_time", ok, h->first_us);
    cm_json_add_number(o, "rank_min", ok, h->rank_min_us);
    cm_json_add_number(o, "rank_avg", ok, h->rank_avg_us);
    cm_json_add_number(o, "rank_max", ok, h->rank_max_us);
    cm_json_add_number(o, "slowest_rank", ok, h->slowest);
    cm_json_add_text(o, "why_not", ok ? NULL : h->why);
    cm_json_add_number(o, "peak_pct", true, judged->peak_pct);
    cm_json_add_text(o, "verdict", cm_judgement_name(judged->verdict));
    cm_json_add_text(o, "verdict_why", cm_judged_failed(judged) ? judged->why : NULL);
}

static void add_samples(cJSON *row, const char *key, const struct cm_result *h, int skipped)
{
    const struct cm_stats *s = &h->samples;
    cJSON *o;

    if (!h->measured || !h->has_samples)
        return;
    o = cJSON_AddObjectToObject(row, key);
    cm_json_add_whole(o, "samples", (int64_t)s->n);
    cm_json_add_whole(o, "skipped_iterations", skipped);
    cm_json_add_number(o, "min_us", true, s->min);
    cm_json_add_number(o, "max_us", true, s->max);
    cm_json_add_number(o, "avg_us", true, s->mean);
    cm_json_add_number(o, "p50_us", true, s->p50);
    cm_json_add_number(o, "p95_us", true, s->p95);
    cm_json_add_number(o, "p99_us", true, s->p99);
    cm_json_add_number(o, "stdev_us", true, s->stdev);
    cm_json_add_number(o, "cv_pct", true, s->cv_pct);
    if (h->sample_us != NULL)
        cJSON_AddItemToObject(o, "times_us", cJSON_CreateDoubleArray(h->sample_us, (int)s->n));
}

/* --compare: what time and bandwidths are the median of, and the first engine beside it. */
static void add_rounds(cJSON *row, const char *key, const struct cm_result *h)
{
    const struct cm_ratio *ratio = &h->ratio;
    cJSON *o;

    if (!h->measured || h->rounds == 0)
        return;
    o = cJSON_AddObjectToObject(row, key);
    cJSON_AddItemToObject(o, "times_us", cJSON_CreateDoubleArray(h->round_us, h->rounds));
    cm_json_add_number(o, "spread_pct", true, h->spread_pct);
    cm_json_add_number(o, "ratio", ratio->known, ratio->mid);
    cm_json_add_number(o, "ratio_low", ratio->known, ratio->low);
    cm_json_add_number(o, "ratio_high", ratio->known, ratio->high);
}

void cm_json_add_results(cJSON *doc, const struct cm_report *rep)
{
    cJSON *results = cJSON_AddArrayToObject(doc, "results");
    int skipped = rep->opts->run.per_iter_skip;

    for (size_t i = 0; i < rep->nrows; i++) {
        const struct cm_row *r = &rep->rows[i];
        cJSON *row = cJSON_CreateObject();
        struct cm_judged judged[2];

        for (int h = 0; h < 2; h++)
            cm_report_judge(rep, r, h, &judged[h]);

        cm_json_add_whole(row, "cycle", r->cycle);
        cm_json_add_whole(row, "group", r->group);
        cm_json_add_whole(row, "size", (int64_t)r->bytes);
        cm_json_add_whole(row, "count", (int64_t)r->count);
        cm_json_add_text(row, "type", cm_report_type(r));
        cm_json_add_text(row, "redop", r->redop);
        cm_json_add_whole(row, "root", r->root);
        cm_json_add_text(row, "engine", cm_report_engine(r));
        cm_json_add_text(row, "algorithm", r->algo);
        cm_json_add_text(row, "mode", r->mode);
        cm_json_add_text(row, "protocol", r->proto);
        cm_json_add_whole(row, "channels", r->channels);
        cm_json_add_time(row, "start_time", r->start_unix_ms);
        cm_json_add_bool(row, "counted", r->counted);
        cm_json_add_text(row, "note", r->note);
        add_half(row, "out_of_place", &r->half[0], &judged[0]);
        add_samples(row, "out_of_place_per_iter", &r->half[0], skipped);
        add_rounds(row, "out_of_place_rounds", &r->half[0]);
        add_half(row, "in_place", &r->half[1], &judged[1]);
        add_samples(row, "in_place_per_iter", &r->half[1], skipped);
        add_rounds(row, "in_place_rounds", &r->half[1]);
        cJSON_AddItemToArray(results, row);
    }
}
