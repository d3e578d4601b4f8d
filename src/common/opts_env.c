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

#include "base/units.h"
#include "common/opts_table.h"

enum { VARIABLE_BYTES = 64 };

/* How the value of a variable becomes the option's. */
enum how {
    AS_IS,
    MASK,   /* a hexadecimal mask, with or without 0x */
    FACTOR, /* a number from 1; those of one option are multiplied */
    NAMES   /* words of NCCL, see `names` */
};

struct name {
    const char *theirs, *ours; /* theirs NULL: the end */
};
static const struct name nets[] = {{"Socket", "tcp"}, {"IB", "ib"}, {NULL, NULL}};
static const struct name families[] = {{"AF_INET", "4"}, {"AF_INET6", "6"}, {NULL, NULL}};
/* Numbers are those of NCCL before it had words. */
static const struct name levels[] = {{"LOC", "loc"}, {"NVL", "nvl"}, {"PIX", "pix"}, {"PXB", "pxb"},
                                     {"PHB", "phb"}, {"SYS", "sys"}, {"0", "loc"},   {"1", "pix"},
                                     {"2", "pxb"},   {"3", "phb"},   {"4", "sys"},   {"5", "sys"},
                                     {NULL, NULL}};

/* No two of one option together, but for factors. */
static const struct known {
    const char *variable, *option;
    enum how how;
    const struct name *names;
} known[] = {
    {"NCCL_ALGO", "algo", AS_IS, NULL},
    {"NCCL_PROTO", "proto", AS_IS, NULL},
    {"NCCL_BUFFSIZE", "buffsize", AS_IS, NULL},
    {"NCCL_P2P_DISABLE", "p2p-disable", AS_IS, NULL},
    {"NCCL_P2P_LEVEL", "p2p-level", NAMES, levels},
    {"NCCL_NET", "net", NAMES, nets},
    {"NCCL_SOCKET_IFNAME", "ifname", AS_IS, NULL},
    {"NCCL_SOCKET_FAMILY", "ip", NAMES, families},
    {"NCCL_NSOCKS_PERTHREAD", "sockets", FACTOR, NULL},
    {"NCCL_SOCKET_NTHREADS", "sockets", FACTOR, NULL},
    {"NCCL_IB_HCA", "ib-hca", AS_IS, NULL},
    {"NCCL_IB_GID_INDEX", "ib-gid", AS_IS, NULL},
    {"NCCL_IB_QPS_PER_CONNECTION", "ib-qps", AS_IS, NULL},
    {"NCCL_IB_TIMEOUT", "ib-timeout", AS_IS, NULL},
    {"NCCL_IB_RETRY_CNT", "ib-retries", AS_IS, NULL},
    {"NCCL_IB_TC", "ib-tc", AS_IS, NULL},
    {"NCCL_IB_ADAPTIVE_ROUTING", "ib-adaptive", AS_IS, NULL},
    {"NCCL_IB_SL", "ib-sl", AS_IS, NULL},
    {"NCCL_IB_DISABLE", "ib-disable", AS_IS, NULL},
    {"NCCL_SHM_DISABLE", "shm-disable", AS_IS, NULL},
    {"NCCL_DEBUG", "debug", AS_IS, NULL},
    {"NCCL_DEBUG_FILE", "log", AS_IS, NULL},
    {"NCCL_TESTS_DEVICE", "device", AS_IS, NULL},
    {"NCCL_TESTS_SPLIT_MASK", "split", MASK, NULL},
    {"NCCL_TESTS_SPLIT", "split", AS_IS, NULL},
    {"NCCL_TESTS_MIN_BW", "min-bw", AS_IS, NULL},
    {"NCCL_TESTS_ALLTOALLV_SPREAD", "alltoallv-spread", AS_IS, NULL},
    {"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", "alltoallv-matrix-file", AS_IS, NULL},
    {"NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", "alltoallv-matrix-scale", AS_IS, NULL},
    {"NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", "alltoallv-print-summary", AS_IS, NULL},
};

/* COLLMARK_<NAME>: upper case, '-' becomes '_'. `option`: one of the row's long names. */
static void own_variable(const char *option, char name[VARIABLE_BYTES])
{
    size_t n = 0;

    memcpy(name, "COLLMARK_", 9);
    for (const char *c = option; *c != '\0' && n + 10 < VARIABLE_BYTES; c++, n++)
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

/* A word of NCCL's, in any case; only what it knows is accepted. */
static enum cm_status set_named(const struct cm_option *row, const struct known *k,
                                const char *value, struct cm_opts *o)
{
    char want[CM_WANT_BYTES] = "";
    size_t n = 0;

    for (const struct name *name = k->names; name->theirs != NULL; name++) {
        if (strcasecmp(name->theirs, value) == 0)
            return cm_option_set(row, k->variable, name->ours, o);
        n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%s", n > 0 ? ", " : "", name->theirs);
    }
    return CM_FAIL(CM_EINVAL, "%s '%s': want one of %s", k->variable, value, want);
}

static enum cm_status take(struct cm_parse *p, const struct cm_option *row, const char *variable,
                           const struct known *k)
{
    const char *value = keep(p->o, variable, value_of(variable));

    if (value == NULL)
        return CM_FAIL(CM_ENOMEM, "environment variable %s", variable);
    p->from[row - cm_options] = CM_FROM_ENV;
    if (k != NULL && k->how == MASK)
        return set_mask(variable, value, p->o);
    if (k != NULL && k->how == NAMES)
        return set_named(row, k, value, p->o);
    return cm_option_set(row, variable, value, p->o);
}

/* The product of all variables of the row that are set. */
static enum cm_status take_factors(struct cm_parse *p, const struct cm_option *row)
{
    char where[2 * VARIABLE_BYTES] = "", text[32] = "";
    int64_t product = 1, factor;
    size_t n = 0;

    for (size_t i = 0; i < CM_LEN(known); i++) {
        const char *value = value_of(known[i].variable);

        if (strcmp(known[i].option, row->name) != 0 || value == NULL)
            continue;
        if (!cm_parse_int(value, 1, (int64_t)row->hi, &factor))
            return CM_FAIL(CM_EINVAL, "%s '%s': want a decimal integer, 1 to %.0f",
                           known[i].variable, value, row->hi);
        if (keep(p->o, known[i].variable, value) == NULL)
            return CM_FAIL(CM_ENOMEM, "environment variable %s", known[i].variable);
        product *= factor;
        n += (size_t)snprintf(where + n, sizeof(where) - n, "%s%s", n > 0 ? " x " : "",
                              known[i].variable);
    }
    p->from[row - cm_options] = CM_FROM_ENV;
    snprintf(text, sizeof(text), "%lld", (long long)product);
    return cm_option_set(row, where, text, p->o);
}

/* The highest-ranking variable that is set for this row, if any. */
static enum cm_status read_row(struct cm_parse *p, const struct cm_option *row)
{
    const char *const names[] = {row->name, row->also};
    const struct known *found = NULL;
    char own[VARIABLE_BYTES];

    for (size_t i = 0; i < CM_LEN(names) && names[i] != NULL; i++) {
        own_variable(names[i], own);
        if (value_of(own) != NULL)
            return take(p, row, own, NULL);
    }
    for (size_t i = 0; i < CM_LEN(known); i++) {
        if (strcmp(known[i].option, row->name) != 0 || value_of(known[i].variable) == NULL)
            continue;
        if (known[i].how == FACTOR)
            return take_factors(p, row);
        if (found != NULL)
            return CM_FAIL(CM_EINVAL, "%s '%s' and %s '%s' exclude each other", found->variable,
                           value_of(found->variable), known[i].variable,
                           value_of(known[i].variable));
        found = &known[i];
    }
    return found != NULL ? take(p, row, found->variable, found) : CM_OK;
}

/* Is entry[0 .. n) COLLMARK_<OPTION>? */
static bool names_option(const char *entry, size_t n, const char *option)
{
    char own[VARIABLE_BYTES];

    if (option == NULL)
        return false;
    own_variable(option, own);
    return strlen(own) == n && strncmp(own, entry, n) == 0;
}

/* Does "COLLMARK_NAME=value" mean something? The test suite marks its processes. */
static bool is_ours(const char *entry)
{
    static const char *const marks[] = {"COLLMARK_TEST_", "COLLMARK_SLOW=", "COLLMARK_JOB="};
    size_t n = strcspn(entry, "=");

    for (size_t i = 0; i < CM_LEN(marks); i++)
        if (strncmp(entry, marks[i], strlen(marks[i])) == 0)
            return true;
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (row->kind != CM_OPTION_PRINT &&
            (names_option(entry, n, row->name) || names_option(entry, n, row->also)))
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

const char *cm_opts_set_by(const struct cm_opts *o, const char *option, char buf[CM_SET_BY_BYTES])
{
    const struct cm_option *row = cm_option_named(option);

    snprintf(buf, CM_SET_BY_BYTES, "--%s", option);
    for (char **line = o->from_env; line != NULL && *line != NULL; line++) {
        size_t n = strcspn(*line, "=");
        bool is = names_option(*line, n, row->name) || names_option(*line, n, row->also);

        for (size_t i = 0; i < CM_LEN(known); i++)
            is |= strcmp(known[i].option, option) == 0 && strlen(known[i].variable) == n &&
                  strncmp(known[i].variable, *line, n) == 0;
        if (is)
            snprintf(buf, CM_SET_BY_BYTES, "%.*s", (int)n, *line);
    }
    return buf;
}

/* What a value of the variable means to the option. */
static void print_meaning(FILE *f, const struct known *k)
{
    if (k->how == MASK)
        fputs(" mask:0x...", f);
    if (k->how == FACTOR)
        fputs(", both multiplied", f);
    if (k->how == NAMES)
        fputs(":", f);
    for (const struct name *n = k->names; n != NULL && n->theirs != NULL; n++)
        fprintf(f, " %s %s%s", n->theirs, n->ours, n[1].theirs != NULL ? "," : "");
    fputc('\n', f);
}

void cm_env_print(FILE *f)
{
    for (size_t i = 0; i < CM_LEN(known); i++) {
        fprintf(f, "  %-34s --%s", known[i].variable, known[i].option);
        print_meaning(f, &known[i]);
    }
}
