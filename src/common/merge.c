/*
 * Combining ranks: a row's time is the ranks' times under -a; bandwidths follow
 * from it; wrong elements add up; the slowest rank is named.
 */
#include "common/merge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/algo.h"

static const char *const why_text[] = {
    [CM_RUNS] = NULL,
    [CM_NOT_ASKED] = "not asked for (--placement)",
    [CM_NO_IN_PLACE] = "this collective has no in-place form",
    [CM_NO_BYTES] = "rounds to 0 bytes",
    [CM_NO_ROOT] = "the group has no such rank as root",
    [CM_REFUSED] = "the engine has no such operation",
};

/* The ranks of one group, one after the other. */
struct members {
    const struct cm_merge *m;
    int group, at;
};

/* Next world rank of the group, or -1. */
static int next_member(struct members *s)
{
    while (s->at < s->m->rank->n) {
        int rank = s->at++;

        if (s->m->rank->infos[rank].group == s->group)
            return rank;
    }
    return -1;
}

static int ranks_in(const struct cm_merge *m, int group)
{
    struct members s = {m, group, 0};
    int n = 0;

    while (next_member(&s) >= 0)
        n++;
    return n;
}

static double per_op_us(const struct cm_merge *m, int64_t ns)
{
    const struct cm_opts_run *o = &m->rank->opts->run;
    int steps = m->rounds > 0 ? m->rounds * m->steps : cm_steps_of(o);

    return (double)ns / (steps * cm_step_ops(o)) / CM_NS_PER_US;
}

/* Of the time of one round. */
static double per_round_us(const struct cm_merge *m, int64_t ns)
{
    return per_op_us(m, ns) * m->rounds;
}

static double combined_us(const struct cm_merge *m, const struct cm_result *r, double of_first)
{
    switch (m->rank->opts->run.average) {
    case CM_AVG_RANK0:
        return of_first;
    case CM_AVG_MEAN:
        return r->rank_avg_us;
    case CM_AVG_MIN:
        return r->rank_min_us;
    case CM_AVG_MAX:
        break;
    }
    return r->rank_max_us;
}

static void merge_ranks(const struct cm_merge *m, int group, int half, struct cm_result *out)
{
    struct members s = {m, group, 0};
    double sum = 0, of_first = 0;
    int n = 0, rank;

    while ((rank = next_member(&s)) >= 0) {
        const struct cm_reading *r = &m->records[rank].half[half];
        double us = per_op_us(m, r->total_ns), first = (double)r->first_ns / CM_NS_PER_US;

        if (n++ == 0) {
            out->rank_min_us = of_first = us;
            out->cpu_us = r->cpu_ns < 0 ? -1 : per_op_us(m, r->cpu_ns);
        }
        if (n == 1 || us > out->rank_max_us) {
            out->rank_max_us = us;
            out->slowest = rank;
        }
        out->rank_min_us = us < out->rank_min_us ? us : out->rank_min_us;
        out->first_us = first > out->first_us ? first : out->first_us;
        out->wrong += r->wrong;
        out->checked = r->checked;
        sum += us;
    }
    out->rank_avg_us = sum / n;
    out->time_us = combined_us(m, out, of_first);
}

static void merge_samples(const struct cm_merge *m, int group, int half, struct cm_result *out)
{
    const struct cm_opts_run *o = &m->rank->opts->run;
    size_t skip = (size_t)o->per_iter_skip, steps = (size_t)cm_steps_of(o), n = steps - skip;

    if (m->sample_us[half] == NULL || skip >= steps)
        return;
    out->has_samples = true;
    out->sample_us = m->sample_us[half][group] + skip;
    memcpy(m->scratch, out->sample_us, n * sizeof(*m->scratch));
    out->samples = cm_stats_of(m->scratch, n);
}

/* The time of a round over ranks. */
static double round_us(const struct cm_merge *m, int group, const int64_t *ns)
{
    struct members s = {m, group, 0};
    struct cm_result r = {.rank_max_us = 0};
    double sum = 0, of_first = 0;
    int n = 0, rank;

    while ((rank = next_member(&s)) >= 0) {
        double us = per_round_us(m, ns[rank * m->rounds]);

        if (n++ == 0)
            r.rank_min_us = r.rank_max_us = of_first = us;
        r.rank_min_us = us < r.rank_min_us ? us : r.rank_min_us;
        r.rank_max_us = us > r.rank_max_us ? us : r.rank_max_us;
        sum += us;
    }
    r.rank_avg_us = sum / n;
    return combined_us(m, &r, of_first);
}

/* By nearest rank, as in cm_stats_of(): percentile `p` of sorted values. */
static double at_percent(const double *sorted, int n, int p)
{
    return sorted[(n * p + 99) / 100 - 1];
}

/* The median of the rounds takes the place of the mean over all iterations. */
static void merge_rounds(const struct cm_merge *m, int group, int half, struct cm_result *out)
{
    double sorted[CM_MAX_ROUNDS];
    struct cm_stats stats;

    out->rounds = m->rounds;
    for (int i = 0; i < m->rounds; i++)
        out->round_us[i] = round_us(m, group, m->round_ns[half] + i);
    memcpy(sorted, out->round_us, sizeof(sorted));
    stats = cm_stats_of(sorted, (size_t)m->rounds);
    out->time_us = stats.p50;
    out->spread_pct = at_percent(sorted, m->rounds, 75) - at_percent(sorted, m->rounds, 25);
    out->spread_pct = stats.p50 > 0 ? 100 * out->spread_pct / stats.p50 : 0;
}

/*
 * Of n values, so many may be left out at each end, and the median of what they are drawn from
 * still lies between the others in 15 of 16 cases, whatever its distribution: as many as a fair
 * coin shows heads at most in 1 of 32 cases. (The confidence interval of the sign test; Hahn and
 * Meeker, Statistical Intervals, 5.2.)
 */
static int spare_of(int n)
{
    double chance = ldexp(1, -n), below = chance;
    int k = 0;

    while (k < n) {
        chance *= (double)(n - k) / (k + 1);
        if (below + chance > 1.0 / 32)
            break;
        below += chance;
        k++;
    }
    return k;
}

static void set_ratio(const struct cm_result *first, struct cm_result *r)
{
    double v[CM_MAX_ROUNDS];
    struct cm_stats stats;
    int n = 0;

    if (!first->measured || !r->measured || r->rounds != first->rounds)
        return;
    for (int i = 0; i < r->rounds; i++) {
        if (first->round_us[i] > 0)
            v[n++] = r->round_us[i] / first->round_us[i];
    }
    if (n < CM_MIN_ROUNDS)
        return;
    stats = cm_stats_of(v, (size_t)n); /* sorts them */
    r->ratio = (struct cm_ratio){true, stats.p50, v[spare_of(n)], v[n - 1 - spare_of(n)]};
}

void cm_merge_ratios(struct cm_row *rows, int n)
{
    for (int i = 1; i < n; i++) {
        for (int half = 0; half < 2; half++)
            set_ratio(&rows[0].half[half], &rows[i].half[half]);
    }
}

static struct cm_result merge_half(const struct cm_merge *m, int group, int half,
                                   const struct cm_record *first)
{
    struct cm_result out = {
        .measured = first->why[half] == CM_RUNS, .why = why_text[first->why[half]], .slowest = -1};

    out.absent = first->why[half] == CM_NOT_ASKED || first->why[half] == CM_NO_IN_PLACE;
    if (first->why[half] == CM_REFUSED && m->refused[half] != NULL)
        out.why = m->refused[half];
    if (!out.measured)
        return out;
    merge_ranks(m, group, half, &out);
    merge_samples(m, group, half, &out);
    if (m->rounds > 0)
        merge_rounds(m, group, half, &out);
    if (out.time_us > 0) /* bytes per microsecond are 1e-3 GB/s */
        out.alg_gbs = (double)first->alg_bytes / out.time_us / 1e3;
    out.bus_gbs = out.alg_gbs * m->bench->bus_factor(ranks_in(m, group));
    return out;
}

/* Of the GPU that needs most. */
static struct cm_memory most_memory(const struct cm_merge *m, int group)
{
    struct members s = {m, group, 0};
    struct cm_memory most = {0};
    int rank;

    while ((rank = next_member(&s)) >= 0)
        cm_memory_most(&most, &m->records[rank].memory);
    return most;
}

static void name_choice(const struct cm_record *r, struct cm_row *out)
{
    static const char *const modes[] = {[CM_MODE_COPY] = "copy", [CM_MODE_DIRECT] = "direct"};
    static const char *const protos[] = {
        [CM_PROTO_AUTO] = "auto", [CM_PROTO_SIMPLE] = "simple", [CM_PROTO_LL] = "ll"};
    const struct cm_algo *algo = cm_algo_find(r->algo);

    if (r->mode < 0)
        return;
    out->algo = algo != NULL ? algo->name : NULL;
    out->mode = modes[r->mode];
    out->proto = protos[r->proto];
    out->channels = r->channels;
}

void cm_merge_row(const struct cm_merge *m, int group, struct cm_row *out)
{
    struct members s = {m, group, 0};
    const struct cm_record *first = &m->records[next_member(&s)];
    const struct cm_sides *sides = &m->rank->opts->sides.list;
    const struct cm_point *p = m->point;
    bool ran;

    *out = (struct cm_row){.cycle = p->cycle,
                           .group = group,
                           .bytes = first->bytes,
                           .count = first->count,
                           .dtype = p->dtype,
                           .op = p->op,
                           .root = p->root,
                           .start_unix_ms = m->start_unix_ms,
                           .side = m->side,
                           .sides = sides->n};
    out->engine = sides->n > 0 ? sides->of[m->side].name : NULL;
    out->redop = m->bench->redop_column != NULL ? m->bench->redop_column : cm_ops[p->op].name;
    for (int half = 0; half < 2; half++)
        out->half[half] = merge_half(m, group, half, first);
    ran = out->half[0].measured || out->half[1].measured;
    out->counted = ran && ranks_in(m, group) > 1;
    if (!ran)
        out->note = out->half[out->half[0].why == why_text[CM_NOT_ASKED]].why;
    else if (!out->counted)
        out->note = "one rank: nothing is communicated";
    out->memory = most_memory(m, group);
    name_choice(first, out);
}

void cm_merge_print_traffic(const struct cm_merge *m, int group, const struct cm_row *row)
{
    struct members s = {m, group, 0};
    double factor = m->bench->bus_factor(ranks_in(m, group));
    int rank;

    fprintf(stderr, "# alltoallv: size %zu type %s\n", row->bytes, cm_dtypes[row->dtype].name);
    while ((rank = next_member(&s)) >= 0) {
        const struct cm_record *r = &m->records[rank];
        uint64_t most = r->send_bytes > r->recv_bytes ? r->send_bytes : r->recv_bytes;
        double us = per_op_us(m, r->half[0].total_ns), gbs = us > 0 ? (double)most / us / 1e3 : 0;

        fprintf(stderr,
                "#   rank=%d send_bytes=%" PRIu64 " recv_bytes=%" PRIu64
                " time_us=%.2f alg_bw=%.2f bus_bw=%.2f\n",
                rank, r->send_bytes, r->recv_bytes, us, gbs, gbs * factor);
    }
}
