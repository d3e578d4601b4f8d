/*
 * Traffic matrices: a strict parser for the file form, the generated spread,
 * and a small set that keeps the matrices of a sweep alive, because the
 * communicator remembers them by address.
 */
#define _GNU_SOURCE
#include "common/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "base/units.h"

enum { ALIGN = 16, MAX_WORD = 64 };

/* The text being read. */
struct reader {
    const char *at, *end, *name;
    int line;
    double *bytes;
    size_t used, room;
};

static enum cm_status keep(struct reader *r, double v)
{
    size_t room = r->room != 0 ? 2 * r->room : 256;
    double *more = r->bytes;

    if (r->used == r->room) {
        more = realloc(r->bytes, room * sizeof(*more));
        if (more == NULL)
            return CM_FAIL(CM_ENOMEM, "%s: %zu values", r->name, room);
        r->bytes = more;
        r->room = room;
    }
    r->bytes[r->used++] = v;
    return CM_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One number; the reader stands at its first character. */
static enum cm_status read_value(struct reader *r)
{
    char word[MAX_WORD];
    size_t n = 0;
    double v;

    while (r->at < r->end && !is_blank(*r->at) && *r->at != '\n' && *r->at != '#') {
        if (n < MAX_WORD - 1)
            word[n] = *r->at >= ' ' && *r->at <= '~' ? *r->at : '?';
        n++;
        r->at++;
    }
    word[n < MAX_WORD ? n : MAX_WORD - 1] = '\0';
    if (n >= MAX_WORD || !cm_parse_real(word, 0, 1e18, &v))
        return CM_FAIL(CM_EINVAL, "%s: line %d: '%s' is not a number of bytes (0 to 1e18)", r->name,
                       r->line, word);
    return keep(r, v);
}

/* The rest of a line; *values: how many numbers it holds. */
static enum cm_status read_line(struct reader *r, size_t *values)
{
    size_t before = r->used;
    enum cm_status st = CM_OK;

    r->line++;
    while (st == CM_OK && r->at < r->end && *r->at != '\n') {
        if (is_blank(*r->at))
            r->at++;
        else if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else
            st = read_value(r);
    }
    if (r->at < r->end)
        r->at++;
    *values = r->used - before;
    return st;
}

static enum cm_status read_square(struct reader *r, size_t *dim)
{
    size_t rows = 0, columns = 0;

    while (r->at < r->end) {
        size_t values;
        enum cm_status st = read_line(r, &values);

        if (st != CM_OK)
            return st;
        if (values == 0)
            continue;
        if (rows++ == 0)
            columns = values;
        if (values != columns || values > CM_MAX_RANKS)
            return CM_FAIL(CM_EINVAL, "%s: line %d: %zu values, expected %zu (at most %d)", r->name,
                           r->line, values, columns, CM_MAX_RANKS);
        if (rows > columns)
            return CM_FAIL(CM_EINVAL, "%s: line %d: more rows than columns (%zu)", r->name, r->line,
                           columns);
    }
    if (rows == 0 || rows != columns)
        return CM_FAIL(CM_EINVAL, "%s: line %d: %zu rows of %zu values, a square was expected",
                       r->name, r->line, rows, columns);
    *dim = columns;
    return CM_OK;
}

enum cm_status cm_matrix_parse(const char *text, size_t length, const char *name,
                               struct cm_traffic *out)
{
    struct reader r = {.at = text, .end = text + length, .name = name};
    size_t dim = 0;
    enum cm_status st = read_square(&r, &dim);

    if (st != CM_OK) {
        free(r.bytes);
        return st;
    }
    out->dim = (int)dim;
    out->bytes = r.bytes;
    return CM_OK;
}

/* Whole file into *text, owned by the caller. */
static enum cm_status read_file(const char *path, FILE *f, char **text, size_t *length)
{
    size_t room = 1 << 16;
    char *buf = NULL;

    *length = 0;
    for (;;) {
        char *more = realloc(buf, room);

        if (more == NULL) {
            free(buf);
            return CM_FAIL(CM_ENOMEM, "%s: %zu bytes", path, room);
        }
        buf = more;
        *length += fread(buf + *length, 1, room - *length, f);
        if (*length < room)
            break;
        room *= 2;
        if (room > CM_MATRIX_MAX_FILE) {
            free(buf);
            return CM_FAIL(CM_EINVAL, "%s: larger than %d bytes", path, CM_MATRIX_MAX_FILE);
        }
    }
    *text = buf;
    return CM_OK;
}

enum cm_status cm_matrix_read(const char *path, struct cm_traffic *out)
{
    FILE *f = fopen(path, "r");
    enum cm_status st;
    size_t length = 0;
    char *text = NULL;

    if (f == NULL)
        return CM_FAIL(CM_EINVAL, "%s: %s", path, strerror(errno));
    st = read_file(path, f, &text, &length);
    if (st == CM_OK) {
        st = ferror(f) ? CM_FAIL(CM_EINVAL, "%s: %s", path, strerror(errno))
                       : cm_matrix_parse(text, length, path, out);
        free(text);
    }
    fclose(f);
    return st;
}

void cm_traffic_free(struct cm_traffic *t)
{
    free(t->bytes);
    *t = (struct cm_traffic){0};
}

bool cm_matrix_of_traffic(const struct cm_traffic *t, double scale, int n, size_t width,
                          size_t *out)
{
    double limit = (double)(SIZE_MAX / 4) / n;

    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            double bytes = floor(t->bytes[(size_t)from * (size_t)t->dim + (size_t)to] * scale);

            if (!(bytes < limit))
                return false;
            out[(size_t)from * (size_t)n + (size_t)to] = (size_t)bytes / ALIGN * ALIGN / width;
        }
    return true;
}

int cm_matrix_rounded(const struct cm_traffic *t, double scale, int n, double *lost)
{
    int entries = 0;

    *lost = 0;
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            double bytes = t->bytes[(size_t)from * (size_t)t->dim + (size_t)to] * scale;
            double rest = fmod(bytes, ALIGN);

            entries += rest > 0;
            *lost += rest;
        }
    return entries;
}

void cm_matrix_spread(size_t block, double spread, int n, size_t width, size_t *out)
{
    double total = (double)block * n * (double)width;
    double pairs = n > 1 ? n * (n - 1) / 2.0 : 1;

    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++) {
            int distance = (to - from + n) % n;
            double even = total / n, far = n > 1 ? distance * total / pairs : total;
            double bytes = (1 - spread) * even + spread * far;

            out[(size_t)from * (size_t)n + (size_t)to] = (size_t)bytes / ALIGN * ALIGN / width;
        }
}

size_t cm_matrix_sent(const size_t *m, int n, int rank)
{
    size_t sum = 0;

    for (int to = 0; to < n; to++)
        sum += m[(size_t)rank * (size_t)n + (size_t)to];
    return sum;
}

size_t cm_matrix_received(const size_t *m, int n, int rank)
{
    size_t sum = 0;

    for (int from = 0; from < n; from++)
        sum += m[(size_t)from * (size_t)n + (size_t)rank];
    return sum;
}

size_t cm_matrix_max_sent(const size_t *m, int n)
{
    size_t max = 0;

    for (int r = 0; r < n; r++) {
        size_t sum = cm_matrix_sent(m, n, r);

        max = sum > max ? sum : max;
    }
    return max;
}

size_t cm_matrix_max_received(const size_t *m, int n)
{
    size_t max = 0;

    for (int r = 0; r < n; r++) {
        size_t sum = cm_matrix_received(m, n, r);

        max = sum > max ? sum : max;
    }
    return max;
}

struct cm_matrix_entry {
    struct cm_matrix_entry *next;
    size_t block, width;
    size_t elements[]; /* n x n */
};

const size_t *cm_matrix_get(struct cm_matrix_set *s, size_t block, size_t width)
{
    size_t cells = (size_t)s->n * (size_t)s->n;
    struct cm_matrix_entry *e;

    for (e = s->first; e != NULL; e = e->next)
        if (e->width == width && (s->traffic != NULL || e->block == block))
            return e->elements;
    e = malloc(sizeof(*e) + cells * sizeof(e->elements[0]));
    if (e == NULL) {
        cm_log("traffic matrix: no memory for %zu values", cells);
        return NULL;
    }
    if (s->traffic == NULL) {
        cm_matrix_spread(block, s->spread, s->n, width, e->elements);
    } else if (!cm_matrix_of_traffic(s->traffic, s->scale, s->n, width, e->elements)) {
        cm_log("traffic matrix: values are too large");
        free(e);
        return NULL;
    }
    e->block = block;
    e->width = width;
    e->next = s->first;
    s->first = e;
    return e->elements;
}

void cm_matrix_set_free(struct cm_matrix_set *s)
{
    while (s->first != NULL) {
        struct cm_matrix_entry *next = s->first->next;

        free(s->first);
        s->first = next;
    }
}
