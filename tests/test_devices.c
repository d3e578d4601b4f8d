/*
 * Which GPU each rank gets, and what is refused, from made-up machines. A
 * letter is a device: its UUID, and its place on the bus.
 */
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "common/world_gpu.h"
#include "test.h"

enum { MAX_PROCS = 10, MAX_RANKS = 128 };

struct process {
    int threads, gpus;
    int device; /* --device + 1; 0: not given */
    const char *sees, *why;
    bool not_built;
};

struct machine {
    const char *name;
    struct process procs[MAX_PROCS];
    int repeat;            /* of the first process; 0: once */
    bool apart;            /* no two processes share memory */
    const char *no_access; /* pairs of devices without peer access, "ABCD": A-B and C-D */
    struct cm_opts o;
    /* what is to come */
    enum cm_status status;
    const char *says[3];
    const char *devices; /* one letter per rank; NULL: on the host */
    bool shared, staged, far, far_only;
};

static bool lacks_access(const char *pairs, char a, char b)
{
    for (; pairs != NULL && *pairs != '\0'; pairs += 2)
        if ((pairs[0] == a && pairs[1] == b) || (pairs[0] == b && pairs[1] == a))
            return true;
    return false;
}

static void fill_facts(const struct machine *m, const struct process *p, struct cm_gpu_facts *f)
{
    memset(f, 0, sizeof(*f));
    f->built = !p->not_built;
    f->count = (int32_t)strlen(p->sees);
    f->driver = 13020;
    f->runtime = 13000;
    snprintf(f->why, sizeof(f->why), "%s", p->why != NULL ? p->why : "");
    for (int i = 0; i < f->count; i++) {
        snprintf(f->dev[i].bus_id, sizeof(f->dev[i].bus_id), "0000:0%c:00.0",
                 p->sees[i] - 'A' + 'a');
        snprintf(f->dev[i].name, sizeof(f->dev[i].name), "Made %c", p->sees[i]);
        f->dev[i].uuid[0] = (unsigned char)p->sees[i];
        for (int k = 0; k < f->count; k++)
            if (!lacks_access(m->no_access, p->sees[i], p->sees[k]))
                f->dev[i].peers |= 1u << k;
    }
}

/* A machine as cm_world_gather() would have gathered it. */
struct gathered {
    struct cm_boot boot;
    struct cm_gpu_facts facts[MAX_PROCS];
    struct cm_gpu_claim claims[MAX_PROCS];
    struct cm_world w;
    int32_t first_of[MAX_PROCS + 1], gpu_of[MAX_RANKS], of_rank[MAX_RANKS];
    struct cm_rank_info infos[MAX_RANKS];
};

static const struct process *process_of(const struct machine *m, int p)
{
    int repeat = m->repeat > 0 ? m->repeat : 1;

    return &m->procs[p < repeat ? 0 : p - repeat + 1];
}

static void gather(const struct machine *m, struct gathered *g)
{
    memset(g, 0, sizeof(*g));
    g->w = (struct cm_world){.first_of = g->first_of, .infos = g->infos, .gpu_of = g->gpu_of};
    for (int p = 0; p < MAX_PROCS && process_of(m, p)->threads > 0; p++) {
        const struct process *from = process_of(m, p);

        fill_facts(m, from, &g->facts[p]);
        g->claims[p] = (struct cm_gpu_claim){.threads = from->threads,
                                             .gpus = from->gpus,
                                             .device = from->device - 1,
                                             .host = "alpha",
                                             .facts = &g->facts[p]};
        for (int i = 0; i < from->threads * from->gpus; i++, g->w.n++) {
            g->infos[g->w.n].proc = p;
            strcpy(g->infos[g->w.n].host, "alpha");
        }
        g->first_of[p + 1] = g->w.n;
        g->w.nprocs = p + 1;
    }
    g->boot.nprocs = g->w.nprocs;
    g->w.domains.n = m->apart ? g->w.nprocs : 1;
    for (int r = 0; r < g->w.n; r++)
        g->of_rank[r] = m->apart ? g->infos[r].proc : 0;
    g->w.domains.of_rank = g->of_rank;
}

/* The letters of the ranks' devices. */
static void letters(const struct gathered *g, char *text)
{
    for (int r = 0; r < g->w.n; r++)
        *text++ = (char)g->facts[g->infos[r].proc].dev[g->infos[r].device].uuid[0];
    *text = '\0';
}

static void expect(const struct machine *m)
{
    static struct gathered g;
    char got[MAX_RANKS + 1];
    struct capture c;
    enum cm_status st;

    gather(m, &g);
    capture_begin(&c, STDERR_FILENO);
    st = cm_world_choose_gpus(&g.boot, &m->o, g.claims, &g.w);
    capture_end(&c);
    CHECK(st == m->status, "%s: status %d: %s", m->name, (int)st, c.text);
    CHECK((st != CM_OK) == (c.text[0] != '\0'), "%s: stderr '%s'", m->name, c.text);
    for (size_t i = 0; i < CM_LEN(m->says) && m->says[i] != NULL; i++)
        CHECK(strstr(st != CM_OK ? c.text : g.w.no_gpu, m->says[i]) != NULL,
              "%s: no '%s' in '%s%s'", m->name, m->says[i], c.text, g.w.no_gpu);
    g.boot.proc = 1; /* all processes decide alike, one speaks */
    gather(m, &g);
    g.boot.proc = 1;
    capture_begin(&c, STDERR_FILENO);
    CHECK(cm_world_choose_gpus(&g.boot, &m->o, g.claims, &g.w) == st, "%s: process 1", m->name);
    capture_end(&c);
    CHECK(c.text[0] == '\0', "%s: process 1 says '%s'", m->name, c.text);
    if (st != CM_OK)
        return;
    CHECK(g.w.cuda == (m->devices != NULL), "%s: cuda %d", m->name, g.w.cuda);
    if (m->devices == NULL)
        return;
    letters(&g, got);
    CHECK(strcmp(got, m->devices) == 0, "%s: devices %s, not %s", m->name, got, m->devices);
    CHECK(g.w.shared_gpus == m->shared && g.w.staged == m->staged, "%s: shared %d staged %d",
          m->name, g.w.shared_gpus, g.w.staged);
    CHECK(g.w.far == m->far && g.w.far_only == m->far_only, "%s: far %d only %d", m->name, g.w.far,
          g.w.far_only);
    CHECK(g.infos[0].bus_id[6] == got[0] - 'A' + 'a' && g.infos[0].gpu[5] == got[0] &&
              g.w.driver == 13020,
          "%s: rank 0 on %s %s", m->name, g.infos[0].bus_id, g.infos[0].gpu);
}

/* clang-format off */
#define P(t, g, base, list) {.threads = t, .gpus = g, .device = base, .sees = list}
#define NONE(t, g, reason) {.threads = t, .gpus = g, .sees = "", .why = reason}
#define UNBUILT(t, g) {.threads = t, .gpus = g, .sees = "", .not_built = true}
#define SHARE .o = {.launch = {.oversubscribe = true}}

static const struct machine placed[] = {
    {"one", {P(1, 1, 0, "A")}, .devices = "A"},
    {"four of a process", {P(1, 4, 0, "ABCD")}, .devices = "ABCD"},
    {"threads and devices", {P(2, 2, 0, "ABCDE")}, .devices = "ABCD"},
    {"in turn", {P(1, 1, 0, "ABCD")}, .repeat = 4, .devices = "ABCD"},
    {"in turn, of different size", {P(1, 1, 0, "ABCD"), P(1, 3, 0, "ABCD")}, .devices = "ABCD"},
    {"one seen by each", {P(1, 1, 0, "A"), P(1, 1, 0, "B"), P(1, 1, 0, "C")}, .devices = "ABC",
     .far = true},
    {"same devices, another order", {P(1, 1, 0, "AB"), P(1, 1, 0, "BA")}, .devices = "AB"},
    {"two islands", {P(1, 1, 0, "AB"), P(1, 1, 0, "AB"), P(1, 1, 0, "CD"), P(1, 1, 0, "CD")},
     .devices = "ABCD", .far = true},
    {"base", {P(1, 2, 3, "ABCD")}, .devices = "CD"},
    {"bases of two", {P(1, 1, 4, "ABCD"), P(1, 1, 1, "ABCD")}, .devices = "DA"},
    {"one process sees both", {P(1, 1, 0, "A"), P(1, 1, 2, "AB")}, .devices = "AB"},
    {"no access", {P(1, 3, 0, "ABC")}, .no_access = "AC", .devices = "ABC", .far = true},
    {"no access to a device not in use", {P(1, 2, 0, "ABC")}, .no_access = "AC", .devices = "AB"},
    {"P2P disabled", {P(1, 2, 0, "AB")}, .o = {.engine = {.p2p_disable = true}}, .devices = "AB",
     .far = true, .far_only = true},
    {"level loc", {P(1, 2, 0, "AB")}, .o = {.engine = {.p2p_level = "loc"}}, .devices = "AB",
     .far = true, .far_only = true},
    {"level sys", {P(1, 2, 0, "AB")}, .o = {.engine = {.p2p_level = "sys"}}, .devices = "AB"},
    {"wire shm", {P(1, 2, 0, "AB")}, .o = {.launch = {.wire = "shm"}}, .devices = "AB",
     .far = true, .far_only = true},
    {"P2P disabled, alone", {P(1, 1, 0, "A")}, .o = {.engine = {.p2p_disable = true}},
     .devices = "A", .far_only = true},
    {"sharing unused", {P(1, 2, 0, "AB")}, SHARE, .devices = "AB"},
    {"a gang", {P(1, 4, 0, "A")}, SHARE, .devices = "AAAA", .shared = true},
    {"two gangs", {P(1, 5, 0, "AB")}, SHARE, .devices = "AAABB", .shared = true},
    {"a gang each", {P(1, 2, 0, "AB")}, .repeat = 2, SHARE, .devices = "AABB", .shared = true},
    {"largest gang", {P(1, 16, 0, "A")}, SHARE, .devices = "AAAAAAAAAAAAAAAA", .shared = true},
    {"processes on one", {P(1, 1, 0, "A")}, .repeat = 3, SHARE, .devices = "AAA", .shared = true,
     .staged = true},
    {"more processes than devices", {P(1, 2, 0, "AB")}, .repeat = 3, SHARE, .devices = "AAAABB",
     .shared = true, .staged = true},
    {"sharing from a base", {P(1, 3, 2, "ABC")}, SHARE, .devices = "BBC", .shared = true},
    {"both see one", {P(1, 1, 0, "A"), P(1, 1, 0, "AB")}, SHARE, .devices = "AA", .shared = true,
     .staged = true},
    {"apart", {P(1, 2, 0, "ABCD")}, .repeat = 2, .apart = true, .devices = "ABCD"},
    {"apart, each sees its own", {P(1, 1, 0, "A"), P(1, 1, 0, "B")}, .apart = true,
     .devices = "AB"},
    {"apart, no access", {P(1, 2, 0, "ABCD")}, .repeat = 2, .apart = true, .no_access = "AC",
     .devices = "ABCD"},
    {"apart, no access inside", {P(1, 2, 0, "ABCD")}, .repeat = 2, .apart = true,
     .no_access = "CD", .devices = "ABCD", .far = true},
    {"apart, P2P disabled", {P(1, 1, 0, "AB")}, .repeat = 2, .apart = true,
     .o = {.engine = {.p2p_disable = true}}, .devices = "AB", .far_only = true},
    {"apart, P2P disabled, pairs", {P(1, 2, 0, "ABCD")}, .repeat = 2, .apart = true,
     .o = {.engine = {.p2p_disable = true}}, .devices = "ABCD", .far = true, .far_only = true},
    {"apart, on one", {P(1, 1, 0, "A")}, .repeat = 2, .apart = true, SHARE, .devices = "AA",
     .shared = true, .staged = true},
    {"host wanted", {P(1, 1, 0, "A")}, .o = {.launch = {.backend = CM_BACKEND_HOST}}},
    {"auto: no driver", {NONE(1, 2, "no CUDA driver")},
     .says = {"host alpha: no CUDA driver"}},
    {"auto: one without", {P(1, 1, 0, "A"), NONE(1, 1, "no CUDA driver")},
     .says = {"no CUDA driver"}},
    {"auto: not built", {UNBUILT(1, 2)}, .says = {""}},
    {"auto: one not built", {P(1, 1, 0, "A"), UNBUILT(1, 1)},
     .says = {"process 1", "without CUDA"}},
    {"auto: no device, many ranks", {NONE(100, 1, "no CUDA driver")}, .devices = NULL},
};

static const struct machine refused[] = {
    {"cuda: no driver", {NONE(1, 1, "no CUDA driver")},
     .o = {.launch = {.backend = CM_BACKEND_CUDA}}, .status = CM_ESYS,
     .says = {"--backend cuda: no usable GPU: host alpha: no CUDA driver"}},
    {"cuda: not built", {P(1, 1, 0, "A"), UNBUILT(1, 1)},
     .o = {.launch = {.backend = CM_BACKEND_CUDA}}, .status = CM_ESYS,
     .says = {"--backend cuda", "process 1", "without CUDA"}},
    {"graph without GPU", {NONE(1, 1, "no CUDA driver")}, .o = {.run = {.graph = 4}},
     .status = CM_ESYS, .says = {"-G/--cudagraph '4'", "no CUDA driver"}},
    {"sharing without GPU", {NONE(1, 1, "no CUDA driver")}, SHARE, .status = CM_ESYS,
     .says = {"--oversubscribe", "no CUDA driver"}},
    {"too few in a process", {P(1, 3, 0, "AB")}, .status = CM_ESYS,
     .says = {"-g 3 asks for 3 GPUs on host alpha, there are 2", "did you mean -g 2?",
              "--backend host"}},
    {"too few for -g of each", {P(1, 8, 0, "ABCDEFGH")}, .repeat = 8, .status = CM_ESYS,
     .says = {"8 processes x -g 8 asks for 64 GPUs on host alpha, there are 8",
              "did you mean -g 1?", "--oversubscribe"}},
    {"too few for threads", {P(2, 2, 0, "AB")}, .repeat = 2,
     .o = {.launch = {.backend = CM_BACKEND_CUDA}},
     .status = CM_ESYS,
     .says = {"2 processes x -t 2 x -g 2 asks for 8 GPUs", "start fewer processes or threads"}},
    {"base too high", {P(1, 2, 2, "AB")}, .status = CM_ESYS,
     .says = {"--device 1 with 2 ranks", "host alpha has 2 GPUs"}},
    {"base beyond, shared", {P(1, 2, 4, "AB")}, SHARE, .status = CM_ESYS, .says = {"--device 3"}},
    {"same GPU", {P(1, 1, 1, "AB")}, .repeat = 2, .status = CM_ESYS,
     .says = {"rank 0 and rank 1 are both on GPU 0000:0a:00.0", "--oversubscribe"}},
    {"same GPU, other lists", {P(1, 1, 0, "B"), P(1, 2, 0, "AB")}, .status = CM_ESYS,
     .says = {"rank 0 and rank 2", "0000:0b:00.0"}},
    {"gang too large", {P(1, 17, 0, "A")}, SHARE, .status = CM_EUNSUP,
     .says = {"17 ranks of process 0", "at most 16"}},
    {"too many ranks", {P(73, 1, 0, "A")}, SHARE, .status = CM_EUNSUP,
     .says = {"73", "at most 72"}},
    {"graph on staged ranks", {P(1, 1, 0, "A")}, .repeat = 2,
     .o = {.launch = {.oversubscribe = true}, .run = {.graph = 2}}, .status = CM_EUNSUP,
     .says = {"-G/--cudagraph '2'", "rank 0 and rank 1", "0000:0a:00.0"}},
};
/* clang-format on */

static void test_placement(void)
{
    for (size_t i = 0; i < CM_LEN(placed); i++)
        expect(&placed[i]);
}

static void test_refusals(void)
{
    for (size_t i = 0; i < CM_LEN(refused); i++)
        expect(&refused[i]);
}

int main(void)
{
    RUN(test_placement);
    RUN(test_refusals);
    return test_end();
}
