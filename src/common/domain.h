/*
 * Domains: which processes of the job share memory. Usually a domain is a
 * machine; containers, network namespaces and options make them smaller. Not
 * the same as the nodes of --node-map, which algorithms go by.
 */
#ifndef CM_COMMON_DOMAIN_H
#define CM_COMMON_DOMAIN_H

#include <stdint.h>

#include "base/boot.h"

/* Computed alike by all processes, except `mine` and local_of. Domain 0 has process 0. */
struct cm_domains {
    int n;             /* how many */
    int mine;          /* this process's */
    int nprocs;        /* of the job */
    int nranks;        /* world ranks; 0 until cm_domains_add_ranks() */
    int32_t *of_proc;  /* nprocs */
    int32_t *leader;   /* n: the lowest process of each */
    int32_t *of_rank;  /* nranks */
    int32_t *first;    /* n + 1: where each starts in `ranks` */
    int32_t *ranks;    /* nranks: world ranks, domain by domain, ascending in each */
    int32_t *local_of; /* nranks: index among the ranks of my domain, -1: elsewhere */
};

/*
 * Find the domains. Collective over the processes of `b`. keys[nprocs], the
 * same everywhere: processes can only share memory if theirs are equal (boot id,
 * network namespace, what options ask); those that might then try it, and who
 * fails is in another domain. Blocks for seconds at most. CM_ENOMEM, CM_ESYS.
 * *out may be handed to cm_domains_free() in any case.
 */
CM_MUST_CHECK enum cm_status cm_domains_find(const struct cm_boot *b, const uint64_t *keys,
                                             struct cm_domains *out);

/* Fill the lists of ranks; first_of as in struct cm_world. Local. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_domains_add_ranks(struct cm_domains *d, const int32_t *first_of);

/* Ranks of my domain. */
int cm_domains_local(const struct cm_domains *d);

void cm_domains_free(struct cm_domains *d);

/*
 * A boot over the processes of my domain only, for records of up to 252 bytes.
 * Its gather is collective over all processes of the job, so each domain must
 * make as many: cm_domain_boot_settle(). Pointers must outlive it.
 */
struct cm_domain_boot {
    const struct cm_boot *world;
    const struct cm_domains *domains;
    int gathers; /* made so far */
};
struct cm_boot cm_domain_boot(struct cm_domain_boot *ctx);

/*
 * A domain that needed fewer gathers, or failed on the way with `mine`, catches
 * up with those that make `gathers` of them. Returns `mine`, or what went wrong now.
 */
CM_MUST_CHECK enum cm_status cm_domain_boot_settle(struct cm_domain_boot *ctx, int gathers,
                                                   enum cm_status mine);

#endif
