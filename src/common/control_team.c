/*
 * Operations of the team between domains: each leader tells the others what
 * it knows, in ceil(log2 n) rounds. In the round of distance k it sends to the
 * domain k after it the records of the last k domains up to its own, which it
 * has by then; so after the last round everybody has all. A barrier is the same
 * with empty records: one message in each round.
 * Sources: dissemination barrier (Hensgen, Finkel, Manber 1988); all-gather with
 * the same edges (Bruck et al. 1997).
 *
 * A message goes straight into the slots where ranks look for it, on the thread
 * that drives the proxy. Invariant: the slot's buffer is free then. The record is
 * of operation k, so it was sent after all ranks of the job had started k-1, those
 * of my domain too, and they had finished reading k-2 before; nobody reads the
 * buffer of that parity until the record is complete and its sequence is stored.
 * The next record for it is of k+2, and cannot come before my ranks started k+1.
 */
#include <assert.h>
#include <string.h>

#include "common/control_int.h"

enum { TEAM_ROOM = CM_CONTROL_BYTES - 24 };

/* Records of consecutive ranks, in the order of domains->ranks and around its end. */
struct team_message {
    uint64_t seq;
    uint32_t at;     /* index of the first in that order */
    uint32_t count;  /* ranks; 1 if a record comes in pieces */
    uint32_t length; /* of each record; several only if it is the same for all */
    uint32_t offset; /* of this piece in it */
    unsigned char bytes[TEAM_ROOM];
};
_Static_assert(sizeof(struct team_message) == CM_CONTROL_BYTES, "a message of the team");

static int rank_at(const struct cm_domains *d, size_t i)
{
    return d->ranks[i % (size_t)d->nranks];
}

static struct cm_team_slot *slot_at(const struct cm_control *c, size_t i)
{
    return &cm_control_record(c, rank_at(c->a.domains, i))->team;
}

/* ---- hearing ---- */

/* Bytes of payload that the message must have; SIZE_MAX: its numbers cannot be right. */
static size_t payload_of(const struct cm_control *c, const struct team_message *m)
{
    uint32_t n = (uint32_t)c->a.domains->nranks, piece;

    if (m->at >= n || m->count == 0 || m->count > n || m->length > CM_TEAM_BYTES)
        return SIZE_MAX;
    if (m->length <= TEAM_ROOM)
        return m->offset == 0 ? (size_t)m->count * m->length : SIZE_MAX;
    if (m->count != 1 || m->offset >= m->length || m->offset % TEAM_ROOM != 0)
        return SIZE_MAX;
    piece = m->length - m->offset;
    return piece < TEAM_ROOM ? piece : TEAM_ROOM;
}

/* Of ranks elsewhere, and the next of each? */
static bool in_turn(const struct cm_control *c, const struct team_message *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (cm_local_of(c->a.layout, rank_at(c->a.domains, m->at + i)) >= 0 ||
            atomic_load_explicit(&slot_at(c, m->at + i)->seq, memory_order_relaxed) + 1 != m->seq)
            return false;
    return true;
}

bool cm_control_hear_team(struct cm_control *c, const void *bytes, size_t n)
{
    const size_t head = sizeof(struct team_message) - TEAM_ROOM;
    struct team_message m;
    size_t payload;

    if (n < head || n > sizeof(m) || !c->leads)
        return false;
    memcpy(&m, bytes, n);
    payload = payload_of(c, &m);
    if (payload != n - head || !in_turn(c, &m))
        return false;
    for (uint32_t i = 0; i < m.count; i++) {
        struct cm_team_slot *s = slot_at(c, m.at + i);
        size_t piece = payload / m.count;

        if (piece > 0)
            memcpy(s->bytes[m.seq & 1] + m.offset, m.bytes + i * piece, piece);
        s->length[m.seq & 1] = m.length;
        if (m.offset + piece == m.length)
            atomic_store_explicit(&s->seq, m.seq, memory_order_release);
    }
    return true;
}

/* ---- telling ---- */

/* What a round is about. */
struct round {
    struct cm_control *c;
    const struct cm_team *t;
    int to, from; /* domains */
};

static int lowest_rank(const struct cm_domains *d, int domain)
{
    return d->ranks[d->first[domain]];
}

/* Its queue may be full for a while; that the neighbour is gone will be told as an abort. */
static enum cm_status post(const struct round *r, const struct team_message *m, size_t payload)
{
    const struct cm_domains *d = r->c->a.domains;
    size_t n = sizeof(*m) - TEAM_ROOM + payload;
    struct cm_spin spin = cm_spin_start();
    enum cm_status st = CM_OK;

    while (st == CM_OK && cm_control_send(r->c, d->leader[r->to], CM_CONTROL_TEAM, m, n) != CM_OK)
        st = cm_spin_moving(&spin, r->t->waiter, lowest_rank(d, r->to));
    return st;
}

static enum cm_status tell_long(const struct round *r, struct team_message *m)
{
    const unsigned char *record = slot_at(r->c, m->at)->bytes[m->seq & 1];
    enum cm_status st = CM_OK;

    m->count = 1;
    for (m->offset = 0; m->offset < m->length && st == CM_OK; m->offset += TEAM_ROOM) {
        uint32_t piece = m->length - m->offset;

        piece = piece < TEAM_ROOM ? piece : TEAM_ROOM;
        memcpy(m->bytes, record + m->offset, piece);
        st = post(r, m, piece);
    }
    return st;
}

/* As many records from m->at on, of `most`, as are alike and fit. */
static enum cm_status tell_short(const struct round *r, struct team_message *m, uint32_t most)
{
    uint32_t fit = m->length > 0 ? TEAM_ROOM / m->length : most;

    m->offset = 0;
    for (m->count = 0; m->count < fit && m->count < most; m->count++) {
        const struct cm_team_slot *s = slot_at(r->c, m->at + m->count);

        if (s->length[m->seq & 1] != m->length)
            break;
        memcpy(m->bytes + m->count * m->length, s->bytes[m->seq & 1], m->length);
    }
    return post(r, m, (size_t)m->count * m->length);
}

/* The records of `count` ranks from index `at` on. */
static enum cm_status tell(const struct round *r, int at, int count)
{
    struct team_message m = {.seq = r->t->seq};
    enum cm_status st = CM_OK;

    for (int done = 0; done < count && st == CM_OK; done += (int)m.count) {
        m.at = (uint32_t)((at + done) % r->c->a.domains->nranks);
        m.length = slot_at(r->c, m.at)->length[m.seq & 1];
        st = m.length > TEAM_ROOM ? tell_long(r, &m) : tell_short(r, &m, (uint32_t)(count - done));
    }
    return st;
}

/* Wait for them. */
static enum cm_status hear(const struct round *r, int at, int count)
{
    int peer = lowest_rank(r->c->a.domains, r->from);
    struct cm_spin spin = cm_spin_start();

    for (int i = 0; i < count; i++) {
        const struct cm_team_slot *s = slot_at(r->c, (size_t)(at + i));

        while (atomic_load_explicit(&s->seq, memory_order_acquire) < r->t->seq) {
            enum cm_status st = cm_spin_moving(&spin, r->t->waiter, peer);

            if (st != CM_OK)
                return st;
        }
    }
    return CM_OK;
}

/* Ranks of `many` domains from `domain` on, around the end. */
static int ranks_of(const struct cm_domains *d, int domain, int many)
{
    int n = 0;

    for (int k = 0; k < many; k++)
        n += d->first[(domain + k) % d->n + 1] - d->first[(domain + k) % d->n];
    return n;
}

enum cm_status cm_control_team(struct cm_control *c, const struct cm_team *t)
{
    const struct cm_domains *d = c->a.domains;
    enum cm_status st = CM_OK;

    assert(c->leads && d->nranks == t->n);
    for (int dist = 1; dist < d->n && st == CM_OK; dist *= 2) {
        int many = dist < d->n - dist ? dist : d->n - dist;
        int mine = (d->mine - many + 1 + d->n) % d->n, theirs = (mine - dist + d->n) % d->n;
        const struct round r = {c, t, (d->mine + dist) % d->n, (d->mine - dist + d->n) % d->n};

        st = tell(&r, d->first[mine], ranks_of(d, mine, many));
        if (st == CM_OK)
            st = hear(&r, d->first[theirs], ranks_of(d, theirs, many));
    }
    return st;
}
