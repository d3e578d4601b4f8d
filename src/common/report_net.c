/*
 * What the table tells about a run between nodes. The way that most processes
 * go is a line of its own; whoever goes another way is named, because one
 * process on a slow interface slows the whole job.
 */
#include <string.h>

#include "common/network.h"
#include "common/report_int.h"

const char *cm_header_wire(const struct cm_rank *r, char buf[CM_WIRE_BYTES])
{
    const struct cm_network *n = r->network;
    const char *between = n != NULL && n->ways.n > 0 ? n->ways.of[0].wire : NULL;

    if (between == NULL)
        snprintf(buf, CM_WIRE_BYTES, "%s", r->wire);
    else if (n->most_ranks == 1)
        snprintf(buf, CM_WIRE_BYTES, "%s", between);
    else
        snprintf(buf, CM_WIRE_BYTES, "%s+%s", r->wire, between);
    return buf;
}

/* "tcp over eth0 10.78.0.1 10000 Mb/s". */
static void print_way(FILE *f, const struct cm_network_way *w)
{
    bool ib = w->device[0] != '\0';

    fprintf(f, "%s over %s", w->wire, ib ? w->device : w->interface);
    if (!ib)
        fprintf(f, " %s", w->address);
    if (!ib && w->mbit > 0) /* a device says its own */
        fprintf(f, " %d Mb/s", (int)w->mbit);
    else if (!ib)
        fputs(" of unknown speed", f);
    if (ib)
        fprintf(f, ", set up over %s %s", w->interface, w->address);
}

static void print_main(FILE *f, const struct cm_network *n, const struct cm_network_way *w)
{
    bool ib = strcmp(w->wire, "ib") == 0;

    fputs("# Network: ", f);
    print_way(f, w);
    fprintf(f, " (%s)", w->why);
    if (n->lanes > 0)
        fprintf(f, ", %d %s%s per neighbour", n->lanes, ib ? "queue pair" : "socket",
                n->lanes == 1 ? "" : "s");
    if (n->progress != NULL)
        fprintf(f, ", progress %s", n->progress);
    fputc('\n', f);
}

static void print_odd(FILE *f, const struct cm_network_way *w)
{
    if (w->procs == 1)
        fprintf(f, "# Network: 1 process differs: rank %d on %s uses ", (int)w->first, w->host);
    else
        fprintf(f, "# Network: %d processes differ, the first is rank %d on %s: ", (int)w->procs,
                (int)w->first, w->host);
    print_way(f, w);
    fputc('\n', f);
}

/* Which wire joins which pairs. Kernels meet it in memory of the host. */
static void print_pairs(FILE *f, const struct cm_rank *r)
{
    const struct cm_network *n = r->network;
    bool kernels = r->backend != NULL && !r->gpu.staged;

    fputs("# Transport: ", f);
    if (n->most_ranks > 1)
        fprintf(f, "inside a domain %s, ", r->wire);
    fprintf(f, "between %d domains %s%s\n", n->domains, kernels ? "pinned host memory + " : "",
            n->ways.of[0].wire);
}

void cm_header_print_network(FILE *f, const struct cm_rank *r)
{
    const struct cm_network *n = r->network;
    int most = n != NULL ? cm_network_main(&n->ways) : -1;

    if (most < 0)
        return;
    print_main(f, n, &n->ways.of[most]);
    for (int i = 0; i < n->ways.n; i++)
        if (i != most)
            print_odd(f, &n->ways.of[i]);
    if (n->ways.others > 0)
        fprintf(f, "# Network: %d more process%s other ways\n", (int)n->ways.others,
                n->ways.others == 1 ? " goes" : "es go");
    print_pairs(f, r);
}

/* One phase, if it is known. */
static void print_phase(FILE *f, const char **comma, const char *name, double seconds)
{
    if (seconds <= 0)
        return;
    fprintf(f, "%s%s %.*f s", *comma, name, seconds < 0.01 ? 6 : 2, seconds);
    *comma = ", ";
}

void cm_footer_print_bootstrap(FILE *f, const struct cm_report *rep)
{
    const struct cm_rank *r = rep->rank;
    const struct cm_bootstrap *b = r->bootstrap;
    const char *comma = "# Bootstrap            : ";

    if (b == NULL || r->infos[r->n - 1].proc == 0)
        return;
    print_phase(f, &comma, "start", b->start_s);
    print_phase(f, &comma, "discover", b->discover_s);
    print_phase(f, &comma, "connect", b->connect_s);
    print_phase(f, &comma, "first operation", rep->first_us / 1e6);
    if (comma[0] == ',')
        fputc('\n', f);
}
