/* What the files of the fake NCCL share. See fakenccl.c. */
#ifndef TESTS_SIM_FAKENCCL_H
#define TESTS_SIM_FAKENCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_RANKS = 64, MAX_PARTS = 2 * MAX_RANKS, MAX_WORLDS = 64 };
enum { SUCCESS, UNHANDLED, SYSTEM, INTERNAL, ARGUMENT, USAGE };
enum fake_what { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, PARTS };

struct id {
    char bytes[128];
};

/* A send or a receive of a group. */
struct part {
    bool sends;
    int peer;
    char *at;
    size_t bytes;
};

/* What a rank brings to an operation. */
struct call {
    enum fake_what what;
    const char *in;
    char *out;
    size_t count;
    int type, op, root;
    struct part parts[MAX_PARTS];
    int nparts;
};

/* The ranks of one name. */
struct world {
    struct id id;
    int n, joined, arrived;
    uint64_t round;
    bool aborted, differs;
    struct call call[MAX_RANKS];
};

struct comm {
    struct world *world;
    int rank;
    long ops;
};

enum { NTYPES = 12 }; /* of ncclDataType_t */

/* Bytes of an element. */
size_t fake_width(int type);

/* Bytes that rank `me` receives in the operation that all ranks have brought. */
size_t fake_result_bytes(const struct world *w, int me);

/* They, into `out`; receives one after the other. false: a send is missing or has another size. */
bool fake_result_into(const struct world *w, int me, char *out);

#endif
