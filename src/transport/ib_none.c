/* The ib wire in a build without the headers of libibverbs: it says so. */
#include <stdio.h>

#include "transport/ib.h"

static const char missing[] =
    "this build has no ib wire: install libibverbs-dev (rdma-core-devel) and build again";

const char *const cm_ib_what = "not in this build (no libibverbs headers)";

struct cm_ib_choice cm_ib_usual(void)
{
    return (struct cm_ib_choice){.numa = -1, .gid = -1};
}

bool cm_ib_available(const struct cm_ib_choice *c, char *why, size_t size)
{
    (void)c;
    snprintf(why, size, "%s", missing);
    return false;
}

enum cm_status cm_ib_open(const struct cm_ib_args *a, struct cm_ib **out)
{
    (void)a;
    (void)out;
    return CM_FAIL(CM_EUNSUP, "%s", missing);
}

size_t cm_ib_offer_bytes(int nrecv)
{
    (void)nrecv;
    return 0;
}

/* Nothing below can be reached: there is no struct cm_ib. */

void cm_ib_offer(const struct cm_ib *ib, int peer, void *out)
{
    (void)ib;
    (void)peer;
    (void)out;
}

enum cm_status cm_ib_connect(struct cm_ib *ib, int peer, const void *theirs, size_t bytes)
{
    (void)ib;
    (void)peer;
    (void)theirs;
    (void)bytes;
    return CM_EUNSUP;
}

enum cm_status cm_ib_start(struct cm_ib *ib)
{
    (void)ib;
    return CM_EUNSUP;
}

bool cm_ib_progress(struct cm_ib *ib)
{
    (void)ib;
    return false;
}

void cm_ib_doze(struct cm_ib *ib, int64_t ns)
{
    (void)ib;
    (void)ns;
}

void cm_ib_rest(struct cm_ib *ib)
{
    (void)ib;
}

enum cm_status cm_ib_status(const struct cm_ib *ib)
{
    (void)ib;
    return CM_EUNSUP;
}

struct cm_ib_stats cm_ib_stats(struct cm_ib *ib)
{
    (void)ib;
    return (struct cm_ib_stats){.posts = 0};
}

const char *cm_ib_describe(const struct cm_ib *ib, char *buf)
{
    (void)ib;
    snprintf(buf, CM_IB_TEXT, "none");
    return buf;
}

enum cm_status cm_ib_close(struct cm_ib *ib, int64_t until_ns)
{
    (void)ib;
    (void)until_ns;
    return CM_OK;
}
