/*
 * Numbers as users write them, strictly: the whole string must be the number.
 *
 * Sizes: decimal digits with an optional fraction and an optional suffix
 * K M G T (also KiB/KB/B forms, case-insensitive), all binary (K = 1024):
 * "8", "64K", "1.5M", "2GiB". A fraction must give whole bytes. No sign, no
 * exponent, no hex, no inner blanks, nothing above SIZE_MAX/2.
 */
#ifndef CM_BASE_UNITS_H
#define CM_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse a size in bytes; false (and *out untouched) if `s` is not one. */
bool cm_parse_size(const char *s, size_t *out);

/* Parse a decimal [-]integer in [lo, hi]; false (*out untouched) otherwise. "010" is ten. */
bool cm_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *out);

/* Parse a decimal real, finite and in [lo, hi]: [-]digits with optional fraction and exponent. */
bool cm_parse_real(const char *s, double lo, double hi, double *out);

/* lo to hi, both included. */
struct cm_range {
    size_t lo, hi;
};

/*
 * Parse "lo-hi" (lo <= hi), "lo-" (to SIZE_MAX), "n" or "*" (all); the bounds are
 * sizes. Writes into `s`. False otherwise; *out then has no meaning.
 */
bool cm_parse_range(char *s, struct cm_range *out);

static inline bool cm_in_range(const struct cm_range *r, size_t v)
{
    return v >= r->lo && v <= r->hi;
}

/* Write the shortest exact form ("64K", "1.5M", "1000") into buf (>= 32 bytes); returns buf. */
char *cm_format_size(size_t bytes, char *buf);

#endif
