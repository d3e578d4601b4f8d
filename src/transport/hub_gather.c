/*
 * What connected processes do together: gather, and end.
 *
 * Invariant: all processes call in the same order; a message that another call
 * would send is a failure, not something to be kept for later.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "transport/hub_int.h"

/* A link that is of no more use, or NULL. */
static struct cm_hub_link *first_bad(const struct cm_hub *h)
{
    for (int i = 0; i < h->nlinks; i++)
        if (h->links[i].fd >= 0 && h->links[i].state > CM_LINK_GOT)
            return &h->links[i];
    return NULL;
}

/* ---- gather ---- */

/* A wait of process 0, or of another for it. */
struct wait {
    int64_t note_ns, until_ns;
    bool noted; /* somebody has been late for so long that who ends now does so for that */
};

static struct wait wait_from_now(const struct cm_hub *h)
{
    int64_t now = cm_now_ns();

    return (struct wait){.note_ns = now + h->a.note_ns, .until_ns = now + h->a.patience_ns};
}

static double seconds(int64_t ns)
{
    return (double)ns / CM_NS_PER_S;
}

/* What process 0 thinks of a link that failed. */
static enum cm_status blame(struct cm_hub *h, const struct cm_hub_link *l, const struct wait *w)
{
    int rank = (int)(l - h->links);
    const char *host = l->peer.host;
    enum cm_exit code = (enum cm_exit)l->in.code;

    if (l->state == CM_LINK_LOST && w->noted)
        return cm_hub_give_up(h, CM_ETIMEOUT, "rank %d (host %s) has not waited any longer", rank,
                              host);
    if (l->state == CM_LINK_LOST)
        return cm_hub_give_up(h, CM_ESYS, "rank %d (host %s) died%s%s", rank, host,
                              l->err != 0 ? ": " : "", l->err != 0 ? strerror(l->err) : "");
    if (l->state == CM_LINK_FAILED)
        return cm_hub_give_up(h, cm_hub_status(code), "rank %d (host %s) ended the job", rank,
                              host);
    if (l->in.magic == CM_HUB_MAGIC && l->in.type == l->want)
        return cm_hub_give_up(h, CM_EMISMATCH,
                              "rank %d (host %s) gathers %llu bytes, rank 0 gathers %zu", rank,
                              host, (unsigned long long)l->in.bytes, l->want_bytes);
    if (l->in.magic == CM_HUB_MAGIC && l->in.type == CM_HUB_BYE)
        return cm_hub_give_up(h, code != CM_EXIT_OK ? cm_hub_status(code) : CM_ESYS,
                              "rank %d (host %s) has ended before the others", rank, host);
    return cm_hub_give_up(h, CM_ESYS, "rank %d (host %s) sends something else than expected", rank,
                          host);
}

/* Process 0: until every link has heard and said all. */
static enum cm_status host_wait(struct cm_hub *h, struct wait *w)
{
    char list[CM_HUB_TEXT / 4];
    int64_t now = cm_now_ns();

    while (cm_hub_busy(h) > 0) {
        const struct cm_hub_link *bad = first_bad(h);

        if (bad != NULL)
            return blame(h, bad, w);
        cm_hub_missing(h, false, list, sizeof(list));
        if (now > w->until_ns)
            return cm_hub_give_up(h, CM_ETIMEOUT, "time-out: rank %s did not answer within %.1f s",
                                  list, seconds(h->a.patience_ns));
        if (now > w->note_ns && !w->noted) {
            w->noted = true;
            cm_log("still waiting for rank %s after %.1f s", list, seconds(h->a.note_ns));
        }
        cm_hub_step(h, w->noted ? w->until_ns : w->note_ns);
        now = cm_now_ns();
    }
    return first_bad(h) == NULL ? CM_OK : blame(h, first_bad(h), w);
}

static enum cm_status host_gather(struct cm_hub *h, const void *mine, size_t bytes, void *all)
{
    struct cm_hub_head head = {
        .type = CM_HUB_ALL, .turn = h->turn, .bytes = bytes * (size_t)h->a.nprocs};
    struct wait w = wait_from_now(h);
    enum cm_status st;

    for (int p = 1; p < h->nlinks; p++)
        cm_link_expect(&h->links[p], CM_HUB_PART, h->turn, (char *)all + (size_t)p * bytes, bytes);
    memcpy(all, mine, bytes);
    st = host_wait(h, &w);
    if (st != CM_OK)
        return st;
    for (int p = 1; p < h->nlinks; p++)
        cm_link_say(&h->links[p], &head, all);
    return host_wait(h, &w);
}

/* Not process 0: `what` has not come to its end. */
static enum cm_status leave(struct cm_hub *h, enum cm_status st, const char *what)
{
    cm_log("rank %d: rank 0 (%s) %s", h->a.proc, h->where, what);
    cm_hub_kill(h, cm_status_exit(st));
    return st;
}

/* Not process 0: until its message is here, and mine is out. */
static enum cm_status guest_wait(struct cm_hub *h)
{
    struct cm_hub_link *l = &h->links[0];
    struct wait w = wait_from_now(h);
    int64_t now = cm_now_ns();

    while (cm_hub_busy(h) > 0 && now < w.until_ns) {
        cm_hub_step(h, w.until_ns);
        now = cm_now_ns();
    }
    if (l->state == CM_LINK_FAILED)
        return cm_hub_obey(h, l);
    if (l->state == CM_LINK_LOST)
        return leave(h, now > w.note_ns ? CM_ETIMEOUT : CM_ESYS, "has hung up: it ended or died");
    if (l->state == CM_LINK_ODD)
        return leave(h, CM_ESYS, "sends something else than expected");
    return cm_hub_busy(h) == 0 ? CM_OK : leave(h, CM_ETIMEOUT, "did not answer: time-out");
}

static enum cm_status guest_gather(struct cm_hub *h, const void *mine, size_t bytes, void *all)
{
    struct cm_hub_head head = {.type = CM_HUB_PART, .turn = h->turn, .bytes = bytes};

    cm_link_expect(&h->links[0], CM_HUB_ALL, h->turn, all, bytes * (size_t)h->a.nprocs);
    cm_link_say(&h->links[0], &head, mine);
    return guest_wait(h);
}

enum cm_status cm_hub_gather(struct cm_hub *h, const void *mine, size_t bytes, void *all)
{
    if (h->broken)
        return cm_hub_status(h->code);
    if (bytes > SIZE_MAX / (size_t)h->a.nprocs)
        return CM_FAIL(CM_EINVAL, "cannot gather %zu bytes of %d processes", bytes, h->a.nprocs);
    h->turn++;
    return h->a.proc == 0 ? host_gather(h, mine, bytes, all) : guest_gather(h, mine, bytes, all);
}

/* ---- the end ---- */

/* After a failure the others come at about the same time, or not at all: what has failed may
   have cut us off as well. */
static int64_t until(enum cm_exit code, int64_t patience_ns)
{
    static const int64_t hurry_ns = 3LL * CM_NS_PER_S;
    bool hurry = code != CM_EXIT_OK && patience_ns > hurry_ns;

    return cm_now_ns() + (hurry ? hurry_ns : patience_ns);
}

/* Process 0: the verdict, once all have come or the time is over. */
static enum cm_exit judge_all(struct cm_hub *h, enum cm_exit code)
{
    char list[CM_HUB_TEXT / 4];
    bool blamed = code != CM_EXIT_OK; /* then why has been told */

    for (int p = 1; p < h->nlinks; p++) {
        struct cm_hub_link *l = &h->links[p];
        bool said = l->state == CM_LINK_GOT || l->state == CM_LINK_FAILED;

        if (said && code == CM_EXIT_OK)
            code = (enum cm_exit)l->in.code;
        if (l->state == CM_LINK_FAILED)
            cm_link_drop(l);
    }
    if (cm_hub_missing(h, false, list, sizeof(list)) == 0 || blamed)
        return code;
    if (cm_hub_busy(h) > 0)
        cm_log("time-out: rank %s did not come to the end within %.1f s", list,
               seconds(h->a.end_ns));
    else
        cm_log("rank %s died before the end", list);
    if (code != CM_EXIT_OK)
        return code;
    return cm_hub_busy(h) > 0 ? CM_EXIT_TIMEOUT : CM_EXIT_SYSTEM;
}

static enum cm_exit host_finish(struct cm_hub *h, enum cm_exit code)
{
    struct cm_hub_head verdict = {.type = CM_HUB_END};
    int64_t end = until(code, h->a.end_ns);

    for (int p = 1; p < h->nlinks; p++)
        cm_link_expect(&h->links[p], CM_HUB_BYE, 0, NULL, 0);
    while (cm_hub_busy(h) > 0 && cm_now_ns() < end)
        cm_hub_step(h, end);
    code = judge_all(h, code);
    h->code = verdict.code = code;
    if (cm_hub_busy(h) > 0) { /* they may be elsewhere, and end with this */
        cm_hub_dismiss(h);
        return code;
    }
    for (int p = 1; p < h->nlinks; p++)
        if (h->links[p].state == CM_LINK_GOT)
            cm_link_say(&h->links[p], &verdict, NULL);
    end = cm_now_ns() + CM_HUB_FAREWELL_MS * (int64_t)CM_NS_PER_MS;
    while (cm_hub_busy(h) > 0 && cm_now_ns() < end)
        cm_hub_step(h, end);
    return code;
}

static enum cm_exit guest_finish(struct cm_hub *h, enum cm_exit code)
{
    struct cm_hub_head bye = {.type = CM_HUB_BYE, .code = code};
    struct cm_hub_link *l = &h->links[0];
    int64_t end = until(code, h->a.patience_ns);

    cm_link_expect(l, CM_HUB_END, 0, NULL, 0);
    cm_link_say(l, &bye, NULL);
    while (cm_hub_busy(h) > 0 && cm_now_ns() < end)
        cm_hub_step(h, end);
    if (l->state == CM_LINK_GOT || l->state == CM_LINK_FAILED)
        return (enum cm_exit)l->in.code;
    if (code != CM_EXIT_OK)
        return code;
    cm_log("rank %d: rank 0 (%s) %s", h->a.proc, h->where,
           l->state == CM_LINK_UP ? "did not come to the end: time-out" : "died before the end");
    return l->state == CM_LINK_UP ? CM_EXIT_TIMEOUT : CM_EXIT_SYSTEM;
}

enum cm_exit cm_hub_finish(struct cm_hub *h, enum cm_exit code)
{
    if (h->broken)
        return code != CM_EXIT_OK ? code : h->code;
    h->broken = true; /* nothing can follow */
    return h->a.proc == 0 ? host_finish(h, code) : guest_finish(h, code);
}
