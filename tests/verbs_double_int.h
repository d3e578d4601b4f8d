/* The double's objects and what its files do with them. All under one lock. */
#ifndef CM_TESTS_VERBS_DOUBLE_INT_H
#define CM_TESTS_VERBS_DOUBLE_INT_H

#include <pthread.h>

#include "verbs_double.h"

enum {
    DOUBLE_QPS = 256,
    DOUBLE_MRS = 512,
    DOUBLE_CONTEXTS = 16,
    DOUBLE_INLINE = 512,
    DOUBLE_TRIES = 20 /* chances that stand for one time-out */
};

/* The library's structures come first: pointers to them are pointers to ours. */
struct dbl_device {
    struct ibv_device device;
    const struct double_device *what;
};
struct dbl_context {
    struct ibv_context context;
    int events; /* the end of the pipe that we write to */
};
struct dbl_channel {
    struct ibv_comp_channel channel;
    int events;
};
struct dbl_cq {
    struct ibv_cq cq;
    struct ibv_wc *wc;
    int size, first, n;
    bool armed;
    int unacked;
};
struct dbl_mr {
    struct ibv_mr mr;
    int access;
    int reads;
};
struct dbl_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    unsigned char copy[DOUBLE_INLINE];
    bool half; /* the second half of its data is there */
    enum ibv_wc_status status;
};
struct dbl_qp {
    struct ibv_qp qp;
    struct ibv_qp_cap cap;
    struct ibv_qp_attr attr;
    struct dbl_request *sq; /* cap.max_send_wr */
    uint64_t posted, delivered, acked, released;
    uint64_t *rq; /* cap.max_recv_wr */
    uint64_t received, taken;
    int tries;
};

struct dbl_world {
    struct double_setup s;
    struct cm_verbs verbs;
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    bool stop, cut;
    struct dbl_device *devices;
    struct dbl_context *contexts[DOUBLE_CONTEXTS];
    struct dbl_qp *qps[DOUBLE_QPS];
    struct dbl_mr *mrs[DOUBLE_MRS];
    int ncontexts, nqps, nmrs;
    uint32_t next_number;
    uint64_t random;
    int fail_after;
    enum ibv_wc_status fail_with;
    int objects; /* that live */
    int violations, rnr;
    char text[DOUBLE_TEXT];
};

extern struct dbl_world dbl;

uint64_t dbl_random(void);
void dbl_violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* verbs_double_obj.c: make and end them. */
void dbl_add_objects(struct cm_verbs *v);

/* The region of a key (remote: rkey) that has [at, at + bytes), or NULL. */
struct dbl_mr *dbl_region(uint32_t key, bool remote, uint64_t at, uint64_t bytes);

/* verbs_double_qp.c */
struct dbl_qp *dbl_pair(uint32_t number);
void dbl_complete(struct ibv_cq *cq, const struct ibv_wc *wc);

int dbl_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int dbl_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int dbl_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int dbl_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int dbl_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask);

/* verbs_double_wire.c: the thread; and: requests and receives that are left end with FLUSH_ERR. */
void *dbl_wire(void *unused);
void dbl_break(struct dbl_qp *q);

#endif
