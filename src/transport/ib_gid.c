/*
 * The GID of a port: the address that packets carry. With RoCE there are
 * several, and the wrong one (version 1, or link-local) reaches nobody behind a
 * router; so what NCCL users set by hand is found by rule.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "transport/ib_dev.h"

enum {
    PATH_BYTES = 512,
    LINE_BYTES = 64,
    V4_AT = 12,
    MAX_GIDS = 256 /* those that a queue pair can name */
};

static const unsigned char v4_mapped[V4_AT] = {[10] = 0xff, [11] = 0xff};

bool cm_ib_sysfs_line(const char *sysfs, const char *path, char *line, size_t size)
{
    char full[PATH_BYTES];
    FILE *f;
    bool got;

    snprintf(full, sizeof(full), "%s/class/infiniband/%s", sysfs, path);
    f = fopen(full, "re");
    if (f == NULL)
        return false;
    got = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

const char *cm_ib_gid_text(const unsigned char gid[16], char buf[CM_IB_GID_TEXT])
{
    bool v4 = memcmp(gid, v4_mapped, V4_AT) == 0;

    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + V4_AT : gid, buf, CM_IB_GID_TEXT);
    return buf;
}

const char *cm_ib_framing_text(enum cm_ib_framing f)
{
    static const char *const text[] = {[CM_IB_NATIVE] = "InfiniBand",
                                       [CM_IB_ROCE_V1] = "RoCE v1",
                                       [CM_IB_ROCE_V2] = "RoCE v2",
                                       [CM_IB_ROCE_UNKNOWN] = "RoCE"};

    return text[f];
}

static bool is_ethernet(const struct cm_ib_dev *d)
{
    return d->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static enum cm_ib_framing framing_of(const struct cm_ib_dev *d, const char *sysfs, int index)
{
    char path[PATH_BYTES / 2], line[LINE_BYTES];

    if (!is_ethernet(d))
        return CM_IB_NATIVE;
    snprintf(path, sizeof(path), "%s/ports/%d/gid_attrs/types/%d", d->name, d->port, index);
    if (!cm_ib_sysfs_line(sysfs, path, line, sizeof(line)))
        return CM_IB_ROCE_UNKNOWN;
    return strcmp(line, "RoCE v2") == 0 ? CM_IB_ROCE_V2 : CM_IB_ROCE_V1;
}

static bool is_set(const union ibv_gid *g)
{
    return g->global.subnet_prefix != 0 || g->global.interface_id != 0;
}

/* The larger the better. */
static int rank_of(enum cm_ib_framing f, const union ibv_gid *g)
{
    static const int of_framing[] = {
        [CM_IB_ROCE_V2] = 8, [CM_IB_ROCE_UNKNOWN] = 4, [CM_IB_ROCE_V1] = 0};
    const unsigned char *b = g->raw;

    if (memcmp(b, v4_mapped, V4_AT) == 0)
        return of_framing[f] + (b[V4_AT] == 169 && b[V4_AT + 1] == 254 ? 1 : 3);
    return of_framing[f] + (b[0] == 0xfe && (b[1] & 0xc0) == 0x80 ? 0 : 2);
}

static bool get(const struct cm_ib_dev *d, int index, union ibv_gid *g)
{
    return d->v->query_gid(d->context, d->port, index, g) == 0 && is_set(g);
}

static void take(struct cm_ib_dev *d, int index, const union ibv_gid *g, enum cm_ib_framing f)
{
    d->gid_index = index;
    d->gid = *g;
    d->framing = f;
}

static int entries(const struct cm_ib_dev *d)
{
    return d->attr.gid_tbl_len < MAX_GIDS ? d->attr.gid_tbl_len : MAX_GIDS;
}

static bool take_best(struct cm_ib_dev *d, const char *sysfs)
{
    int best = -1;

    for (int i = 0; i < entries(d); i++) {
        union ibv_gid g;
        enum cm_ib_framing f;

        if (!get(d, i, &g))
            continue;
        f = framing_of(d, sysfs, i);
        if (rank_of(f, &g) > best) {
            best = rank_of(f, &g);
            take(d, i, &g, f);
        }
    }
    return best >= 0;
}

enum cm_status cm_ib_find_gid(struct cm_ib_dev *d, const char *sysfs, int want, char why[CM_TEXT])
{
    union ibv_gid g;

    if (want < 0 && is_ethernet(d)) {
        if (take_best(d, sysfs))
            return CM_OK;
        snprintf(why, CM_TEXT, "%s:%d has no GID: its network interface has no address", d->name,
                 d->port);
        return CM_EUNSUP;
    }
    want = want < 0 ? 0 : want;
    if (want < entries(d) && get(d, want, &g)) {
        take(d, want, &g, framing_of(d, sysfs, want));
        return CM_OK;
    }
    snprintf(why, CM_TEXT, "%s:%d has no GID %d (its table has %d entries)", d->name, d->port, want,
             entries(d));
    return CM_EINVAL;
}
