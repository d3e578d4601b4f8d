/*
 * The engines that a run measures: one (--engine), or several that take turns
 * in every row (--compare). Each is a side with a name of its own.
 */
#ifndef CM_COMMON_SIDES_H
#define CM_COMMON_SIDES_H

#include <stdbool.h>

enum cm_engine_id { CM_ENGINE_BUILTIN, CM_ENGINE_MPI, CM_ENGINE_NCCL, CM_NENGINES };

enum { CM_MAX_SIDES = 4, CM_SIDE_NAME = 16, CM_MIN_ROUNDS = 5, CM_MAX_ROUNDS = 32 };

struct cm_sides {
    int n; /* 0: not looked at yet, as good as one, builtin */
    struct {
        enum cm_engine_id id;
        /* of the engine; one that is listed again has its number: "builtin", "builtin#2" */
        char name[CM_SIDE_NAME];
    } of[CM_MAX_SIDES];
};

/* "builtin", "mpi", ...: an index into cm_engines, or -1. */
int cm_engine_find(const char *name);

/* "builtin,mpi": two to CM_MAX_SIDES engines; an engine may be held against itself. */
bool cm_sides_parse(const char *list, struct cm_sides *out);

/* One engine, or none but the built-in one. */
void cm_sides_one(enum cm_engine_id id, struct cm_sides *out);

bool cm_sides_have(const struct cm_sides *s, enum cm_engine_id id);

/* The side of that name, or -1. */
int cm_sides_find(const struct cm_sides *s, const char *name);

#endif
