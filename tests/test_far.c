/*
 * Payloads outside of slots (struct cm_slot_head.far_at): sent from where they
 * lie, received where they belong; and which folds may do that.
 */
#define _GNU_SOURCE
#include "engine/comm_int.h"
#include "proxied.h"
#include "test.h"

enum { LONG = 3 * CM_FAR_BYTES, PLACES = 2 };

/* ---- the proxy ---- */

static struct proxied usual(void)
{
    struct proxied how = proxied_usual(80LL * CM_NS_PER_S);

    how.mode[0] = how.mode[1] = CM_PROXY_INLINE;
    how.slot_bytes = LONG;
    return how;
}

static unsigned char byte_of(uint64_t k, size_t i)
{
    return (unsigned char)(k * 31 + i * 7 + (i >> 8));
}

static void fill(unsigned char *p, uint64_t k, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = byte_of(k, i);
}

static bool is_filled(const unsigned char *p, uint64_t k, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != byte_of(k, i))
            return false;
    return true;
}

/* Drive both sides until `line` is above `more_than`; false: it takes too long. */
static bool drive_until(struct proxied_side s[2], const _Atomic uint64_t *line, uint64_t more_than)
{
    int64_t until = proxied_soon();

    while (atomic_load(line) <= more_than) {
        cm_proxy_progress(s[0].proxy);
        cm_proxy_progress(s[1].proxy);
        if (cm_now_ns() > until)
            return false;
    }
    return true;
}

/* Side 0 sends slot `k` from `from`, or from the slot if it is NULL. */
static void send_slot(struct proxied_side *s, uint64_t k, const unsigned char *from, size_t bytes)
{
    struct cm_slot_head *h = proxied_slot(s->how, s->send[0], k);

    h->bytes = bytes;
    h->sig = 1;
    atomic_store(&h->far_at, (uint64_t)(uintptr_t)from);
    memset(h + 1, 0xee, s->how->slot_bytes);
    if (from == NULL)
        fill(proxied_payload(h), k, bytes);
    atomic_store(&s->send[0]->tail, k + 1);
}

/* What side 1 offers for slot `k`; false: it is too late. */
static bool offer(struct proxied_side *s, uint64_t k, unsigned char *to, size_t bytes)
{
    struct cm_slot_head *h = proxied_slot(s->how, s->recv[0], k);
    uint64_t none = 0;

    if (atomic_load(&h->far_at) != 0)
        return false;
    h->far_bytes = bytes;
    return atomic_compare_exchange_strong(&h->far_at, &none, (uint64_t)(uintptr_t)to);
}

static void take_slot(struct proxied_side *s, uint64_t k)
{
    atomic_store(&proxied_slot(s->how, s->recv[0], k)->far_at, 0);
    atomic_store(&s->recv[0]->head, k + 1);
}

/* More slots than a FIFO has, each from memory that is reused as soon as it has left. */
static void test_sent_from_where_it_lies(void)
{
    static unsigned char memory[LONG];
    struct proxied how = usual();
    struct proxied_side s[2];

    CHECK(proxied_pair(s, &how), "sockets");
    for (uint64_t k = 0; k < 11; k++) {
        struct cm_slot_head *h = proxied_slot(&how, s[1].recv[0], k);
        bool outside = k % 3 != 2;

        fill(memory, k, LONG);
        send_slot(&s[0], k, outside ? memory : NULL, LONG);
        CHECK(drive_until(s, &s[0].send[0]->head, k), "slot %d does not leave", (int)k);
        memset(memory, 0xdd, LONG);
        CHECK(drive_until(s, &s[1].recv[0]->tail, k), "slot %d does not come", (int)k);
        CHECK(is_filled((unsigned char *)(h + 1), k, LONG), "slot %d is wrong", (int)k);
        take_slot(&s[1], k);
    }
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

static void test_received_where_it_belongs(void)
{
    static unsigned char place[LONG];
    static const struct {
        const char *what;
        size_t sent, offered; /* bytes; offered 0: nothing */
        bool used;
    } rows[] = {
        {"as long", LONG, LONG, true},
        {"as long as can be", CM_FAR_BYTES, CM_FAR_BYTES, true},
        {"longer", LONG, LONG + 64, false},
        {"shorter", LONG, LONG - 64, false},
        {"none", LONG, 0, false},
        {"a payload that is too short", CM_FAR_BYTES - 1, CM_FAR_BYTES - 1, false},
        {"a payload beside the flag", 8, LONG, false},
    };
    struct proxied how = usual();
    struct proxied_side s[2];

    CHECK(proxied_pair(s, &how), "sockets");
    for (uint64_t k = 0; k < PLACES * CM_LEN(rows); k++) {
        size_t row = k % CM_LEN(rows), bytes = rows[row].sent;
        struct cm_slot_head *h = proxied_slot(&how, s[1].recv[0], k);
        uint64_t at = (uint64_t)(uintptr_t)place;

        memset(place, 0xcc, LONG);
        if (rows[row].offered > 0)
            CHECK(offer(&s[1], k, place, rows[row].offered), "%s: refused", rows[row].what);
        send_slot(&s[0], k, NULL, bytes);
        CHECK(drive_until(s, &s[1].recv[0]->tail, k), "%s: does not come", rows[row].what);
        CHECK(is_filled(rows[row].used ? place : proxied_payload(h), k, bytes), "%s: wrong bytes",
              rows[row].what);
        CHECK(rows[row].used || place[0] == 0xcc, "%s: the place was used", rows[row].what);
        if (bytes >= CM_FAR_BYTES)
            CHECK(atomic_load(&h->far_at) == (rows[row].used ? at : CM_FAR_CLOSED),
                  "%s: says another place", rows[row].what);
        take_slot(&s[1], k);
    }
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

/* A slot that has come, or is coming, has its place already. */
static void test_late_offers_are_refused(void)
{
    static unsigned char place[LONG];
    struct proxied how = usual();
    struct proxied_side s[2];

    CHECK(proxied_pair(s, &how), "sockets");
    send_slot(&s[0], 0, NULL, LONG);
    CHECK(drive_until(s, &s[1].recv[0]->tail, 0), "the slot does not come");
    CHECK(!offer(&s[1], 0, place, LONG), "the offer was taken");
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

/* ---- which folds may ---- */

enum { COUNT = 2 * CM_FAR_BYTES, NONE = -1 };

/* Operands that rows are made of, of a rank 1 of 3. */
static const struct cm_bound_operand operands[] = {
    {CM_IN, 1, 0},                           /* 0 */
    {CM_OUT, 1, 0},                          /* 1 */
    {CM_OUT, 1, COUNT},                      /* 2 */
    {CM_PORT, 2, 0},                         /* 3 */
    {CM_PORT, 0, 0},                         /* 4 */
    {CM_OUT, 1, COUNT / 2},                  /* 5 */
    {CM_SCRATCH, 1, 0},                      /* 6 */
    {CM_IN, 1, 0},          {CM_PORT, 2, 0}, /* 7, 8: two sources */
    {CM_OUT, 1, 0},         {CM_PORT, 0, 0}, /* 9, 10: two destinations */
};

/* The first fold, and what is found for it; a second one stores one slot to `other`. */
struct far_row {
    const char *what;
    enum cm_coll coll;
    bool in_place, shares; /* shares: rank 0 shares memory with us */
    bool premul;
    int divisor;
    int from, nfrom, to, nto, other;
    int refer, place;
    size_t len; /* 0: COUNT */
};

static const struct far_row far_rows[] = {
    {"IN to a port", CM_SENDRECV, .from = 0, .nfrom = 1, .to = 3, .nto = 1, .other = 1, .refer = 0,
     .place = NONE},
    {"too short", CM_SENDRECV, .from = 0, .nfrom = 1, .to = 3, .nto = 1, .other = 1, .refer = NONE,
     .place = NONE, .len = CM_FAR_BYTES - 1},
    {"IN in place, stored to", CM_ALL_REDUCE, .in_place = true, .from = 0, .nfrom = 1, .to = 3,
     .nto = 1, .other = 5, .refer = NONE, .place = NONE},
    {"IN in place, left alone", CM_ALL_REDUCE, .in_place = true, .from = 0, .nfrom = 1, .to = 3,
     .nto = 1, .other = 2, .refer = 0, .place = NONE},
    {"IN in place at its block", CM_ALL_GATHER, .in_place = true, .from = 0, .nfrom = 1, .to = 3,
     .nto = 1, .other = 1, .refer = 0, .place = NONE},
    {"IN in place at its block, stored to", CM_ALL_GATHER, .in_place = true, .from = 0, .nfrom = 1,
     .to = 3, .nto = 1, .other = 2, .refer = NONE, .place = NONE},
    {"OUT in place at its block", CM_REDUCE_SCATTER, .in_place = true, .from = 0, .nfrom = 1,
     .to = 3, .nto = 1, .other = 1, .refer = 0, .place = NONE},
    {"OUT to a port", CM_ALL_GATHER, .from = 1, .nfrom = 1, .to = 3, .nto = 1, .other = 2,
     .refer = 1, .place = NONE},
    {"OUT to a port, stored to", CM_ALL_GATHER, .from = 1, .nfrom = 1, .to = 3, .nto = 1,
     .other = 5, .refer = NONE, .place = NONE},
    {"OUT that others reach", CM_ALL_GATHER, .shares = true, .from = 1, .nfrom = 1, .to = 3,
     .nto = 1, .other = 2, .refer = NONE, .place = NONE},
    {"IN that others reach", CM_ALL_GATHER, .shares = true, .from = 0, .nfrom = 1, .to = 3,
     .nto = 1, .other = 2, .refer = 0, .place = NONE},
    {"SCRATCH", CM_ALL_REDUCE, .from = 6, .nfrom = 1, .to = 3, .nto = 1, .other = 2, .refer = NONE,
     .place = NONE},
    {"a scaled IN", CM_ALL_REDUCE, .premul = true, .from = 0, .nfrom = 1, .to = 3, .nto = 1,
     .other = 2, .refer = NONE, .place = NONE},
    {"a port to OUT", CM_SENDRECV, .from = 4, .nfrom = 1, .to = 1, .nto = 1, .other = 2,
     .refer = NONE, .place = 1},
    {"a port to OUT, divided", CM_ALL_REDUCE, .divisor = 3, .from = 4, .nfrom = 1, .to = 1,
     .nto = 1, .other = 2, .refer = NONE, .place = NONE},
    {"a port to OUT and a port", CM_ALL_GATHER, .from = 4, .nfrom = 1, .to = 9, .nto = 2,
     .other = 2, .refer = 9, .place = 9},
    {"a port to a port", CM_ALL_GATHER, .from = 4, .nfrom = 1, .to = 3, .nto = 1, .other = 2,
     .refer = NONE, .place = NONE},
    {"a sum to OUT and a port", CM_ALL_REDUCE, .from = 7, .nfrom = 2, .to = 9, .nto = 2, .other = 2,
     .refer = 9, .place = NONE},
};

static void check_row(const struct far_row *row)
{
    static const int32_t world[] = {0, 1, 2}, apart[] = {-1, 0, -1}, shared[] = {0, 1, -1};
    struct cm_remote remote = {.far = true};
    struct cm_layout layout = {.nranks = 3, .local_of = row->shares ? shared : apart};
    struct cm_comm c = {
        .rank = 1, .n = 3, .world = (int32_t *)world, .layout = &layout, .remote = &remote};
    struct cm_bound_fold folds[] = {
        {.from = row->from,
         .nfrom = row->nfrom,
         .to = row->to,
         .nto = row->nto,
         .len = row->len > 0 ? row->len : COUNT,
         .divide = row->divisor > 1,
         .fills = operands[row->to + row->nto - 1].space == CM_PORT,
         .refer = NONE,
         .place = NONE},
        {.from = 4,
         .nfrom = 1,
         .to = row->other,
         .nto = 1,
         .len = COUNT,
         .refer = NONE,
         .place = NONE},
    };
    struct cm_bound b = {.key = {.coll = row->coll, .count = COUNT, .in_place = row->in_place},
                         .esize = 1,
                         .divisor = row->divisor > 1 ? row->divisor : 1,
                         .premul = row->premul,
                         .folds = folds,
                         .nfolds = 2,
                         .operands = (struct cm_bound_operand *)operands};

    cm_bind_far(&c, &b);
    CHECK(folds[0].refer == row->refer, "%s: sent from operand %d", row->what, folds[0].refer);
    CHECK(folds[0].place == row->place, "%s: received in operand %d", row->what, folds[0].place);
    remote.far = false;
    folds[0].refer = folds[0].place = NONE;
    cm_bind_far(&c, &b);
    CHECK(folds[0].refer == NONE && folds[0].place == NONE, "%s: a wire that cannot", row->what);
}

static void test_which_folds(void)
{
    for (size_t i = 0; i < CM_LEN(far_rows); i++)
        check_row(&far_rows[i]);
}

int main(void)
{
    RUN(test_sent_from_where_it_lies);
    RUN(test_received_where_it_belongs);
    RUN(test_late_offers_are_refused);
    RUN(test_which_folds);
    return test_end();
}
