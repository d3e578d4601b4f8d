/* The double's world: its table, its rules, and what a test asks for. */
#define _GNU_SOURCE
#include "verbs_double.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_double_int.h"

enum { ETH = IBV_LINK_LAYER_ETHERNET, IB = IBV_LINK_LAYER_INFINIBAND, EDR = 32, FOUR_LANES = 2 };

struct dbl_world dbl;

const struct double_device double_roce[2] = {
    {"dbl0",
     1,
     0,
     {{false, ETH, 0, IBV_MTU_4096, EDR, FOUR_LANES, {"fe80::1", "::ffff:192.0.2.1"}}}},
    {"dbl1",
     1,
     0,
     {{false, ETH, 0, IBV_MTU_2048, EDR, FOUR_LANES, {"fe80::2", "::ffff:192.0.2.2"}}}},
};
const struct double_device double_native[2] = {
    {"dbl0", 1, 0, {{false, IB, 7, IBV_MTU_4096, EDR, FOUR_LANES, {"fe80::a"}}}},
    {"dbl1", 1, 0, {{false, IB, 9, IBV_MTU_4096, EDR, FOUR_LANES, {"fe80::b"}}}},
};

struct double_setup double_usual(void)
{
    return (struct double_setup){.devices = double_roce,
                                 .ndevices = 2,
                                 .max_qp_wr = 1024,
                                 .max_cqe = 1 << 16,
                                 .max_inline = 256,
                                 .seed = 1,
                                 .laziness = 2};
}

uint64_t dbl_random(void)
{
    dbl.random ^= dbl.random << 13;
    dbl.random ^= dbl.random >> 7;
    dbl.random ^= dbl.random << 17;
    return dbl.random;
}

void dbl_violation(const char *fmt, ...)
{
    va_list ap;

    if (dbl.violations++ > 0)
        return;
    va_start(ap, fmt);
    vsnprintf(dbl.text, sizeof(dbl.text), fmt, ap);
    va_end(ap);
}

/* ---- events ---- */

static int get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
    return read(c->async_fd, e, sizeof(*e)) == (ssize_t)sizeof(*e) ? 0 : -1;
}

static void ack_async_event(struct ibv_async_event *e)
{
    (void)e;
}

static const char *wc_status_str(enum ibv_wc_status st)
{
    return st == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "some error";
}

static const char *event_type_str(enum ibv_event_type type)
{
    return type == IBV_EVENT_DEVICE_FATAL ? "device fatal" : "some event";
}

void verbs_double_event(enum ibv_event_type type)
{
    struct ibv_async_event e = {.event_type = type, .element.port_num = 1};

    pthread_mutex_lock(&dbl.lock);
    if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR)
        e.element.qp = &dbl.qps[dbl.nqps - 1]->qp;
    for (int i = 0; i < dbl.ncontexts; i++)
        if (write(dbl.contexts[i]->events, &e, sizeof(e)) < 0)
            abort();
    pthread_mutex_unlock(&dbl.lock);
}

/* ---- the world ---- */

const struct cm_verbs *verbs_double(void)
{
    return &dbl.verbs;
}

void verbs_double_begin(const struct double_setup *s)
{
    memset(&dbl, 0, sizeof(dbl));
    dbl.s = *s;
    dbl.random = s->seed * 0x9e3779b97f4a7c15U + 1;
    dbl.fail_after = -1;
    dbl.verbs = (struct cm_verbs){.get_async_event = get_async_event,
                                  .ack_async_event = ack_async_event,
                                  .wc_status_str = wc_status_str,
                                  .event_type_str = event_type_str,
                                  .modify_qp = dbl_modify_qp,
                                  .poll_cq = dbl_poll_cq,
                                  .req_notify_cq = dbl_req_notify_cq,
                                  .post_send = dbl_post_send,
                                  .post_recv = dbl_post_recv};
    dbl_add_objects(&dbl.verbs);
    dbl.devices = calloc((size_t)s->ndevices + 1, sizeof(*dbl.devices));
    for (int i = 0; i < s->ndevices; i++) {
        dbl.devices[i].what = &s->devices[i];
        snprintf(dbl.devices[i].device.name, sizeof(dbl.devices[i].device.name), "%s",
                 s->devices[i].name);
    }
    pthread_mutex_init(&dbl.lock, NULL);
    pthread_cond_init(&dbl.news, NULL);
    pthread_create(&dbl.thread, NULL, dbl_wire, NULL);
}

int verbs_double_end(char text[DOUBLE_TEXT])
{
    pthread_mutex_lock(&dbl.lock);
    dbl.stop = true;
    pthread_cond_signal(&dbl.news);
    pthread_mutex_unlock(&dbl.lock);
    pthread_join(dbl.thread, NULL);
    if (dbl.objects != 0)
        dbl_violation("%d objects were left", dbl.objects);
    free(dbl.devices);
    pthread_mutex_destroy(&dbl.lock);
    pthread_cond_destroy(&dbl.news);
    memcpy(text, dbl.text, DOUBLE_TEXT);
    return dbl.violations;
}

/* ---- what a test asks for ---- */

void verbs_double_fail(int after, enum ibv_wc_status status)
{
    pthread_mutex_lock(&dbl.lock);
    dbl.fail_after = after;
    dbl.fail_with = status;
    pthread_mutex_unlock(&dbl.lock);
}

void verbs_double_cut(bool cut)
{
    pthread_mutex_lock(&dbl.lock);
    dbl.cut = cut;
    pthread_mutex_unlock(&dbl.lock);
}

int verbs_double_pending(const struct ibv_cq *cq)
{
    int n;

    pthread_mutex_lock(&dbl.lock);
    n = ((const struct dbl_cq *)cq)->n;
    pthread_mutex_unlock(&dbl.lock);
    return n;
}

int verbs_double_rnr(void)
{
    int n;

    pthread_mutex_lock(&dbl.lock);
    n = dbl.rnr;
    pthread_mutex_unlock(&dbl.lock);
    return n;
}

int verbs_double_reads(uint32_t rkey)
{
    int n = -1;

    pthread_mutex_lock(&dbl.lock);
    for (int i = 0; i < dbl.nmrs; i++)
        if (dbl.mrs[i]->mr.rkey == rkey)
            n = dbl.mrs[i]->reads;
    pthread_mutex_unlock(&dbl.lock);
    return n;
}
