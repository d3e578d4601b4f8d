/*
 * From the text of an option to its field.
 *
 * One switch over the row's kind; ranges and choices come from the row. A
 * field is written only if its text is valid.
 */
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "common/inject.h"
#include "common/opts_table.h"
#include "engine/algo.h"
#include "transport/wire.h"

static bool is_auto(const struct cm_option *row, const char *text)
{
    return row->preset != NULL && strcmp(row->preset, "auto") == 0 && strcasecmp(text, "auto") == 0;
}

static void *field_of(const struct cm_option *row, struct cm_opts *o)
{
    return (char *)o + row->at;
}

static int choice_of(const struct cm_option *row, const char *text)
{
    for (int i = 0; row->choices[i] != NULL; i++) {
        if (strcasecmp(row->choices[i], text) == 0)
            return i;
    }
    return -1;
}

static bool set_int(const struct cm_option *row, const char *text, int *field)
{
    int64_t v = 0;

    if (!is_auto(row, text) && !cm_parse_int(text, (int64_t)row->lo, (int64_t)row->hi, &v))
        return false;
    *field = (int)v;
    return true;
}

static bool set_size(const struct cm_option *row, const char *text, size_t *field)
{
    size_t v = 0;

    if (is_auto(row, text)) {
        *field = 0;
        return true;
    }
    if (!cm_parse_size(text, &v) || v < (size_t)row->lo || v > (size_t)row->hi)
        return false;
    if (row->multiple != 0 && v % (size_t)row->multiple != 0)
        return false;
    *field = v;
    return true;
}

static bool set_seed(const struct cm_option *row, const char *text, uint64_t *field)
{
    int64_t v;

    if (!cm_parse_int(text, (int64_t)row->lo, (int64_t)row->hi, &v))
        return false;
    *field = (uint64_t)v;
    return true;
}

static bool set_bool(const char *text, bool *field)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return false;
    *field = text[0] == '1';
    return true;
}

static bool set_choice(const struct cm_option *row, const char *text, int *field)
{
    int i = choice_of(row, text);

    if (i >= 0)
        *field = i + (int)row->lo;
    return i >= 0;
}

/* Names out of other floors' tables are stored as those write them, not as the user did. */
static bool set_name(const struct cm_option *row, const char *text, const char **field)
{
    const struct cm_algo *algo = cm_algo_find(text);
    const struct cm_wire *wire = cm_wire_find(text);
    const struct cm_net_wire *net = cm_net_wire_find(text);
    const char *name = NULL;

    if (row->kind == CM_OPTION_ALGO)
        name = algo != NULL ? algo->name : NULL;
    else if (wire != NULL)
        name = wire->name;
    else if (net != NULL)
        name = net->name;
    if (name == NULL && !is_auto(row, text))
        return false;
    *field = name;
    return true;
}

static bool set_index(int index, const char *text, int *field)
{
    bool all = strcmp(text, "all") == 0;

    if (index < 0 && !all)
        return false;
    *field = all ? CM_ALL : index;
    return true;
}

static bool set_root(const char *text, int *field)
{
    int64_t v = CM_ALL;

    if (strcmp(text, "all") != 0 && !cm_parse_int(text, CM_ALL, CM_MAX_RANKS - 1, &v))
        return false;
    *field = (int)v;
    return true;
}

static bool set_text(const char *text, bool valid, const char **field)
{
    if (valid)
        *field = text;
    return valid;
}

/* Everything that can be told valid or not from the text alone. */
static bool set_field(const struct cm_option *row, const char *text, struct cm_opts *o)
{
    void *field = field_of(row, o);
    int word, ignored;

    switch (row->kind) {
    case CM_OPTION_INT:
        return set_int(row, text, field);
    case CM_OPTION_REFUSED:
        return set_int(row, text, &ignored);
    case CM_OPTION_SEED:
        return set_seed(row, text, field);
    case CM_OPTION_SIZE:
        return set_size(row, text, field);
    case CM_OPTION_REAL:
        return cm_parse_real(text, row->lo, row->hi, field);
    case CM_OPTION_BOOL:
    case CM_OPTION_FLAG:
        return set_bool(text, field);
    case CM_OPTION_TEXT:
        return set_text(text, text[0] != '\0' && (row->valid == NULL || row->valid(text)), field);
    case CM_OPTION_INJECT:
        return set_text(text, text[0] != '\0', field);
    case CM_OPTION_NODE_MAP:
        return set_text(text, cm_node_map_length(text) > 0, field);
    case CM_OPTION_CHOICE:
        return set_choice(row, text, field);
    case CM_OPTION_WORD:
        word = choice_of(row, text);
        return set_text(word >= 0 ? row->choices[word] : NULL, word >= 0, field);
    case CM_OPTION_DTYPE:
        return set_index(cm_dtype_find(text), text, field);
    case CM_OPTION_OP:
        return set_index(cm_op_find(text), text, field);
    case CM_OPTION_ROOT:
        return set_root(text, field);
    case CM_OPTION_ALGO:
    case CM_OPTION_WIRE:
        return set_name(row, text, field);
    case CM_OPTION_SPLIT:
        return cm_parse_split(text, &o->launch.split, &o->launch.split_value);
    case CM_OPTION_PRINT:
        break;
    }
    return false;
}

enum cm_status cm_option_set(const struct cm_option *row, const char *where, const char *text,
                             struct cm_opts *o)
{
    char want[CM_WANT_BYTES];
    struct cm_inject fault;
    int64_t v, preset;

    if (!set_field(row, text, o))
        return CM_FAIL(CM_EINVAL, "%s '%s': want %s", where, text,
                       cm_option_want(row, want, sizeof(want)));
    if (row->kind == CM_OPTION_INJECT)
        return cm_inject_parse(text, 0, &fault); /* it has logged its own failure */
    if (row->kind == CM_OPTION_REFUSED && cm_parse_int(text, INT32_MIN, INT32_MAX, &v) &&
        cm_parse_int(row->preset, INT32_MIN, INT32_MAX, &preset) && v != preset)
        return CM_FAIL(CM_EINVAL, "%s '%s': %s; only %s is accepted", where, text, row->refused,
                       row->preset);
    return CM_OK;
}
