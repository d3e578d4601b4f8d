/*
 * Checking what an operation left in a rank's buffers: expected results,
 * constant inputs, untouched places (poison) and guard zones.
 */
#ifndef CM_COMMON_CHECK_H
#define CM_COMMON_CHECK_H

#include <stdint.h>

#include "common/data.h"

enum { CM_GUARD_BYTES = 4096, CM_MAX_FAULTS = 4 };

/* Write the guards: CM_GUARD_BYTES on both sides of the `used` bytes at `payload`. */
void cm_guard_fill(unsigned char *payload, size_t used);

/*
 * Fill `bytes` with poison: a pattern that depends on the seed, reads as NaN in
 * the larger floats and is no likely value of any type.
 */
void cm_poison(void *p, size_t bytes, uint64_t seed);

enum cm_wrong_kind { CM_WRONG_OUTPUT, CM_WRONG_INPUT, CM_WRONG_UNTOUCHED, CM_WRONG_GUARD };

/* What a wrong value looks like. */
enum cm_likeness {
    CM_LIKE_NOTHING,
    CM_LIKE_POISON, /* never written */
    CM_LIKE_STALE,  /* the result of the check before */
    CM_LIKE_RANK,   /* copies: data of rank `like_rank` */
    CM_LIKE_LOST,   /* sums: without the contribution of `like_rank` */
    CM_LIKE_TWICE   /* sums: with that contribution twice */
};

/* One wrong element (or guard byte), enough to name it. */
struct cm_wrong {
    enum cm_wrong_kind kind;
    size_t index;     /* element */
    int64_t guard_at; /* guards: byte distance from the payload's start, negative before it */
    unsigned char want[8], got[8];
    int source; /* rank whose data was expected here, -1: all */
    enum cm_likeness like;
    int like_rank;
};
struct cm_check {
    int64_t wrong; /* elements and guard bytes */
    int nfaults;
    struct cm_wrong faults[CM_MAX_FAULTS]; /* the first ones */
};

/* One rank's buffers after an operation. */
struct cm_check_args {
    struct cm_expect expect;
    const unsigned char *in, *out; /* payloads; in place they lie in one region */
    size_t in_count, out_count;    /* elements */
    bool in_place;
    const unsigned char *poisoned; /* where the poison's pattern starts; NULL: at OUT */
    uint64_t poison_seed;
    bool has_stale;
    uint64_t stale_seed; /* seed of the data before these */
};

/* A run of elements of a buffer, all of one content. */
struct cm_part {
    enum cm_wrong_kind kind; /* what it is if they are not */
    enum cm_content content;
    const unsigned char *at;
    size_t first, count; /* elements: of IN, of OUT, of the buffer; guards: bytes of the zone */
    int64_t distance;    /* guards: bytes from the payload's start to the zone's */
};

enum { CM_MAX_PARTS = 8 };
struct cm_parts {
    int n;
    struct cm_part part[CM_MAX_PARTS];
};

/*
 * The parts that a check of all buffers looks at, in order, and those that
 * make them ready for an operation (check_parts.c). None is empty, no two
 * overlap. In place, the latter needs `poisoned`: the region's start.
 */
void cm_parts_check(const struct cm_check_args *a, struct cm_parts *out);
void cm_parts_fill(const struct cm_check_args *a, struct cm_parts *out);

/* Some of the former, appended to *p. */
void cm_parts_output(const struct cm_check_args *a, struct cm_parts *p);
void cm_parts_input(const struct cm_check_args *a, struct cm_parts *p);
void cm_parts_guard(const unsigned char *payload, size_t used, struct cm_parts *p);

/* Bytes from the start of the poison's pattern to `p`. */
size_t cm_poison_phase(const struct cm_check_args *a, const unsigned char *p);

/*
 * OUT against what it must hold; a rank that writes no OUT must have left it
 * (and, in place, its own input inside) alone. Adds to *c.
 */
void cm_check_output(const struct cm_check_args *a, struct cm_check *c);

/* IN must still hold the input. Out of place only. Adds to *c. */
void cm_check_input(const struct cm_check_args *a, struct cm_check *c);

/* The guards around `used` bytes at `payload`. Adds to *c. */
void cm_check_guard(const unsigned char *payload, size_t used, struct cm_check *c);

/* Log at most *lines faults, one line each, and count *lines down. `where` names row and phase. */
void cm_check_explain(const struct cm_check *c, const struct cm_expect *e, const char *where,
                      int *lines);

enum { CM_GUESS_RUN = 4 /* elements that a guess looks at */ };

/*
 * Add the fault at element (guard byte) `at` of a part to the list of *c, if
 * there is room: there are `run` elements at `got`, 1 .. CM_GUESS_RUN, the first of
 * them wrong. Does not count it.
 */
void cm_check_record(const struct cm_check_args *a, const struct cm_part *p, size_t at,
                     const unsigned char *got, size_t run, struct cm_check *c);

/* Guess what the `run` elements `got` of OUT[index] are (check_guess.c). Sets like, like_rank. */
void cm_check_guess(const struct cm_check_args *a, size_t index, const unsigned char *got,
                    size_t run, struct cm_wrong *w);

#endif
