/*
 * What --find-bad compares: the nodes of the job or, if there is only one, its ranks.
 * Computed alike by all processes.
 */
#ifndef CM_COMMON_FIND_UNITS_H
#define CM_COMMON_FIND_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/find_plan.h"
#include "common/launch.h"

enum { CM_FIND_NAME = 64 };

struct cm_find_units {
    int n;
    bool nodes;       /* else they are ranks */
    int *ranks;       /* n: how many each has */
    int32_t *first;   /* n: where each starts in `members` */
    int32_t *members; /* world ranks, unit by unit, ascending in each */
    int32_t *of_rank; /* unit of every world rank */
    /* n: the host's name if no other node is on that host, else "node3"; "rank3" */
    char (*name)[CM_FIND_NAME];
};

/*
 * `node_of` and `infos` of all n world ranks. CM_EINVAL, logged: fewer than two units, or
 * more than CM_FIND_UNITS. CM_ENOMEM. *out may be handed to cm_find_units_free() in any case.
 */
CM_MUST_CHECK enum cm_status cm_find_units(const struct cm_rank_info *infos, const int32_t *node_of,
                                           int n, struct cm_find_units *out);
void cm_find_units_free(struct cm_find_units *u);

/* The plan that --pairs asks for. CM_EINVAL, logged: no unit has the anchor's name. CM_ENOMEM. */
struct cm_opts;
CM_MUST_CHECK enum cm_status cm_find_units_plan(const struct cm_find_units *u,
                                                const struct cm_opts *o, struct cm_find_plan *out);

#endif
