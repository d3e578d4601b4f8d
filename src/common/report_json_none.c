/*
 * In place of report_json.c in a build without cJSON (make CJSON=0): asking
 * for JSON ends the program before the run.
 */
#include "common/report_int.h"

static bool wanted(const struct cm_opts *o)
{
    return o->report.json != NULL;
}

static enum cm_status refuse(struct cm_report *rep, void **state)
{
    (void)state;
    return CM_FAIL(CM_EUNSUP, "-J/--output_file '%s': this program was built without cJSON",
                   rep->opts->report.json);
}

const struct cm_sink_kind cm_sink_json = {.name = "json", .wanted = wanted, .open = refuse};
