/*
 * libibverbs, loaded at run time: machines without it run the same binaries.
 *
 * The library is never unloaded: its providers may have threads.
 */
#define _GNU_SOURCE
#include "transport/verbs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    return ibv_poll_cq(cq, n, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return ibv_req_notify_cq(cq, solicited_only);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return ibv_post_send(qp, wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return ibv_post_recv(qp, wr, bad);
}

struct symbol {
    const char *name;
    size_t at;
    bool needed;
};

static const struct symbol symbols[] = {
    {"ibv_fork_init", offsetof(struct cm_verbs, fork_init), true},
    {"ibv_get_device_list", offsetof(struct cm_verbs, get_device_list), true},
    {"ibv_free_device_list", offsetof(struct cm_verbs, free_device_list), true},
    {"ibv_get_device_name", offsetof(struct cm_verbs, get_device_name), true},
    {"ibv_open_device", offsetof(struct cm_verbs, open_device), true},
    {"ibv_close_device", offsetof(struct cm_verbs, close_device), true},
    {"ibv_query_device", offsetof(struct cm_verbs, query_device), true},
    /* The exported one fills a prefix of today's structure: callers clear it before. */
    {"ibv_query_port", offsetof(struct cm_verbs, query_port), true},
    {"ibv_query_gid", offsetof(struct cm_verbs, query_gid), true},
    {"ibv_alloc_pd", offsetof(struct cm_verbs, alloc_pd), true},
    {"ibv_dealloc_pd", offsetof(struct cm_verbs, dealloc_pd), true},
    {"ibv_reg_mr", offsetof(struct cm_verbs, reg_mr), true},
    {"ibv_reg_mr_iova2", offsetof(struct cm_verbs, reg_mr_iova2), false},
    {"ibv_reg_dmabuf_mr", offsetof(struct cm_verbs, reg_dmabuf_mr), false},
    {"ibv_dereg_mr", offsetof(struct cm_verbs, dereg_mr), true},
    {"ibv_create_comp_channel", offsetof(struct cm_verbs, create_comp_channel), true},
    {"ibv_destroy_comp_channel", offsetof(struct cm_verbs, destroy_comp_channel), true},
    {"ibv_create_cq", offsetof(struct cm_verbs, create_cq), true},
    {"ibv_destroy_cq", offsetof(struct cm_verbs, destroy_cq), true},
    {"ibv_get_cq_event", offsetof(struct cm_verbs, get_cq_event), true},
    {"ibv_ack_cq_events", offsetof(struct cm_verbs, ack_cq_events), true},
    {"ibv_create_qp", offsetof(struct cm_verbs, create_qp), true},
    {"ibv_modify_qp", offsetof(struct cm_verbs, modify_qp), true},
    {"ibv_destroy_qp", offsetof(struct cm_verbs, destroy_qp), true},
    {"ibv_get_async_event", offsetof(struct cm_verbs, get_async_event), true},
    {"ibv_ack_async_event", offsetof(struct cm_verbs, ack_async_event), true},
    {"ibv_wc_status_str", offsetof(struct cm_verbs, wc_status_str), true},
    {"ibv_event_type_str", offsetof(struct cm_verbs, event_type_str), true},
};

bool cm_verbs_load(struct cm_verbs *v, char *why, size_t size)
{
    void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool complete = true;

    if (lib == NULL) {
        snprintf(why, size, "%s", dlerror());
        return false;
    }
    *v = (struct cm_verbs){.poll_cq = poll_cq,
                           .req_notify_cq = req_notify_cq,
                           .post_send = post_send,
                           .post_recv = post_recv};
    for (size_t i = 0; complete && i < CM_LEN(symbols); i++) {
        void *symbol = dlsym(lib, symbols[i].name);

        memcpy((char *)v + symbols[i].at, &symbol, sizeof(symbol));
        complete = symbol != NULL || !symbols[i].needed;
        if (!complete)
            snprintf(why, size, "libibverbs.so.1 is too old: it has no %s", symbols[i].name);
    }
    dlclose(lib); /* the mapping stays */
    return complete;
}
