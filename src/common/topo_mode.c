/*
 * A topology is plain data, found or read from a file: both are shown by the
 * same two functions, so what a machine dumps is what a file gives back.
 */
#include "common/topo_mode.h"

#include <stdio.h>
#include <string.h>

#include "engine/topo.h"

static void warn(void *arg, const char *text)
{
    (void)arg;
    cm_log("%s", text);
}

static const char dump_word[] = "dump", matrix_word[] = "matrix", matrix_of[] = "matrix:";

/* The FILE of "matrix:FILE", or NULL. */
static const char *file_to_show(const char *what)
{
    size_t n = sizeof(matrix_of) - 1;

    return strncmp(what, matrix_of, n) == 0 ? what + n : NULL;
}

bool cm_topo_is_file(const char *what)
{
    return what != NULL && strcmp(what, dump_word) != 0 && strcmp(what, matrix_word) != 0 &&
           file_to_show(what) == NULL;
}

enum cm_status cm_topo_mode(const char *what)
{
    bool dump = strcmp(what, dump_word) == 0;
    const char *file = file_to_show(what);
    struct cm_topo *t = NULL;
    enum cm_status st = file == NULL ? cm_topo_detect("/", NULL, 0, &t) : cm_topo_read(file, &t);

    if (st != CM_OK)
        return st;
    if (dump)
        cm_topo_dump(t, stdout);
    else
        cm_topo_matrix(t, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        st = cm_fail_errno("stdout");
    else if (!dump)
        (void)cm_topo_warn_nvlink(t, warn, NULL);
    cm_topo_free(t);
    return st;
}
