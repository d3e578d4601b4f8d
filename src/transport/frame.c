/*
 * The reader of frames. Small frames are read in bulk into the stage and copied
 * out; where payloads are large, one call reads the rest of a payload into its
 * slot and the next head into the stage.
 *
 * Invariant: while a payload is incomplete the stage is empty, unless it is put
 * off, and the head in `frame` has been accepted by the sink.
 */
#include "transport/frame.h"

#include <assert.h>
#include <string.h>

#include "base/shared.h"

enum { LARGE = 8192 };

_Static_assert(sizeof(struct cm_frame) == 32, "no gaps: it travels as it is");
_Static_assert((int)CM_STAGE_BYTES <= (int)CM_FAR_BYTES, "what is put off is never all staged");

void cm_reader_init(struct cm_reader *r, const struct cm_frame_sink *sink)
{
    memset(r, 0, offsetof(struct cm_reader, stage));
    r->sink = *sink;
}

int cm_reader_where(struct cm_reader *r, struct iovec at[2])
{
    size_t ahead = r->large ? sizeof(struct cm_frame) : sizeof(r->stage);
    int n = 0;

    assert(!r->put_off);
    if (r->left > 0)
        at[n++] = (struct iovec){r->to, r->left};
    /* Part of a head may be there already: at least the rest of it is read. */
    at[n++] = (struct iovec){r->stage + r->have, ahead - r->have};
    return n;
}

static enum cm_status finish(struct cm_reader *r)
{
    r->large = r->frame.bytes >= LARGE;
    return r->sink.end(r->sink.arg, &r->frame);
}

static enum cm_status begin(struct cm_reader *r)
{
    struct cm_frame *f = &r->frame;
    void *to = NULL;
    enum cm_status st;

    memcpy(f, r->stage + r->used, sizeof(*f));
    r->used += sizeof(*f);
    if (f->magic != CM_FRAME_MAGIC)
        return r->sink.garbage(r->sink.arg, "bytes that are no frame");
    if (f->type < CM_FRAME_PORTS || f->type >= CM_NFRAMES)
        return r->sink.garbage(r->sink.arg, "a frame of unknown type");
    st = r->sink.begin(r->sink.arg, f, &to);
    if (st != CM_OK)
        return st;
    assert(f->bytes == 0 || to != NULL);
    r->to = to;
    r->left = (size_t)f->bytes;
    r->put_off = f->type == CM_FRAME_SLOT && r->left >= CM_FAR_BYTES &&
                 !r->sink.place(r->sink.arg, f, false, &r->to);
    return r->left == 0 ? finish(r) : CM_OK;
}

/* Move staged bytes to where the payload goes. */
static enum cm_status unstage(struct cm_reader *r)
{
    size_t n = r->have - r->used;

    n = n < r->left ? n : r->left;
    memcpy(r->to, r->stage + r->used, n);
    r->used += n;
    r->to += n;
    r->left -= n;
    return r->left == 0 ? finish(r) : CM_OK;
}

/* Take whole heads and payloads from the stage; what remains moves to its start. */
static enum cm_status parse(struct cm_reader *r)
{
    enum cm_status st = CM_OK;

    while (st == CM_OK && r->used < r->have && !r->put_off) {
        if (r->left > 0)
            st = unstage(r);
        else if (r->have - r->used < sizeof(struct cm_frame))
            break;
        else
            st = begin(r);
    }
    memmove(r->stage, r->stage + r->used, r->have - r->used);
    r->have -= r->used;
    r->used = 0;
    return st;
}

enum cm_status cm_reader_took(struct cm_reader *r, size_t n)
{
    size_t direct = n < r->left ? n : r->left;
    enum cm_status st = CM_OK;

    assert(n > 0);
    if (direct > 0) {
        r->to += direct;
        r->left -= direct;
        if (r->left == 0)
            st = finish(r);
    }
    r->have += n - direct;
    return st == CM_OK ? parse(r) : st;
}

enum cm_status cm_reader_resume(struct cm_reader *r)
{
    if (!r->put_off)
        return CM_OK;
    r->put_off = false;
    r->sink.place(r->sink.arg, &r->frame, true, &r->to);
    return parse(r);
}
