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

enum cm_status cm_topo_mode(const char *what)
{
    bool dump = strcmp(what, "dump") == 0, detect = dump || strcmp(what, "matrix") == 0;
    struct cm_topo *t = NULL;
    enum cm_status st = detect ? cm_topo_detect("/", NULL, 0, &t) : cm_topo_read(what, &t);

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
