/*
 * A job on GPUs, as the harness sees it: with a made-up backend in the place
 * of CUDA's, which this program therefore does not link. Options that only GPUs
 * have, devices, memory and areas of the ranks, and failures on the way.
 */
#include "common/buffers.h"
#include "common/launch.h"
#include "forked.h"
#include "parsed.h"

enum { DEVICES = 2, MIB = 1 << 20 };

/* ---- the made-up backend; what it does is told by the options it gets ---- */

struct cm_gpus {
    int local;
};

static void made_facts(struct cm_gpu_facts *out)
{
    memset(out, 0, sizeof(*out));
    out->built = 1;
    out->count = getenv("COLLMARK_TEST_NO_GPU") != NULL ? 0 : DEVICES;
    snprintf(out->why, sizeof(out->why), "made to be so");
    for (int i = 0; i < out->count; i++) {
        out->dev[i].uuid[0] = (unsigned char)(1 + i);
        snprintf(out->dev[i].bus_id, sizeof(out->dev[i].bus_id), "0000:%02x:00.0",
                 16u + (unsigned char)i);
        out->dev[i].peers = (1u << DEVICES) - 1;
    }
}

/* Pointers that nobody follows. */
static enum cm_status made_open(const struct cm_rank_info *mine, int local, const struct cm_opts *o,
                                bool staged, struct cm_rank_gpu *ranks, struct cm_gpus **out)
{
    if (o->launch.null_stream)
        return CM_FAIL(CM_ESYS, "made to fail");
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return CM_FAIL(CM_ENOMEM, "made-up GPUs");
    (*out)->local = local;
    for (int i = 0; i < local; i++) {
        ranks[i].gpu = (struct cm_gpu *)(*out + mine[i].device);
        ranks[i].staged = staged;
    }
    return CM_OK;
}

static void made_close(struct cm_gpus *g)
{
    free(g);
}

static enum cm_status made_area(const struct cm_opts *o, int n, size_t arena_bytes,
                                struct cm_gpu_area *out)
{
    (void)o;
    *out = (struct cm_gpu_area){.n = (uint32_t)n,
                                .channels = 1,
                                .depth = 1,
                                .ll_mask = UINT32_MAX,
                                .slot_bytes = 128,
                                .inbox_bytes = 128,
                                .arena_bytes = arena_bytes};
    return cm_gpu_area_fill(out);
}

static enum cm_status made_room(const struct cm_rank_gpu *gpu, const struct cm_opts *o, int n,
                                struct cm_room *room)
{
    (void)gpu;
    (void)o;
    (void)n;
    room->bytes = 64 * MIB;
    snprintf(room->where, sizeof(room->where), "memory of GPU x");
    return CM_OK;
}

static enum cm_status made_enter(const struct cm_rank_gpu *gpu)
{
    return gpu->gpu != NULL ? CM_OK : CM_FAIL(CM_ESYS, "no device");
}

const struct cm_backend cm_backend_cuda = {
    .name = "made up",
    .facts = made_facts,
    .open = made_open,
    .close = made_close,
    .area = made_area,
    .room = made_room,
    .enter = made_enter,
};

/* ---- options ---- */

static void test_options_of_gpus(void)
{
    static const struct {
        const char *line, *name, *value;
    } cases[] = {
        {"-G|4|-z|1", "-G/--cudagraph '4'", "-z/--blocking '1'"},
        {"-G|4|-z|3", "-G/--cudagraph '4'", "-z/--blocking '3'"},
        {"-G|4|-I|1", "-G/--cudagraph '4'", "-I/--per_iter_timing '1'"},
        {"-G|4|-y|1", "-G/--cudagraph '4'", "-y/--stream_null '1'"},
        {"-G|4|--check-every|2", "-G/--cudagraph '4'", "--check-every '2'"},
        {"-G|4|--backend|host", "-G/--cudagraph '4'", "--backend 'host'"},
        {"-y|1|--backend|host", "-y/--stream_null '1'", "--backend 'host'"},
        {"--oversubscribe|--backend|host", "--oversubscribe", "--backend 'host'"},
        {"-R|1", "-R/--local_register '1'", "only 0"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++)
        expect_refused(cases[i].line, CM_EINVAL, cases[i].name, cases[i].value);
    if (accepted("--backend|cuda|-G|4|--oversubscribe|-C|1"))
        CHECK(r.o.run.graph == 4 && r.o.launch.oversubscribe &&
                  r.o.launch.backend == CM_BACKEND_CUDA,
              "-G %d", r.o.run.graph);
    if (accepted("-y|1|-z|2|-I|1"))
        CHECK(r.o.launch.null_stream, "-y");
}

/* ---- jobs ---- */

struct made_job {
    const char *line;
    int exit_code;
    const char *says;  /* on stderr, or NULL: nothing */
    bool host, no_gpu; /* runs on the host; there are no devices */
    bool far;          /* ranks have areas in host memory */
    int devices[4];
};

static enum cm_status job_arena(const struct cm_opts *o, int n, const struct cm_room *room,
                                void *arg, size_t *out)
{
    (void)arg;
    return cm_buffers_fit(o, n, room, out);
}

static bool areas_are_sound(const struct cm_rank *rank, const struct made_job *m)
{
    const struct cm_gpu_area *a = &rank->gpu.area;

    if (a->n != (uint32_t)rank->group_n || a->arena_bytes != rank->arena_bytes ||
        rank->layout->arena_bytes < (m->far ? a->sync_bytes : 0) ||
        (rank->layout->arena_bytes > 0) != m->far || (rank->gpu.far != NULL) != m->far ||
        rank->gpu.far_only != m->far)
        return false;
    for (int i = 0; rank->gpu.far != NULL && i < rank->group_n; i++) {
        size_t at = cm_arena_at(rank->layout, rank->group_world[i]);

        if (rank->gpu.far[i] != (unsigned char *)rank->base + at)
            return false;
    }
    return true;
}

static enum cm_status job_body(struct cm_rank *rank, void *arg)
{
    const struct made_job *m = arg;
    bool sound;

    if (m->host)
        sound = rank->backend == NULL && rank->gpu.gpu == NULL && rank->layout->arena_bytes > 0 &&
                rank->arena_bytes == rank->layout->arena_bytes &&
                (rank->no_gpu != NULL) == m->no_gpu;
    else
        sound = rank->backend == &cm_backend_cuda &&
                rank->infos[rank->rank].device == m->devices[rank->rank] && !rank->gpu.staged &&
                rank->no_gpu == NULL && areas_are_sound(rank, m);
    return sound ? CM_OK : CM_FAIL(CM_ESYS, "rank %d of '%s' has wrong facts", rank->rank, m->line);
}

static int job_child(struct cm_boot *b, void *arg)
{
    struct made_job *m = arg;
    struct capture c;
    enum cm_exit code;

    (void)b;
    if (m->no_gpu)
        setenv("COLLMARK_TEST_NO_GPU", "1", 1);
    parse(m->line, &r);
    capture_begin(&c, STDERR_FILENO);
    code = cm_launch(NULL, NULL, &r.o, job_arena, job_body, m);
    capture_end(&c);
    cm_opts_free(&r.o);
    if ((int)code == m->exit_code &&
        (m->says != NULL ? strstr(c.text, m->says) != NULL : c.text[0] == '\0'))
        return 0;
    fprintf(stderr, "'%s': exit code %d, stderr: %s\n", m->line, code, c.text);
    return 1;
}

static void test_jobs(void)
{
    static struct made_job jobs[] = {
        {"-e|1M|-b|1M", .devices = {0}},
        {"-e|1M|-b|1M|-g|2", .devices = {0, 1}},
        {"-e|1M|-b|1M|-t|2|--p2p-disable|1", .devices = {0, 1}, .far = true},
        {"-e|1M|-b|1M|-t|2|--wire|shm|--split|mod:2", .devices = {0, 1}, .far = true},
        {"-e|1M|-b|1M|--device|1", .devices = {1}},
        {"-e|1M|-b|1M|-g|4|--oversubscribe|--backend|cuda", .devices = {0, 0, 1, 1}},
        {"-e|1M|-b|1M|-g|4|--oversubscribe|--split|div:2", .devices = {0, 0, 1, 1}},
        {"-e|1M|-b|1M|-g|2|--backend|host", .host = true},
        {"-e|1M|-b|1M|-g|3", .host = true, .no_gpu = true},
        {"-g|3", .exit_code = 3, .says = "there are 2"},
        {"--device|2", .exit_code = 3, .says = "--device 2"},
        {"--backend|cuda", .exit_code = 3, .says = "no usable GPU", .no_gpu = true},
        {"-y|1", .exit_code = 3, .says = "made to fail"},
        {"-y|1", .exit_code = 3, .says = "-y/--stream_null '1' needs a GPU", .no_gpu = true},
        {"-e|1G|-b|1G", .exit_code = 3, .says = "1 rank needs 3G of memory of GPU x"},
        {"-g|4|-e|16M|-b|8M|--oversubscribe", .exit_code = 3,
         .says = "memory of GPU x, 64M are available; -e 8M"},
        {"-g|2|--inject|stall:rank=1,phase=init|-T|0.4|-b|8|-e|8", .exit_code = 4,
         .says = "did not arrive: rank 1"},
    };

    for (size_t i = 0; i < CM_LEN(jobs); i++) {
        int status[1];

        CHECK(forked_run(1, job_child, &jobs[i], status), "'%s'", jobs[i].line);
        CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0, "'%s': 0x%x", jobs[i].line,
              (unsigned)status[0]);
    }
}

int main(void)
{
    RUN(test_options_of_gpus);
    RUN(test_jobs);
    return test_end();
}
