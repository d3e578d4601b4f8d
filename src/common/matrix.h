/*
 * Traffic of alltoallv: how many elements go from every rank to every other.
 */
#ifndef CM_COMMON_MATRIX_H
#define CM_COMMON_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A traffic matrix as a file gives it: bytes from row to column, dim x dim, row by row. */
struct cm_traffic {
    int dim;
    double *bytes; /* owned */
};

enum { CM_MATRIX_MAX_FILE = 64 << 20 };

/*
 * Parse a matrix: one row per line, real numbers >= 0 separated by blanks or
 * tabs, as many rows as columns; empty lines and text after '#' do not count.
 * CM_EINVAL, logged with `name` and the line; *out is untouched unless CM_OK.
 */
CM_MUST_CHECK enum cm_status cm_matrix_parse(const char *text, size_t length, const char *name,
                                             struct cm_traffic *out);
/* The same from a file. CM_EINVAL also if it cannot be read or is above CM_MATRIX_MAX_FILE. */
CM_MUST_CHECK enum cm_status cm_matrix_read(const char *path, struct cm_traffic *out);
void cm_traffic_free(struct cm_traffic *t);

/*
 * The upper left n x n values x scale, each rounded down to a multiple of 16
 * bytes, in elements of `width` bytes. false: a value or a sum is too large.
 */
bool cm_matrix_of_traffic(const struct cm_traffic *t, double scale, int n, size_t width,
                          size_t *out);

/* How many of these values lose bytes by the rounding, and how many bytes. */
int cm_matrix_rounded(const struct cm_traffic *t, double scale, int n, double *lost);

/*
 * Generated traffic. Each rank sends and receives up to `block` x n elements. `spread` in
 * [0, 1] mixes equal shares (0) with shares that grow with the distance from
 * the sender around the ring of ranks (1: nothing to oneself). Multiples of 16
 * bytes. One rank sends all to itself.
 */
void cm_matrix_spread(size_t block, double spread, int n, size_t width, size_t *out);

/* Sums: of a row (sent) and of a column (received), and the largest of all ranks. */
size_t cm_matrix_sent(const size_t *m, int n, int rank);
size_t cm_matrix_received(const size_t *m, int n, int rank);
size_t cm_matrix_max_sent(const size_t *m, int n);
size_t cm_matrix_max_received(const size_t *m, int n);

/* Matrices that stay where they are until the set is freed, one per (block, width). */
struct cm_matrix_set {
    const struct cm_traffic *traffic; /* NULL: generated */
    double scale, spread;
    int n;
    struct cm_matrix_entry *first;
};
/* NULL: no memory, or the file's traffic is too large (logged). */
const size_t *cm_matrix_get(struct cm_matrix_set *s, size_t block, size_t width);
void cm_matrix_set_free(struct cm_matrix_set *s);

#endif
