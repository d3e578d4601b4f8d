/*
 * The part of libibverbs that is used here, as a table: filled from the
 * library at run time, or by a test. The only file that includes its headers.
 */
#ifndef CM_TRANSPORT_VERBS_H
#define CM_TRANSPORT_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Meaning, ownership and errors: as the functions ibv_* of the same names. */
struct cm_verbs {
    int (*fork_init)(void);
    struct ibv_device **(*get_device_list)(int *n);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *d);
    struct ibv_context *(*open_device)(struct ibv_device *d);
    int (*close_device)(struct ibv_context *c);
    int (*query_device)(struct ibv_context *c, struct ibv_device_attr *a);
    int (*query_port)(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a);
    int (*query_gid)(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *c);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t bytes, int access);
    /* Newer: knows optional access flags. May be NULL. */
    struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
                                   unsigned int access);
    /* May be NULL. */
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access);
    int (*dereg_mr)(struct ibv_mr *mr);
    struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *c);
    int (*destroy_comp_channel)(struct ibv_comp_channel *ch);
    struct ibv_cq *(*create_cq)(struct ibv_context *c, int entries, void *arg,
                                struct ibv_comp_channel *ch, int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    int (*get_cq_event)(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **arg);
    void (*ack_cq_events)(struct ibv_cq *cq, unsigned int n);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *a);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask);
    int (*destroy_qp)(struct ibv_qp *qp);
    int (*get_async_event)(struct ibv_context *c, struct ibv_async_event *e);
    void (*ack_async_event)(struct ibv_async_event *e);
    const char *(*wc_status_str)(enum ibv_wc_status st);
    const char *(*event_type_str)(enum ibv_event_type type);
    /* In the library these go through the context of their object. */
    int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
    int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
};

/*
 * Fill the table from libibverbs.so.1, which stays loaded. false: why[] has the
 * loader's reason, or the function that is missing. Any thread.
 */
bool cm_verbs_load(struct cm_verbs *v, char *why, size_t size);

#endif
