/* The ib wire when things go wrong: bad completions and events as text, ends that are none. */
#define _GNU_SOURCE
#include <poll.h>

#include "capture.h"
#include "ib_double.h"
#include "transport/ib_int.h"

/* ---- completions ---- */

static void test_bad_completions_become_text(void)
{
    static const struct {
        enum ibv_wc_status wc;
        enum cm_status st;
        const struct double_device *devices;
        const char *text[3];
    } rows[] = {
        {IBV_WC_RETRY_EXC_ERR,
         CM_ETIMEOUT,
         double_roce,
         {"is lost over dbl0:1 (RoCE", "192.0.2.1", "retries exceeded"}},
        {IBV_WC_RETRY_EXC_ERR, CM_ETIMEOUT, double_roce, {"UDP port 4791", "GID index 1", "0x42"}},
        {IBV_WC_RETRY_EXC_ERR, CM_ETIMEOUT, double_native, {"InfiniBand", "a switch", "queue"}},
        {IBV_WC_RNR_RETRY_EXC_ERR, CM_ETIMEOUT, double_roce, {"is stopped", "", ""}},
        {IBV_WC_REM_ACCESS_ERR, CM_ESYS, double_roce, {"refused the address", "", ""}},
        {IBV_WC_REM_INV_REQ_ERR, CM_ESYS, double_roce, {"different versions", "", ""}},
        {IBV_WC_REM_OP_ERR, CM_ESYS, double_roce, {"far end's adapter failed", "", ""}},
        {IBV_WC_LOC_PROT_ERR, CM_ESYS, double_roce, {"not registered", "", ""}},
        {IBV_WC_LOC_QP_OP_ERR, CM_ESYS, double_roce, {"kernel's log", "", ""}},
        {IBV_WC_GENERAL_ERR, CM_ESYS, double_roce, {"kernel's log", "", ""}},
        {IBV_WC_TM_ERR, CM_ESYS, double_roce, {"some error", "kernel's log", ""}},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct ib_how how = ib_begin(rows[i].devices);
        struct ib_side s[2];

        CHECK(ib_pair(s, &how), "wc %d: no pair", rows[i].wc);
        verbs_double_fail(1, rows[i].wc);
        for (int k = 0; k < 3; k++)
            proxied_put(&s[0].p, 0);
        ib_until_lost(s, 0);
        CHECK(s[0].p.lost == 1 + (int)rows[i].st, "wc %d: lost %d", rows[i].wc, s[0].p.lost);
        CHECK(cm_ib_status(s[0].ib) == rows[i].st, "wc %d: status", rows[i].wc);
        for (int k = 0; k < 3; k++)
            CHECK(strstr(s[0].why, rows[i].text[k]) != NULL, "wc %d: '%s' has no '%s'", rows[i].wc,
                  s[0].why, rows[i].text[k]);
        CHECK(cm_ib_close(s[0].ib, ib_soon()) == rows[i].st, "wc %d: status of the end",
              rows[i].wc);
        s[0].ib = NULL;
        ib_side_close(&s[0], 0);
        ib_side_close(&s[1], 0);
        ib_end("bad completion", 0);
    }
}

/* Without a function for losses they are logged, with the neighbour. */
static void test_a_loss_without_events_is_logged(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];
    struct capture c;

    CHECK(ib_pair(s, &how), "no pair");
    s[0].ib->a.events.lost = NULL;
    capture_begin(&c, STDERR_FILENO);
    verbs_double_fail(0, IBV_WC_REM_OP_ERR);
    proxied_put(&s[0].p, 0);
    for (int64_t until = ib_soon(); cm_ib_status(s[0].ib) == CM_OK && cm_now_ns() < until;)
        cm_ib_progress(s[0].ib);
    capture_end(&c);
    CHECK(strstr(c.text, "process 1 (host there) is lost over dbl0:1") != NULL, "'%s'", c.text);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("logged", 0);
}

/* Packets are lost, and the neighbour takes nothing: it is told, not waited for. */
static void test_a_cut_cable_is_told(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];

    CHECK(ib_pair(s, &how), "no pair");
    verbs_double_cut(true);
    proxied_put(&s[0].p, 0);
    ib_until_lost(s, 0);
    CHECK(s[0].p.lost == 1 + CM_ETIMEOUT, "lost %d", s[0].p.lost);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("cut", 0);
}

/* The neighbour left without a farewell. */
static void test_an_end_without_farewell_is_told(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];
    enum cm_status st;

    CHECK(ib_pair(s, &how), "no pair");
    ib_side_close(&s[1], 0);
    st = ib_side_close(&s[0], ib_soon());
    CHECK(st == CM_ETIMEOUT, "status %d", st);
    ib_end("left", 0);
}

/* It is there, but says nothing: the end has a deadline. */
static void test_the_end_has_a_deadline(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];
    struct capture c;
    enum cm_status st;

    CHECK(ib_pair(s, &how), "no pair");
    capture_begin(&c, STDERR_FILENO);
    st = ib_side_close(&s[0], cm_now_ns() + 50LL * CM_NS_PER_MS);
    capture_end(&c);
    CHECK(st == CM_ETIMEOUT && strstr(c.text, "process 1 (host there) did not say farewell"),
          "status %d, '%s'", st, c.text);
    ib_side_close(&s[1], 0);
    ib_end("deadline", 0);
}

/* Who has said farewell may be gone before it acknowledges ours. */
static void test_a_farewell_that_is_not_acknowledged(void)
{
    struct ib_how how = ib_begin(double_roce);
    struct ib_side s[2];
    enum cm_status st;

    CHECK(ib_pair(s, &how), "no pair");
    s[1].ib->links[0].leaving = true;
    for (int64_t until = ib_soon(); !s[0].ib->qps[0]->bye && cm_now_ns() < until;) {
        cm_ib_progress(s[1].ib);
        cm_ib_progress(s[0].ib);
    }
    verbs_double_fail(0, IBV_WC_RETRY_EXC_ERR);
    st = cm_ib_close(s[0].ib, ib_soon());
    s[0].ib = NULL;
    CHECK(st == CM_OK && s[0].p.lost == 0, "status %d, lost %d", st, s[0].p.lost);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("farewell", 0);
}

/* ---- events ---- */

static void test_events_of_the_adapter(void)
{
    static const struct {
        enum ibv_event_type type;
        bool lost;
        const char *text;
    } rows[] = {
        {IBV_EVENT_DEVICE_FATAL, true, "device fatal"},
        {IBV_EVENT_QP_FATAL, true, "some event"},
        {IBV_EVENT_PORT_ERR, false, "dbl0:1 went down"},
        {IBV_EVENT_PORT_ACTIVE, false, "dbl0:1 is up again"},
        {IBV_EVENT_SM_CHANGE, false, ""},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct ib_how how = ib_begin(double_roce);
        struct ib_side s[2];
        struct capture c;
        bool told;

        how.p.mode[0] = CM_PROXY_THREAD;
        how.p.spins = 0;
        CHECK(ib_pair(s, &how), "event %d: no pair", rows[i].type);
        /* The newest queue pair is that of side 1; events of it are nothing to side 0. */
        capture_begin(&c, STDERR_FILENO);
        verbs_double_event(rows[i].type);
        if (rows[i].type != IBV_EVENT_QP_FATAL && rows[i].lost)
            ib_until_lost(s, 0);
        if (rows[i].lost)
            ib_until_lost(s, 1);
        /* Side 0 closes when it has looked: its thread sleeps on the events. */
        for (int64_t until = ib_soon(); !rows[i].lost && cm_now_ns() < until;) {
            struct pollfd news = {.fd = s[0].ib->dev.context->async_fd, .events = POLLIN};

            if (poll(&news, 1, 0) == 0)
                break;
        }
        ib_side_close(&s[0], 0);
        capture_end(&c);
        told = strstr(rows[i].lost ? s[1].why : c.text, rows[i].text) != NULL;
        CHECK(told, "event %d: '%s' '%s'", rows[i].type, s[1].why, c.text);
        CHECK((s[1].p.lost != 0) == rows[i].lost, "event %d: lost %d", rows[i].type, s[1].p.lost);
        CHECK(rows[i].type == IBV_EVENT_DEVICE_FATAL || s[0].p.lost == 0, "event %d: lost %d",
              rows[i].type, s[0].p.lost);
        ib_side_close(&s[1], 0);
        ib_end("event", 0);
    }
}

int main(void)
{
    RUN(test_bad_completions_become_text);
    RUN(test_a_loss_without_events_is_logged);
    RUN(test_a_cut_cable_is_told);
    RUN(test_an_end_without_farewell_is_told);
    RUN(test_the_end_has_a_deadline);
    RUN(test_a_farewell_that_is_not_acknowledged);
    RUN(test_events_of_the_adapter);
    return test_end();
}
