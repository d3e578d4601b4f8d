/*
 * What the ib wire does not take: offers and signals of a neighbour that cannot be right, memory
 * that cannot be had, choices out of range.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "capture.h"
#include "ib_double.h"
#include "transport/ib_int.h"

/* ---- what a neighbour offers ---- */

/* Bytes of an offer that a test overwrites; where they are is part of the format. */
struct forgery {
    const char *what;
    size_t at, bytes;
    uint64_t value;
    enum cm_status st;
};

static const struct forgery forgeries[] = {
    {"magic", 0, 4, 1, CM_ESYS},
    {"process", 4, 4, 7, CM_ESYS},
    {"ports", 8, 4, 3, CM_EMISMATCH},
    {"depth", 12, 4, 8, CM_EMISMATCH},
    {"queue pairs", 16, 4, 2, CM_EMISMATCH},
    {"framing of another kind", 20, 4, CM_IB_NATIVE, CM_EMISMATCH},
    {"framing", 20, 4, 77, CM_ESYS},
    {"MTU", 24, 4, 0, CM_ESYS},
    {"MTU", 24, 4, 6, CM_ESYS},
    {"slot size", 32, 8, 128, CM_EMISMATCH},
    {"number of a queue pair", 56, 4, 0x1000000, CM_ESYS},
    {"first packet", 60, 4, 0xffffffff, CM_ESYS},
    {"address 0", 56 + 8 * CM_IB_QPS, 8, 0, CM_ESYS},
    {"address that ends beyond the last", 56 + 8 * CM_IB_QPS, 8, UINT64_MAX - 127, CM_ESYS},
    {"address between lines", 56 + 8 * CM_IB_QPS, 8, 4100, CM_ESYS},
};

static void test_offers_are_not_believed(void)
{
    size_t bytes = cm_ib_offer_bytes(1);
    char offer[4096], forged[4096];

    for (size_t i = 0; i < CM_LEN(forgeries); i++) {
        const struct forgery *f = &forgeries[i];
        struct ib_how how = ib_begin(double_roce);
        struct ib_side s[2];
        enum cm_status st, cut;

        CHECK(ib_side_open(&s[0], &how, 0) == CM_OK && ib_side_open(&s[1], &how, 1) == CM_OK,
              "open");
        cm_ib_offer(s[1].ib, 0, offer);
        memcpy(forged, offer, bytes);
        memcpy(forged + f->at, &f->value, f->bytes);
        cm_log_mute(true);
        st = cm_ib_connect(s[0].ib, 0, forged, bytes);
        cut = cm_ib_connect(s[0].ib, 0, offer, bytes - 1 - i);
        cm_log_mute(false);
        CHECK(st == f->st, "%s: status %d", f->what, st);
        CHECK(cut == CM_ESYS, "%d bytes too few: status %d", 1 + (int)i, cut);
        CHECK(cm_ib_connect(s[0].ib, 0, offer, bytes) == CM_OK, "%s: the right one", f->what);
        ib_side_close(&s[0], 0);
        ib_side_close(&s[1], 0);
        ib_end(f->what, 0);
    }
}

/* An InfiniBand neighbour without an address. */
static void test_an_offer_without_lid(void)
{
    struct ib_how how = ib_begin(double_native);
    size_t bytes = cm_ib_offer_bytes(1);
    char offer[4096];
    struct ib_side s[2];

    CHECK(ib_side_open(&s[0], &how, 0) == CM_OK && ib_side_open(&s[1], &how, 1) == CM_OK, "open");
    cm_ib_offer(s[1].ib, 0, offer);
    memset(offer + 28, 0, 4);
    cm_log_mute(true);
    CHECK(cm_ib_connect(s[0].ib, 0, offer, bytes) == CM_ESYS, "LID 0");
    cm_log_mute(false);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("LID", 0);
}

/* ---- what a neighbour sends ---- */

static void test_signals_are_held_against_what_may_come(void)
{
    static const struct {
        uint32_t imm;
        const char *text;
    } rows[] = {
        {(uint32_t)CM_IB_SLOT << 30 | 1 << 12, "not there"},
        {(uint32_t)CM_IB_CREDIT << 30 | 5 << 12, "not there"},
        {(uint32_t)CM_IB_NKINDS << 30, "not there"},
        {(uint32_t)CM_IB_SLOT << 30 | 1, "out of turn"},
        {(uint32_t)CM_IB_CREDIT << 30 | 1, "never got"},
        {(uint32_t)CM_IB_BYE << 30, NULL},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct ib_how how = ib_begin(double_roce);
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                 .imm_data = __builtin_bswap32(rows[i].imm)};
        struct ibv_send_wr *bad;
        struct ib_side s[2];

        CHECK(ib_pair(s, &how), "imm %x: no pair", rows[i].imm);
        CHECK(how.verbs->post_send(s[1].ib->qps[0]->qp, &wr, &bad) == 0, "post");
        if (rows[i].text == NULL) /* more after the farewell */
            how.verbs->post_send(s[1].ib->qps[0]->qp, &wr, &bad);
        for (int64_t until = ib_soon(); s[0].p.lost == 0 && cm_now_ns() < until;)
            cm_ib_progress(s[0].ib);
        CHECK(s[0].p.lost == 1 + CM_ESYS, "imm %x: lost %d", rows[i].imm, s[0].p.lost);
        CHECK(strstr(s[0].why, rows[i].text != NULL ? rows[i].text : "farewell") != NULL,
              "imm %x: '%s'", rows[i].imm, s[0].why);
        ib_side_close(&s[0], 0);
        ib_side_close(&s[1], 0);
        ib_end("signal", 0);
    }
}

/* A head that claims more than a slot has. */
static void test_a_slot_that_is_too_large(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct cm_slot_head *h;
    struct ib_side s[2];

    CHECK(ib_pair(s, &how), "no pair");
    h = proxied_slot(&how.p, s[0].p.recv[0], 0);
    h->bytes = how.p.slot_bytes + 1;
    {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM}, *bad;

        CHECK(how.verbs->post_send(s[1].ib->qps[0]->qp, &wr, &bad) == 0, "post");
    }
    for (int64_t until = ib_soon(); s[0].p.lost == 0 && cm_now_ns() < until;)
        cm_ib_progress(s[0].ib);
    CHECK(strstr(s[0].why, "too large") != NULL, "'%s'", s[0].why);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("large slot", 0);
}

/* What the adapter was not given cannot be written: the double is as strict as adapters are. */
static void test_memory_beside_the_ports_is_safe(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];

    CHECK(ib_pair(s, &how), "no pair");
    s[0].ib->links[0].send[0].remote += 1 << 20;
    proxied_put(&s[0].p, 0);
    ib_until_lost(s, 0);
    CHECK(strstr(s[0].why, "refused the address") != NULL, "'%s'", s[0].why);
    ib_until_lost(s, 1);
    CHECK(s[1].p.lost != 0, "the far end did not notice");
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("foreign memory", 1);
}

/* ---- opening ---- */

static void test_memory_that_cannot_be_registered(void)
{
    static const struct {
        int err;
        enum cm_status st;
        const char *text;
    } rows[] = {{ENOMEM, CM_ENOMEM, "ulimit -l"}, {EFAULT, CM_ESYS, "Bad address"}};

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct double_setup setup = double_usual();
        struct ib_how how = ib_usual();
        struct ib_side s;
        struct capture c;
        enum cm_status st;

        setup.reg_errno = rows[i].err;
        verbs_double_begin(&setup);
        how.verbs = verbs_double();
        capture_begin(&c, STDERR_FILENO);
        st = ib_side_open(&s, &how, 0);
        capture_end(&c);
        CHECK(st == rows[i].st && s.ib == NULL, "errno %d: status %d", rows[i].err, st);
        CHECK(strstr(c.text, rows[i].text) != NULL, "errno %d: '%s'", rows[i].err, c.text);
        ib_side_close(&s, 0);
        ib_end("register", 0);
    }
}

static void test_choices_out_of_range_are_refused(void)
{
    static const struct {
        int qps, mtu, timeout, retries, tc, sl, gid;
        const char *text;
    } rows[] = {
        {0, 0, 18, 7, 0, 0, -1, "queue pairs 0"},
        {CM_IB_QPS + 1, 0, 18, 7, 0, 0, -1, "queue pairs 17"},
        {1, 1000, 18, 7, 0, 0, -1, "MTU 1000"},
        {1, 8192, 18, 7, 0, 0, -1, "MTU 8192"},
        {1, 0, 32, 7, 0, 0, -1, "timeout exponent 32"},
        {1, 0, 0, 7, 0, 0, -1, "timeout exponent 0"},
        {1, 0, 18, 8, 0, 0, -1, "retries 8"},
        {1, 0, 18, 7, 256, 0, -1, "traffic class 256"},
        {1, 0, 18, 7, 0, 16, -1, "service level 16"},
        {1, 0, 18, 7, 0, 0, 256, "GID index 256"},
        {1, 0, 18, 7, 0, 0, 5, "dbl1:1 has no GID 5"},
        {1, 4096, 18, 7, 0, 0, -1, "dbl1:1 has 2048"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct ib_how how = ib_begin(double_roce);
        struct capture c;
        struct ib_side s;
        enum cm_status st;

        how.choice = (struct cm_ib_choice){.numa = -1,
                                           .qps = rows[i].qps,
                                           .mtu = rows[i].mtu,
                                           .timeout = rows[i].timeout,
                                           .retries = rows[i].retries,
                                           .tc = rows[i].tc,
                                           .sl = rows[i].sl,
                                           .gid = rows[i].gid};
        capture_begin(&c, STDERR_FILENO);
        st = ib_side_open(&s, &how, 1);
        capture_end(&c);
        CHECK(st == CM_EINVAL && strstr(c.text, rows[i].text) != NULL, "%s: status %d, '%s'",
              rows[i].text, st, c.text);
        ib_side_close(&s, 0);
        ib_end(rows[i].text, 0);
    }
}

/* The smaller MTU of both ends is used, unless a smaller one is asked for. */
static void test_the_mtu_is_that_of_both(void)
{
    for (int mtu = 0; mtu <= 1024; mtu += 1024) {
        struct ib_how how = ib_begin(double_roce);
        struct ib_side s[2];
        char text[CM_IB_TEXT];

        how.choice.mtu = mtu;
        CHECK(ib_pair(s, &how), "mtu %d: no pair", mtu);
        cm_ib_describe(s[0].ib, text);
        CHECK(strcmp(text, mtu == 0 ? "dbl0:1 RoCE gid 1 (192.0.2.1) 100 Gb/s mtu 4096"
                                    : "dbl0:1 RoCE gid 1 (192.0.2.1) 100 Gb/s mtu 1024") == 0,
              "mtu %d: '%s'", mtu, text);
        proxied_put(&s[0].p, 0); /* queue pairs of different MTUs lose all packets */
        for (int64_t until = ib_soon(); proxied_get(&s[1].p, 0) == 0 && cm_now_ns() < until;) {
            cm_ib_progress(s[0].ib);
            cm_ib_progress(s[1].ib);
        }
        CHECK(s[1].p.got[0] == 1, "mtu %d: nothing came", mtu);
        ib_side_close(&s[0], 0);
        ib_side_close(&s[1], 0);
        ib_end("mtu", 0);
    }
}

int main(void)
{
    RUN(test_offers_are_not_believed);
    RUN(test_an_offer_without_lid);
    RUN(test_signals_are_held_against_what_may_come);
    RUN(test_a_slot_that_is_too_large);
    RUN(test_memory_beside_the_ports_is_safe);
    RUN(test_memory_that_cannot_be_registered);
    RUN(test_choices_out_of_range_are_refused);
    RUN(test_the_mtu_is_that_of_both);
    return test_end();
}
