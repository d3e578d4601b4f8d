/*
 * The file of -J. What is in it comes from report_json.c, or from nowhere in a
 * build without cJSON.
 */
#include <stdlib.h>

#include "common/report_int.h"

static bool json_wanted(const struct cm_opts *o)
{
    return o->report.json != NULL;
}

static enum cm_status json_open(struct cm_report *rep, void **state)
{
    if (!cm_json_built)
        return CM_FAIL(CM_EUNSUP, "-J/--output_file '%s': this program was built without cJSON",
                       rep->opts->report.json);
    return cm_document_open("-J/--output_file", rep->opts->report.json, state);
}

static enum cm_status write_json(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    char *text = cm_json_document(rep, end);

    if (text == NULL)
        return CM_FAIL(CM_ENOMEM, "JSON document of %zu rows", rep->nrows);
    fputs(text, f);
    fputc('\n', f);
    free(text);
    return CM_OK;
}

static enum cm_status json_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    return cm_document_close(rep, state, end, write_json);
}

const struct cm_sink_kind cm_sink_json = {
    .name = "json", .wanted = json_wanted, .open = json_open, .close = json_close, .late = true};
