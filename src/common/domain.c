/*
 * Invariant: groups are refined alike everywhere, from gathered facts: first
 * by key, then by who could connect to the lowest process of its group. What
 * a process cannot do shows in the gather of the round, not in its own copy.
 */
#include "common/domain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/fdpass.h"

enum { RECORD_BYTES = 256, KNOCK_NS = 2 * CM_NS_PER_S };

/* What a process shows in a round of trying. */
struct trial {
    unsigned char name[CM_LOCAL_NAME]; /* where it listens */
    uint32_t listens;
};

/* ---- finding them ---- */

/* The lowest process with the same group as `proc`. */
static int lowest(const int32_t *group, int proc)
{
    int p = 0;

    while (group[p] != group[proc])
        p++;
    return p;
}

static bool leads(const struct cm_domains *d, int proc)
{
    return lowest(d->of_proc, proc) == proc;
}

static bool any_company(const struct cm_domains *d)
{
    for (int p = 0; p < d->nprocs; p++)
        if (!leads(d, p))
            return true;
    return false;
}

/* The lowest process of a group listens, as the wire will. */
static int listen_for(struct trial *t, int backlog)
{
    int fd = -1;

    if (getrandom(t->name, sizeof(t->name), 0) == (ssize_t)sizeof(t->name))
        fd = cm_local_listen(t->name, backlog);
    t->listens = fd >= 0;
    return fd;
}

static bool knock(const struct trial *at)
{
    int fd = at->listens ? cm_local_connect(at->name, cm_now_ns() + KNOCK_NS) : -1;
    bool same = fd >= 0 && cm_local_same_user(fd);

    if (fd >= 0)
        close(fd);
    return same;
}

/* Who did not get through leaves its group; those of one group stay together, and try again. */
static bool split_groups(struct cm_domains *d, const uint32_t *came)
{
    bool split = false;

    for (int p = 0; p < d->nprocs; p++) {
        if (came[p])
            continue;
        d->of_proc[p] += d->nprocs; /* unused so far: groups are numbered by their first process */
        split = true;
    }
    return split;
}

/* Number the groups by their lowest processes; keys or numbers may be anything before. */
static void renumber(struct cm_domains *d, const int32_t *group)
{
    d->n = 0;
    for (int p = 0; p < d->nprocs; p++) {
        int first = lowest(group, p);

        if (first == p) {
            d->leader[d->n] = p;
            d->of_proc[p] = d->n++;
        } else {
            d->of_proc[p] = d->of_proc[first];
        }
    }
}

/* One round: *again if some could not reach the lowest of their group. */
static enum cm_status try_round(const struct cm_boot *b, struct cm_domains *d, struct trial *all,
                                bool *again)
{
    struct trial mine = {.listens = 0};
    uint32_t came = true, *cames = calloc((size_t)d->nprocs, sizeof(*cames));
    int32_t *group = calloc((size_t)d->nprocs, sizeof(*group));
    int fd = leads(d, b->proc) ? listen_for(&mine, d->nprocs) : -1;
    enum cm_status st =
        cm_boot_agree(b, cames != NULL && group != NULL
                             ? CM_OK
                             : CM_FAIL(CM_ENOMEM, "no memory for %d processes", d->nprocs));

    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    if (st == CM_OK) {
        if (!leads(d, b->proc))
            came = knock(&all[lowest(d->of_proc, b->proc)]);
        st = b->gather(b, &came, sizeof(came), cames);
    }
    if (st == CM_OK) {
        *again = split_groups(d, cames);
        memcpy(group, d->of_proc, (size_t)d->nprocs * sizeof(*group));
        renumber(d, group);
    }
    if (fd >= 0)
        close(fd);
    free(cames);
    free(group);
    return st;
}

static enum cm_status allocate(const struct cm_boot *b, struct cm_domains *d)
{
    size_t n = (size_t)b->nprocs;

    d->nprocs = b->nprocs;
    d->of_proc = calloc(n, sizeof(*d->of_proc));
    d->leader = calloc(n, sizeof(*d->leader));
    return d->of_proc != NULL && d->leader != NULL
               ? CM_OK
               : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);
}

/* Equal keys, equal groups. */
static void group_by_key(struct cm_domains *d, const uint64_t *keys)
{
    d->n = 0;
    for (int p = 0; p < d->nprocs; p++) {
        int first = 0;

        while (keys[first] != keys[p])
            first++;
        if (first == p)
            d->leader[d->n++] = p;
        d->of_proc[p] = first == p ? d->n - 1 : d->of_proc[first];
    }
}

enum cm_status cm_domains_find(const struct cm_boot *b, const uint64_t *keys,
                               struct cm_domains *out)
{
    struct trial *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st;

    memset(out, 0, sizeof(*out));
    st = allocate(b, out);
    if (st == CM_OK && all == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);
    st = cm_boot_agree(b, st);
    if (st == CM_OK) {
        bool again = true;

        group_by_key(out, keys);
        while (st == CM_OK && again && any_company(out))
            st = try_round(b, out, all, &again);
        out->mine = out->of_proc[b->proc];
    }
    free(all);
    return st;
}

/* ---- ranks ---- */

static void place_ranks(struct cm_domains *d, const int32_t *first_of)
{
    int placed = 0;

    for (int p = 0; p < d->nprocs; p++)
        for (int r = first_of[p]; r < first_of[p + 1]; r++)
            d->of_rank[r] = d->of_proc[p];
    for (int k = 0; k < d->n; k++) {
        d->first[k] = placed;
        for (int r = 0; r < d->nranks; r++)
            if (d->of_rank[r] == k)
                d->ranks[placed++] = r;
    }
    d->first[d->n] = placed;
    for (int r = 0; r < d->nranks; r++)
        d->local_of[r] = -1;
    for (int k = d->first[d->mine]; k < d->first[d->mine + 1]; k++)
        d->local_of[d->ranks[k]] = k - d->first[d->mine];
}

enum cm_status cm_domains_add_ranks(struct cm_domains *d, const int32_t *first_of)
{
    size_t n = (size_t)first_of[d->nprocs];

    d->nranks = (int)n;
    d->of_rank = calloc(n, sizeof(*d->of_rank));
    d->ranks = calloc(n, sizeof(*d->ranks));
    d->local_of = calloc(n, sizeof(*d->local_of));
    d->first = calloc((size_t)d->n + 1, sizeof(*d->first));
    if (d->of_rank == NULL || d->ranks == NULL || d->local_of == NULL || d->first == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %zu ranks", n);
    place_ranks(d, first_of);
    return CM_OK;
}

int cm_domains_local(const struct cm_domains *d)
{
    return d->first[d->mine + 1] - d->first[d->mine];
}

void cm_domains_free(struct cm_domains *d)
{
    free(d->of_proc);
    free(d->leader);
    free(d->of_rank);
    free(d->first);
    free(d->ranks);
    free(d->local_of);
    memset(d, 0, sizeof(*d));
}

/* ---- a boot of its own ---- */

/* What travels: domains gather different things at one time, so all records are alike. */
struct record {
    uint32_t bytes;
    unsigned char payload[RECORD_BYTES - sizeof(uint32_t)];
};

static int members(const struct cm_domains *d)
{
    int n = 0;

    for (int p = 0; p < d->nprocs; p++)
        n += d->of_proc[p] == d->mine;
    return n;
}

static enum cm_status take(const struct cm_domain_boot *c, const struct record *records,
                           size_t bytes, unsigned char *all)
{
    const struct cm_domains *d = c->domains;

    for (int p = 0; p < d->nprocs; p++) {
        if (d->of_proc[p] != d->mine)
            continue;
        if (records[p].bytes != bytes)
            return CM_FAIL(CM_ESYS, "process %d sent %u bytes where %zu were expected", p,
                           records[p].bytes, bytes);
        memcpy(all, records[p].payload, bytes);
        all += bytes;
    }
    return CM_OK;
}

static enum cm_status domain_gather(const struct cm_boot *b, const void *mine, size_t bytes,
                                    void *all)
{
    struct cm_domain_boot *c = b->ctx;
    struct record r = {.bytes = (uint32_t)bytes};
    struct record *records = calloc((size_t)c->domains->nprocs, sizeof(*records));
    enum cm_status st;

    if (records == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d processes", c->domains->nprocs);
    if (bytes > sizeof(r.payload)) {
        free(records);
        return CM_FAIL(CM_EINVAL, "cannot gather %zu bytes in a domain", bytes);
    }
    if (bytes > 0)
        memcpy(r.payload, mine, bytes);
    c->gathers++;
    st = c->world->gather(c->world, &r, sizeof(r), records);
    if (st == CM_OK)
        st = take(c, records, bytes, all);
    free(records);
    return st;
}

struct cm_boot cm_domain_boot(struct cm_domain_boot *ctx)
{
    const struct cm_domains *d = ctx->domains;
    struct cm_boot b = {.nprocs = members(d), .ctx = ctx, .gather = domain_gather};

    for (int p = 0; p < ctx->world->proc; p++)
        b.proc += d->of_proc[p] == d->mine;
    return b;
}

enum cm_status cm_domain_boot_settle(struct cm_domain_boot *ctx, int gathers, enum cm_status mine)
{
    const struct cm_boot b = cm_domain_boot(ctx);
    unsigned char *all = calloc((size_t)b.nprocs, 1);
    enum cm_status st = CM_OK;

    while (st == CM_OK && ctx->gathers < gathers && all != NULL)
        st = b.gather(&b, "", 1, all);
    free(all);
    return mine != CM_OK ? mine : st;
}
