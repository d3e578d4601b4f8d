/*
 * The environment as defaults of options. The only file that reads it.
 *
 * Every option has COLLMARK_<NAME>; some have a second name that users of NCCL
 * and nccl-tests know. A variable is looked at only if nothing of higher rank
 * set the option, so a bad value that nobody uses harms nobody. An empty
 * variable counts as unset.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/opts_table.h"

enum { VARIABLE_BYTES = 64 };

/* No two of one option together. `hex`: the value is a hexadecimal mask, with or without 0x. */
static const struct known {
    const char *variable, *option;
    bool hex;
} known[] = {
    {"NCCL_ALGO", "algo", false},
    {"NCCL_PROTO", "proto", false},
    {"NCCL_BUFFSIZE", "buffsize", false},
    {"NCCL_P2P_DISABLE", "p2p-disable", false},
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

static enum cm_status set_mask(const char *variable, const char *value, struct cm_opts *o)
{
    char text[32];
    const char *digits = strncasecmp(value, "0x", 2) == 0 ? value + 2 : value;

    snprintf(text, sizeof(text), "mask:0x%.16s", digits);
    if (strlen(digits) > 16 || !cm_parse_split(text, &o->launch.split, &o->launch.split_value))
        return CM_FAIL(CM_EINVAL, "%s '%s': want a hexadecimal mask of 64 bits", variable, value);
    return CM_OK;
}

static enum cm_status take(struct cm_parse *p, const struct cm_option *row, const char *variable,
                           bool hex)
{
    const char *value = keep(p->o, variable, value_of(variable));

    if (value == NULL)
        return CM_FAIL(CM_ENOMEM, "environment variable %s", variable);
    p->from[row - cm_options] = CM_FROM_ENV;
    return hex ? set_mask(variable, value, p->o) : cm_option_set(row, variable, value, p->o);
}

/* The highest-ranking variable that is set for this row, if any. */
static enum cm_status read_row(struct cm_parse *p, const struct cm_option *row)
{
    const struct known *found = NULL;
    char own[VARIABLE_BYTES];

    own_variable(row, own);
    if (value_of(own) != NULL)
        return take(p, row, own, false);
    for (size_t i = 0; i < CM_LEN(known); i++) {
        if (strcmp(known[i].option, row->name) != 0 || value_of(known[i].variable) == NULL)
            continue;
        if (found != NULL)
            return CM_FAIL(CM_EINVAL, "%s '%s' and %s '%s' exclude each other", found->variable,
                           value_of(found->variable), known[i].variable,
                           value_of(known[i].variable));
        found = &known[i];
    }
    return found != NULL ? take(p, row, found->variable, found->hex) : CM_OK;
}

/* Does "COLLMARK_NAME=value" mean something? The test suite marks its processes. */
static bool is_ours(const char *entry)
{
    static const char *const marks[] = {"COLLMARK_TEST_", "COLLMARK_SLOW="};
    size_t n = strcspn(entry, "=");
    char own[VARIABLE_BYTES];

    for (size_t i = 0; i < CM_LEN(marks); i++)
        if (strncmp(entry, marks[i], strlen(marks[i])) == 0)
            return true;
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        own_variable(row, own);
        if (row->kind != CM_OPTION_PRINT && strlen(own) == n && strncmp(own, entry, n) == 0)
            return true;
    }
    return false;
}

/* A misspelt name would be a setting that silently does nothing. */
static enum cm_status check_names(void)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        int n = (int)strcspn(*entry, "=");

        if (strncmp(*entry, "COLLMARK_", 9) == 0 && (*entry)[n] != '\0' &&
            (*entry)[n + 1] != '\0' && !is_ours(*entry))
            return CM_FAIL(CM_EINVAL, "environment variable %.*s: no option has this name (--help)",
                           n, *entry);
    }
    return CM_OK;
}

enum cm_status cm_env_read(struct cm_parse *p)
{
    enum cm_status st = check_names();

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
