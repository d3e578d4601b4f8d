/*
 * Offers: what a process tells a neighbour so that it can write to its ports,
 * and how the neighbour connects by it.
 *
 * Invariant: an offer is plain data of fixed widths. What is in it is checked
 * before it is used: it came from another machine.
 */
#include <stdio.h>
#include <string.h>

#include "transport/ib_int.h"

enum { OFFER_MAGIC = 0x31424943 /* "CIB1" */ };

/* The offer, then one window for each port to receive into. */
struct offer {
    uint32_t magic;
    int32_t proc;
    uint32_t nports, depth, nqps;
    uint32_t framing, mtu, lid;
    uint64_t slot_bytes;
    unsigned char gid[16];
    struct {
        uint32_t number, psn;
    } qp[CM_IB_QPS];
};
struct window {
    uint64_t at; /* of the first slot */
    uint32_t key;
    uint32_t reserved;
};

size_t cm_ib_offer_bytes(int nrecv)
{
    return sizeof(struct offer) + (size_t)nrecv * sizeof(struct window);
}

/* The largest that this end can and may use, as enum ibv_mtu. */
static uint32_t own_mtu(const struct cm_ib *ib)
{
    uint32_t mtu = IBV_MTU_256;

    if (ib->a.choice.mtu == 0)
        return ib->dev.attr.active_mtu;
    while (128 << mtu < ib->a.choice.mtu)
        mtu++;
    return mtu;
}

void cm_ib_offer(const struct cm_ib *ib, int peer, void *out)
{
    const struct cm_ib_link *l = &ib->links[peer];
    struct offer o;

    memset(&o, 0, sizeof(o));
    o.magic = OFFER_MAGIC;
    o.proc = ib->a.proc;
    o.nports = (uint32_t)l->nrecv;
    o.depth = (uint32_t)ib->a.depth;
    o.nqps = (uint32_t)ib->a.choice.qps;
    o.framing = ib->dev.framing;
    o.mtu = own_mtu(ib);
    o.lid = ib->dev.attr.lid;
    o.slot_bytes = ib->a.slot_bytes;
    memcpy(o.gid, ib->dev.gid.raw, sizeof(o.gid));
    for (int k = 0; k < ib->a.choice.qps; k++) {
        o.qp[k].number = l->qps[k].qp->qp_num;
        o.qp[k].psn = l->qps[k].psn;
    }
    memcpy(out, &o, sizeof(o));
    for (int i = 0; i < l->nrecv; i++) {
        const struct window w = {.at = (uintptr_t)l->recv[i].slots, .key = l->recv[i].key};

        memcpy((char *)out + cm_ib_offer_bytes(i), &w, sizeof(w));
    }
}

static enum cm_status garbage(const struct cm_ib_link *l, const char *what)
{
    return CM_FAIL(CM_ESYS, "process %d (host %s) made no valid offer for the ib wire: %s", l->proc,
                   l->host, what);
}

/* Ports of another geometry: both processes are right by themselves, but not together. */
static enum cm_status check_geometry(const struct cm_ib_link *l, const struct offer *o)
{
    const struct cm_ib_args *a = &l->ib->a;

    if (o->nports == (uint32_t)l->nsend && o->depth == (uint32_t)a->depth &&
        o->slot_bytes == a->slot_bytes)
        return CM_OK;
    return CM_FAIL(CM_EMISMATCH,
                   "process %d (host %s) has %u ports of %u slots of %llu bytes from process %d, "
                   "which expects %d of %d of %zu",
                   l->proc, l->host, o->nports, o->depth, (unsigned long long)o->slot_bytes,
                   a->proc, l->nsend, a->depth, a->slot_bytes);
}

static enum cm_status check_address(const struct cm_ib_link *l, const struct offer *o)
{
    const struct cm_ib *ib = l->ib;
    char here[CM_IB_GID_TEXT], there[CM_IB_GID_TEXT];

    if (o->nqps != (uint32_t)ib->a.choice.qps)
        return CM_FAIL(CM_EMISMATCH,
                       "process %d (host %s) has %u queue pairs for a connection, this one %d",
                       l->proc, l->host, o->nqps, ib->a.choice.qps);
    if (o->framing > CM_IB_ROCE_UNKNOWN || o->mtu < IBV_MTU_256 || o->mtu > IBV_MTU_4096)
        return garbage(l, "its link or MTU");
    if (o->framing != (uint32_t)ib->dev.framing)
        return CM_FAIL(
            CM_EMISMATCH,
            "process %d (host %s) has %s with GID %s, but %s:%d here has %s with GID %s (index "
            "%d): choose adapters and GID index so that both are the same",
            l->proc, l->host, cm_ib_framing_text((enum cm_ib_framing)o->framing),
            cm_ib_gid_text(o->gid, there), ib->dev.name, ib->dev.port,
            cm_ib_framing_text(ib->dev.framing), cm_ib_gid_text(ib->dev.gid.raw, here),
            ib->dev.gid_index);
    if (o->framing == CM_IB_NATIVE && (o->lid == 0 || o->lid > UINT16_MAX))
        return garbage(l, "its LID");
    for (int k = 0; k < ib->a.choice.qps; k++)
        if (o->qp[k].number > CM_IB_NUMBER_MASK || o->qp[k].psn > CM_IB_NUMBER_MASK)
            return garbage(l, "its queue pairs");
    return CM_OK;
}

static enum cm_status take_windows(struct cm_ib_link *l, const char *theirs)
{
    size_t slots = (size_t)l->ib->a.depth * (sizeof(struct cm_slot_head) + l->ib->a.slot_bytes);

    for (int i = 0; i < l->nsend; i++) {
        struct window w;

        memcpy(&w, theirs + cm_ib_offer_bytes(i), sizeof(w));
        if (w.at == 0 || w.at % alignof(struct cm_slot_head) != 0 || w.at > UINT64_MAX - slots)
            return garbage(l, "the address of a port");
        l->send[i].remote = w.at;
        l->send[i].remote_key = w.key;
    }
    return CM_OK;
}

static enum cm_status connect_pair(struct cm_ib_qp *q, const struct offer *o)
{
    const struct cm_ib *ib = q->link->ib;
    const struct cm_ib_choice *c = &ib->a.choice;
    uint32_t mtu = own_mtu(ib);
    struct cm_ib_far far = {.number = o->qp[q->nth].number,
                            .psn = o->qp[q->nth].psn,
                            .lid = o->lid,
                            .mtu = o->mtu < mtu ? o->mtu : mtu};
    int err;

    memcpy(far.gid, o->gid, sizeof(far.gid));
    err = cm_ib_to_rtr(&ib->dev, q->qp, c, &far);
    if (err == 0)
        err = cm_ib_to_rts(&ib->dev, q->qp, c, q->psn);
    if (err == 0)
        return CM_OK;
    return CM_FAIL(CM_ESYS, "%s:%d: cannot connect to process %d (host %s): %s", ib->dev.name,
                   ib->dev.port, q->link->proc, q->link->host, strerror(err));
}

enum cm_status cm_ib_connect(struct cm_ib *ib, int peer, const void *theirs, size_t bytes)
{
    struct cm_ib_link *l = &ib->links[peer];
    struct offer o;
    enum cm_status st;

    if (bytes < sizeof(o))
        return garbage(l, "it is too short");
    memcpy(&o, theirs, sizeof(o));
    if (o.magic != OFFER_MAGIC || o.proc != l->proc)
        return garbage(l, "its head");
    st = check_geometry(l, &o);
    if (st != CM_OK)
        return st;
    if (bytes != cm_ib_offer_bytes(l->nsend))
        return garbage(l, "its length");
    st = check_address(l, &o);
    if (st == CM_OK)
        st = take_windows(l, theirs);
    for (int k = 0; k < ib->a.choice.qps && st == CM_OK; k++)
        st = connect_pair(&l->qps[k], &o);
    return st;
}
