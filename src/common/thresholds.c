/*
 * Parser and look-up of thresholds. A rule that can never fit, because no
 * collective, type or algorithm has such a name, is refused: it would be a
 * threshold that the user believes in and nobody checks.
 */
#include "common/thresholds.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/units.h"
#include "engine/algo.h"

/* collective to algorithm, then limits */
enum { KEYS = 6, MOST_LIMITS = 2, MOST_FIELDS = KEYS + MOST_LIMITS, MOST_LINE = 400 };

struct rule {
    char *text; /* owned; the globs point into it */
    const char *collective, *type, *algo, *wire;
    struct cm_range bytes, ranks, nodes;
    struct cm_limits limits;
};

struct cm_thresholds {
    size_t n;
    struct rule rules[];
};

static bool fits(const char *glob, const char *name)
{
    return fnmatch(glob, name, 0) == 0;
}

/* ---- one line ---- */

static bool is_collective(const char *glob)
{
    for (int i = 0; i < CM_NCOLLS; i++) {
        if (fits(glob, cm_colls[i].name))
            return true;
    }
    return false;
}

static bool is_type(const char *glob)
{
    for (int i = 0; i < CM_NDTYPES; i++) {
        if (fits(glob, cm_dtypes[i].name))
            return true;
    }
    return false;
}

static bool is_algorithm(const char *glob)
{
    for (const struct cm_algo *a = cm_algos; a->name != NULL; a++) {
        if (fits(glob, a->name))
            return true;
    }
    return false;
}

/* "name=value" into the field of that name, which must not be set yet. */
static bool parse_limit(const char *s, struct cm_limits *l)
{
    const char *equals = strchr(s, '=');
    double *field = NULL;

    if (equals == NULL)
        return false;
    if (strncmp(s, "min_busbw=", 10) == 0)
        field = &l->min_busbw_gbs;
    else if (strncmp(s, "max_time=", 9) == 0)
        field = &l->max_time_us;
    return field != NULL && *field == 0 && cm_parse_real(equals + 1, 0, 1e12, field) && *field > 0;
}

static bool parse_limits(char *f[], int n, struct cm_limits *l)
{
    l->ignored = n == 1 && strcmp(f[0], "ignore") == 0;
    for (int i = 0; i < n && !l->ignored; i++) {
        if (!parse_limit(f[i], l))
            return false;
    }
    return n > 0;
}

/* What is wrong with the n fields of a rule, or NULL. */
static const char *parse_rule(char *f[], int n, struct rule *r)
{
    char *comma;

    if (n < KEYS)
        return "collective, type, bytes, ranks, nodes, algorithm and limits are wanted";
    comma = strchr(f[5], ',');
    if (comma != NULL)
        *comma = '\0';
    r->collective = f[0];
    r->type = f[1];
    r->algo = f[5];
    r->wire = comma != NULL ? comma + 1 : "*";
    if (!is_collective(f[0]))
        return "no collective has such a name (see --list)";
    if (!is_type(f[1]))
        return "no type has such a name (see --list)";
    if (!cm_parse_range(f[2], &r->bytes))
        return "bytes: a size, a range of sizes or * is wanted";
    if (!cm_parse_range(f[3], &r->ranks))
        return "ranks: a number, a range or * is wanted";
    if (!cm_parse_range(f[4], &r->nodes))
        return "nodes: a number, a range or * is wanted";
    if (!is_algorithm(f[5]))
        return "no algorithm has such a name (see --list)";
    if (r->wire[0] == '\0')
        return "the wire behind the comma is missing";
    if (!parse_limits(f + KEYS, n - KEYS, &r->limits))
        return "limits: min_busbw=GB/S, max_time=US, both, or ignore alone is wanted";
    return NULL;
}

/* Split a line into fields; their number, MOST_FIELDS + 1 if there are more. */
static int split(char *line, char *f[])
{
    char *save = NULL;
    int n = 0;

    for (char *w = strtok_r(line, " \t\r", &save); w != NULL; w = strtok_r(NULL, " \t\r", &save)) {
        if (n == MOST_FIELDS)
            return MOST_FIELDS + 1;
        f[n++] = w;
    }
    return n;
}

/* One line into *r; r->text NULL: it holds no rule. What is wrong with it, or NULL. */
static const char *parse_line(const char *at, size_t n, struct rule *r)
{
    char *f[MOST_FIELDS], *line;
    const char *wrong;
    int fields;

    if (n > MOST_LINE)
        return "the line is too long";
    if (memchr(at, '\0', n) != NULL)
        return "the line holds a zero byte";
    line = strndup(at, n);
    if (line == NULL)
        return "no memory is left";
    line[strcspn(line, "#")] = '\0';
    fields = split(line, f);
    if (fields == 0) {
        free(line);
        return NULL;
    }
    wrong = fields > MOST_FIELDS ? "too many fields" : parse_rule(f, fields, r);
    r->text = line;
    return wrong;
}

/* ---- all lines ---- */

enum cm_status cm_thresholds_parse(const char *text, size_t n, const char *name,
                                   struct cm_thresholds **out)
{
    const char *end = text + n;
    struct cm_thresholds *t;
    size_t lines = 1;

    for (const char *s = text; s < end; s++)
        lines += *s == '\n';
    t = calloc(1, sizeof(*t) + lines * sizeof(t->rules[0]));
    if (t == NULL)
        return CM_FAIL(CM_ENOMEM, "%s: %zu lines", name, lines);
    for (int k = 1; text < end; k++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((stop != NULL ? stop : end) - text);
        struct rule *r = &t->rules[t->n];
        const char *wrong = parse_line(text, len, r);

        r->limits.line = k;
        t->n += r->text != NULL;
        if (wrong != NULL) {
            cm_thresholds_free(t);
            return CM_FAIL(CM_EINVAL, "%s:%d: %s", name, k, wrong);
        }
        text += len + 1;
    }
    if (t->n == 0) {
        cm_thresholds_free(t);
        return CM_FAIL(CM_EINVAL, "%s:1: there are no rules", name);
    }
    *out = t;
    return CM_OK;
}

static enum cm_status read_file(const char *path, FILE *f, struct cm_thresholds **out)
{
    char *text = malloc(CM_THRESHOLDS_MAX_FILE + 1);
    enum cm_status st;
    size_t n;

    if (text == NULL)
        return CM_FAIL(CM_ENOMEM, "--thresholds '%s'", path);
    n = fread(text, 1, CM_THRESHOLDS_MAX_FILE + 1, f);
    if (ferror(f))
        st = CM_FAIL(CM_EINVAL, "--thresholds '%s': %s", path, strerror(errno));
    else if (n > CM_THRESHOLDS_MAX_FILE)
        st = CM_FAIL(CM_EINVAL, "--thresholds '%s': larger than %d bytes", path,
                     CM_THRESHOLDS_MAX_FILE);
    else
        st = cm_thresholds_parse(text, n, path, out);
    free(text);
    return st;
}

enum cm_status cm_thresholds_read(const char *path, struct cm_thresholds **out)
{
    FILE *f = fopen(path, "r");
    enum cm_status st;

    if (f == NULL)
        return CM_FAIL(CM_EINVAL, "--thresholds '%s': %s", path, strerror(errno));
    st = read_file(path, f, out);
    fclose(f);
    return st;
}

void cm_thresholds_free(struct cm_thresholds *t)
{
    for (size_t i = 0; t != NULL && i < t->n; i++)
        free(t->rules[i].text);
    free(t);
}

const struct cm_limits *cm_thresholds_find(const struct cm_thresholds *t,
                                           const struct cm_subject *s)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct rule *r = &t->rules[i];

        if (fits(r->collective, s->collective) && fits(r->type, s->type) &&
            fits(r->algo, s->algo) && fits(r->wire, s->wire) && cm_in_range(&r->bytes, s->bytes) &&
            cm_in_range(&r->ranks, (size_t)s->ranks) && cm_in_range(&r->nodes, (size_t)s->nodes))
            return &r->limits;
    }
    return NULL;
}
