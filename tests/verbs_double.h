/*
 * libibverbs for tests: devices, memory regions, queue pairs and a wire, all in
 * this process. It is stricter than adapters are: whatever a program does against
 * the rules is counted as a violation and told. It delivers late and, between
 * queue pairs, in any order; writes appear piecemeal and before their signal; a
 * request reads its memory as late as it can. It fails on demand.
 *
 * One world at a time: verbs_double_begin() ... verbs_double_end().
 */
#ifndef CM_TESTS_VERBS_DOUBLE_H
#define CM_TESTS_VERBS_DOUBLE_H

#include "transport/verbs.h"

enum { DOUBLE_GIDS = 8, DOUBLE_PORTS = 2, DOUBLE_TEXT = 256 };

struct double_port {
    bool down;
    uint8_t link_layer; /* IBV_LINK_LAYER_* */
    uint16_t lid;
    enum ibv_mtu mtu;
    uint8_t speed, width;         /* as in struct ibv_port_attr */
    const char *gid[DOUBLE_GIDS]; /* IPv6 text; NULL: empty */
};

struct double_device {
    const char *name;
    int nports;
    int open_errno; /* it cannot be opened */
    struct double_port port[DOUBLE_PORTS];
};

struct double_setup {
    const struct double_device *devices;
    int ndevices;
    int max_qp_wr, max_cqe;
    uint32_t max_inline;
    uint64_t seed;
    int laziness;    /* a step that could be done is done once in so many chances; >= 1 */
    bool adaptive;   /* a large write may be overtaken by its own signal: a violation */
    bool dmabuf;     /* the kernel knows them */
    bool peermem;    /* the module is there */
    const void *gpu; /* memory that plays a GPU's */
    size_t gpu_bytes;
    int reg_errno; /* registration of memory is refused; 0: it is not */
};

/* The two devices that most tests use: "dbl0" and "dbl1", RoCE. */
extern const struct double_device double_roce[2];
extern const struct double_device double_native[2];
struct double_setup double_usual(void);

void verbs_double_begin(const struct double_setup *s);
const struct cm_verbs *verbs_double(void);

/* Violations, and objects that were left; `text` has the first. */
int verbs_double_end(char text[DOUBLE_TEXT]);

/* The send request that is posted after `after` others ends with this status. */
void verbs_double_fail(int after, enum ibv_wc_status status);

/* All packets are lost from now on (false: no more). */
void verbs_double_cut(bool cut);

/* Report an event of a port, of the device, or of the newest queue pair, on all open devices. */
void verbs_double_event(enum ibv_event_type type);

/* Completions that nobody has polled yet. */
int verbs_double_pending(const struct ibv_cq *cq);

/* How often a receive was missing; requests that read memory of this key. */
int verbs_double_rnr(void);
int verbs_double_reads(uint32_t rkey);

#endif
