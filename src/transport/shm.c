/*
 * The wire between processes of one node: a memfd. Process 0, the leader,
 * makes it and hands it over local sockets; so neither the size of /dev/shm
 * nor a name in a file system matters, and a crash leaves nothing behind.
 *
 * Two random tokens travel through the boot's gather, which only processes of
 * the job see: a follower shows `hello`, the leader answers with `token`,
 * which also stands in the segment's head. A stranger of the same user can
 * connect, but not pass. The sockets stay open: one that breaks is a death.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/fdpass.h"
#include "transport/segment.h"

enum { TOKEN = 16, HELLO_NS = 2 * CM_NS_PER_S /* a follower writes right after connecting */ };

/* What each process brings to the first gather; names and tokens are the leader's. */
struct offer {
    uint32_t status;
    uint32_t padding;
    uint64_t total;
    unsigned char name[CM_LOCAL_NAME], hello[TOKEN], token[TOKEN];
};

struct greeting {
    unsigned char hello[TOKEN];
    int32_t proc;
};

static bool shm_reaches(const struct cm_boot *b)
{
    return b->nprocs >= 1; /* the caller has found all processes on one node */
}

static enum cm_status map(struct cm_segment *s, const struct cm_layout *l)
{
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);

    if (at == MAP_FAILED)
        return CM_FAIL(CM_ENOMEM, "address space: %zu bytes needed, %zu available: %s", s->bytes,
                       cm_memory_available(), strerror(errno));
    s->base = at;
    cm_segment_advise(s, l);
    return CM_OK;
}

/* The memfd; sealed, so that no process can shrink it under another's feet. */
static enum cm_status create(struct cm_segment *s, const struct cm_layout *l)
{
    enum cm_status st = cm_memory_check(l);

    if (st != CM_OK)
        return st;
    s->fd = memfd_create("collmark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return cm_fail_errno("memfd_create");
    if (ftruncate(s->fd, (off_t)s->bytes) != 0)
        return CM_FAIL(CM_ENOMEM, "shared memory of %zu bytes: %s", s->bytes, strerror(errno));
    if (fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return cm_fail_errno("sealing shared memory");
    return map(s, l);
}

static enum cm_status randomize(struct offer *o)
{
    unsigned char *parts[] = {o->name, o->hello, o->token};

    for (size_t i = 0; i < CM_LEN(parts); i++)
        if (getrandom(parts[i], TOKEN, 0) != TOKEN)
            return cm_fail_errno("getrandom");
    return CM_OK;
}

static enum cm_status leader_prepare(struct cm_segment *s, const struct cm_layout *l,
                                     struct offer *o, int *listener)
{
    enum cm_status st = create(s, l);

    if (st == CM_OK)
        st = randomize(o);
    if (st != CM_OK)
        return st;
    memcpy(((struct cm_shared *)s->base)->token, o->token, TOKEN);
    if (s->nprocs == 1)
        return CM_OK;
    *listener = cm_local_listen(o->name, s->nprocs);
    return CM_SYS(*listener >= 0, "listening on a local socket");
}

/* The process at the other end of `fd`, or -1: not one of ours, or one already known. */
static int greet(const struct cm_segment *s, int fd, const struct offer *o, int64_t until_ns)
{
    int64_t soon = cm_now_ns() + HELLO_NS;
    struct greeting g;

    if (!cm_local_same_user(fd) ||
        !cm_local_read(fd, &g, sizeof(g), soon < until_ns ? soon : until_ns) ||
        memcmp(g.hello, o->hello, TOKEN) != 0)
        return -1;
    return g.proc > 0 && g.proc < s->nprocs && s->links[g.proc] < 0 ? g.proc : -1;
}

static enum cm_status nobody_came(const struct cm_segment *s)
{
    int err = errno;
    char missing[256] = "";
    size_t len = 0;

    for (int p = 1; p < s->nprocs && len < sizeof(missing) - 16; p++)
        if (s->links[p] < 0)
            len += (size_t)snprintf(missing + len, sizeof(missing) - len, " %d", p);
    return CM_FAIL(err == ETIMEDOUT ? CM_ETIMEOUT : CM_ESYS,
                   "shared memory: processes that did not connect:%s: %s", missing, strerror(err));
}

static enum cm_status leader_serve(struct cm_segment *s, int listener, const struct offer *o,
                                   int64_t until_ns)
{
    for (int served = 1; served < s->nprocs;) {
        int fd = cm_local_accept(listener, until_ns), proc;

        if (fd < 0)
            return nobody_came(s);
        proc = greet(s, fd, o, until_ns);
        if (proc < 0 || !cm_local_write(fd, o->token, TOKEN, s->fd, until_ns)) {
            close(fd); /* a stranger, or a process that has just died: the deadline will tell */
            continue;
        }
        s->links[proc] = fd;
        served++;
    }
    return CM_OK;
}

static enum cm_status follower_attach(struct cm_segment *s, const struct cm_boot *b,
                                      const struct cm_layout *l, const struct offer *o,
                                      int64_t until_ns)
{
    struct greeting g = {.proc = b->proc};
    unsigned char token[TOKEN];
    enum cm_status st;

    memcpy(g.hello, o->hello, TOKEN);
    s->links[0] = cm_local_connect(o->name, until_ns);
    if (s->links[0] < 0)
        return CM_FAIL(CM_ESYS, "process %d: connecting to process 0: %s", b->proc,
                       strerror(errno));
    if (!cm_local_same_user(s->links[0]))
        return CM_FAIL(CM_ESYS, "process %d: process 0 runs under another user", b->proc);
    if (!cm_local_write(s->links[0], &g, sizeof(g), -1, until_ns) ||
        !cm_local_read_fd(s->links[0], token, TOKEN, &s->fd, until_ns))
        return CM_FAIL(errno == ETIMEDOUT ? CM_ETIMEOUT : CM_ESYS,
                       "process %d: no shared memory from process 0: %s", b->proc, strerror(errno));
    st = map(s, l);
    if (st != CM_OK)
        return st;
    if (memcmp(token, o->token, TOKEN) != 0 ||
        memcmp(((struct cm_shared *)s->base)->token, o->token, TOKEN) != 0)
        return CM_FAIL(CM_ESYS, "process %d: the shared memory belongs to another job", b->proc);
    return CM_OK;
}

/* Exchange the offers; *o becomes the leader's. */
static enum cm_status exchange(const struct cm_boot *b, struct offer *o)
{
    struct offer *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st;

    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);
    st = b->gather(b, o, sizeof(*o), all);
    for (int p = 0; st == CM_OK && p < b->nprocs; p++) {
        st = (enum cm_status)all[p].status;
        if (st == CM_OK && all[p].total != o->total)
            st = CM_FAIL(CM_EINVAL, "process %d needs a segment of %llu bytes, process %d of %llu",
                         p, (unsigned long long)all[p].total, b->proc,
                         (unsigned long long)o->total);
    }
    *o = all[0];
    free(all);
    return st;
}

static enum cm_status connect_all(struct cm_segment *s, const struct cm_boot *b,
                                  const struct cm_layout *l, int64_t timeout_ns)
{
    struct offer o = {.status = CM_OK, .total = l->total};
    int64_t until_ns;
    int listener = -1;
    enum cm_status st;

    if (b->proc == 0)
        o.status = leader_prepare(s, l, &o, &listener);
    st = exchange(b, &o);
    until_ns = cm_now_ns() + timeout_ns;
    if (st == CM_OK) {
        st = b->proc == 0 ? leader_serve(s, listener, &o, until_ns)
                          : follower_attach(s, b, l, &o, until_ns);
        st = cm_boot_agree(b, st);
    }
    if (listener >= 0)
        close(listener);
    return st;
}

static enum cm_status shm_open_segment(const struct cm_boot *b, const struct cm_layout *l,
                                       int64_t timeout_ns, struct cm_segment **out)
{
    struct cm_segment *s = cm_segment_new(l, b->nprocs);
    enum cm_status st = cm_boot_agree(b, s != NULL ? CM_OK : CM_ENOMEM);

    if (st == CM_OK)
        st = connect_all(s, b, l, timeout_ns);
    if (st != CM_OK) {
        cm_segment_close(s);
        return st;
    }
    *out = s;
    return CM_OK;
}

const struct cm_wire cm_wire_shm = {
    .name = "shm",
    .what = "processes of one node: shared memory, passed over a local socket",
    .reaches = shm_reaches,
    .open = shm_open_segment,
};
