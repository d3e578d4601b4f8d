/*
 * What the domains of a job say to each other beside data: barriers and small
 * gathers of the team, why the job ends, and "what do your ranks do?".
 *
 * The leader of a domain speaks for it: with the leaders 2^k domains before and
 * after it (modulo their number), over messages of its proxy. Operations of the
 * team go round in ceil(log2 n) rounds over these edges. Notes of an abort and
 * questions are flooded over all of them, so that one dead process does not cut
 * them off; whatever happens in several domains at once, one report is printed,
 * by domain 0 if it can.
 * Sources: dissemination graph (Hensgen, Finkel, Manber 1988); all-gather over it
 * (Bruck, Ho, Kipnis, Upfal, Weathersby 1997).
 *
 * Per process: memory for its neighbours, a number per domain, the messages that
 * wait; a thread that wakes 20 times a second.
 */
#ifndef CM_COMMON_CONTROL_H
#define CM_COMMON_CONTROL_H

#include "base/wait.h"
#include "common/domain.h"
#include "common/team.h"
#include "transport/proxy.h"

struct cm_control;
struct cm_rank_info;

/* Everything must outlive it. */
struct cm_control_args {
    int proc; /* mine */
    const struct cm_domains *domains;
    const struct cm_rank_info *infos; /* of all world ranks: host, pid, process */
    void *base;                       /* my domain's segment */
    const struct cm_layout *layout;
    int64_t timeout_ns; /* of waits of the rows: a survey takes a quarter of it, at least half a
                           second, at most two */
};

/*
 * Processes that mine exchanges control messages with: none unless it leads a
 * domain. Fills at most 2 log2(domains) + 2 entries, each once; returns how many.
 */
int cm_control_neighbours(const struct cm_domains *d, int proc, int32_t *out);

/*
 * Every process has one, also those that lead nothing: it hears of lost
 * neighbours and may have to say why the job ends. Starts a thread. CM_ENOMEM,
 * CM_ESYS. Close it after the proxy.
 */
CM_MUST_CHECK enum cm_status cm_control_open(const struct cm_control_args *a,
                                             struct cm_control **out);

/* To be handed to cm_proxy_open(). */
struct cm_proxy_events cm_control_events(struct cm_control *c);

/* The proxy is there: messages may be sent. NULL: it is about to be closed, and losses are no news
   any more. Once each. */
void cm_control_attach(struct cm_control *c, struct cm_proxy *p);

/*
 * The leader's part of a team operation, called by team.c once all ranks of the
 * domain have arrived at t->seq: exchange, then write the slots of remote ranks
 * (payload, then seq with release), as if they shared the memory. Blocks; CM_ETIMEOUT,
 * CM_EABORT, CM_ESYS as cm_spin(). Only the thread of the rank whose team->control is set.
 */
CM_MUST_CHECK enum cm_status cm_control_team(struct cm_control *c, const struct cm_team *t);

/*
 * As struct cm_remote has it: ask all domains for the records of their ranks. Any
 * thread but the control's own. Blocks until all have answered, half a second to two
 * at most; before that a second at most, in which lower domains may report. An abort
 * ends it.
 */
void cm_control_survey(struct cm_control *c);

/* The watchdog has found that a process of my domain died: report it as a lost neighbour is. Any
   thread, never blocks. */
void cm_control_died(struct cm_control *c, int proc);

/* "process 3 (ranks 6-7, pid 4711) on host b" from the facts about the world's n ranks. */
void cm_process_text(const struct cm_rank_info *infos, int n, int proc, char *out, size_t size);

/*
 * After the ranks have ended: if the job was aborted, wait until one report is printed,
 * by whomever, and all neighbours know. From then on the abort word has the status
 * of that report, alike in all domains. Blocks for a second at most. Losses of
 * neighbours are no news from now on.
 */
void cm_control_settle(struct cm_control *c);

void cm_control_close(struct cm_control *c); /* NULL is fine */

#endif
