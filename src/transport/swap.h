/* Exchange one message with each of several neighbours, over connected sockets. */
#ifndef CM_TRANSPORT_SWAP_H
#define CM_TRANSPORT_SWAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cm_swap {
    int fd;           /* non-blocking; nothing else is under way on it */
    int proc;         /* for messages */
    const char *host; /* for messages */
    const void *out;  /* what this end sends, ... */
    size_t out_bytes;
    void *in; /* ... and where the other's goes */
    size_t in_bytes;
    size_t put, got; /* bytes so far; start at 0 */
};

/*
 * All at once, so no order of the neighbours can make them wait for each other.
 * Both ends must know both sizes. Blocks until `until_ns` (cm_now_ns() time) at
 * most. CM_ETIMEOUT, CM_ESYS: logged, with the neighbour's name. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_swap_all(struct cm_swap *swaps, int n, int64_t until_ns);

#endif
