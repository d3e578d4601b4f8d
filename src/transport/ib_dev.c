/*
 * The adapter and its port: what the user named, what is up, the fastest of
 * these, the nearest of these; and one of several that are equal by number, so
 * that the processes of a machine spread over its adapters.
 */
#include "transport/ib_dev.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PORTS = 64, LIST_BYTES = 320 };

/* A port that is up and wanted. */
struct found {
    int device, port; /* the device's place in the system's list */
    double gbits;
    int near; /* 2: the topology says so, 1: it is on the process's NUMA node */
};

struct search {
    const struct cm_verbs *v;
    const char *sysfs;
    const struct cm_ib_choice *c;
    struct ibv_device **list;
    int ndevices;
    struct found found[MAX_PORTS];
    int n;
    char seen[LIST_BYTES]; /* all ports and what is wrong with them */
    size_t seen_bytes;
};

/* ---- what the user named ---- */

/* Does an entry "name" or "name:port" of `len` characters mean this port? */
static bool entry_means(const char *entry, size_t len, bool exact, const char *name, int port)
{
    const char *colon = memchr(entry, ':', len);
    size_t n = colon != NULL ? (size_t)(colon - entry) : len;

    if (colon != NULL && (int)strtol(colon + 1, NULL, 10) != port)
        return false;
    return n > 0 && strncmp(name, entry, n) == 0 && (!exact || name[n] == '\0');
}

static bool wanted(const char *spec, const char *name, int port)
{
    bool exclude = false, exact = false, named = false;

    if (spec == NULL || *spec == '\0')
        return true;
    if (*spec == '^') {
        exclude = true;
        spec++;
    }
    if (*spec == '=') {
        exact = true;
        spec++;
    }
    while (*spec != '\0') {
        size_t len = strcspn(spec, ",");

        named |= entry_means(spec, len, exact, name, port);
        spec += len + (spec[len] == ',');
    }
    return named != exclude;
}

/* ---- what there is ---- */

/* One lane, by the bits of active_speed. */
static double lane_gbits(uint8_t speed)
{
    static const double gbits[] = {2.5, 5, 10, 10, 14, 25, 50, 100};

    for (size_t bit = 0; bit < CM_LEN(gbits); bit++)
        if (speed == 1U << bit)
            return gbits[bit];
    return 0;
}

static int lanes(uint8_t width)
{
    return width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
}

static void note(struct search *s, const char *name, int port, const char *what)
{
    size_t room = sizeof(s->seen) - s->seen_bytes;
    int n = snprintf(s->seen + s->seen_bytes, room, "%s%s:%d %s", s->seen_bytes > 0 ? ", " : "",
                     name, port, what);

    s->seen_bytes += (size_t)n < room ? (size_t)n : room - 1;
}

static int near(const struct search *s, const char *name)
{
    char path[2 * CM_IB_NAME], line[CM_IB_NAME];

    if (s->c->nearest != NULL && strcmp(s->c->nearest, name) == 0)
        return 2;
    snprintf(path, sizeof(path), "%s/device/numa_node", name);
    return s->c->numa >= 0 && cm_ib_sysfs_line(s->sysfs, path, line, sizeof(line)) &&
           (int)strtol(line, NULL, 10) == s->c->numa;
}

static const char *fault_of(const struct ibv_port_attr *a)
{
    bool known =
        a->link_layer == IBV_LINK_LAYER_ETHERNET || a->link_layer == IBV_LINK_LAYER_INFINIBAND ||
        a->link_layer == IBV_LINK_LAYER_UNSPECIFIED; /* as InfiniBand: older than the others */

    if (a->state != IBV_PORT_ACTIVE)
        return "is down";
    if (!known)
        return "has an unknown link layer";
    if (a->link_layer != IBV_LINK_LAYER_ETHERNET && a->lid == 0)
        return "has no address: no subnet manager runs";
    return NULL;
}

static void look_at_port(struct search *s, struct ibv_context *context, int device, int port)
{
    const char *name = s->v->get_device_name(s->list[device]), *fault;
    struct ibv_port_attr a;

    memset(&a, 0, sizeof(a));
    if (s->v->query_port(context, (uint8_t)port, &a) != 0) {
        note(s, name, port, "does not answer");
        return;
    }
    fault = fault_of(&a);
    note(s, name, port, fault != NULL ? fault : "is up");
    if (fault == NULL && wanted(s->c->hca, name, port) && s->n < MAX_PORTS)
        s->found[s->n++] =
            (struct found){.device = device,
                           .port = port,
                           .gbits = lane_gbits(a.active_speed) * lanes(a.active_width),
                           .near = near(s, name)};
}

static void look_at_device(struct search *s, int device)
{
    const char *name = s->v->get_device_name(s->list[device]);
    struct ibv_context *context = s->v->open_device(s->list[device]);
    struct ibv_device_attr a;

    if (context == NULL) {
        note(s, name, 1,
             errno == EACCES || errno == EPERM ? "may not be opened (/dev/infiniband)"
                                               : "cannot be opened");
        return;
    }
    memset(&a, 0, sizeof(a));
    if (s->v->query_device(context, &a) != 0)
        note(s, name, 1, "does not answer");
    for (int port = 1; port <= a.phys_port_cnt; port++)
        look_at_port(s, context, device, port);
    s->v->close_device(context);
}

/* ---- the choice ---- */

static bool better(const struct found *a, const struct found *b)
{
    return a->gbits != b->gbits ? a->gbits > b->gbits : a->near > b->near;
}

/* The nth of the best, counted round. There is one at least. */
static const struct found *choose(const struct search *s)
{
    const struct found *best = &s->found[0];
    int equal = 0, skip;

    for (int i = 1; i < s->n; i++)
        if (better(&s->found[i], best))
            best = &s->found[i];
    for (int i = 0; i < s->n; i++)
        equal += !better(best, &s->found[i]);
    skip = s->c->nth % equal;
    for (int i = 0; i < s->n; i++)
        if (!better(best, &s->found[i]) && skip-- == 0)
            return &s->found[i];
    return best;
}

static enum cm_status open_port(const struct search *s, const struct found *f,
                                struct cm_ib_dev *out, char why[CM_TEXT])
{
    struct cm_ib_dev d = {.v = s->v, .port = (uint8_t)f->port, .gbits = f->gbits};
    enum cm_status st;

    snprintf(d.name, sizeof(d.name), "%s", s->v->get_device_name(s->list[f->device]));
    d.context = s->v->open_device(s->list[f->device]);
    if (d.context == NULL || s->v->query_device(d.context, &d.limits) != 0 ||
        s->v->query_port(d.context, d.port, &d.attr) != 0) {
        snprintf(why, CM_TEXT, "%s:%d cannot be opened: %s", d.name, d.port, strerror(errno));
        st = CM_ESYS;
    } else {
        st = cm_ib_find_gid(&d, s->sysfs, s->c->gid, why);
    }
    if (st == CM_OK)
        *out = d;
    else
        cm_ib_dev_close(&d);
    return st;
}

static enum cm_status nothing(const struct search *s, char why[CM_TEXT])
{
    bool named = s->c->hca != NULL && *s->c->hca != '\0';

    if (s->ndevices == 0) {
        snprintf(why, CM_TEXT, "no RDMA device (/sys/class/infiniband is empty)");
        return CM_EUNSUP;
    }
    if (named)
        snprintf(why, CM_TEXT, "no RDMA port that is up is named by '%s': %s", s->c->hca, s->seen);
    else
        snprintf(why, CM_TEXT, "no RDMA port is up: %s", s->seen);
    return named ? CM_EINVAL : CM_EUNSUP;
}

enum cm_status cm_ib_dev_open(const struct cm_verbs *v, const char *sysfs,
                              const struct cm_ib_choice *c, struct cm_ib_dev *out,
                              char why[CM_TEXT])
{
    struct search s = {.v = v, .sysfs = sysfs, .c = c};
    enum cm_status st;

    s.list = v->get_device_list(&s.ndevices);
    if (s.list == NULL) {
        snprintf(why, CM_TEXT, "list of RDMA devices: %s",
                 errno == ENOSYS ? "the kernel has no RDMA (module ib_uverbs)" : strerror(errno));
        return errno == ENOSYS ? CM_EUNSUP : CM_ESYS;
    }
    for (int i = 0; i < s.ndevices; i++)
        look_at_device(&s, i);
    st = s.n > 0 ? open_port(&s, choose(&s), out, why) : nothing(&s, why);
    v->free_device_list(s.list);
    return st;
}

void cm_ib_dev_close(struct cm_ib_dev *d)
{
    if (d->context != NULL)
        d->v->close_device(d->context);
    d->context = NULL;
}
