/*
 * What the rig's tests share: the ways to force an algorithm, and rows of operations.
 */
#ifndef CM_TESTS_SIM_EXEC_FORMS_H
#define CM_TESTS_SIM_EXEC_FORMS_H

#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "exec_rig.h"
#include "sanitized.h"

enum { ROW = 512 /* operations */ };

struct form {
    const char *name;
    struct cm_force force;
    int depth; /* that its plans need at least */
};

#define DIRECT(algo)                                                     \
    {                                                                    \
        algo " direct", {algo, CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0}, 1 \
    }
#define COPY(algo, depth)                                                \
    {                                                                    \
        algo " copy", {algo, CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0}, depth \
    }
#define LL(algo, depth)                                            \
    {                                                              \
        algo " LL", {algo, CM_MODE_COPY, CM_PROTO_LL, 0, 0}, depth \
    }
static const struct form forms[] = {
    DIRECT("direct"),
    DIRECT("oneshot"),
    DIRECT("ring"),
    DIRECT("tree"),
    DIRECT("recdbl"),
    COPY("direct", 2),
    COPY("oneshot", 1),
    COPY("ring", 2),
    COPY("tree", 1),
    COPY("recdbl", 1),
    LL("direct", 2),
    LL("oneshot", 1),
    LL("ring", 2),
    LL("tree", 1),
    LL("recdbl", 1),
    {"one exchange", {"direct", -1, CM_PROTO_LL, 0, 0}, 2}, /* what does not fit is copied */
    {"automatic", {NULL, -1, CM_PROTO_AUTO, 0, 0}, 2},
};
/* Between nodes; the last is what is chosen. */
static const struct form remote_forms[] = {
    COPY("direct", 2),  COPY("oneshot", 1),
    COPY("ring", 2),    COPY("tree", 1),
    COPY("recdbl", 1),  COPY("hier", 2),
    COPY("hierdbl", 2), {"automatic", {NULL, -1, CM_PROTO_AUTO, 0, 0}, 2},
};
#undef DIRECT
#undef COPY
#undef LL

static inline bool is_slow(void)
{
    return getenv("COLLMARK_SLOW") != NULL;
}

/* How a run is scheduled, by its number: in turns, at random, at random between accesses too. */
static inline struct cmsim_options order_of(unsigned k)
{
    struct cmsim_options o = {.seed = k * 7919 + 1};

    o.in_order = k % 4 == 0;
    o.preempt_permille = k % 4 == 2 ? 30 : 0;
    o.tear_permille = k % 4 >= 2 ? 200 : 0;
    return o;
}

static inline bool has_form(const struct cm_force *f, enum cm_coll coll)
{
    const struct cm_algo *algo = f->algo != NULL ? cm_algo_find(f->algo) : NULL;

    return algo == NULL || algo->build[coll] != NULL;
}

/*
 * Up and down a tree over LL ports two blocks work, and in place the one reads
 * what the other overwrites. What orders them is that the data itself comes
 * around by way of the parent; ThreadSanitizer does not know of dependencies.
 */
static inline bool is_ordered_by_data(const struct cm_force *f, enum cm_coll coll)
{
    return coll == CM_ALL_REDUCE && f->proto == CM_PROTO_LL && f->algo != NULL &&
           strcmp(f->algo, "tree") == 0;
}

/* Elements from row to column, n x n: with nothing on the diagonal's right, else uneven. */
static inline const size_t *matrix_of(int n, size_t most)
{
    static size_t cells[4][RIG_RANKS * RIG_RANKS];
    static unsigned turn;
    size_t *m = cells[turn++ % CM_LEN(cells)];

    for (int i = 0; i < n * n; i++)
        m[i] = i / n + 1 == i % n ? 0 : (size_t)(i * 37 + 11) % (most + 1);
    return m;
}

/* Add `op`, made possible: a root that exists, a matrix, in place only where that is a form. */
static inline int add_op(struct rig_op *ops, int nops, int n, struct rig_op op)
{
    const struct cm_coll_info *info = &cm_colls[op.coll];

    op.op = info->reduces ? op.op : CM_SUM;
    if (nops == ROW || rig_thunk(CM_GPU_PLAN, op.dtype, op.op) == NULL)
        return nops;
    op.root = info->rooted ? op.root % n : 0;
    op.in_place = info->in_place && op.in_place;
    if (op.coll == CM_ALLTOALLV)
        op.matrix = matrix_of(n, op.count);
    ops[nops] = op;
    return nops + 1;
}

/* A case runs if none is named on the command line, or this one is. */
static inline bool is_named(int argc, char **argv, const char *name)
{
    bool named = argc == 1;

    for (int i = 1; i < argc; i++)
        named |= strcmp(argv[i], name) == 0;
    return named;
}
#define RUN_NAMED(fn)                  \
    do {                               \
        if (is_named(argc, argv, #fn)) \
            RUN(fn);                   \
    } while (0)

#endif
