/*
 * The start of the report: what runs, with which parameters, where, and what
 * to know before reading the numbers. Lines and their order are those of
 * nccl-tests; ours follow them, before the list of devices.
 */
#include <string.h>
#include <stdlib.h>

#include "common/opts_table.h"
#include "common/report_int.h"
#include "common/topo_run.h"
#include "common/version.h"
#include "engine/comm.h"

enum { MAX_CPUS = 4096, MERGE_ABOVE = 16 };

/* Mark the CPUs of a list as the kernel writes it: "0-3,8". What does not parse is left out. */
static void mark_cpus(const char *list, bool *cpu)
{
    while (*list != '\0') {
        char *end;
        long lo = strtol(list, &end, 10), hi = lo;

        if (end == list)
            return;
        if (*end == '-')
            hi = strtol(end + 1, &end, 10);
        for (long c = lo < 0 ? 0 : lo; c <= hi && c < MAX_CPUS; c++)
            cpu[c] = true;
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
}

/* Of the machine of rank `of`, whose ranks may be spread over several containers. */
static struct cm_share share_of(const struct cm_report *rep, int of)
{
    const struct cm_rank_info *infos = rep->rank->infos;
    bool cpu[MAX_CPUS] = {false};
    struct cm_share s = {0, 0};

    for (int r = 0; r < rep->rank->n; r++) {
        if (strcmp(infos[r].boot_id, infos[of].boot_id) != 0)
            continue;
        s.ranks++;
        mark_cpus(infos[r].cpus, cpu);
    }
    for (int c = 0; c < MAX_CPUS; c++)
        s.cpus += cpu[c];
    return s;
}

struct cm_share cm_header_share(const struct cm_report *rep)
{
    return share_of(rep, 0);
}

/* Is rank r the first of its machine? */
static bool opens_machine(const struct cm_rank_info *infos, int r)
{
    int first = 0;

    while (strcmp(infos[first].boot_id, infos[r].boot_id) != 0)
        first++;
    return first == r;
}

/* The machines that lack most CPUs: one line for the first of them. */
static void print_oversubscribed(FILE *f, const struct cm_report *rep)
{
    const struct cm_rank_info *infos = rep->rank->infos;
    struct cm_share worst = share_of(rep, 0);
    int at = 0, machines = 1;

    for (int r = 1; r < rep->rank->n; r++) {
        struct cm_share s;

        if (!opens_machine(infos, r))
            continue;
        machines++;
        s = share_of(rep, r);
        if (s.ranks - s.cpus > worst.ranks - worst.cpus) {
            worst = s;
            at = r;
        }
    }
    fprintf(f, "# Note: %d ranks share %d CPU%s", worst.ranks, worst.cpus,
            worst.cpus == 1 ? "" : "s");
    if (machines > 1)
        fprintf(f, " on %s", infos[at].host);
    fputs(", so they wait for each other's time slices\n", f);
}

void cm_header_ranks(FILE *f, const struct cm_report *rep, int group)
{
    const struct cm_rank_info *infos = rep->rank->infos;
    const char *comma = "";

    for (int r = 0; r < rep->rank->n; r++) {
        int first = r;

        if (infos[r].group != group)
            continue;
        while (r + 1 < rep->rank->n && infos[r + 1].group == group)
            r++;
        fprintf(f, r > first ? "%s%d-%d" : "%s%d", comma, first, r);
        comma = ",";
    }
}

static void print_parameters(FILE *f, const struct cm_report *rep)
{
    const struct cm_opts *o = rep->opts;
    bool factor = o->sweep.step_factor > 1;
    char wire[CM_WIRE_BYTES];

    fprintf(f, "# collmark version %s backend=%s wire=%s\n", cm_version,
            cm_header_backend(rep->rank), cm_header_wire(rep->rank, wire));
    fprintf(f, "# Collective test starting: %s\n", o->program);
    fprintf(f,
            "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d "
            "iters: %d agg iters: %d validation: %d graph: %d unalign: %d\n",
            o->launch.threads, o->launch.gpus, o->sweep.min_bytes, o->sweep.max_bytes,
            factor ? (size_t)o->sweep.step_factor : o->sweep.step_bytes,
            factor ? "factor" : "bytes", o->run.warmup, o->run.iters, o->run.agg_iters,
            o->run.checks, o->run.graph, o->run.unalign);
}

static void print_modes(FILE *f, const struct cm_opts *o)
{
    static const char *const blocking[] = {
        NULL,
        "# Blocking Enabled: wait for completion and barrier after each operation\n",
        "# Blocking Enabled: wait for completion after each operation\n",
        "# Blocking Enabled: wait for completion and, untimed, barrier after each iteration\n",
    };

    if (blocking[o->run.blocking] != NULL)
        fputs(blocking[o->run.blocking], f);
    if (o->run.per_iter && o->run.per_iter_skip > 0)
        fprintf(
            f, "# Per-Iteration Report: maximum over ranks; the first %d iterations are left out\n",
            o->run.per_iter_skip);
    else if (o->run.per_iter)
        fputs("# Per-Iteration Report: maximum over ranks\n", f);
    if (o->launch.parallel_init)
        fputs("# Parallel Init Enabled: ranks initialise concurrently, as always here\n", f);
}

/* What the user forces upon the engine. */
static void print_forced(FILE *f, const struct cm_opts *o)
{
    const char *before = "# Forced: ";
    struct cm_option_value v;

    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (row->group != CM_GROUP_ENGINE)
            continue;
        cm_option_get(row, o, &v);
        if (v.type == CM_VALUE_WHOLE)
            fprintf(f, "%s%s %lld", before, row->name, (long long)v.whole);
        else if (v.type == CM_VALUE_TEXT && strcmp(v.text, "auto") != 0)
            fprintf(f, "%s%s %s", before, row->name, v.text);
        else
            continue;
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', f);
}

/* Direct mode of the host has no ports whose protocol could be chosen. */
static void print_direct_ll(FILE *f, const struct cm_report *rep)
{
    const struct cm_opts_engine *e = &rep->opts->engine;
    enum cm_coll coll = rep->bench->coll;
    bool shared = (e->algo == NULL || strcmp(e->algo, "direct") == 0) && e->channels <= 1 &&
                  e->chunk == 0 && coll != CM_ALLTOALLV && coll != CM_HYPERCUBE;

    if (e->mode != CM_MODE_DIRECT || e->proto != CM_PROTO_LL)
        return;
    if (rep->rank->backend != NULL)
        fputs("# Note: direct mode is one exchange through LL inboxes where that fits, and the "
              "simple protocol elsewhere\n",
              f);
    else if (shared)
        fprintf(f,
                "# Note: direct mode uses LL slots for up to %d bytes from a rank, and the simple "
                "protocol beyond\n",
                CM_LL_BYTES);
    else
        fputs("# Note: this form of direct mode has no slots: --proto ll has no effect\n", f);
}

static void print_warning(void *arg, const char *text)
{
    fprintf(arg, "# Warning: %s\n", text);
}

static void print_notes(FILE *f, const struct cm_report *rep)
{
    const struct cm_rank *r = rep->rank;

    fprintf(f, "# Time: timed loop / operations, %s (-a %d)\n", cm_report_time_over(rep->opts),
            (int)rep->opts->run.average);
    cm_header_print_cache(f, r);
    fprintf(f, "# Kernels: %s  clock: %s\n", cm_header_kernels(r), cm_header_clock(r));
    fprintf(f, "# MPI: %s\n", r->library != NULL ? r->library : "not used");
    cm_header_print_sides(f, r);
    cm_header_print_network(f, r);
    cm_header_print_gpus(f, r);
    cm_header_print_peak(f, rep);
    cm_header_print_probe(f, r);
    print_forced(f, rep->opts);
    print_direct_ll(f, rep);
    for (char **line = rep->opts->from_env; line != NULL && *line != NULL; line++)
        fprintf(f, "# Environment: %s\n", *line);
    if (rep->opts->inject != NULL)
        fprintf(f, "# Fault injected: %s\n", rep->opts->inject);
    if (r->oversubscribed)
        print_oversubscribed(f, rep);
    (void)cm_topo_run_warnings(r, print_warning, f);
    if (r->n == 1)
        fputs("# Note: 1 rank: nothing is communicated\n", f);
}

/* May ranks a and a + 1 share a line? They may differ in all that is printed as a range or
   followed by "...". */
static bool mergeable(const struct cm_rank_info *a, const struct cm_rank_info *b)
{
    return a->group == b->group && a->node == b->node && strcmp(a->host, b->host) == 0 &&
           strcmp(a->boot_id, b->boot_id) == 0 && strcmp(a->cpu, b->cpu) == 0 && b->gpu[0] == '\0';
}

static void print_range(FILE *f, const char *name, int lo, int hi)
{
    if (lo == hi)
        fprintf(f, "%s %2d", name, lo);
    else
        fprintf(f, "%s %2d-%d", name, lo, hi);
}

static const char *more(bool alike)
{
    return alike ? "" : "...";
}

/* Ranks a .. b of one host. */
static void print_host(FILE *f, const struct cm_rank_info *a, const struct cm_rank_info *b)
{
    bool pids = true, cpus = true, numas = true;

    for (const struct cm_rank_info *i = a; i <= b; i++) {
        pids = pids && i->pid == a->pid;
        cpus = cpus && strcmp(i->cpus, a->cpus) == 0;
        numas = numas && i->numa == a->numa;
    }
    print_range(f, "#  Rank", a->rank, b->rank);
    fprintf(f, " Group %2d Pid %6d%s on %10s ", a->group, a->pid, more(pids), a->host);
    print_range(f, "device", a->device, b->device);
    fprintf(f, " [host] %s cpus %s%s numa %d%s node %d\n", a->cpu, a->cpus, more(cpus), a->numa,
            more(numas), a->node);
}

static void print_devices(FILE *f, const struct cm_report *rep)
{
    const struct cm_rank_info *infos = rep->rank->infos;
    int n = rep->rank->n;

    fputs("#\n# Using devices\n", f);
    for (int r = 0; r < n; r++) {
        const struct cm_rank_info *a = &infos[r];

        if (a->gpu[0] != '\0') {
            cm_header_print_gpu(f, a);
            continue;
        }
        while (n > MERGE_ABOVE && r + 1 < n && mergeable(a, &infos[r + 1]))
            r++;
        print_host(f, a, &infos[r]);
    }
}

void cm_header_print(FILE *f, const struct cm_report *rep)
{
    print_parameters(f, rep);
    print_modes(f, rep->opts);
    print_notes(f, rep);
    print_devices(f, rep);
    if (rep->rank->ngroups > 1) {
        fputs("#\n# Group 0: ranks ", f);
        cm_header_ranks(f, rep, 0);
        fprintf(f, " (further groups at the end: %d)\n", rep->rank->ngroups - 1);
    }
}
