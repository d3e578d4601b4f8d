/* Memory of a GPU and the ib wire: the ways to register it, and the flush. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"
#include "transport/ib_gpu.h"
#include "verbs_double.h"

static const size_t gpu_bytes = 1 << 16;

/* A device, and memory that plays a GPU's. */
struct rig {
    struct cm_ib_dev d;
    struct ibv_pd *pd;
    char *gpu;
    int exports; /* dmabufs made */
    bool refuse; /* to make any */
};

static void begin(struct rig *r, bool dmabuf, bool peermem, int reg_errno)
{
    struct double_setup setup = double_usual();
    const struct cm_ib_choice c = cm_ib_usual();
    char why[CM_TEXT];

    memset(r, 0, sizeof(*r));
    r->gpu = calloc(1, gpu_bytes);
    setup.dmabuf = dmabuf;
    setup.peermem = peermem;
    setup.reg_errno = reg_errno;
    setup.gpu = r->gpu;
    setup.gpu_bytes = gpu_bytes;
    verbs_double_begin(&setup);
    CHECK(cm_ib_dev_open(verbs_double(), "/nowhere", &c, &r->d, why) == CM_OK, "%s", why);
    r->pd = verbs_double()->alloc_pd(r->d.context);
}

static void end(struct rig *r)
{
    char text[DOUBLE_TEXT];
    int n;

    verbs_double()->dealloc_pd(r->pd);
    cm_ib_dev_close(&r->d);
    n = verbs_double_end(text);
    CHECK(n == 0, "%d violations, the first: %s", n, text);
    free(r->gpu);
}

static int export_dmabuf(void *arg, void *at, size_t bytes, uint64_t *offset)
{
    struct rig *r = arg;

    if (r->refuse || at != r->gpu || bytes != gpu_bytes)
        return -1;
    r->exports++;
    *offset = 0;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- registration ---- */

static void test_the_way_that_is_there_is_found(void)
{
    static const char *const modules[] = {"module/nvidia_peermem",
                                          "kernel/mm/memory_peers/nv_mem/version", NULL};
    const char *tmp = getenv("TMPDIR");

    for (size_t i = 0; i < CM_LEN(modules); i++) {
        enum cm_ib_gpu_way want = modules[i] != NULL ? CM_IB_GPU_PEERMEM : CM_IB_GPU_BOUNCE, got;
        char root[256], command[1024];
        struct rig r;

        snprintf(root, sizeof(root), "%s/ibgpu.XXXXXX", tmp != NULL ? tmp : "/tmp");
        CHECK(mkdtemp(root) != NULL, "%s", root);
        snprintf(command, sizeof(command), "mkdir -p '%s/%s'", root,
                 modules[i] != NULL ? modules[i] : "module");
        CHECK(system(command) == 0, "%s", command);
        begin(&r, false, false, 0);
        got = cm_ib_gpu_probe(&r.d, r.pd, root);
        CHECK(got == want, "%s: %s", modules[i], cm_ib_gpu_way_text(got));
        end(&r);
        begin(&r, true, false, 0);
        got = cm_ib_gpu_probe(&r.d, r.pd, root);
        CHECK(got == CM_IB_GPU_DMABUF, "with dmabuf: %s", cm_ib_gpu_way_text(got));
        end(&r);
        snprintf(command, sizeof(command), "rm -rf '%s'", root);
        CHECK(system(command) == 0, "%s", command);
    }
}

/* A library without the function is an old one. */
static void test_an_old_library_has_no_dmabuf(void)
{
    struct rig r;
    struct cm_verbs old;

    begin(&r, true, false, 0);
    old = *r.d.v;
    old.reg_dmabuf_mr = NULL;
    r.d.v = &old;
    CHECK(cm_ib_gpu_probe(&r.d, r.pd, "/nowhere") == CM_IB_GPU_BOUNCE, "found");
    r.d.v = verbs_double();
    end(&r);
}

static void test_registration_takes_the_best_way(void)
{
    static const struct {
        bool dmabuf, peermem, refuse; /* what there is */
        enum cm_ib_gpu_way way, used;
        int err;
        enum cm_status st;
    } rows[] = {
        {true, false, false, CM_IB_GPU_DMABUF, CM_IB_GPU_DMABUF, 0, CM_OK},
        {true, true, true, CM_IB_GPU_DMABUF, CM_IB_GPU_PEERMEM, 0, CM_OK},
        {true, false, true, CM_IB_GPU_DMABUF, CM_IB_GPU_BOUNCE, 0, CM_OK},
        {false, true, false, CM_IB_GPU_PEERMEM, CM_IB_GPU_PEERMEM, 0, CM_OK},
        {false, false, false, CM_IB_GPU_PEERMEM, CM_IB_GPU_BOUNCE, 0, CM_OK},
        {true, true, false, CM_IB_GPU_BOUNCE, CM_IB_GPU_BOUNCE, 0, CM_OK},
        {true, true, false, CM_IB_GPU_DMABUF, CM_IB_GPU_DMABUF, ENOMEM, CM_ENOMEM},
        {true, true, false, CM_IB_GPU_PEERMEM, CM_IB_GPU_PEERMEM, ENOMEM, CM_ENOMEM},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        enum cm_ib_gpu_way used = CM_IB_GPU_BOUNCE;
        struct cm_ib_gpu_range range;
        struct ibv_mr *mr;
        enum cm_status st;
        struct rig r;
        int files;

        begin(&r, rows[i].dmabuf, rows[i].peermem, rows[i].err);
        r.refuse = rows[i].refuse;
        files = open_files();
        range = (struct cm_ib_gpu_range){r.gpu, gpu_bytes, export_dmabuf, &r};
        cm_log_mute(true);
        st = cm_ib_gpu_register(&r.d, r.pd, rows[i].way, &range, &used, &mr);
        cm_log_mute(false);
        CHECK(st == rows[i].st && (st != CM_OK || used == rows[i].used), "row %zu: status %d, %s",
              i, st, cm_ib_gpu_way_text(used));
        CHECK((mr != NULL) == (st == CM_OK && used != CM_IB_GPU_BOUNCE), "row %zu: region", i);
        CHECK(open_files() == files, "row %zu: a dmabuf was left open", i);
        if (mr != NULL)
            verbs_double()->dereg_mr(mr);
        end(&r);
    }
}

/* ---- the flush ---- */

static void test_when_a_flush_is_needed(void)
{
    CHECK(cm_ib_gpu_needs_flush(80, false), "Ampere");
    CHECK(!cm_ib_gpu_needs_flush(90, false), "Hopper");
    CHECK(cm_ib_gpu_needs_flush(90, true), "Hopper on a coherent link");
}

static void test_a_flush_reads_the_region(void)
{
    struct cm_ib_flush *f = NULL;
    int64_t until = cm_now_ns() + 5LL * CM_NS_PER_S;
    struct ibv_mr *mr;
    struct rig r;

    begin(&r, false, true, 0);
    mr = verbs_double()->reg_mr(r.pd, r.gpu, gpu_bytes,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                    IBV_ACCESS_REMOTE_READ);
    CHECK(cm_ib_flush_open(&r.d, r.pd, &f) == CM_OK, "open");
    for (int i = 1; i <= 10; i++) {
        uint64_t at = (uintptr_t)r.gpu + (uint64_t)i * 64;

        CHECK(cm_ib_flush(f, mr, at, until) == CM_OK, "flush %d", i);
        CHECK(verbs_double_reads(mr->rkey) == i, "flush %d: %d reads", i,
              verbs_double_reads(mr->rkey));
    }
    cm_log_mute(true);
    verbs_double_cut(true);
    CHECK(cm_ib_flush(f, mr, (uintptr_t)r.gpu, cm_now_ns()) == CM_ETIMEOUT, "deadline");
    cm_log_mute(false);
    cm_ib_flush_close(f);
    CHECK(cm_ib_flush_open(&r.d, r.pd, &f) == CM_OK, "open");
    verbs_double_cut(false);
    verbs_double_fail(0, IBV_WC_REM_ACCESS_ERR);
    cm_log_mute(true);
    CHECK(cm_ib_flush(f, mr, (uintptr_t)r.gpu, until) == CM_ESYS, "refused");
    cm_log_mute(false);
    cm_ib_flush_close(f);
    verbs_double()->dereg_mr(mr);
    end(&r);
}

int main(void)
{
    RUN(test_the_way_that_is_there_is_found);
    RUN(test_an_old_library_has_no_dmabuf);
    RUN(test_registration_takes_the_best_way);
    RUN(test_when_a_flush_is_needed);
    RUN(test_a_flush_reads_the_region);
    return test_end();
}
