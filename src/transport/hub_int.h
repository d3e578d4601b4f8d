/* One connection of the star, and what goes over it. Private to hub*.c. */
#ifndef CM_TRANSPORT_HUB_INT_H
#define CM_TRANSPORT_HUB_INT_H

#include <poll.h>
#include <stddef.h>

#include "transport/hub.h"

enum { CM_HUB_MAGIC = 0x4248c3a8, CM_HUB_HOST = 64, CM_HUB_TEXT = 512, CM_HUB_FAREWELL_MS = 500 };

enum cm_hub_type {
    CM_HUB_JOIN = 1, /* to process 0: struct cm_hub_join */
    CM_HUB_READY,    /* from it: all have joined */
    CM_HUB_PART,     /* to it: one's part of a gather */
    CM_HUB_ALL,      /* from it: all parts */
    CM_HUB_BYE,      /* to it: the end, with my exit code */
    CM_HUB_END,      /* from it: the exit code of all */
    CM_HUB_FAIL      /* either way: the job ends now with this code; from 0: the reason as text */
};

/* Before each message. Same byte order on both sides: the handshake has made sure. */
struct cm_hub_head {
    uint32_t magic;
    uint16_t type;
    uint16_t loud; /* of a failure: print the text, nobody else on your machine will */
    uint32_t code; /* enum cm_exit */
    uint32_t turn; /* number of the gather */
    uint64_t bytes;
};

struct cm_hub_join {
    uint32_t nprocs;
    uint32_t reserved;
    uint64_t who;     /* random: the same process trying again is no second one */
    uint64_t machine; /* struct cm_hub_args */
    char host[CM_HUB_HOST];
};

enum cm_hub_state {
    CM_LINK_UP,
    CM_LINK_GOT,    /* what was expected is there */
    CM_LINK_LOST,   /* hung up or broken, `err` (0: an orderly end of the stream) */
    CM_LINK_FAILED, /* a CM_HUB_FAIL came: in.code, in.loud, text */
    CM_LINK_ODD     /* something else than expected came: in.type, in.bytes */
};

/* At most one message in each direction at a time. */
struct cm_hub_link {
    int fd; /* -1: none */
    enum cm_hub_state state;
    int err;
    struct cm_hub_head out, in;
    const void *body; /* of out */
    size_t put, got;  /* bytes so far, heads included */
    enum cm_hub_type want;
    uint32_t want_turn;
    void *room; /* for the body of `want` */
    size_t want_bytes;
    char *text; /* CM_HUB_TEXT bytes for the text of a failure; NULL: none is taken */
    struct cm_hub_join peer;
};

struct cm_hub {
    struct cm_hub_args a;
    char where[CM_HUB_TEXT];   /* process 0 */
    struct cm_hub_link *links; /* process 0: nprocs, its own unused; else: one, to process 0 */
    struct pollfd *fds;        /* as many */
    int nlinks;
    uint32_t turn;
    bool broken; /* the job has failed */
    enum cm_exit code;
    char text[CM_HUB_TEXT];
};

/* A link over `fd`, which becomes its. */
void cm_link_init(struct cm_hub_link *l, int fd);
void cm_link_drop(struct cm_hub_link *l);

/* Start to send; `body` stays the caller's and must last until it is sent. */
void cm_link_say(struct cm_hub_link *l, const struct cm_hub_head *head, const void *body);

/* The next message must be this, with so many bytes, which go to `room`. */
void cm_link_expect(struct cm_hub_link *l, enum cm_hub_type type, uint32_t turn, void *room,
                    size_t bytes);

bool cm_link_sent(const struct cm_hub_link *l);
short cm_link_events(const struct cm_hub_link *l);

/* Go on after poll(), as far as it gets without waiting. */
void cm_link_step(struct cm_hub_link *l, short revents);

/* An unconnected star, NULL: no memory (logged). */
struct cm_hub *cm_hub_new(const struct cm_hub_args *a, int nlinks, const char *where);

/* Links that still have something to hear or to say. */
int cm_hub_busy(const struct cm_hub *h);

/* Wait for something to happen on any link, `until_ns` at most, and step them. */
void cm_hub_step(struct cm_hub *h, int64_t until_ns);

/* All are told h->code and h->text, and hung up on once they have: in half a second at most. */
void cm_hub_dismiss(struct cm_hub *h);

/* A status with that exit code, for a failure that has been logged elsewhere. */
enum cm_status cm_hub_status(enum cm_exit code);

/*
 * Process 0: the job fails. Logs the text and sends it to everybody who is
 * connected. Waits until they have hung up, half a second at most. Returns `st`.
 */
enum cm_status cm_hub_give_up(struct cm_hub *h, enum cm_status st, const char *fmt, ...)
    CM_PRINTF(3, 4);

/* Process 0 has told this one (state CM_LINK_FAILED): the status with its exit code. */
enum cm_status cm_hub_obey(struct cm_hub *h, const struct cm_hub_link *l);

/* "3, 5-7" of the ranks without a link in state CM_LINK_GOT (any: without a link); how many. */
int cm_hub_missing(const struct cm_hub *h, bool any, char *buf, size_t size);

#endif
