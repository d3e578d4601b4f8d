/* What the files that build the JSON document share. They alone know cJSON. */
#ifndef CM_COMMON_REPORT_JSON_INT_H
#define CM_COMMON_REPORT_JSON_INT_H

#include "common/report_int.h"

struct cJSON;

/* Values of an object. What got no memory is missing; who writes the document looks for that. */
struct cJSON *cm_json_text(const char *value); /* NULL becomes null; not UTF-8: '?' */
void cm_json_add_text(struct cJSON *to, const char *key, const char *value);
void cm_json_add_number(struct cJSON *to, const char *key, bool valid, double v); /* or null */
void cm_json_add_whole(struct cJSON *to, const char *key, int64_t v);
void cm_json_add_bool(struct cJSON *to, const char *key, bool v);
void cm_json_add_time(struct cJSON *to, const char *key, int64_t unix_ms);

/* "results" of the document (report_json_rows.c). */
void cm_json_add_results(struct cJSON *doc, const struct cm_report *rep);

/* "pairs" of --find-bad (report_json_find.c); nothing without. */
void cm_json_add_pairs(struct cJSON *doc, const struct cm_report *rep);

#endif
