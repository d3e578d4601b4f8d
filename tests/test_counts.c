/* Row sizes against the table that nccl-tests users know (elements; n ranks; element size). */
#include "common/coll.h"
#include "test.h"

struct row {
    enum cm_coll coll;
    size_t elems, bytes;
    int n;
    struct cm_counts want;
};

/* 1000 floats on 3 ranks: blocks of 333, rounded down to 332; 1000 doubles on 8: 125 to 124. */
static const struct row rows[] = {
    {CM_ALL_REDUCE, 1000, 4, 3, {1000, 1000, 1000, 1000, 0, 0}},
    {CM_BROADCAST, 7, 1, 8, {7, 7, 7, 7, 0, 0}},
    {CM_REDUCE, 1, 8, 5, {1, 1, 1, 1, 0, 0}},
    {CM_SENDRECV, 33, 2, 4, {33, 33, 33, 33, 0, 0}},
    {CM_ALL_GATHER, 1000, 4, 3, {332, 996, 332, 996, 332, 0}},
    {CM_GATHER, 1000, 8, 8, {124, 992, 124, 992, 124, 0}},
    {CM_REDUCE_SCATTER, 1000, 4, 3, {996, 332, 332, 996, 0, 332}},
    {CM_SCATTER, 1000, 1, 3, {960, 320, 320, 960, 0, 320}},
    {CM_ALLTOALL, 1000, 2, 3, {984, 984, 328, 984, 0, 0}},
    {CM_ALLTOALLV, 1000, 2, 3, {984, 984, 328, 984, 0, 0}},
    {CM_HYPERCUBE, 1000, 4, 3, {332, 996, 332, 664, 332, 0}},
    {CM_ALL_GATHER, 11, 4, 3, {0, 0, 0, 0, 0, 0}},
    {CM_ALLTOALL, 12, 4, 3, {12, 12, 4, 12, 0, 0}},
};

static void test_sizes_of_rows(void)
{
    for (size_t k = 0; k < CM_LEN(rows); k++) {
        struct cm_bench b = {.coll = rows[k].coll, .without_own = rows[k].coll == CM_HYPERCUBE};
        const struct cm_counts *w = &rows[k].want;
        struct cm_counts c;

        cm_counts_of(&b, rows[k].elems, rows[k].bytes, rows[k].n, &c);
        CHECK(c.send == w->send && c.recv == w->recv && c.param == w->param && c.alg == w->alg,
              "%s: send %zu recv %zu param %zu alg %zu", cm_colls[b.coll].name, c.send, c.recv,
              c.param, c.alg);
        CHECK(c.in_step == w->in_step && c.out_step == w->out_step, "%s: steps %zu %zu",
              cm_colls[b.coll].name, c.in_step, c.out_step);
    }
}

int main(void)
{
    RUN(test_sizes_of_rows);
    return test_end();
}
