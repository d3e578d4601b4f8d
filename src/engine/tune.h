/*
 * The tuning table: which algorithm, mode and protocol for which operation.
 *
 * Text, one rule a line; the first that matches wins; '#' starts a comment:
 *
 *   collective  ranks  nodes  bytes  algorithm  mode  protocol  channels  chunk
 *   all_reduce  2-8    1      0-2K   direct     copy  ll        1         -
 *
 * ranks, nodes and bytes are ranges "lo-hi" (hi inclusive), "lo-", one number or
 * "*"; nodes are those of the node map, bytes is the larger of the send and
 * receive buffer of a rank. collective may be "*". mode direct means buffers
 * that the ranks of a node share: on several nodes hier and hierdbl only have it.
 * channels: 1 to 128, of which the host takes as many as it has lines for.
 * chunk: 256 to 4M, a multiple of 64; "-": the size of a slot.
 *
 * The shipped default is written in this grammar, and so is a user's file (--tuning),
 * whose rules come before it. Where ranks of the host share memory, ll stands for their
 * shared slots whatever the algorithm, and for direct mode where those are too small.
 */
#ifndef CM_ENGINE_TUNE_H
#define CM_ENGINE_TUNE_H

#include "base/plan.h"
#include "engine/comm.h"

struct cm_tune;

/* The shipped tables: of the host, of kernels on GPUs. */
extern const char cm_tune_default[];
extern const char cm_tune_gpu[];

/*
 * Parse a table. *out is the caller's: cm_tune_free(). CM_EINVAL: logged as
 * "name:line: what is wrong". CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_tune_parse(const char *text, const char *name,
                                           struct cm_tune **out);
void cm_tune_free(struct cm_tune *t);

/* The first rule for (collective, ranks, nodes, bytes); false if none matches. */
bool cm_tune_find(const struct cm_tune *t, enum cm_coll coll, int ranks, int nodes, size_t bytes,
                  struct cm_choice *out);

/* The largest chunk that a rule names, in bytes; 0: none does. */
size_t cm_tune_most_chunk(const struct cm_tune *t);

/*
 * Every rule that may be taken for some size: starts at *at = 0, moves it on;
 * false: no more. A rule that others before it hide together is among them, one
 * behind a rule for all sizes is not.
 */
bool cm_tune_next(const struct cm_tune *t, enum cm_coll coll, int ranks, int nodes, int *at,
                  struct cm_choice *out);

#endif
