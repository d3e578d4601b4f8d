/*
 * The check is a comparison of bits, block by block: the expected block is
 * made in a small buffer and compared with memcmp; only a block that differs
 * is searched. So a right buffer costs one pass, and a wrong one names its
 * first faults.
 */
#include "common/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { BLOCK_BYTES = 16384, GUESS_RUN = 4 };

static uint64_t poison_word(uint64_t seed)
{
    uint64_t mixed = (seed ^ 0x2545f4914f6cdd1du) * 0x9e3779b97f4a7c15u;

    return 0xfff0fff0fff0fff0u | ((mixed >> 16) & 0x000f000f000f000fu);
}

void cm_poison(void *p, size_t bytes, uint64_t seed)
{
    uint64_t word = poison_word(seed);
    unsigned char *to = p;
    size_t i = 0;

    for (; i + sizeof(word) <= bytes; i += sizeof(word))
        memcpy(to + i, &word, sizeof(word));
    memcpy(to + i, &word, bytes - i);
}

/* The poison of `bytes` bytes that start `phase` bytes into the pattern. */
static void poison_block(uint64_t seed, size_t phase, size_t bytes, unsigned char *out)
{
    uint64_t word = poison_word(seed);
    unsigned shift = 8 * (unsigned)(phase % sizeof(word));

    if (shift != 0)
        word = word >> shift | word << (64 - shift);
    for (size_t i = 0; i < bytes; i += sizeof(word))
        memcpy(out + i, &word, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
}

static size_t poison_phase(const struct cm_check_args *a, const unsigned char *p)
{
    const unsigned char *start = a->poisoned != NULL ? a->poisoned : a->out;

    assert(p >= start);
    return (size_t)(p - start);
}

bool cm_is_poison(const struct cm_check_args *a, const unsigned char *p, size_t bytes)
{
    unsigned char want[64];

    assert(bytes <= sizeof(want));
    poison_block(a->poison_seed, poison_phase(a, p), bytes, want);
    return memcmp(p, want, bytes) == 0;
}

static unsigned char guard_byte(size_t i)
{
    return (unsigned char)(0x5c ^ (i * 29));
}

void cm_guard_fill(unsigned char *payload, size_t used)
{
    unsigned char *before = payload - CM_GUARD_BYTES, *after = payload + used;

    for (size_t i = 0; i < CM_GUARD_BYTES; i++) {
        before[i] = guard_byte(i);
        after[i] = guard_byte(i);
    }
}

static struct cm_wrong *next_fault(struct cm_check *c)
{
    return c->nfaults < CM_MAX_FAULTS ? &c->faults[c->nfaults++] : NULL;
}

static void check_guard_zone(const unsigned char *zone, int64_t distance, struct cm_check *c)
{
    for (size_t i = 0; i < CM_GUARD_BYTES; i++) {
        struct cm_wrong *w;

        if (zone[i] == guard_byte(i))
            continue;
        c->wrong++;
        w = next_fault(c);
        if (w != NULL) {
            *w = (struct cm_wrong){.kind = CM_WRONG_GUARD, .source = -1, .like_rank = -1};
            w->guard_at = distance + (int64_t)i;
            w->want[0] = guard_byte(i);
            w->got[0] = zone[i];
        }
    }
}

void cm_check_guard(const unsigned char *payload, size_t used, struct cm_check *c)
{
    check_guard_zone(payload - CM_GUARD_BYTES, -(int64_t)CM_GUARD_BYTES, c);
    check_guard_zone(payload + used, (int64_t)used, c);
}

/* Part of a buffer under comparison: `count` elements at `got`, the first being element `first`. */
struct part {
    const struct cm_check_args *args;
    struct cm_check *check;
    enum cm_wrong_kind kind;
    const unsigned char *got;
    size_t first, count;
};

static void record(const struct part *p, const unsigned char *want, size_t at)
{
    size_t bytes = cm_dtypes[p->args->expect.data.dtype].bytes;
    size_t left = p->count - at;
    struct cm_wrong *w = next_fault(p->check);

    if (w == NULL)
        return;
    *w = (struct cm_wrong){.kind = p->kind, .index = p->first + at, .source = -1, .like_rank = -1};
    memcpy(w->want, want, bytes);
    memcpy(w->got, p->got + at * bytes, bytes);
    if (p->kind != CM_WRONG_OUTPUT)
        return;
    w->source = cm_data_source(&p->args->expect, w->index).rank;
    cm_check_guess(p->args, w->index, left < GUESS_RUN ? left : GUESS_RUN, w);
}

/* Compare `n` elements of the part, from element `at` of it, with `want`. */
static void compare(const struct part *p, const unsigned char *want, size_t at, size_t n)
{
    size_t bytes = cm_dtypes[p->args->expect.data.dtype].bytes;
    const unsigned char *got = p->got + at * bytes;

    if (memcmp(want, got, n * bytes) == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(want + i * bytes, got + i * bytes, bytes) == 0)
            continue;
        p->check->wrong++;
        record(p, want + i * bytes, at + i);
    }
}

enum content { RESULT, OWN_INPUT, POISON };

static void check_part(const struct part *p, enum content what)
{
    const struct cm_expect *e = &p->args->expect;
    size_t bytes = cm_dtypes[e->data.dtype].bytes, per_block = BLOCK_BYTES / bytes;
    unsigned char want[BLOCK_BYTES];

    for (size_t at = 0; at < p->count; at += per_block) {
        size_t n = p->count - at < per_block ? p->count - at : per_block;

        if (what == RESULT)
            cm_data_expect(e, p->first + at, n, want);
        else if (what == OWN_INPUT)
            cm_data_input(&e->data, e->rank, p->first + at, n, want);
        else
            poison_block(p->args->poison_seed, poison_phase(p->args, p->got + at * bytes),
                         n * bytes, want);
        compare(p, want, at, n);
    }
}

/* In place: of `count` elements at `start`, all but the hole_count from `hole` on are poison. */
static void check_poison_around(const struct cm_check_args *a, const unsigned char *start,
                                size_t count, size_t hole, size_t hole_count, struct cm_check *c)
{
    size_t bytes = cm_dtypes[a->expect.data.dtype].bytes, end = hole + hole_count;
    struct part before = {a, c, CM_WRONG_UNTOUCHED, start, 0, hole};
    struct part after = {a, c, CM_WRONG_UNTOUCHED, start + end * bytes, end, count - end};

    check_part(&before, POISON);
    check_part(&after, POISON);
}

/* A rank that writes no OUT: all is as it was. */
static void check_untouched(const struct cm_check_args *a, struct cm_check *c)
{
    size_t bytes = cm_dtypes[a->expect.data.dtype].bytes;
    struct part all = {a, c, CM_WRONG_UNTOUCHED, a->out, 0, a->out_count};
    struct part own = {a, c, CM_WRONG_UNTOUCHED, a->in, 0, a->in_count};

    if (!a->in_place) {
        check_part(&all, POISON);
        return;
    }
    check_part(&own, OWN_INPUT);
    check_poison_around(a, a->out, a->out_count, (size_t)(a->in - a->out) / bytes, a->in_count, c);
}

void cm_check_output(const struct cm_check_args *a, struct cm_check *c)
{
    const struct cm_expect *e = &a->expect;
    size_t bytes = cm_dtypes[e->data.dtype].bytes;
    struct part out = {a, c, CM_WRONG_OUTPUT, a->out, 0, a->out_count};

    if (!cm_data_writes(e->data.coll, e->rank, e->root)) {
        check_untouched(a, c);
        return;
    }
    check_part(&out, RESULT);
    if (a->in_place && !cm_data_reads(e->data.coll, e->rank, e->root))
        check_poison_around(a, a->in, a->in_count, (size_t)(a->out - a->in) / bytes, a->out_count,
                            c);
}

void cm_check_input(const struct cm_check_args *a, struct cm_check *c)
{
    struct part in = {a, c, CM_WRONG_INPUT, a->in, 0, a->in_count};

    if (!a->in_place)
        check_part(&in, OWN_INPUT);
}

/* "1.5 (0x3fc00000)" */
static void print_value(char *buf, size_t size, enum cm_dtype t, const unsigned char *v)
{
    const struct cm_dtype_info *info = &cm_dtypes[t];
    uint64_t bits = 0;
    int digits = 2 * (int)info->bytes;

    memcpy(&bits, v, info->bytes); /* little endian, as all supported hosts */
    if (info->kind == CM_KIND_FLOAT)
        snprintf(buf, size, "%.17g (0x%0*" PRIx64 ")", cm_load(t, v), digits, bits);
    else if (info->kind == CM_KIND_INT)
        snprintf(buf, size, "%" PRId64 " (0x%0*" PRIx64 ")", (int64_t)cm_int_load(t, v), digits,
                 bits);
    else
        snprintf(buf, size, "%" PRIu64 " (0x%0*" PRIx64 ")", bits, digits, bits);
}

static void print_likeness(char *buf, size_t size, const struct cm_wrong *w)
{
    buf[0] = '\0';
    switch (w->like) {
    case CM_LIKE_NOTHING:
        if (w->source >= 0)
            snprintf(buf, size, "; expected data of rank %d", w->source);
        break;
    case CM_LIKE_POISON:
        snprintf(buf, size, "; never written");
        if (w->source >= 0)
            snprintf(buf, size, "; never written, expected data of rank %d", w->source);
        break;
    case CM_LIKE_STALE:
        snprintf(buf, size, "; stale, this was right for the operation before");
        break;
    case CM_LIKE_RANK:
        snprintf(buf, size, "; this is data of rank %d, expected rank %d", w->like_rank, w->source);
        break;
    case CM_LIKE_LOST:
        snprintf(buf, size, "; the contribution of rank %d is missing", w->like_rank);
        break;
    case CM_LIKE_TWICE:
        snprintf(buf, size, "; the contribution of rank %d is there twice", w->like_rank);
        break;
    }
}

static void explain(const struct cm_wrong *w, const struct cm_expect *e, const char *where)
{
    static const char *const what[] = {
        [CM_WRONG_OUTPUT] = "wrong result",
        [CM_WRONG_INPUT] = "input was overwritten",
        [CM_WRONG_UNTOUCHED] = "written although this rank has no result there",
    };
    char want[64], got[64], like[96];

    if (w->kind == CM_WRONG_GUARD) {
        cm_log("%s: written outside the buffer: byte %" PRId64 " from its start: "
               "expected 0x%02x, got 0x%02x",
               where, w->guard_at, w->want[0], w->got[0]);
        return;
    }
    print_value(want, sizeof(want), e->data.dtype, w->want);
    print_value(got, sizeof(got), e->data.dtype, w->got);
    print_likeness(like, sizeof(like), w);
    cm_log("%s: %s: element %zu (byte %zu): expected %s, got %s%s", where, what[w->kind], w->index,
           w->index * cm_dtypes[e->data.dtype].bytes, want, got, like);
}

void cm_check_explain(const struct cm_check *c, const struct cm_expect *e, const char *where,
                      int *lines)
{
    for (int i = 0; i<c->nfaults && * lines> 0; i++, --*lines)
        explain(&c->faults[i], e, where);
    if (c->nfaults > 0 && c->wrong > c->nfaults && *lines > 0) {
        cm_log("%s: %" PRId64 " wrong in all", where, c->wrong);
        --*lines;
    }
}
