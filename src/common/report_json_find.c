/* "pairs" of the JSON document: what --find-bad has found. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "common/find.h"
#include "common/report_json_int.h"

static void add_values(cJSON *o, const struct cm_find *find)
{
    int n = find->units.n;
    cJSON *rows = cJSON_AddArrayToObject(o, "values");

    for (int a = 0; a < n; a++) {
        cJSON *row = cJSON_CreateArray();

        for (int b = 0; b < n; b++)
            cJSON_AddItemToArray(row, cJSON_CreateNull());
        cJSON_AddItemToArray(rows, row);
    }
    for (size_t k = 0; k < find->nruns; k++) {
        const struct cm_find_run *r = &find->runs[k];

        if (r->a == r->b || r->again || r->outcome == CM_FIND_HUNG)
            continue;
        cJSON_ReplaceItemInArray(cJSON_GetArrayItem(rows, r->a), r->b, cJSON_CreateNumber(r->gbs));
        cJSON_ReplaceItemInArray(cJSON_GetArrayItem(rows, r->b), r->a, cJSON_CreateNumber(r->gbs));
    }
}

static void add_suspect(cJSON *list, const char *name, const char *why)
{
    cJSON *o = cJSON_CreateObject();

    cm_json_add_text(o, "name", name);
    cm_json_add_text(o, "why", why);
    cJSON_AddItemToArray(list, o);
}

static void add_suspects(cJSON *o, const struct cm_find *find, const struct cm_find_verdict *v)
{
    cJSON *list = cJSON_AddArrayToObject(o, "suspects");
    char why[CM_FIND_TEXT], name[2 * CM_FIND_NAME + 4];

    for (int u = 0; u < find->units.n; u++)
        if (v->units[u].class >= CM_FIND_SLOW)
            add_suspect(list, find->units.name[u], cm_find_why(&v->units[u], why));
    for (size_t i = 0; i < v->nlinks; i++) {
        snprintf(name, sizeof(name), "%s - %s", find->units.name[v->links[i].a],
                 find->units.name[v->links[i].b]);
        add_suspect(list, name, cm_find_why_link(&v->links[i], why));
    }
}

static void add_units(cJSON *o, const struct cm_find *find, const struct cm_find_verdict *v)
{
    cJSON *list = cJSON_AddArrayToObject(o, "units");

    for (int u = 0; u < find->units.n; u++) {
        const struct cm_find_unit *unit = &v->units[u];
        cJSON *item = cJSON_CreateObject();

        cm_json_add_text(item, "name", find->units.name[u]);
        cm_json_add_text(item, "host",
                         find->rank->infos[find->units.members[find->units.first[u]]].host);
        cm_json_add_whole(item, "ranks", find->units.ranks[u]);
        cm_json_add_text(item, "verdict", cm_find_class_name(unit->class));
        cm_json_add_bool(item, "by_itself", unit->by_itself);
        cm_json_add_bool(item, "retested", unit->again);
        cm_json_add_whole(item, "partners", unit->partners);
        cm_json_add_number(item, "bus_bw", !isnan(unit->gbs), unit->gbs);
        cm_json_add_number(item, "expected", !isnan(unit->expected), unit->expected);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_links(cJSON *o, const struct cm_find *find, const struct cm_find_verdict *v)
{
    cJSON *list = cJSON_AddArrayToObject(o, "links");

    for (size_t i = 0; i < v->nlinks; i++) {
        const struct cm_find_link *link = &v->links[i];
        cJSON *item = cJSON_CreateObject();

        cm_json_add_text(item, "a", find->units.name[link->a]);
        cm_json_add_text(item, "b", find->units.name[link->b]);
        cm_json_add_text(item, "verdict", cm_find_class_name(link->class));
        cm_json_add_bool(item, "retested", link->again);
        cm_json_add_number(item, "bus_bw", !isnan(link->gbs), link->gbs);
        cm_json_add_number(item, "expected", !isnan(link->expected), link->expected);
        cJSON_AddItemToArray(list, item);
    }
}

void cm_json_add_pairs(cJSON *doc, const struct cm_report *rep)
{
    const struct cm_find *find = rep->find;
    struct cm_find_verdict v;
    struct cm_find_data d;
    cJSON *o, *ends;

    if (find == NULL)
        return;
    d = cm_find_data(find);
    if (cm_find_judge(&d, &find->limits, &v) == CM_OK) {
        o = cJSON_AddObjectToObject(doc, "pairs");
        cm_json_add_text(o, "title", cm_colls[rep->bench->coll].name);
        cm_json_add_whole(o, "size", (int64_t)rep->opts->sweep.max_bytes);
        cm_json_add_text(o, "unit", "GB/s");
        ends = cJSON_AddArrayToObject(o, "ends");
        for (int u = 0; u < find->units.n; u++)
            cJSON_AddItemToArray(ends, cm_json_text(find->units.name[u]));
        add_values(o, find);
        add_suspects(o, find, &v);
        add_units(o, find, &v);
        add_links(o, find, &v);
        cm_json_add_number(o, "expected", !isnan(v.expected), v.expected);
        cm_json_add_number(o, "limit_pct", true, v.limit_pct);
        cm_json_add_bool(o, "compared", v.compared);
        cm_json_add_bool(o, "complete", find->done);
    }
    cm_find_verdict_free(&v);
}
