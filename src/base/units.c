/*
 * Numbers as users write them.
 *
 * The grammar is checked by hand, character by character, because scanf and
 * strtod accept far more (nan, hex, blanks, trailing text). Sizes are computed
 * in integers, so that what is accepted is exact.
 */
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char unit_letters[] = "KMGT";

enum {
    UNIT_BITS = 10,  /* K, and each unit over the one before */
    UNITS = 4,       /* letters */
    MAX_FRACTION = 3 /* digits: with more, the next smaller unit is shorter */
};

/* Not isdigit(): that depends on the locale and dislikes negative chars. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *s)
{
    while (is_digit(*s))
        s++;
    return s;
}

/* The value of the digits [s, end) if it is at most `max`. */
static bool digits_value(const char *s, const char *end, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;

    for (; s < end; s++) {
        uint64_t d = (uint64_t)(*s - '0');

        if (v > max / 10 || v * 10 > max - d)
            return false;
        v = v * 10 + d;
    }
    *out = v;
    return true;
}

/* Power of two meant by a whole suffix ("", "B", "K", "KB", "KiB" ...), or -1. */
static int suffix_bits(const char *s)
{
    const char *unit = NULL;
    int bits = 0;

    if (*s != '\0')
        unit = strchr(unit_letters, *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    if (unit != NULL) {
        bits = UNIT_BITS * (int)(unit - unit_letters + 1);
        s++;
        if (strcasecmp(s, "iB") == 0)
            return bits;
    }
    return *s == '\0' || strcasecmp(s, "B") == 0 ? bits : -1;
}

/*
 * 0.[digits] of 2^bits bytes, if that is a whole number. From the last digit to
 * the first: x = (digit * unit + x) / 10. If the result is whole then so is
 * every x on the way, so one odd remainder refuses; any length is exact.
 */
static bool fraction_bytes(const char *s, const char *end, int bits, uint64_t *out)
{
    uint64_t x = 0;

    while (end-- > s) {
        x += (uint64_t)(*end - '0') << bits;
        if (x % 10 != 0)
            return false;
        x /= 10;
    }
    *out = x;
    return true;
}

bool cm_parse_size(const char *s, size_t *out)
{
    const char *end = skip_digits(s), *fraction = end, *suffix = end;
    const uint64_t max = SIZE_MAX / 2;
    uint64_t whole, part;
    int bits;

    if (end == s)
        return false;
    if (*end == '.') {
        fraction = end + 1;
        suffix = skip_digits(fraction);
        if (suffix == fraction)
            return false;
    }
    bits = suffix_bits(suffix);
    if (bits < 0 || !digits_value(s, end, max >> bits, &whole) ||
        !fraction_bytes(fraction, suffix, bits, &part))
        return false;
    *out = (size_t)((whole << bits) + part); /* part < 2^bits: still at most max */
    return true;
}

bool cm_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *out)
{
    bool negative = *s == '-';
    const char *digits = s + negative, *end = skip_digits(digits);
    uint64_t v;
    int64_t value;

    if (end == digits || *end != '\0')
        return false;
    if (!digits_value(digits, end, (uint64_t)INT64_MAX + negative, &v))
        return false;
    value = negative ? (int64_t)(0 - v) : (int64_t)v;
    if (value < lo || value > hi)
        return false;
    *out = value;
    return true;
}

/* [-] digits [. digits] [e [+-] digits] and nothing else. */
static bool is_real(const char *s)
{
    const char *start;

    s += *s == '-';
    start = s;
    s = skip_digits(s);
    if (s == start)
        return false;
    if (*s == '.') {
        start = ++s;
        s = skip_digits(s);
        if (s == start)
            return false;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        start = s;
        s = skip_digits(s);
        if (s == start)
            return false;
    }
    return *s == '\0';
}

bool cm_parse_real(const char *s, double lo, double hi, double *out)
{
    char *end;
    double v;

    if (!is_real(s))
        return false;
    v = strtod(s, &end);
    if (*end != '\0' || !isfinite(v) || !(v >= lo && v <= hi))
        return false;
    *out = v;
    return true;
}

/* `bytes` in units of 2^bits as "whole[.fraction]", or false if that takes too many digits. */
static bool format_in_unit(size_t bytes, int bits, char *buf, size_t room)
{
    uint64_t unit = (uint64_t)1 << bits, rest = bytes & (unit - 1), fraction = 0;
    int digits = 0;

    for (; rest != 0 && digits < MAX_FRACTION; digits++) {
        rest *= 10; /* rest < 2^40: no overflow */
        fraction = fraction * 10 + (rest >> bits);
        rest &= unit - 1;
    }
    if (rest != 0)
        return false;
    if (digits == 0)
        snprintf(buf, room, "%llu", (unsigned long long)bytes >> bits);
    else
        snprintf(buf, room, "%llu.%0*llu", (unsigned long long)bytes >> bits, digits,
                 (unsigned long long)fraction);
    return true;
}

bool cm_parse_range(char *s, struct cm_range *out)
{
    char *dash = strchr(s, '-');

    *out = (struct cm_range){0, SIZE_MAX};
    if (strcmp(s, "*") == 0)
        return true;
    if (dash == NULL)
        return cm_parse_size(s, &out->lo) && cm_parse_size(s, &out->hi);
    *dash = '\0';
    if (!cm_parse_size(s, &out->lo))
        return false;
    return dash[1] == '\0' || (cm_parse_size(dash + 1, &out->hi) && out->lo <= out->hi);
}

char *cm_format_size(size_t bytes, char *buf)
{
    enum { ROOM = 32 };

    snprintf(buf, ROOM, "%zu", bytes);
    for (int u = 0; u < UNITS; u++) {
        int bits = UNIT_BITS * (u + 1);
        char text[ROOM];
        size_t len;

        if (bytes >> bits == 0 || !format_in_unit(bytes, bits, text, sizeof(text) - 1))
            continue;
        len = strlen(text);
        text[len++] = unit_letters[u];
        text[len] = '\0';
        if (len <= strlen(buf))
            memcpy(buf, text, len + 1);
    }
    return buf;
}
