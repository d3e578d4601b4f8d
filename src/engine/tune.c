/*
 * Parser and look-up of the tuning table. Rules are few, so the first match is
 * found by a walk; the result of a look-up is kept with the bound operation.
 */
#include "engine/tune.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gpu.h"
#include "base/units.h"
#include "engine/algo.h"

enum { FIELDS = 9, LINE_MAX_BYTES = 200 };
enum { CHUNK_LEAST = 256, CHUNK_MOST = 4 << 20, CHUNK_UNIT = 64 }; /* as of --chunk */

struct rule {
    int coll; /* enum cm_coll or -1: any */
    struct cm_range ranks, nodes, bytes;
    struct cm_choice choice;
};

struct cm_tune {
    int nrules;
    struct rule rules[];
};

/*
 * Inside a node everybody is equally near. Between nodes every message costs
 * tens of microseconds and each link some memory, so that few partners and few
 * steps count: rails of the hierarchical forms, doubling where the message is
 * short. alltoallv has no such form, those of gather and scatter were not measured.
 * Where doubling ends is measured for all_reduce: results/bench/amd-epyc/tcp-algorithms.md.
 */
const char cm_tune_default[] =
    "# collective    ranks  nodes  bytes  algorithm  mode    protocol  channels  chunk\n"
    "hypercube       *      1      *      recdbl     direct  simple    1         -\n"
    "hypercube       *      *      *      recdbl     copy    simple    1         -\n"
    "alltoallv       *      1      *      direct     direct  simple    1         -\n"
    "all_reduce      *      2      0-256K hierdbl    direct  simple    1         -\n"
    "all_reduce      *      2-     0-64K  hierdbl    direct  simple    1         -\n"
    "all_reduce      *      2-     *      hier       direct  simple    1         -\n"
    "all_gather      *      5-     0-16K  recdbl     copy    simple    1         -\n"
    "all_gather      *      2-     *      hier       direct  simple    1         -\n"
    "reduce_scatter  *      2-     *      hier       direct  simple    1         -\n"
    "broadcast       *      5-     0-16K  tree       copy    simple    2         -\n"
    "broadcast       *      2-     *      hier       direct  simple    1         -\n"
    "reduce          *      5-     0-16K  tree       copy    simple    2         -\n"
    "reduce          *      2-     *      hier       direct  simple    1         -\n"
    "alltoall        *      2-     *      hier       direct  simple    1         -\n"
    "*               *      2-     *      direct     copy    simple    1         -\n"
    "*               3-     1      0-8K   direct     copy    ll        1         -\n"
    "*               *      1      0-2K   direct     copy    ll        1         -\n"
    "*               *      1      *      direct     direct  simple    1         -\n";

static bool parse_mode(const char *s, struct cm_choice *c)
{
    c->mode = strcmp(s, "direct") == 0 ? CM_MODE_DIRECT : CM_MODE_COPY;
    return strcmp(s, "direct") == 0 || strcmp(s, "copy") == 0;
}

static bool parse_proto(const char *s, struct cm_choice *c)
{
    c->proto = strcmp(s, "ll") == 0 ? CM_PROTO_LL : CM_PROTO_SIMPLE;
    return strcmp(s, "ll") == 0 || strcmp(s, "simple") == 0;
}

static bool parse_chunk(const char *s, struct cm_choice *c)
{
    if (strcmp(s, "-") == 0)
        return true;
    return cm_parse_size(s, &c->chunk) && c->chunk >= CHUNK_LEAST && c->chunk <= CHUNK_MOST &&
           c->chunk % CHUNK_UNIT == 0;
}

/* The name of the field that is wrong, or NULL. */
static const char *parse_rule(char *f[FIELDS], struct rule *r)
{
    const struct cm_algo *algo = cm_algo_find(f[4]);
    int64_t channels;

    r->coll = strcmp(f[0], "*") == 0 ? -1 : cm_coll_find(f[0]);
    if (r->coll < 0 && strcmp(f[0], "*") != 0)
        return "collective";
    if (!cm_parse_range(f[1], &r->ranks))
        return "ranks";
    if (!cm_parse_range(f[2], &r->nodes))
        return "nodes";
    if (!cm_parse_range(f[3], &r->bytes))
        return "bytes";
    if (algo == NULL || (r->coll >= 0 && algo->build[r->coll] == NULL))
        return "algorithm";
    r->choice.algo = algo->name;
    if (!parse_mode(f[5], &r->choice))
        return "mode";
    if (!parse_proto(f[6], &r->choice))
        return "protocol";
    if (!cm_parse_int(f[7], 1, CM_GPU_BLOCKS, &channels))
        return "channels";
    r->choice.channels = (int)channels;
    return parse_chunk(f[8], &r->choice) ? NULL : "chunk";
}

/* Split a line into blank-separated fields; their number, FIELDS + 1 if there are more. */
static int split(char *line, char *f[FIELDS])
{
    char *save = NULL;
    int n = 0;

    for (char *w = strtok_r(line, " \t", &save); w != NULL; w = strtok_r(NULL, " \t", &save)) {
        if (n == FIELDS)
            return FIELDS + 1;
        f[n++] = w;
    }
    return n;
}

/* One line into *r; *used tells whether it held a rule. What is wrong with it, or NULL. */
static const char *parse_line(const char *at, size_t len, struct rule *r, bool *used)
{
    char line[LINE_MAX_BYTES], *f[FIELDS];
    int n;

    for (size_t k = 0; k < len; k++)
        len = at[k] == '#' ? k : len;
    if (len >= sizeof(line))
        return "length";
    memcpy(line, at, len);
    line[len] = '\0';
    n = split(line, f);
    *used = n != 0;
    if (n == 0)
        return NULL;
    return n == FIELDS ? parse_rule(f, r) : "number of fields";
}

enum cm_status cm_tune_parse(const char *text, const char *name, struct cm_tune **out)
{
    size_t lines = 1;
    struct cm_tune *t;

    for (const char *s = text; *s != '\0'; s++)
        lines += *s == '\n';
    t = calloc(1, sizeof(*t) + lines * sizeof(t->rules[0]));
    if (t == NULL)
        return CM_FAIL(CM_ENOMEM, "tuning table %s", name);
    for (size_t k = 1; k <= lines; k++) {
        size_t len = strcspn(text, "\n");
        bool used = false;
        const char *wrong = parse_line(text, len, &t->rules[t->nrules], &used);

        if (wrong != NULL) {
            cm_tune_free(t);
            return CM_FAIL(CM_EINVAL, "%s:%zu: bad %s in a tuning rule", name, k, wrong);
        }
        t->nrules += used;
        text += len + (text[len] == '\n');
    }
    *out = t;
    return CM_OK;
}

void cm_tune_free(struct cm_tune *t)
{
    free(t);
}

static bool is_about(const struct rule *r, enum cm_coll coll, int ranks, int nodes)
{
    return (r->coll < 0 || r->coll == (int)coll) && cm_in_range(&r->ranks, (size_t)ranks) &&
           cm_in_range(&r->nodes, (size_t)nodes);
}

bool cm_tune_find(const struct cm_tune *t, enum cm_coll coll, int ranks, int nodes, size_t bytes,
                  struct cm_choice *out)
{
    for (int k = 0; k < t->nrules; k++) {
        const struct rule *r = &t->rules[k];

        if (is_about(r, coll, ranks, nodes) && cm_in_range(&r->bytes, bytes)) {
            *out = r->choice;
            return true;
        }
    }
    return false;
}

size_t cm_tune_most_chunk(const struct cm_tune *t)
{
    size_t most = 0;

    for (int k = 0; k < t->nrules; k++)
        most = t->rules[k].choice.chunk > most ? t->rules[k].choice.chunk : most;
    return most;
}

bool cm_tune_next(const struct cm_tune *t, enum cm_coll coll, int ranks, int nodes, int *at,
                  struct cm_choice *out)
{
    for (int k = *at; k < t->nrules; k++) {
        const struct rule *r = &t->rules[k];

        if (is_about(r, coll, ranks, nodes)) {
            *out = r->choice;
            *at = r->bytes.lo == 0 && r->bytes.hi == SIZE_MAX ? t->nrules : k + 1;
            return true;
        }
    }
    return false;
}
