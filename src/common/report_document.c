/*
 * Documents: files that are made from the kept rows when the report ends,
 * whatever end that is, and appear whole or not at all. The path is tried when
 * the report is opened, before anything is measured.
 */
#include <stdlib.h>
#include <string.h>

#include "common/report_int.h"

enum cm_status cm_document_open(const char *option, const char *path, void **state)
{
    struct cm_outfile *file = malloc(sizeof(*file));
    enum cm_status st;

    if (file == NULL)
        return CM_FAIL(CM_ENOMEM, "%s '%s'", option, path);
    st = cm_outfile_open(option, path, true, file);
    if (st != CM_OK) {
        free(file);
        return st;
    }
    *state = file;
    return CM_OK;
}

static enum cm_status write_document(const struct cm_report *rep, struct cm_outfile *file,
                                     const struct cm_end *end, cm_document_fn *write)
{
    enum cm_status st = cm_outfile_begin(file);
    struct cm_page page;

    if (st != CM_OK)
        return st;
    cm_page_begin(&page);
    if (page.f != NULL)
        st = write(page.f, rep, end);
    if (st == CM_OK)
        return cm_page_end(&page, file->fd, file->what);
    cm_page_drop(&page);
    return st;
}

enum cm_status cm_document_close(const struct cm_report *rep, void *state, const struct cm_end *end,
                                 cm_document_fn *write)
{
    struct cm_outfile *file = state;
    enum cm_status st = end != NULL ? write_document(rep, file, end, write) : CM_OK;

    if (end != NULL && st == CM_OK)
        st = cm_outfile_keep(file);
    else
        cm_outfile_drop(file);
    free(file);
    return st;
}

/* ---- rows that are alike ---- */

static int compare(size_t a, size_t b)
{
    return a < b ? -1 : a > b;
}

/* By what a row is about, then by its place: of rows that are alike the later one is larger. */
static int compare_rows(const void *a, const void *b)
{
    const struct cm_row *x = *(const struct cm_row *const *)a;
    const struct cm_row *y = *(const struct cm_row *const *)b;
    const int order[] = {x->group - y->group, x->side - y->side, x->dtype - y->dtype,
                         x->op - y->op,       x->root - y->root, compare(x->bytes, y->bytes),
                         x < y ? -1 : x > y};

    for (size_t i = 0; i < CM_LEN(order); i++) {
        if (order[i] != 0)
            return order[i];
    }
    return 0;
}

static bool alike(const struct cm_row *x, const struct cm_row *y)
{
    return x->group == y->group && x->side == y->side && x->dtype == y->dtype && x->op == y->op &&
           x->root == y->root && x->bytes == y->bytes;
}

enum cm_status cm_report_repeats(const struct cm_report *rep, int *nth, bool *last)
{
    const struct cm_row **rows = malloc((rep->nrows + 1) * sizeof(*rows));

    if (rows == NULL)
        return CM_FAIL(CM_ENOMEM, "order of %zu rows", rep->nrows);
    for (size_t i = 0; i < rep->nrows; i++)
        rows[i] = &rep->rows[i];
    qsort(rows, rep->nrows, sizeof(*rows), compare_rows);
    for (size_t k = 0; k < rep->nrows; k++) {
        size_t i = (size_t)(rows[k] - rep->rows);
        bool again = k > 0 && alike(rows[k - 1], rows[k]);

        nth[i] = again ? nth[rows[k - 1] - rep->rows] + 1 : 0;
        last[i] = k + 1 == rep->nrows || !alike(rows[k], rows[k + 1]);
    }
    free(rows);
    return CM_OK;
}
