/* The search's inside, shared by find.c and find_results.c. */
#ifndef CM_COMMON_FIND_INT_H
#define CM_COMMON_FIND_INT_H

#include "common/find.h"
#include "common/find_measure.h"

/* One rank's way through it. */
struct cm_find_search {
    struct cm_find *f;
    struct cm_rank *r;
    struct cm_report *report;
    struct cm_find_side *side;
    struct cm_find_record *records; /* of all ranks */
    int32_t *members;               /* of this rank's pair */
    int *with;                      /* per unit: its partner, itself: alone; -1: it rests */
    bool *spoiled;                  /* per unit: its inside cannot be used any more */
    bool again;
    int32_t stop;
    int unit; /* mine */
    uint64_t epoch;
    int64_t start_ns;
};

/* What the records of a round say about s->with; arg: the search. Under the report's lock. */
CM_MUST_CHECK enum cm_status cm_find_take_results(void *arg);

/* After the gather failed: ranks that never arrived hang, if they are a minority. Likewise. */
CM_MUST_CHECK enum cm_status cm_find_take_missing(void *arg);

#endif
