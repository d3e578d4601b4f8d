/* What the report tells of the fabric: the same on all processes but for process 0's counts. */
#include <stdlib.h>
#include <string.h>

#include "common/fabric_int.h"

static void copy_text(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from, size - 1);

    memcpy(to, from, n);
    to[n] = '\0';
}

static struct cm_network_way my_way(const struct cm_fabric *f)
{
    const struct cm_opts *o = f->a.opts;
    const struct cm_rank_info *info = &f->a.world->infos[f->pairs.first];
    struct cm_network_way w = {.mbit = f->on.mbit, .procs = 1, .first = info->rank};
    char why[CM_SET_BY_BYTES], address[CM_NET_TEXT], device[CM_IB_TEXT];

    copy_text(w.wire, sizeof(w.wire), f->over_ib ? "ib" : "tcp");
    if (f->over_ib)
        copy_text(w.device, sizeof(w.device), cm_ib_describe(f->ib, device));
    copy_text(w.interface, sizeof(w.interface), f->on.name);
    copy_text(w.host, sizeof(w.host), info->host);
    copy_text(w.address, sizeof(w.address), cm_net_format(&f->on.addr, address));
    copy_text(w.why, sizeof(w.why),
              f->over_ib ? cm_network_why(o, "ib-hca", o->net.ib_hca != NULL, why)
                         : cm_network_why(o, "ifname", o->net.ifname != NULL, why));
    return w;
}

static int most_ranks(const struct cm_domains *d)
{
    int most = 0;

    for (int k = 0; k < d->n; k++)
        most = d->first[k + 1] - d->first[k] > most ? d->first[k + 1] - d->first[k] : most;
    return most;
}

enum cm_status cm_fabric_describe(struct cm_fabric *f)
{
    const struct cm_boot *b = f->a.boot;
    struct cm_network_way mine = my_way(f), *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = all != NULL ? CM_OK
                                    : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);

    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    for (int p = 0; st == CM_OK && p < b->nprocs; p++)
        cm_network_add(&f->network.ways, &all[p]);
    free(all);
    f->network.mine = mine;
    f->network.domains = f->a.world->domains.n;
    f->network.most_ranks = most_ranks(&f->a.world->domains);
    f->network.lanes = f->over_ib ? f->a.opts->net.ib_qps : f->sockets;
    f->network.neighbours = f->npeers;
    f->network.ports = f->nports;
    f->network.progress = f->mode == CM_PROXY_INLINE ? "inline" : "thread";
    return st;
}
