/* Which adapter, port and GID the ib wire uses. Private to src/transport. */
#ifndef CM_TRANSPORT_IB_DEV_H
#define CM_TRANSPORT_IB_DEV_H

#include "transport/ib.h"
#include "transport/verbs.h"

enum { CM_IB_NAME = 64, CM_IB_GID_TEXT = 48 };

/* What packets look like. Both ends must have the same. */
enum cm_ib_framing {
    CM_IB_NATIVE,      /* InfiniBand */
    CM_IB_ROCE_V1,     /* Ethernet frames */
    CM_IB_ROCE_V2,     /* UDP */
    CM_IB_ROCE_UNKNOWN /* Ethernet, and nobody tells which */
};

/* An open port. */
struct cm_ib_dev {
    const struct cm_verbs *v;
    struct ibv_context *context;
    char name[CM_IB_NAME];
    uint8_t port;
    int gid_index;
    union ibv_gid gid;
    enum cm_ib_framing framing;
    double gbits;
    struct ibv_port_attr attr;
    struct ibv_device_attr limits;
};

/*
 * Choose and open. *out is untouched unless CM_OK; close it with
 * cm_ib_dev_close(). Does not log: why[] has the message. CM_EINVAL: the
 * choice names nothing that exists; CM_EUNSUP: nothing is up; CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_ib_dev_open(const struct cm_verbs *v, const char *sysfs,
                                            const struct cm_ib_choice *c, struct cm_ib_dev *out,
                                            char why[CM_TEXT]);
void cm_ib_dev_close(struct cm_ib_dev *d);

/*
 * ib_gid.c: the GID at index `want`, or the best for want = -1, into `d`, whose name,
 * port and attr are there. RoCE: version 2, an address of IPv4, valid beyond the
 * link, in this order of importance. InfiniBand: index 0. As above.
 */
CM_MUST_CHECK enum cm_status cm_ib_find_gid(struct cm_ib_dev *d, const char *sysfs, int want,
                                            char why[CM_TEXT]);

/* "192.0.2.7" or as IPv6. Returns buf. */
const char *cm_ib_gid_text(const unsigned char gid[16], char buf[CM_IB_GID_TEXT]);
const char *cm_ib_framing_text(enum cm_ib_framing f);

/* First line of <sysfs>/class/infiniband/<path>, without its end; false: it cannot be read. */
bool cm_ib_sysfs_line(const char *sysfs, const char *path, char *line, size_t size);

#endif
