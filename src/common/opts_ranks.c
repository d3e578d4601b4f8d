/*
 * Options that speak about ranks: node maps, split groups, and the checks that
 * must wait until the number of ranks is known.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plan.h"
#include "base/units.h"
#include "common/opts_table.h"

enum { NUMBER_BYTES = 72 }; /* the longest number anyone writes: 64 binary digits and "0b" */

/* Copy the entry at `text` up to a comma or the end; its length, 0 if empty or too long. */
static size_t map_entry(const char *text, char *entry)
{
    size_t n = strcspn(text, ",");

    if (n >= NUMBER_BYTES)
        return 0;
    memcpy(entry, text, n);
    entry[n] = '\0';
    return n;
}

/* Entries of the map, at most `room` of them stored; -1 if it does not parse. */
static int map_parse(const char *text, int room, int32_t *node_of)
{
    char entry[NUMBER_BYTES];
    int count = 0;

    for (;;) {
        size_t n = map_entry(text, entry);
        int64_t node;

        if (n == 0 || !cm_parse_int(entry, 0, CM_MAX_RANKS - 1, &node) || count == CM_MAX_RANKS)
            return -1;
        if (count < room)
            node_of[count] = (int32_t)node;
        count++;
        if (text[n] == '\0')
            return count;
        text += n + 1;
    }
}

int cm_node_map_length(const char *text)
{
    return map_parse(text, 0, NULL);
}

bool cm_parse_node_map(const char *text, int nranks, int32_t *node_of)
{
    return map_parse(text, nranks, node_of) == nranks;
}

/* Digits of `base`, all of them, no sign, fits 64 bits. */
static bool parse_digits(const char *s, int base, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v = 0;

    if (*s == '\0')
        return false;
    for (; *s != '\0'; s++) {
        const char *d = strchr(digits, *s >= 'A' && *s <= 'F' ? *s + ('a' - 'A') : *s);

        if (d == NULL || d - digits >= base)
            return false;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)(d - digits), &v))
            return false;
    }
    *out = v;
    return true;
}

/* Decimal, 0x hexadecimal or 0b binary; a leading zero is not octal. */
static bool parse_mask(const char *s, uint64_t *out)
{
    if (strncasecmp(s, "0x", 2) == 0)
        return parse_digits(s + 2, 16, out);
    if (strncasecmp(s, "0b", 2) == 0)
        return parse_digits(s + 2, 2, out);
    return parse_digits(s, 10, out);
}

bool cm_parse_split(const char *text, enum cm_split_op *op, uint64_t *value)
{
    static const struct {
        const char *name;
        enum cm_split_op op;
    } names[] = {
        {"and", CM_SPLIT_AND}, {"mask", CM_SPLIT_AND}, {"or", CM_SPLIT_OR},
        {"mod", CM_SPLIT_MOD}, {"div", CM_SPLIT_DIV},  {"&", CM_SPLIT_AND},
        {"|", CM_SPLIT_OR},    {"%", CM_SPLIT_MOD},    {"/", CM_SPLIT_DIV},
    };
    uint64_t v;

    text += strspn(text, " ");
    for (size_t i = 0; i < CM_LEN(names); i++) {
        size_t n = strlen(names[i].name);
        const char *number = text + n;

        if (strncasecmp(text, names[i].name, n) != 0)
            continue;
        number += *number == ':' ? 1 : strspn(number, " ");
        if (!parse_mask(number, &v))
            return false;
        if (v == 0 && (names[i].op == CM_SPLIT_MOD || names[i].op == CM_SPLIT_DIV))
            return false;
        *op = names[i].op;
        *value = v;
        return true;
    }
    return false;
}

uint64_t cm_split_colour(const struct cm_opts_launch *o, int rank)
{
    uint64_t r = (uint64_t)rank;

    switch (o->split) {
    case CM_SPLIT_AND:
        return r & o->split_value;
    case CM_SPLIT_OR:
        return r | o->split_value;
    case CM_SPLIT_MOD:
        return r % o->split_value;
    case CM_SPLIT_DIV:
        return r / o->split_value;
    case CM_SPLIT_NONE:
        break;
    }
    return 0;
}

static int by_colour(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Ranks of the smallest group: what a root must lie in. */
static enum cm_status smallest_group(const struct cm_opts_launch *o, int nranks, int *out)
{
    uint64_t *colour = malloc((size_t)nranks * sizeof(*colour));
    int least = nranks, first = 0;

    if (colour == NULL)
        return CM_FAIL(CM_ENOMEM, "colours of %d ranks", nranks);
    for (int r = 0; r < nranks; r++)
        colour[r] = cm_split_colour(o, r);
    qsort(colour, (size_t)nranks, sizeof(*colour), by_colour);
    for (int r = 1; r <= nranks; r++) {
        if (r < nranks && colour[r] == colour[first])
            continue;
        least = r - first < least ? r - first : least;
        first = r;
    }
    free(colour);
    *out = least;
    return CM_OK;
}

enum cm_status cm_opts_check_ranks(const struct cm_opts *o, int nranks)
{
    int least = nranks;

    if (o->launch.node_map != NULL && cm_node_map_length(o->launch.node_map) != nranks)
        return CM_FAIL(CM_EINVAL, "--node-map '%s': %d entries, but there are %d ranks",
                       o->launch.node_map, cm_node_map_length(o->launch.node_map), nranks);
    if (o->launch.split != CM_SPLIT_NONE) {
        enum cm_status st = smallest_group(&o->launch, nranks, &least);

        if (st != CM_OK)
            return st;
    }
    if (o->sweep.root >= least)
        return CM_FAIL(CM_EINVAL, "-r/--root '%d': there are %d ranks%s, so 0 to %d", o->sweep.root,
                       least, least < nranks ? " in the smallest group of --split" : "", least - 1);
    return CM_OK;
}
