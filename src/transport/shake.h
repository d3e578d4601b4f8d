/*
 * The handshake: the first bytes of every connection between processes. Who
 * dialled sends a hello, the other answers with its own; both carry the job's
 * token. One struct per connection, driven by the owner's poll loop. Private.
 *
 * The token keeps out other jobs, port scanners and whoever dials by mistake.
 * It travels as it is: against someone who reads the network it does not help.
 */
#ifndef CM_TRANSPORT_SHAKE_H
#define CM_TRANSPORT_SHAKE_H

#include "transport/net.h"

enum { CM_NET_VERSION = 1 }; /* of hello and frames; both ends must have the same */

/* Also tells machines of other byte order apart: nothing is swapped here. */
enum { CM_HELLO_MAGIC = 0x314d4c43 };

struct cm_hello {
    uint32_t magic;
    uint16_t version;
    uint16_t answer; /* 0: who dialled, 1: who was dialled */
    uint32_t from, to;
    uint16_t index, sockets; /* which of how many sockets of the connection */
    uint32_t reserved;
    unsigned char token[CM_NET_TOKEN];
};

enum cm_shake_state {
    CM_SHAKE_CONNECTING, /* the dialled socket is not connected yet */
    CM_SHAKE_ASKING,     /* sending my hello, or reading the other's as the one who was dialled */
    CM_SHAKE_ASKED,      /* dialled side: a good hello came; cm_shake_admit() or close */
    CM_SHAKE_ANSWERING,  /* sending or awaiting the answer */
    CM_SHAKE_DONE,
    CM_SHAKE_LOST,   /* the connection broke, `err`; another try may do better */
    CM_SHAKE_REFUSED /* the other end is not who it should be, `why` */
};

struct cm_shake {
    enum cm_shake_state state;
    int fd; /* the owner closes it; -1: none */
    bool dialled;
    struct cm_hello mine, theirs;
    size_t put, got;
    int err;         /* errno of CM_SHAKE_LOST */
    const char *why; /* of CM_SHAKE_REFUSED; static text */
};

/* Start with a socket that dials, or that was accepted. `mine`: magic and version are filled in. */
void cm_shake_dialled(struct cm_shake *s, int fd, const struct cm_hello *mine);
void cm_shake_accepted(struct cm_shake *s, int fd, const struct cm_hello *mine);

/* What to poll for: POLLIN, POLLOUT, or 0 if nothing is to come. */
short cm_shake_events(const struct cm_shake *s);

/* Go on as far as it gets, without waiting. */
void cm_shake_step(struct cm_shake *s);

/* Answer the hello in `theirs`; it must be CM_SHAKE_ASKED. */
void cm_shake_admit(struct cm_shake *s);

#endif
