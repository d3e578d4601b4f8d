/*
 * Frames: what travels over a connection after the handshake, and the reader
 * that takes a stream of bytes apart. Private to src/transport.
 *
 * A frame is a head of 32 bytes and `bytes` of payload. Both machines have the
 * same byte order: the handshake has made sure.
 */
#ifndef CM_TRANSPORT_FRAME_H
#define CM_TRANSPORT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"

enum {
    CM_FRAME_MAGIC = 0xc3a7,
    CM_STAGE_BYTES = 16384 /* what is read ahead where frames are small */
};

enum cm_frame_type {
    CM_FRAME_PORTS = 1, /* first on each socket. port: how many I fill, number: slots, sig: bytes */
    CM_FRAME_SLOT,      /* port, number: of the slot, sig; payload: the slot's */
    CM_FRAME_CREDIT,    /* port, number: slots freed so far */
    CM_FRAME_CONTROL,   /* port: its type; payload: the message */
    CM_FRAME_BEAT,      /* I am alive */
    CM_FRAME_BYE,       /* last on each socket: all is said */
    CM_NFRAMES
};

struct cm_frame {
    uint16_t magic;
    uint16_t type;
    uint32_t port;
    uint64_t number, sig, bytes;
};

/*
 * Who wants the frames. Each function is called on the thread that reads, and
 * may refuse with a status, whose reason it keeps: the connection is then useless.
 */
struct cm_frame_sink {
    void *arg;
    /* A head came: type and magic are good. bytes > 0: *to must be where they go. */
    enum cm_status (*begin)(void *arg, const struct cm_frame *f, void **to);
    /*
     * A slot's payload of CM_FAR_BYTES or more: if its executor wants it elsewhere, change
     * *to. False: nobody has said so yet; later will do, but for the `last` call.
     */
    bool (*place)(void *arg, const struct cm_frame *f, bool last, unsigned char **to);
    /* All of the payload is there. */
    enum cm_status (*end)(void *arg, const struct cm_frame *f);
    /* What came is no frame. */
    enum cm_status (*garbage)(void *arg, const char *what);
};

/* Bytes in, frames out. Large payloads go straight to where the sink wants them. */
struct cm_reader {
    struct cm_frame_sink sink;
    struct cm_frame frame; /* whose payload is not complete, if left > 0 */
    unsigned char *to;
    size_t left;
    size_t used, have; /* of stage; left > 0: both 0 */
    bool large;        /* the last payload was: read no more than a head ahead */
    bool put_off;      /* the payload begins with cm_reader_resume() */
    unsigned char stage[CM_STAGE_BYTES];
};

void cm_reader_init(struct cm_reader *r, const struct cm_frame_sink *sink);

/* Where the next bytes of the stream belong: one or two areas, the number is returned. Nothing is
   put off. */
int cm_reader_where(struct cm_reader *r, struct iovec at[2]);

/*
 * `n` bytes have been put there, at least 1. Calls the sink; its first refusal is
 * returned. A slot's payload of CM_FAR_BYTES or more may be put off: its executor
 * may have something to do first, so that it can say where the payload should go.
 * More of it is still to come then, so the socket tells when it is time to go on.
 */
CM_MUST_CHECK enum cm_status cm_reader_took(struct cm_reader *r, size_t n);

/* Go on with what was put off, if anything is. Calls the sink, as above. */
CM_MUST_CHECK enum cm_status cm_reader_resume(struct cm_reader *r);

#endif
