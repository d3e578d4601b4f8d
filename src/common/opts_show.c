/*
 * Options in words: what a row accepts, and the value in use.
 */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "common/opts_table.h"
#include "engine/algo.h"
#include "transport/wire.h"

static bool has_auto(const struct cm_option *row)
{
    return row->preset != NULL && strcmp(row->preset, "auto") == 0;
}

/* ---- what is valid, in words ---- */

/* A list of names being written; what does not fit is cut. */
struct names {
    char *buf;
    size_t size, used;
    const char *comma;
};

static void add_name(struct names *l, const char *name)
{
    int n = snprintf(l->buf + l->used, l->size - l->used, "%s%s", l->comma, name);

    l->used = l->used + (size_t)n < l->size ? l->used + (size_t)n : l->size - 1;
    l->comma = ", ";
}

static void want_name(const struct cm_option *row, char *buf, size_t size)
{
    struct names l = {buf, size, 0, "one of "};

    if (row->choices == NULL && has_auto(row))
        add_name(&l, "auto");
    for (int i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        add_name(&l, row->choices[i]);
    for (int i = 0; row->kind == CM_OPTION_DTYPE && i < CM_NDTYPES; i++)
        add_name(&l, cm_dtypes[i].name);
    for (int i = 0; row->kind == CM_OPTION_OP && i < CM_NOPS; i++)
        add_name(&l, cm_ops[i].name);
    for (int i = 0; row->kind == CM_OPTION_ALGO && cm_algos[i].name != NULL; i++)
        add_name(&l, cm_algos[i].name);
    for (int i = 0; row->kind == CM_OPTION_WIRE && cm_wires[i] != NULL; i++)
        add_name(&l, cm_wires[i]->name);
    for (int i = 0; row->kind == CM_OPTION_WIRE && cm_net_wires[i].name != NULL; i++)
        add_name(&l, cm_net_wires[i].name);
    if (row->kind == CM_OPTION_DTYPE || row->kind == CM_OPTION_OP)
        add_name(&l, "all");
}

static void want_whole(const struct cm_option *row, char *buf, size_t size)
{
    snprintf(buf, size, "a decimal integer, %.0f to %.0f%s", row->lo, row->hi,
             has_auto(row) ? ", or auto" : "");
}

static void want_size(const struct cm_option *row, char *buf, size_t size)
{
    char lo[32], hi[32], step[48] = "";

    if (row->multiple != 0)
        snprintf(step, sizeof(step), " in steps of %d", row->multiple);
    snprintf(buf, size, "a size in bytes (suffix K, M, G or T), %s to %s%s%s",
             cm_format_size((size_t)row->lo, lo), cm_format_size((size_t)row->hi, hi), step,
             has_auto(row) ? ", or auto" : "");
}

const char *cm_option_want(const struct cm_option *row, char *buf, size_t size)
{
    buf[0] = '\0';
    switch (row->kind) {
    case CM_OPTION_INT:
    case CM_OPTION_SEED:
    case CM_OPTION_REFUSED:
        want_whole(row, buf, size);
        break;
    case CM_OPTION_SIZE:
        want_size(row, buf, size);
        break;
    case CM_OPTION_REAL:
        snprintf(buf, size, "a decimal number, %g to %g", row->lo, row->hi);
        break;
    case CM_OPTION_BOOL:
    case CM_OPTION_FLAG:
        snprintf(buf, size, "0 or 1");
        break;
    case CM_OPTION_ROOT:
        snprintf(buf, size, "a rank, 0 to %d, or all (-1)", CM_MAX_RANKS - 1);
        break;
    case CM_OPTION_NODE_MAP:
        snprintf(buf, size, "node numbers separated by commas, one per rank");
        break;
    case CM_OPTION_SPLIT:
        snprintf(buf, size, "and, or, mod, div or mask, a colon and a number; mod and div: not 0");
        break;
    case CM_OPTION_TEXT:
        snprintf(buf, size, "%s", row->want != NULL ? row->want : "a text that is not empty");
        break;
    case CM_OPTION_INJECT:
    case CM_OPTION_PRINT:
        snprintf(buf, size, "a text that is not empty");
        break;
    case CM_OPTION_CHOICE:
    case CM_OPTION_WORD:
    case CM_OPTION_DTYPE:
    case CM_OPTION_OP:
    case CM_OPTION_ALGO:
    case CM_OPTION_WIRE:
        want_name(row, buf, size);
        break;
    }
    return buf;
}

/* ---- the value in use ---- */

static void get_text(struct cm_option_value *v, const char *text)
{
    v->type = text != NULL ? CM_VALUE_TEXT : CM_VALUE_NONE;
    v->text = text;
}

static void get_whole(struct cm_option_value *v, int64_t whole)
{
    v->type = CM_VALUE_WHOLE;
    v->whole = whole;
}

/* A number of which 0 stands for auto, if the row has that. */
static void get_number(const struct cm_option *row, struct cm_option_value *v, int64_t whole)
{
    if (whole == 0 && has_auto(row))
        get_text(v, "auto");
    else
        get_whole(v, whole);
}

static void get_split(const struct cm_opts_launch *l, struct cm_option_value *v)
{
    static const char *const names[] = {"none", "and", "or", "mod", "div"};

    if (l->split == CM_SPLIT_NONE)
        return;
    snprintf(v->room, sizeof(v->room), "%s:%" PRIu64, names[l->split], l->split_value);
    get_text(v, v->room);
}

void cm_option_get(const struct cm_option *row, const struct cm_opts *o, struct cm_option_value *v)
{
    const void *field = (const char *)o + row->at;
    int i;

    v->type = CM_VALUE_NONE;
    switch (row->kind) {
    case CM_OPTION_INT:
        get_number(row, v, *(const int *)field);
        break;
    case CM_OPTION_SIZE:
        get_number(row, v, (int64_t) * (const size_t *)field);
        break;
    case CM_OPTION_SEED:
        get_whole(v, (int64_t) * (const uint64_t *)field);
        break;
    case CM_OPTION_ROOT:
        get_whole(v, *(const int *)field);
        break;
    case CM_OPTION_REAL:
        v->type = CM_VALUE_REAL;
        v->real = *(const double *)field;
        break;
    case CM_OPTION_BOOL:
    case CM_OPTION_FLAG:
        v->type = CM_VALUE_BOOL;
        v->whole = *(const bool *)field;
        break;
    case CM_OPTION_CHOICE:
        get_text(v, row->choices[*(const int *)field - (int)row->lo]);
        break;
    case CM_OPTION_DTYPE:
        i = *(const int *)field;
        get_text(v, i == CM_ALL ? "all" : cm_dtypes[i].name);
        break;
    case CM_OPTION_OP:
        i = *(const int *)field;
        get_text(v, i == CM_ALL ? "all" : cm_ops[i].name);
        break;
    case CM_OPTION_ALGO:
    case CM_OPTION_WIRE:
        get_text(v, *(const char *const *)field != NULL ? *(const char *const *)field : "auto");
        break;
    case CM_OPTION_TEXT:
    case CM_OPTION_WORD:
    case CM_OPTION_NODE_MAP:
    case CM_OPTION_INJECT:
        get_text(v, *(const char *const *)field);
        break;
    case CM_OPTION_SPLIT:
        get_split(&o->launch, v);
        break;
    case CM_OPTION_PRINT:
    case CM_OPTION_REFUSED:
        break;
    }
}
