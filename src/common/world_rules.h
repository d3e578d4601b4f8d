/* --tuning FILE: a user's rules for the choice of algorithms. */
#ifndef CM_COMMON_WORLD_RULES_H
#define CM_COMMON_WORLD_RULES_H

#include "common/world.h"

/*
 * Read the file into w->rules, if --tuning names one. Collective over the processes of `b`, as
 * all ranks must choose alike. CM_EINVAL: no such file, a rule that is wrong (logged with its
 * line), or a process reads another text than process 0. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_world_read_rules(const struct cm_boot *b, const struct cm_opts *o,
                                                 struct cm_world *w);

#endif
