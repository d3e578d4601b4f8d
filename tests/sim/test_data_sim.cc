/*
 * Fill, check and listing on the device, as the simulator runs them, against
 * the host's: the same bytes, the same verdict, the same first faults, for all
 * collectives, types and operations.
 */
#include "data_case.h"

static const int ranks[] = {1, 2, 3, 4, 9, 33};

/* ---- cases ----------------------------------------------------------------------------------- */

static void blank(struct world *w)
{
    memset(w->out.memory, BLANK, w->out.room);
    if (w->in.memory != nullptr)
        memset(w->in.memory, BLANK, w->in.room);
}

static unsigned char *copy_of(const struct buffer *b)
{
    return b->memory == nullptr ? nullptr
                                : (unsigned char *)memcpy(malloc(b->room), b->memory, b->room);
}

/* The device fills as the host does, and not a byte more. Leaves the buffers filled. */
static void check_fill(struct world *w, unsigned slices)
{
    unsigned char *in, *out;

    blank(w);
    device_fill(w, slices);
    in = copy_of(&w->in);
    out = copy_of(&w->out);
    blank(w);
    host_fill(w);
    CHECK(memcmp(out, w->out.memory, w->out.room) == 0, "%s: OUT", name_of(w));
    CHECK(in == nullptr || memcmp(in, w->in.memory, w->in.room) == 0, "%s: IN", name_of(w));
    free(in);
    free(out);
}

/* What the collective would do. */
static void operate(struct world *w)
{
    cm_data_expect(&w->args.expect, 0, w->args.out_count, (void *)w->args.out);
}

/* Turn a bit somewhere in a part. */
static void spoil(struct world *w, const struct cm_part *p)
{
    size_t width = p->content == CM_CONTENT_GUARD ? 1 : w->width, at;
    const size_t places[] = {0, p->count - 1, below(&w->random, p->count),
                             below(&w->random, p->count)};

    at = places[below(&w->random, CM_LEN(places))] * width + below(&w->random, width);
    ((unsigned char *)p->at)[at] ^= (unsigned char)(1u << below(&w->random, 8));
}

/* Both find the same: nothing, or the faults planted. Returns how many. */
static int64_t check_same(struct world *w, unsigned slices)
{
    struct cm_check want = host_check(w), got = device_check(w, slices);

    CHECK(got.wrong == want.wrong && got.nfaults == want.nfaults,
          "%s: the device finds %d wrong and lists %d, the host %d and %d", name_of(w),
          (int)got.wrong, got.nfaults, (int)want.wrong, want.nfaults);
    for (int i = 0; i < want.nfaults && i < got.nfaults; i++)
        CHECK(same_fault(&got.faults[i], &want.faults[i]),
              "%s: fault %d: kind %d, index %zu, byte %d; the host says %d, %zu, %d", name_of(w), i,
              got.faults[i].kind, got.faults[i].index, (int)got.faults[i].guard_at,
              want.faults[i].kind, want.faults[i].index, (int)want.faults[i].guard_at);
    return want.wrong;
}

static void run_case(struct cm_data d, bool in_place, uint64_t number)
{
    struct world *w = world_new(d, in_place, number);
    unsigned slices = 1 + below(&w->random, 3);
    struct cm_parts parts;

    check_fill(w, slices);
    operate(w);
    CHECK(check_same(w, slices) == 0, "%s: a right result", name_of(w));
    cm_parts_check(&w->args, &parts);
    for (uint32_t k = 1 + below(&w->random, 6); k > 0; k--)
        spoil(w, &parts.part[below(&w->random, (size_t)parts.n)]);
    check_same(w, slices);
    world_free(w);
}

/*
 * Two numbers of ranks for each, in turn; all of them in the long run. What
 * ThreadSanitizer is for, the kernels do in every case: a few are enough.
 */
static void run_numbers(struct cm_data d, uint64_t number)
{
    size_t each = getenv("COLLMARK_SLOW") != nullptr ? CM_LEN(ranks) : 2;

    if (with_tsan && number % 7 != 0)
        return;
    for (size_t k = 0; k < each; k++) {
        d.n = ranks[(number + number / CM_NOPS + 3 * k + k / 2) % CM_LEN(ranks)];
        run_case(d, false, number * 16 + 2 * k);
        if (cm_colls[d.coll].in_place)
            run_case(d, true, number * 16 + 2 * k + 1);
    }
}

static void test_all_collectives_types_and_operations(void)
{
    uint64_t number = 0;

    for (int c = 0; c < CM_NCOLLS; c++)
        for (int t = 0; t < CM_NDTYPES; t++)
            for (int o = 0; o < (cm_colls[c].reduces ? CM_NOPS : 1); o++, number++)
                run_numbers({(enum cm_coll)c, (enum cm_dtype)t, (enum cm_op)o, 0, 0}, number);
}

/* ---- what the cases above do not reach ------------------------------------------------------- */

enum { FAR = 160 };

/* Indices beyond 32 bits, where keys change in the middle of a buffer. */
static void check_far(struct cm_data d, uint64_t first)
{
    struct world *w = world_new(d, false, first + (uint64_t)d.dtype);
    struct cm_gpu_data a;
    unsigned char memory[FAR * 8], want[FAR * 8];
    size_t bytes = FAR * w->width;

    cm_gpu_check_of(&w->args, &a);
    a.nparts = 1;
    a.slices = 1;
    a.table = (uintptr_t)w->sums.at;
    a.found = (uintptr_t)&w->result;
    a.parts[0] = {(uintptr_t)memory, FAR, first, CM_CONTENT_INPUT, (uint32_t)w->width};
    run(cm_data_fill_thunk, cm_data_fill_argbytes, &a, 1);
    cm_data_input(&w->args.expect.data, a.rank, first, FAR, want);
    CHECK(memcmp(memory, want, bytes) == 0, "%s: input from %zu", name_of(w), (size_t)first);
    cm_data_expect(&w->args.expect, first, FAR, memory);
    a.parts[0].content = CM_CONTENT_RESULT;
    run(cm_data_check_thunk, cm_data_check_argbytes, &a, 1);
    CHECK(w->result.found.wrong[0] == 0, "%s: %d wrong from %zu", name_of(w),
          (int)w->result.found.wrong[0], (size_t)first);
    world_free(w);
}

static void test_indices_beyond_32_bits(void)
{
    static const uint64_t first[] = {((uint64_t)1 << 32) - 77, ((uint64_t)5 << 32) + 3};

    for (int t = 0; t < CM_NDTYPES; t++)
        for (int o = 0; o < CM_NOPS; o++)
            for (uint64_t f : first)
                check_far({CM_ALL_REDUCE, (enum cm_dtype)t, (enum cm_op)o, o & 1 ? 5 : 17, 1}, f);
}

/* Sums that do not fit into a block's own memory. */
static void test_thousands_of_ranks(void)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_DOUBLE, CM_F8E4M3, CM_INT32};
    static const int many[] = {512, 513, CM_MAX_RANKS};

    for (enum cm_dtype t : types)
        for (int n : many)
            for (int o = 0; o < CM_NOPS; o++)
                check_far({CM_ALL_REDUCE, t, (enum cm_op)o, n, 2}, 1000);
}

/* Faults far apart: the lowest of each part are listed, in order, whichever block saw them. */
static void test_faults_in_many_slices(void)
{
    static const size_t at[] = {299, 1024, 5000, 5001, 16383, 20000, 31999};
    enum { SLICES = 7, COUNT = 32000 };
    struct world *w = world_new({CM_BROADCAST, CM_FLOAT, CM_SUM, 3, 0}, false, 5);
    struct cm_check c;

    free(w->in.memory);
    free(w->out.memory);
    w->args.expect.count = w->args.in_count = w->args.out_count = COUNT;
    set_buffers(w);
    check_fill(w, SLICES);
    operate(w);
    CHECK(check_same(w, SLICES) == 0, "%s", name_of(w));
    for (size_t i : at)
        ((unsigned char *)w->args.out)[i * w->width + 2] ^= 0x40;
    c = device_check(w, SLICES);
    CHECK(c.wrong == (int64_t)CM_LEN(at) && w->result.found.nfirst[0] == CM_GPU_FIRST,
          "%d wrong, %d listed", (int)c.wrong, (int)w->result.found.nfirst[0]);
    for (size_t i = 0; i < CM_GPU_FIRST; i++)
        CHECK(w->result.found.first[0][i] == at[i], "%zu is listed, want %zu",
              (size_t)w->result.found.first[0][i], at[i]);
    memset((void *)w->args.out, 0, COUNT * w->width);
    CHECK(check_same(w, SLICES) == COUNT, "all wrong");
    world_free(w);
}

/* A fault of each kind, by hand: what is said of it, and where. */
static void test_a_fault_of_each_kind(void)
{
    struct world *w = world_new({CM_REDUCE, CM_INT32, CM_SUM, 4, 0}, false, 11);
    struct cm_check c;

    w->args.expect.root = (w->args.expect.rank + 1) % 4; /* OUT stays */
    check_fill(w, 1);
    ((unsigned char *)w->args.out)[4 * 3] ^= 1;
    ((unsigned char *)w->args.in)[4 * 5 + 3] ^= 1;
    w->out.payload[-7] ^= 1;
    w->in.payload[w->in.bytes + 9] ^= 1;
    c = device_check(w, 1);
    CHECK(c.wrong == 4 && c.nfaults == 4, "%d wrong, %d listed", (int)c.wrong, c.nfaults);
    CHECK(c.faults[0].kind == CM_WRONG_UNTOUCHED && c.faults[0].index == 3, "kind %d at %zu",
          c.faults[0].kind, c.faults[0].index);
    CHECK(c.faults[1].kind == CM_WRONG_INPUT && c.faults[1].index == 5, "kind %d at %zu",
          c.faults[1].kind, c.faults[1].index);
    CHECK(c.faults[2].kind == CM_WRONG_GUARD && c.faults[2].guard_at == -7, "kind %d at %d",
          c.faults[2].kind, (int)c.faults[2].guard_at);
    CHECK(c.faults[3].kind == CM_WRONG_GUARD && c.faults[3].guard_at == (int64_t)w->in.bytes + 9,
          "kind %d at %d", c.faults[3].kind, (int)c.faults[3].guard_at);
    world_free(w);
}

/* A failing copy from the device ends the report, and is passed on. */
static enum cm_status refuse(void *, void *, const void *, size_t)
{
    return CM_ESYS;
}

static void test_a_copy_that_fails(void)
{
    struct world *w = world_new({CM_ALL_GATHER, CM_UINT8, CM_SUM, 2, 0}, false, 3);
    struct cm_gpu_found f = {};
    struct cm_check c = {};

    f.wrong[0] = f.nfirst[0] = 1;
    CHECK(cm_gpu_found_to(&w->args, &f, refuse, nullptr, &c) == CM_ESYS, "accepted");
    CHECK(c.wrong == 1 && c.nfaults == 0, "%d wrong, %d listed", (int)c.wrong, c.nfaults);
    world_free(w);
}

int main(void)
{
    RUN(test_all_collectives_types_and_operations);
    RUN(test_indices_beyond_32_bits);
    RUN(test_thousands_of_ranks);
    RUN(test_faults_in_many_slices);
    RUN(test_a_fault_of_each_kind);
    RUN(test_a_copy_that_fails);
    return test_end();
}
