/*
 * The environment as defaults of options. The only file that reads it.
 *
 * Every option has COLLMARK_<NAME>; some have a second name that users of NCCL
 * and nccl-tests know. A variable is looked at only if nothing of higher rank
 * set the option, so a bad value that nobody uses harms nobody. An empty
 * variable counts as unset.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/opts_table.h"

enum { VARIABLE_BYTES = 64 };

/* Earlier rows win. `hex`: the value is a hexadecimal mask, with or without 0x. */
static const struct known {
    const char *variable, *option;
    bool hex;
} known[] = {
    {"NCCL_ALGO", "algo", false},
    {"NCCL_PROTO", "proto", false},
    {"NCCL_BUFFSIZE", "buffsize", false},
    {"NCCL_DEBUG", "debug", false},
    {"NCCL_DEBUG_FILE", "debug-file", false},
    {"NCCL_TESTS_DEVICE", "device", false},
    {"NCCL_TESTS_SPLIT_MASK", "split", true},
    {"NCCL_TESTS_SPLIT", "split", false},
    {"NCCL_TESTS_MIN_BW", "min-bw", false},
    {"NCCL_TESTS_ALLTOALLV_SPREAD", "alltoallv-spread", false},
    {"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", "alltoallv-matrix-file", false},
    {"NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", "alltoallv-matrix-scale", false},
    {"NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", "alltoallv-print-summary", false},
};

/* COLLMARK_<NAME>: upper case, '-' becomes '_'. */
static void own_variable(const struct cm_option *row, char *name)
{
    size_t n = 0;

    memcpy(name, "COLLMARK_", 9);
    for (const char *c = row->name; *c != '\0' && n + 10 < VARIABLE_BYTES; c++, n++)
        name[9 + n] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    name[9 + n] = '\0';
}

static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Keep "NAME=value" for the header, growing the list by one; the value inside, or NULL. */
static const char *keep(struct cm_opts *o, const char *variable, const char *value)
{
    size_t bytes = strlen(variable) + strlen(value) + 2, n = 0;
    char *line = malloc(bytes);
    char **list;

    while (o->from_env != NULL && o->from_env[n] != NULL)
        n++;
    list = realloc(o->from_env, (n + 2) * sizeof(*list));
    if (list != NULL)
        o->from_env = list;
    if (list == NULL || line == NULL) {
        free(line);
        return NULL;
    }
    snprintf(line, bytes, "%s=%s", variable, value);
    list[n] = line;
    list[n + 1] = NULL;
    return line + strlen(variable) + 1;
}

static enum cm_status set_mask(const struct cm_option *row, const char *variable, const char *value,
                               struct cm_opts *o)
{
    char text[32];
    const char *digits = strncasecmp(value, "0x", 2) == 0 ? value + 2 : value;

    if (strlen(digits) > 16)
        return CM_FAIL(CM_EINVAL, "%s '%s': want a hexadecimal mask of 64 bits", variable, value);
    snprintf(text, sizeof(text), "mask:0x%s", digits);
    return cm_option_set(row, variable, text,
                         o); /* split fields hold numbers, no pointer to text */
}

static enum cm_status take(struct cm_parse *p, const struct cm_option *row, const char *variable,
                           bool hex)
{
    const char *value = keep(p->o, variable, value_of(variable));

    if (value == NULL)
        return CM_FAIL(CM_ENOMEM, "environment variable %s", variable);
    p->from[row - cm_options] = CM_FROM_ENV;
    return hex ? set_mask(row, variable, value, p->o) : cm_option_set(row, variable, value, p->o);
}

/* The highest-ranking variable that is set for this row, if any. */
static enum cm_status read_row(struct cm_parse *p, const struct cm_option *row)
{
    char own[VARIABLE_BYTES];

    own_variable(row, own);
    if (value_of(own) != NULL)
        return take(p, row, own, false);
    for (size_t i = 0; i < CM_LEN(known); i++) {
        if (strcmp(known[i].option, row->name) == 0 && value_of(known[i].variable) != NULL)
            return take(p, row, known[i].variable, known[i].hex);
    }
    return CM_OK;
}

enum cm_status cm_env_read(struct cm_parse *p)
{
    enum cm_status st = CM_OK;

    for (int i = 0; cm_options[i].name != NULL && st == CM_OK; i++) {
        if (p->from[i] == CM_FROM_PRESET && cm_options[i].kind != CM_OPTION_PRINT)
            st = read_row(p, &cm_options[i]);
    }
    return st;
}

void cm_env_print(FILE *f)
{
    for (size_t i = 0; i < CM_LEN(known); i++)
        fprintf(f, "  %-34s --%s%s\n", known[i].variable, known[i].option,
                known[i].hex ? " mask:0x..." : "");
}
