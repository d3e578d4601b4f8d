/*
 * "Where are your ranks?": before a report, the leader of the domain floods a
 * question over all edges of the control plane. Each leader answers with the
 * records of its ranks, back along the way by which the question reached it first.
 * Answers go into the copies of those records in my segment.
 *
 * Clocks of machines differ, so answers have ages. Invariant: while a survey is
 * made, the copies hold ages against the time when they came; its end moves them
 * to the present, so that a rank that waited when it was asked still waits.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/control_int.h"

static const int64_t most_ns = 2LL * CM_NS_PER_S, least_ns = 500LL * CM_NS_PER_MS;
static const int64_t turn_ns = 250LL * CM_NS_PER_MS; /* by which lower domains report earlier */
enum { TURNS = 4 };

/* So long answers serve others that ask: who asked first may just be reading them. */
static const int64_t valid_ns = 1LL * CM_NS_PER_S;

struct question {
    uint32_t origin, id;
};

/* What a rank does: see struct cm_diag. */
struct fact {
    int64_t age_ns; /* of its beat */
    int64_t iter;
    uint64_t bytes, op, sig;
    uint32_t phase, coll, sig_parts[6];
    int32_t waits_for;
    uint32_t rank;
};

enum { FACTS = (CM_CONTROL_BYTES - 16) / sizeof(struct fact) };

struct answer {
    struct question to;
    uint32_t domain, count;
    struct fact facts[FACTS];
};
_Static_assert(sizeof(struct answer) <= CM_CONTROL_BYTES, "an answer is one message");

enum cm_status cm_control_survey_init(struct cm_control *c)
{
    size_t n = (size_t)c->a.domains->n;

    c->survey.heard_ns = calloc(n, sizeof(*c->survey.heard_ns));
    c->survey.last = calloc(n, sizeof(*c->survey.last));
    c->survey.via = calloc(n, sizeof(*c->survey.via));
    if (c->survey.heard_ns == NULL || c->survey.last == NULL || c->survey.via == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the control of %zu domains", n);
    return CM_OK;
}

void cm_control_survey_free(struct cm_control *c)
{
    free(c->survey.heard_ns);
    free(c->survey.last);
    free(c->survey.via);
}

int64_t cm_control_patience(const struct cm_control *c)
{
    int64_t ns = c->a.timeout_ns / 4 < most_ns ? c->a.timeout_ns / 4 : most_ns;

    return ns > least_ns ? ns : least_ns;
}

/* ---- answering ---- */

#define GET(field) atomic_load_explicit(field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(field, value, memory_order_relaxed)

static void read_fact(const struct cm_control *c, int rank, int64_t now, struct fact *f)
{
    const struct cm_diag *d = &cm_control_record(c, rank)->diag;
    int64_t age = now - GET(&d->beat_ns);

    *f = (struct fact){.age_ns = age > 0 ? age : 0, /* who reports has a beat in the future */
                       .iter = GET(&d->iter),
                       .bytes = GET(&d->bytes),
                       .op = GET(&d->op),
                       .sig = GET(&d->sig),
                       .phase = GET(&d->phase),
                       .coll = GET(&d->coll),
                       .waits_for = GET(&d->waits_for),
                       .rank = (uint32_t)rank};
    for (size_t i = 0; i < CM_LEN(f->sig_parts); i++)
        f->sig_parts[i] = GET(&d->sig_parts[i]);
}

/* Towards the domain that asked. What is lost on the way counts as no answer. */
static void pass_back(struct cm_control *c, const struct answer *a, size_t n)
{
    if (cm_control_send(c, c->survey.via[a->to.origin], CM_CONTROL_ANSWER, a, n) != CM_OK)
        return;
}

static void answer(struct cm_control *c, const struct question *q)
{
    const struct cm_domains *d = c->a.domains;
    struct answer a = {.to = *q, .domain = (uint32_t)d->mine};
    int64_t now = cm_now_ns();

    for (int i = d->first[d->mine], end = d->first[d->mine + 1]; i < end; i++) {
        read_fact(c, d->ranks[i], now, &a.facts[a.count++]);
        if (a.count < FACTS && i + 1 < end)
            continue;
        pass_back(c, &a, offsetof(struct answer, facts) + a.count * sizeof(struct fact));
        a.count = 0;
    }
}

void cm_control_hear_question(struct cm_control *c, const struct cm_letter *l)
{
    struct question q;

    if (!c->leads || l->n != sizeof(q))
        return;
    memcpy(&q, l->bytes, sizeof(q));
    if (q.origin >= (uint32_t)c->a.domains->n || q.origin == (uint32_t)c->a.domains->mine ||
        q.id <= c->survey.last[q.origin])
        return; /* heard over another edge */
    c->survey.last[q.origin] = q.id;
    c->survey.via[q.origin] = l->proc;
    cm_control_flood(c, CM_CONTROL_QUESTION, &q, sizeof(q), l->proc);
    answer(c, &q);
}

/* ---- asking ---- */

static void write_fact(struct cm_control *c, const struct fact *f, int64_t now)
{
    struct cm_diag *d = &cm_control_record(c, (int)f->rank)->diag;

    SET(&d->beat_ns, now - f->age_ns);
    SET(&d->iter, f->iter);
    SET(&d->bytes, f->bytes);
    SET(&d->coll, f->coll);
    for (size_t i = 0; i < CM_LEN(f->sig_parts); i++)
        SET(&d->sig_parts[i], f->sig_parts[i]);
    SET(&d->sig, f->sig);
    SET(&d->waits_for, f->waits_for);
    SET(&d->phase, f->phase);
    atomic_store_explicit(&d->op, f->op, memory_order_release); /* after its signature */
}

static bool plausible(const struct cm_control *c, const struct answer *a, size_t n)
{
    const struct cm_domains *d = c->a.domains;

    if (n < offsetof(struct answer, facts) || a->count > FACTS ||
        n != offsetof(struct answer, facts) + a->count * sizeof(struct fact) ||
        a->to.origin >= (uint32_t)d->n || a->domain >= (uint32_t)d->n)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->facts[i].rank >= (uint32_t)d->nranks ||
            d->of_rank[a->facts[i].rank] != (int32_t)a->domain)
            return false;
    return true;
}

void cm_control_hear_answer(struct cm_control *c, const struct cm_letter *l)
{
    struct cm_control_survey *s = &c->survey;
    int64_t now = cm_now_ns();
    struct answer a = {.count = 0};

    memcpy(&a, l->bytes, l->n < sizeof(a) ? l->n : sizeof(a));
    if (!c->leads || !plausible(c, &a, l->n) || a.domain == (uint32_t)c->a.domains->mine)
        return;
    if (a.to.origin != (uint32_t)c->a.domains->mine) {
        if (a.to.id == s->last[a.to.origin])
            pass_back(c, &a, l->n);
        return;
    }
    if (!s->active || a.to.id != s->id)
        return; /* too late */
    for (uint32_t i = 0; i < a.count; i++)
        write_fact(c, &a.facts[i], now);
    s->heard_ns[a.domain] = now;
}

/* Until they answer, ranks elsewhere are silent. */
static void silence(struct cm_control *c)
{
    for (int r = 0; r < c->a.domains->nranks; r++) {
        struct cm_diag *d = &cm_control_record(c, r)->diag;

        if (cm_local_of(c->a.layout, r) >= 0)
            continue;
        SET(&d->waits_for, -1);
        SET(&d->phase, CM_AT_SILENT);
    }
}

/* Is the leader of the domain known to be gone? Then nobody speaks for its ranks. */
static bool mute(const struct cm_control *c, int domain)
{
    for (int i = 0; i < c->nneighbours; i++)
        if (c->neighbours[i].domain == domain && c->neighbours[i].gone)
            return true;
    return false;
}

static bool complete(const struct cm_control *c)
{
    for (int r = 0; r < c->a.domains->nranks; r++)
        if (GET(&cm_control_record(c, r)->diag.phase) == CM_AT_SILENT &&
            !mute(c, c->a.domains->of_rank[r]))
            return false;
    return true;
}

static void begin(struct cm_control *c, uint32_t ticket, int64_t now)
{
    struct cm_control_survey *s = &c->survey;
    const struct question q = {(uint32_t)c->a.domains->mine, s->id + 1};

    s->active = true;
    s->ticket = ticket;
    s->id = q.id;
    s->until_ns = now + cm_control_patience(c);
    memset(s->heard_ns, 0, (size_t)c->a.domains->n * sizeof(*s->heard_ns));
    silence(c);
    cm_control_flood(c, CM_CONTROL_QUESTION, &q, sizeof(q), -1);
}

/* Who waited when it was asked waits now. */
static void bring_forward(struct cm_control *c, int domain, int64_t now)
{
    const struct cm_domains *d = c->a.domains;

    for (int i = d->first[domain]; i < d->first[domain + 1]; i++) {
        struct cm_diag *diag = &cm_control_record(c, d->ranks[i])->diag;

        SET(&diag->beat_ns, GET(&diag->beat_ns) + now - c->survey.heard_ns[domain]);
    }
    c->survey.heard_ns[domain] = now;
}

static void serve(struct cm_control *c, int64_t now)
{
    for (int k = 0; k < c->a.domains->n; k++)
        if (c->survey.heard_ns[k] != 0)
            bring_forward(c, k, now);
    atomic_store_explicit(&c->shared->survey.answered, c->survey.ticket, memory_order_release);
}

void cm_control_tick_survey(struct cm_control *c, int64_t now)
{
    struct cm_control_survey *s = &c->survey;
    uint32_t asked = atomic_load(&c->shared->survey.asked);

    if (!s->active && asked != s->ticket && now - s->ended_ns < valid_ns) {
        s->ticket = asked;
        serve(c, now);
    } else if (!s->active && asked != s->ticket) {
        begin(c, asked, now);
    }
    if (s->active && (complete(c) || now >= s->until_ns || cm_control_aborted(c) != CM_OK)) {
        s->active = false;
        s->ended_ns = now;
        serve(c, now);
    }
}

uint32_t cm_control_ask(struct cm_control *c)
{
    uint32_t ticket = atomic_fetch_add(&c->shared->survey.asked, 1) + 1;

    cm_control_wake(c);
    return ticket;
}

bool cm_control_served(const struct cm_control *c, uint32_t ticket)
{
    uint32_t answered = atomic_load_explicit(&c->shared->survey.answered, memory_order_acquire);

    return (int32_t)(answered - ticket) >= 0;
}

/*
 * Deadlines of several domains pass at the same time. The lower ones report
 * earlier; the others mostly find that it is done when their turn comes.
 */
void cm_control_survey(struct cm_control *c)
{
    int turns = c->a.domains->mine < TURNS ? c->a.domains->mine : TURNS;
    int64_t until = cm_now_ns() + turns * turn_ns;
    uint32_t ticket;

    if (c->a.domains->n == 1)
        return;
    while (cm_now_ns() < until && cm_control_aborted(c) == CM_OK)
        cm_control_pause(c);
    if (cm_control_aborted(c) != CM_OK)
        return;
    ticket = cm_control_ask(c);
    until = cm_now_ns() + cm_control_patience(c) + least_ns; /* the leader may be gone */
    while (!cm_control_served(c, ticket) && cm_now_ns() < until && cm_control_aborted(c) == CM_OK)
        cm_control_pause(c);
}
