/*
 * Connections with the neighbours before the first row, and one report if some
 * cannot be made: process 0 prints what all others found out.
 *
 * Who dials knows why it failed; who waits to be dialled only knows that nobody
 * came, and is left out as long as there is somebody who dialled.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/control.h"
#include "common/fabric_int.h"
#include "transport/meet.h"

enum { CONNECT_S = 20, LISTED = 8 }; /* by now all have come: what takes longer never ends */

/* What a process reports. Plain data. */
struct trouble {
    struct cm_meet_trouble what;
    struct cm_net_addr addr;
    char interface[CM_NET_NAME];
};

static enum cm_status meet(struct cm_fabric *f, struct cm_meet_trouble *t)
{
    const int64_t most = CONNECT_S * (int64_t)CM_NS_PER_S;
    struct cm_meet_peer *to = calloc((size_t)f->npeers + 1, sizeof(*to));
    struct cm_meet_args m = {.proc = f->a.boot->proc,
                             .on = &f->on,
                             .listener = f->listener,
                             .sockets = f->sockets,
                             .peers = to,
                             .npeers = f->npeers,
                             .until_ns = cm_now_ns() +
                                         (f->a.setup_ns < most ? f->a.setup_ns : most)};
    enum cm_status st;

    if (to == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", f->npeers);
    memcpy(m.token, f->cards[0].token, sizeof(m.token));
    for (int k = 0; k < f->npeers; k++)
        to[k] = (struct cm_meet_peer){.proc = f->peers[k].proc,
                                      .host = cm_fabric_host(f, f->peers[k].proc),
                                      .addr = f->cards[f->peers[k].proc].at,
                                      .fds = f->peers[k].fds};
    st = cm_meet(&m, t);
    free(to);
    return st;
}

/* ---- the report ---- */

static void say_one(const struct cm_fabric *f, int proc, const struct trouble *t)
{
    const struct cm_rank_info *infos = f->a.world->infos;
    char me[CM_TEXT / 2], other[CM_TEXT / 2], from[CM_NET_TEXT], to[CM_NET_TEXT];

    cm_process_text(infos, f->a.world->n, proc, me, sizeof(me));
    cm_process_text(infos, f->a.world->n, t->what.proc, other, sizeof(other));
    cm_net_format(&t->addr, from);
    if (t->what.dialled)
        cm_log("  %s cannot reach %s at %s from %s %s: %s", me, other,
               cm_net_format(&f->cards[t->what.proc].at, to), t->interface, from, t->what.why);
    else
        cm_log("  %s waits at %s %s: %s %s", me, t->interface, from, other, t->what.why);
}

static void say_all(const struct cm_fabric *f, const struct trouble *all)
{
    int n = f->a.boot->nprocs, troubled = 0, dialled = 0, said = 0;

    for (int p = 0; p < n; p++) {
        troubled += all[p].what.missing > 0;
        dialled += all[p].what.missing > 0 && all[p].what.dialled;
    }
    if (troubled == 0)
        return; /* something else went wrong, and has been logged */
    cm_log("connect: %d of %d processes are not connected with all their neighbours", troubled, n);
    for (int p = 0; p < n && said < LISTED; p++) {
        if (all[p].what.missing == 0 || (dialled > 0 && !all[p].what.dialled))
            continue;
        say_one(f, p, &all[p]);
        said++;
    }
    if ((dialled > 0 ? dialled : troubled) > said)
        cm_log("  and %d more", (dialled > 0 ? dialled : troubled) - said);
    cm_log(
        "  --ifname takes another interface; a firewall must let pass the ports of --port-range");
}

static enum cm_status report(const struct cm_fabric *f, const struct cm_meet_trouble *mine)
{
    const struct cm_boot *b = f->a.boot;
    struct trouble card = {.what = *mine, .addr = f->on.addr};
    struct trouble *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = all != NULL ? CM_OK
                                    : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);

    memcpy(card.interface, f->on.name, sizeof(card.interface));
    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = b->gather(b, &card, sizeof(card), all);
    if (st == CM_OK && b->proc == 0)
        say_all(f, all);
    free(all);
    return st;
}

enum cm_status cm_fabric_connect(struct cm_fabric *f)
{
    struct cm_meet_trouble trouble = {.missing = 0};
    enum cm_status st = cm_boot_agree(f->a.boot, meet(f, &trouble));
    enum cm_status said = st != CM_OK ? report(f, &trouble) : CM_OK;

    close(f->listener); /* nobody else is expected */
    f->listener = -1;
    return said != CM_OK ? said : st;
}
