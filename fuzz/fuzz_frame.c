/*
 * Fuzz what a neighbour of the proxy sends: whatever it is, only free slots are
 * written, and no more arrives in a port than it holds. The first byte says in
 * which pieces the stream comes; bytes that start a frame get the right magic
 * half of the time, or nothing would be reached.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "transport/tcp.h"

enum { PORTS = 3, DEPTH = 2, SLOT = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct port {
    struct cm_port_lines lines;
    unsigned char slots[DEPTH * (sizeof(struct cm_slot_head) + SLOT)];
};

/* Give the reader `n` bytes, at most `piece` at a time. */
static enum cm_status feed(struct cm_reader *r, const uint8_t *bytes, size_t n, size_t piece)
{
    enum cm_status st = CM_OK;

    while (n > 0 && st == CM_OK) {
        struct iovec at[2];
        int areas = cm_reader_where(r, at);
        size_t took = 0, most = n < piece ? n : piece;

        for (int i = 0; i < areas && took < most; i++) {
            size_t part = at[i].iov_len < most - took ? at[i].iov_len : most - took;

            memcpy(at[i].iov_base, bytes + took, part);
            took += part;
        }
        st = cm_reader_took(r, took);
        if (st == CM_OK)
            st = cm_reader_resume(r);
        bytes += took;
        n -= took;
    }
    return st;
}

/* The executor takes what came, from the ports whose bit is set. */
static void take(struct port *ports, unsigned which)
{
    for (int i = 0; i < PORTS; i++) {
        uint64_t head = atomic_load(&ports[i].lines.head), tail = atomic_load(&ports[i].lines.tail);

        if (tail < head || tail - head > DEPTH)
            abort();
        if (which >> i & 1)
            atomic_store(&ports[i].lines.head, tail);
    }
}

/* Frames of the stream, each preceded by a byte: the ports to empty, and whether to mend it. */
static void run(struct cm_sock *s, struct port *ports, const uint8_t *data, size_t size)
{
    size_t piece = size > 0 ? 1 + data[0] : 1, used = 1;
    enum cm_status st = CM_OK;

    while (st == CM_OK && used + 1 + sizeof(struct cm_frame) <= size) {
        struct cm_frame f;
        unsigned how = data[used];
        size_t payload = size - used - 1 - sizeof(f);

        memcpy(&f, data + used + 1, sizeof(f));
        if (how & 0x80) {
            f.magic = CM_FRAME_MAGIC;
            f.type = (uint16_t)(f.type % (CM_NFRAMES + 1));
            f.port %= PORTS + 1;
            f.bytes %= 2 * SLOT;
        }
        if (how & 0x40 && f.port < PORTS)
            f.number = s->peer->recv[f.port].moved;
        used += 1 + sizeof(f);
        payload = f.bytes < payload ? (size_t)f.bytes : payload;
        st = feed(&s->in, (const uint8_t *)&f, sizeof(f), piece);
        if (st == CM_OK)
            st = feed(&s->in, data + used, payload, piece);
        used += payload;
        take(ports, how);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cm_frame hello = {CM_FRAME_MAGIC, CM_FRAME_PORTS, PORTS, DEPTH, SLOT, 0};
    struct port *ports = aligned_alloc(CM_LINE, 2 * PORTS * sizeof(*ports));
    void *send[PORTS], *recv[PORTS];
    struct cm_proxy_args a = {.sockets = 1, .depth = DEPTH, .slot_bytes = SLOT};
    struct cm_proxy_peer from = {.host = "fuzz", .nsend = PORTS, .nrecv = PORTS};
    struct cm_proxy_stats stats = {0};
    struct cm_peer peer;

    if (ports == NULL)
        return 0;
    memset(ports, 0, 2 * PORTS * sizeof(*ports));
    for (int i = 0; i < PORTS; i++) {
        recv[i] = &ports[i];
        send[i] = &ports[PORTS + i];
    }
    from.send = send;
    from.recv = recv;
    if (cm_peer_init(&peer, &a, &from, &stats) == CM_OK &&
        feed(&peer.socks[0].in, (const uint8_t *)&hello, sizeof(hello), sizeof(hello)) == CM_OK)
        run(&peer.socks[0], ports, data, size);
    cm_peer_destroy(&peer);
    free(ports);
    return 0;
}
