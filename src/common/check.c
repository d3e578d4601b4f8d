/*
 * The check is a comparison of bits, block by block: the expected block is
 * made in a small buffer and compared with memcmp; only a block that differs
 * is searched. So a right buffer costs one pass, and a wrong one names its
 * first faults.
 */
#include "common/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { BLOCK_BYTES = 16384 };

/* The poison of `bytes` bytes that start `phase` bytes into the pattern. */
static void poison_block(uint64_t seed, size_t phase, size_t bytes, unsigned char *out)
{
    uint64_t word = cm_poison_at(cm_poison_word(seed), phase);

    for (size_t at = 0; at < bytes; at += sizeof(word))
        memcpy(out + at, &word, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
}

void cm_poison(void *p, size_t bytes, uint64_t seed)
{
    poison_block(seed, 0, bytes, p);
}

static void guard_block(size_t first, size_t bytes, unsigned char *out)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = cm_guard_byte(first + i);
}

void cm_guard_fill(unsigned char *payload, size_t used)
{
    guard_block(0, CM_GUARD_BYTES, payload - CM_GUARD_BYTES);
    guard_block(0, CM_GUARD_BYTES, payload + used);
}

static size_t width_of(const struct cm_check_args *a, const struct cm_part *p)
{
    return p->content == CM_CONTENT_GUARD ? 1 : cm_dtypes[a->expect.data.dtype].bytes;
}

/* What `n` elements of the part, from element `at` of it, must be. */
static void want_of(const struct cm_check_args *a, const struct cm_part *p, size_t at, size_t n,
                    unsigned char *want)
{
    const struct cm_expect *e = &a->expect;
    size_t width = width_of(a, p);

    switch (p->content) {
    case CM_CONTENT_INPUT:
        cm_data_input(&e->data, e->rank, p->first + at, n, want);
        return;
    case CM_CONTENT_RESULT:
        cm_data_expect(e, p->first + at, n, want);
        return;
    case CM_CONTENT_POISON:
        poison_block(a->poison_seed, cm_poison_phase(a, p->at) + at * width, n * width, want);
        return;
    case CM_CONTENT_GUARD:
        guard_block(p->first + at, n, want);
        return;
    }
}

void cm_check_record(const struct cm_check_args *a, const struct cm_part *p, size_t at,
                     const unsigned char *got, size_t run, struct cm_check *c)
{
    size_t width = width_of(a, p);
    struct cm_wrong w = {.kind = p->kind, .source = -1, .like_rank = -1};

    if (c->nfaults == CM_MAX_FAULTS)
        return;
    want_of(a, p, at, 1, w.want);
    memcpy(w.got, got, width);
    if (p->kind == CM_WRONG_GUARD)
        w.guard_at = p->distance + (int64_t)(p->first + at);
    else
        w.index = p->first + at;
    if (p->kind == CM_WRONG_OUTPUT) {
        w.source = cm_data_source(&a->expect, w.index).rank;
        cm_check_guess(a, w.index, got, run, &w);
    }
    c->faults[c->nfaults++] = w;
}

/* Compare `n` elements of the part, from element `at` of it, with `want`. */
static void compare(const struct cm_check_args *a, const struct cm_part *p,
                    const unsigned char *want, size_t at, size_t n, struct cm_check *c)
{
    size_t width = width_of(a, p);
    const unsigned char *got = p->at + at * width;

    if (memcmp(want, got, n * width) == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t left = p->count - at - i;

        if (memcmp(want + i * width, got + i * width, width) == 0)
            continue;
        c->wrong++;
        cm_check_record(a, p, at + i, got + i * width, left < CM_GUESS_RUN ? left : CM_GUESS_RUN,
                        c);
    }
}

static void check_parts(const struct cm_check_args *a, const struct cm_parts *parts,
                        struct cm_check *c)
{
    unsigned char want[BLOCK_BYTES];

    for (int i = 0; i < parts->n; i++) {
        const struct cm_part *p = &parts->part[i];
        size_t per_block = BLOCK_BYTES / width_of(a, p);

        for (size_t at = 0; at < p->count; at += per_block) {
            size_t n = p->count - at < per_block ? p->count - at : per_block;

            want_of(a, p, at, n, want);
            compare(a, p, want, at, n, c);
        }
    }
}

void cm_check_output(const struct cm_check_args *a, struct cm_check *c)
{
    struct cm_parts parts = {0};

    cm_parts_output(a, &parts);
    check_parts(a, &parts, c);
}

void cm_check_input(const struct cm_check_args *a, struct cm_check *c)
{
    struct cm_parts parts = {0};

    cm_parts_input(a, &parts);
    check_parts(a, &parts, c);
}

void cm_check_guard(const unsigned char *payload, size_t used, struct cm_check *c)
{
    static const struct cm_check_args nothing; /* guards do not depend on the data */
    struct cm_parts parts = {0};

    cm_parts_guard(payload, used, &parts);
    check_parts(&nothing, &parts, c);
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
