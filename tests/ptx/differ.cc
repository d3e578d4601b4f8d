/*
 * Do the kernels as nvcc compiled them and as the host compiler did give the same bits?
 *
 *   differ SHIM.so PTX.so    the same kernels: source shim, and ptx2c.py's output
 *
 * Each case plays all ranks of a small communicator in one launch, on fresh memory and the same
 * input, once with either library; then the memory of all ranks must be equal.
 */
#include "cmsim_test.h"
#include "base/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <string>
#include <vector>

extern "C" int cm_gpu_area_fill(struct cm_gpu_area *a);

enum { THREADS = 64, ARENA = 3 * 4096, IN = 0, OUT = 4096, SCRATCH = 8192 };

/* A type's name in kernels, its bytes, what to clear in random bits so that sums stay finite. */
struct type {
    const char *name;
    uint32_t bytes;
    uint64_t clear;
};
static const struct type types[] = {
    {"u8", 1, 0},
    {"u32", 4, 0},
    {"u64", 8, 0},
    {"f32", 4, 0x40000000},
    {"f64", 8, 0x4000000000000000},
    {"f16", 2, 0x4000},
    {"bf16", 2, 0x4000},
    {"e4m3", 1, 0x40},
    {"e5m2", 1, 0x40},
};

struct kernel_case {
    const char *family, *reduction;
    const struct type *type;
    uint32_t n, blocks;
    uint64_t count;
    bool ports; /* plan: send through a port, else pull */
};

/* All ranks' areas in one piece of memory, and their plans. */
struct job {
    struct cm_gpu_area area;
    std::vector<char> memory;
    char *base;
    std::vector<cm_gpu_plan> plans;
    std::vector<std::vector<cm_gpu_fold>> folds;
    std::vector<std::vector<cm_gpu_operand>> operands;
    std::vector<std::vector<cm_gpu_wait>> waits;
    uint32_t abort = 0;
    cm_gpu_hint hint = {};

    char *rank(uint32_t r)
    {
        return base + r * area.bytes;
    }
    uint64_t at(uint32_t r, uint64_t offset)
    {
        return (uint64_t)(rank(r) + area.arena_at + offset);
    }
};

static void fill_memory(job &j, const kernel_case &c)
{
    uint64_t x = 88172645463325252ull;

    j.area = {};
    j.area.n = c.n;
    j.area.channels = 1;
    j.area.depth = 2;
    j.area.ll_mask = 15;
    j.area.slot_bytes = 256;
    j.area.inbox_bytes = 4096;
    j.area.arena_bytes = ARENA;
    CHECK(cm_gpu_area_fill(&j.area) == 0, "%u ranks", c.n);
    j.memory.assign(c.n * j.area.bytes + 4096, 0);
    j.base = j.memory.data() + (4096 - (uintptr_t)j.memory.data() % 4096) % 4096;
    for (uint32_t r = 0; r < c.n; r++) {
        cm_gpu_state *s = (cm_gpu_state *)j.rank(r);

        s->magic = CM_GPU_MAGIC;
        s->rank = r;
        s->abort = (uint64_t)&j.abort;
        s->hint = (uint64_t)&j.hint;
        s->area = j.area;
        for (uint32_t p = 0; p < c.n; p++)
            s->peers[p] = {(uint64_t)j.rank(r), (uint64_t)j.rank(p), (uint64_t)j.rank(p),
                           j.at(p, SCRATCH)};
        for (uint64_t i = 0; i < c.count; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            uint64_t bits = x & ~c.type->clear;
            memcpy((char *)j.at(r, IN) + i * c.type->bytes, &bits, c.type->bytes);
        }
    }
}

/* Rank r sends IN to the next rank and adds what comes from the one before; or it pulls it. */
static void make_plan(job &j, const kernel_case &c, uint32_t r)
{
    enum { SPACE_IN, SPACE_OUT, SPACE_SCRATCH, SPACE_PORT };
    int32_t me = (int32_t)r, next = (int32_t)((r + 1) % c.n), last = (int32_t)((r + c.n - 1) % c.n);
    uint32_t from = c.ports ? SPACE_PORT : SPACE_IN;
    cm_gpu_plan &p = j.plans[r];
    cm_gpu_fold f = {};

    f.len = c.count;
    f.each = (c.count + c.blocks - 1) / c.blocks;
    j.operands[r] = {{0, me, SPACE_IN},
                     {0, next, SPACE_PORT},
                     {0, me, SPACE_IN},
                     {0, last, from},
                     {0, me, SPACE_OUT}};
    j.waits[r] = {{last, 0, 1, 0}};
    if (c.ports) {
        f.nfrom = 1, f.to = 1, f.nto = 1;
    } else {
        f.flags = CM_GPU_POST;
    }
    j.folds[r] = {f};
    f.from = 2, f.nfrom = 2, f.to = 4, f.nto = 1;
    f.nwait = c.ports ? 0 : 1;
    f.flags = CM_GPU_DIVIDE;
    j.folds[r].push_back(f);
    p = {};
    p.folds = (uint64_t)j.folds[r].data();
    p.operands = (uint64_t)j.operands[r].data();
    p.waits = (uint64_t)j.waits[r].data();
    p.cap = c.ports ? j.area.slot_bytes / 2 / c.type->bytes : c.count;
    p.npasses = (f.each + p.cap - 1) / p.cap;
    p.ports = c.ports;
    p.nworkers = 1;
    p.reps = 1;
    p.workers[0] = {0, (uint32_t)j.folds[r].size(), 0, 0};
}

static cm_gpu_args make_args(job &j, const kernel_case &c)
{
    cm_gpu_args a = {};

    a.nranks = a.n = c.n;
    a.blocks = c.blocks;
    a.reduces = 1;
    a.sig = 42;
    a.divisor = (int32_t)c.n;
    a.premul = 1;
    j.plans.resize(c.n);
    j.folds.resize(c.n);
    j.operands.resize(c.n);
    j.waits.resize(c.n);
    for (uint32_t r = 0; r < c.n; r++) {
        cm_gpu_rank &k = a.rank[r];

        make_plan(j, c, r);
        k.base = (uint64_t)j.rank(r);
        k.in = j.at(r, IN);
        k.out = j.at(r, OUT);
        k.plan = (uint64_t)&j.plans[r];
        k.send_to = k.recv_from = CM_GPU_ALL;
        k.bytes = c.count * c.type->bytes;
        /* pass: rank r reduces its n-th of everything and stores it at all */
        k.len = (c.count + c.n - 1 - r) / c.n;
        k.from_at = k.to_at = (c.count + c.n - 1) / c.n * r * c.type->bytes;
        if (k.from_at / c.type->bytes + k.len > c.count)
            k.len = 0;
        k.each = (k.len + c.blocks - 1) / c.blocks;
        k.nfrom = k.nto = (int32_t)c.n;
    }
    return a;
}

/* Two operations in a row; the arenas are the result. */
static std::string play(void *library, const kernel_case &c, uint64_t seed)
{
    std::string name = std::string("cm_") + c.family + "_" + c.reduction + "_" + c.type->name, out;
    void (*thunk)(void **) = (void (*)(void **))dlsym(library, (name + "_thunk").c_str());
    const size_t *bytes = (const size_t *)dlsym(library, (name + "_argbytes").c_str());
    job j;

    CHECK(thunk != NULL && bytes != NULL, "%s is missing", name.c_str());
    if (thunk == NULL || bytes == NULL)
        return out;
    CHECK(*bytes == sizeof(cm_gpu_args), "%s: parameter of %zu bytes", name.c_str(), *bytes);
    fill_memory(j, c);
    cm_gpu_args a = make_args(j, c);
    fresh(seeded(seed));
    for (int round = 0; round < 2; round++) {
        const char *error;

        start(thunk, &a, *bytes, {c.blocks, c.n, THREADS, 0});
        error = finish();
        CHECK(error == NULL, "%s: %s", name.c_str(), text(error));
    }
    for (uint32_t r = 0; r < c.n; r++)
        out.append((const char *)j.at(r, 0), ARENA);
    return out;
}

static void *libraries[2];

static void compare(const kernel_case &c)
{
    std::string shim = play(libraries[0], c, 7), compiled = play(libraries[1], c, 7);
    size_t at = 0;

    while (at < shim.size() && at < compiled.size() && shim[at] == compiled[at])
        at++;
    CHECK(shim == compiled, "cm_%s_%s_%s n=%u blocks=%u count=%zu: differ at byte %zu of rank %zu",
          c.family, c.reduction, c.type->name, c.n, c.blocks, (size_t)c.count, at % ARENA,
          at / ARENA);
    /* Nothing was computed if OUT is still all zero. */
    CHECK(shim.find_first_not_of('\0', OUT) < SCRATCH, "cm_%s_%s_%s did nothing", c.family,
          c.reduction, c.type->name);
}

static const uint64_t counts[] = {1, 3, 77, 500};

static void test_shot_of_all_types(void)
{
    for (const type &t : types)
        for (uint64_t count : counts)
            for (uint32_t n = 2; n <= 3; n++)
                compare({"shot", "sum", &t, n, n - 1, count, false});
}

static void test_pass(void)
{
    for (uint64_t count : counts) {
        compare({"pass", "sum", &types[3], 3, 2, count, false});
        compare({"pass", "extreme", &types[0], 2, 1, count, false});
    }
}

static void test_plan_that_pulls(void)
{
    for (uint64_t count : counts)
        compare({"plan", "sum", &types[3], 3, 1, count, false});
}

static void test_plan_through_ports(void)
{
    for (uint64_t count : counts)
        compare({"plan", "sum", &types[3], 3, 1, count, true});
}

static void test_ll_ports(void)
{
    for (uint64_t count : counts)
        compare({"ll", "sum", &types[3], 3, 1, count, true});
}

/* Of ops.cu: a row of results for each pair of words. */
enum { OPS = 40 };
struct ops_args {
    uint64_t in, out, n;
};

static std::vector<uint64_t> operate(void *library, const std::vector<uint64_t> &in)
{
    void (*thunk)(void **) = (void (*)(void **))dlsym(library, "cm_test_ops_thunk");
    std::vector<uint64_t> out(in.size() / 2 * OPS);
    ops_args a = {(uint64_t)in.data(), (uint64_t)out.data(), in.size() / 2};

    CHECK(thunk != NULL, "cm_test_ops is missing");
    if (thunk == NULL)
        return out;
    fresh(seeded(1));
    start(thunk, &a, sizeof(a), {2, 1, THREADS, 0});
    const char *error = finish();
    CHECK(error == NULL, "cm_test_ops: %s", text(error));
    return out;
}

static void test_operations(void)
{
    static const uint64_t corners[] = {0,          1,          2,          0x7fffffff,
                                       0x80000000, 0xffffffff, 0x8000,     0xff,
                                       1ull << 63, ~0ull,      ~0ull >> 1, 0x3f8000003f800000};
    std::vector<uint64_t> in;
    uint64_t x = 88172645463325252ull;

    for (uint64_t a : corners)
        for (uint64_t b : corners)
            in.insert(in.end(), {a, b});
    for (int i = 0; i < 40000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        in.push_back(x);
    }
    std::vector<uint64_t> shim = operate(libraries[0], in), compiled = operate(libraries[1], in);
    for (size_t i = 0; i < shim.size(); i++)
        if (shim[i] != compiled[i]) {
            CHECK(false, "operation %zu of %#llx, %#llx: %#llx by the shim, %#llx by PTX", i % OPS,
                  (unsigned long long)in[i / OPS * 2], (unsigned long long)in[i / OPS * 2 + 1],
                  (unsigned long long)shim[i], (unsigned long long)compiled[i]);
            break;
        }
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2 && argc == 3; i++) {
        libraries[i] = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
        if (libraries[i] == NULL)
            fprintf(stderr, "%s\n", dlerror());
    }
    if (libraries[0] == NULL || libraries[1] == NULL)
        return 2;
    RUN(test_operations);
    RUN(test_shot_of_all_types);
    RUN(test_pass);
    RUN(test_plan_that_pulls);
    RUN(test_plan_through_ports);
    RUN(test_ll_ports);
    return test_end();
}
