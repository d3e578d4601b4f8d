/*
 * What options mean together: derived defaults first, then conflicts. Nothing
 * that the user wrote is changed; what cannot be done is refused.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "common/backend.h"
#include "common/cache.h"
#include "common/inject.h"
#include "common/opts_table.h"
#include "transport/wire.h"

static enum cm_source source_of(const struct cm_parse *p, const char *name)
{
    return p->from[cm_option_named(name) - cm_options];
}

/* The command line wins over the environment, so of -i and -f only equals can be in conflict. */
static enum cm_status check_step(const struct cm_parse *p)
{
    struct cm_opts_sweep *s = &p->o->sweep;
    enum cm_source step = source_of(p, "stepbytes"), factor = source_of(p, "stepfactor");

    if (s->step_factor > 1 && step != CM_FROM_PRESET && step == factor)
        return CM_FAIL(CM_EINVAL,
                       "-f/--stepfactor '%d' and -i/--stepbytes '%zu' exclude each other",
                       s->step_factor, s->step_bytes);
    if (step > factor)
        s->step_factor = 1;
    if (s->step_factor > 1 && s->min_bytes == 0)
        return CM_FAIL(CM_EINVAL, "-b/--minbytes '0' with -f/--stepfactor '%d' would never end",
                       s->step_factor);
    return CM_OK;
}

static enum cm_status check_sizes(const struct cm_parse *p)
{
    struct cm_opts_sweep *s = &p->o->sweep;
    bool open_end = source_of(p, "maxbytes") == CM_FROM_PRESET;
    char lo[32], hi[32];

    if (open_end && s->min_bytes > s->max_bytes)
        s->max_bytes = s->min_bytes;
    if (s->min_bytes > s->max_bytes)
        return CM_FAIL(CM_EINVAL, "-b/--minbytes '%s'%s is larger than -e/--maxbytes '%s'",
                       cm_format_size(s->min_bytes, lo),
                       source_of(p, "minbytes") == CM_FROM_PRESET ? " (the default)" : "",
                       cm_format_size(s->max_bytes, hi));
    return check_step(p);
}

static enum cm_status check_per_iter(const struct cm_opts_run *r)
{
    if (r->cpu_time && r->check_every > 0)
        return CM_FAIL(CM_EINVAL,
                       "-C/--report_cputime '1' cannot be told from the checks of "
                       "--check-every '%d'",
                       r->check_every);
    if (r->cpu_time && r->cache != CM_CACHE_HOT)
        return CM_FAIL(CM_EINVAL,
                       "-C/--report_cputime '1' cannot be told from what --cache '%s' does between "
                       "operations",
                       cm_cache_name(r->cache));
    if (r->per_iter_skip > 0 && !r->per_iter)
        return CM_FAIL(CM_EINVAL, "-K/--per_iter_skip '%d' needs -I/--per_iter_timing 1",
                       r->per_iter_skip);
    if (r->per_iter_skip >= r->iters)
        return CM_FAIL(CM_EINVAL, "-K/--per_iter_skip '%d' leaves nothing of -n/--iters '%d'",
                       r->per_iter_skip, r->iters);
    return CM_OK;
}

/* Each operation stands alone: nothing may follow it at once. */
static enum cm_status check_cache(const struct cm_opts_run *r)
{
    if (r->cache == CM_CACHE_HOT)
        return CM_OK;
    if (r->agg_iters > 1)
        return CM_FAIL(CM_EINVAL,
                       "--cache '%s' with -m/--agg_iters '%d': the operations of an iteration "
                       "follow each other on the same buffers",
                       cm_cache_name(r->cache), r->agg_iters);
    if (r->graph > 0)
        return CM_FAIL(CM_EINVAL,
                       "--cache '%s' with -G/--cudagraph '%d': nothing can happen between the "
                       "operations of a graph",
                       cm_cache_name(r->cache), r->graph);
    return CM_OK;
}

/* No two reports in one file; "-" is one. */
static enum cm_status check_reports(const struct cm_opts_report *r)
{
    const struct {
        const char *option, *path;
    } files[] = {{"-J/--output_file", r->json},
                 {"--csv", r->csv},
                 {"--junit", r->junit},
                 {"--prometheus", r->prometheus}};

    for (size_t i = 1; i < CM_LEN(files); i++) {
        for (size_t k = 0; k < i; k++) {
            if (files[i].path != NULL && files[k].path != NULL &&
                strcmp(files[i].path, files[k].path) == 0)
                return CM_FAIL(CM_EINVAL, "%s and %s both name '%s'", files[k].option,
                               files[i].option, files[i].path);
        }
    }
    if (r->min_peak_pct > 0 && r->peak == NULL)
        return CM_FAIL(CM_EINVAL, "--min-peak '%g' needs --peak", r->min_peak_pct);
    return CM_OK;
}

/* A chunk travels in one slot. */
static enum cm_status check_chunk(const struct cm_opts_engine *e)
{
    size_t slot = e->buffer / CM_PORT_SLOTS / 64 * 64;
    char chunk[32], buffer[32], most[32];

    if (e->buffer == 0 || e->chunk <= slot)
        return CM_OK;
    return CM_FAIL(CM_EINVAL, "--chunk '%s' is larger than a slot of --buffsize '%s': %s",
                   cm_format_size(e->chunk, chunk), cm_format_size(e->buffer, buffer),
                   cm_format_size(slot, most));
}

/* Is the choice of a wire taken back by another option? */
static enum cm_status check_wire(const struct cm_opts *o)
{
    static const char *const names[] = {
        [CM_NET_USE_AUTO] = "auto", [CM_NET_USE_TCP] = "tcp", [CM_NET_USE_IB] = "ib"};
    const char *wire = o->launch.wire != NULL ? o->launch.wire : "auto";
    const struct cm_net_wire *net = cm_net_wire_find(wire);

    if (net != NULL && o->net.use != CM_NET_USE_AUTO && strcmp(names[o->net.use], wire) != 0)
        return CM_FAIL(CM_EINVAL, "--wire '%s' and --net '%s' exclude each other", wire,
                       names[o->net.use]);
    if (o->net.ib_disable && (o->net.use == CM_NET_USE_IB || strcmp(wire, "ib") == 0))
        return CM_FAIL(CM_EINVAL, "--%s 'ib' and --ib-disable '1' exclude each other",
                       o->net.use == CM_NET_USE_IB ? "net" : "wire");
    if (o->net.shm_disable && strcmp(wire, "shm") == 0)
        return CM_FAIL(CM_EINVAL, "--wire 'shm' and --shm-disable '1' exclude each other");
    return CM_OK;
}

/*
 * A captured graph is the whole timed loop: nothing can happen, or be
 * measured, between its operations.
 */
static enum cm_status check_graph(const struct cm_opts *o)
{
    const struct cm_opts_run *r = &o->run;

    if (r->graph == 0)
        return CM_OK;
    if (r->blocking != 0)
        return CM_FAIL(CM_EINVAL,
                       "-G/--cudagraph '%d' with -z/--blocking '%d': nothing can wait between the "
                       "operations of a graph",
                       r->graph, r->blocking);
    if (r->per_iter)
        return CM_FAIL(CM_EINVAL,
                       "-G/--cudagraph '%d' with -I/--per_iter_timing '1': a graph has no single "
                       "iterations to be timed",
                       r->graph);
    if (r->check_every > 0)
        return CM_FAIL(CM_EINVAL,
                       "-G/--cudagraph '%d' with --check-every '%d': a graph has no single "
                       "iterations to be checked",
                       r->graph, r->check_every);
    if (o->launch.null_stream)
        return CM_FAIL(CM_EINVAL,
                       "-G/--cudagraph '%d' with -y/--stream_null '1': CUDA cannot capture the "
                       "NULL stream",
                       r->graph);
    return CM_OK;
}

bool cm_opts_gpu_option(const struct cm_opts *o, char text[CM_GPU_OPTION_BYTES])
{
    text[0] = '\0';
    if (o->run.graph > 0)
        snprintf(text, CM_GPU_OPTION_BYTES, "-G/--cudagraph '%d'", o->run.graph);
    else if (o->launch.null_stream)
        snprintf(text, CM_GPU_OPTION_BYTES, "-y/--stream_null '1'");
    else if (o->launch.oversubscribe)
        snprintf(text, CM_GPU_OPTION_BYTES, "--oversubscribe");
    return text[0] != '\0';
}

/* What is known before a device is looked for. */
static enum cm_status check_backend(const struct cm_opts *o)
{
    bool built = &cm_backend_cuda != NULL;
    char text[CM_GPU_OPTION_BYTES];

    if (o->launch.backend == CM_BACKEND_CUDA && !built)
        return CM_FAIL(CM_EUNSUP,
                       "--backend 'cuda': this build has no CUDA backend (built without nvcc)");
    if ((built && o->launch.backend != CM_BACKEND_HOST) || !cm_opts_gpu_option(o, text))
        return CM_OK;
    if (built)
        return CM_FAIL(CM_EINVAL, "%s needs CUDA, but --backend 'host' was chosen", text);
    return CM_FAIL(CM_EINVAL, "%s needs CUDA, and this build has no CUDA backend", text);
}

/* Iterations in which a fault of `phase` can strike (enum cm_phase_name or -1: the longest). */
static int64_t iterations(const struct cm_opts_run *r, int phase)
{
    int64_t warmup = (int64_t)r->warmup + 1, most; /* the first call comes before -w */

    if (phase == CM_AT_WARMUP)
        return warmup;
    if (phase == CM_AT_TIMED)
        return r->iters;
    if (phase == CM_AT_CHECK)
        return r->checks;
    most = r->iters > r->checks ? r->iters : r->checks;
    return most > warmup ? most : warmup;
}

/* A fault that cannot strike or cannot be noticed would prove nothing. */
static enum cm_status check_inject(const struct cm_opts *o)
{
    struct cm_inject f;
    enum cm_status st = cm_inject_parse(o->inject, 0, &f);
    int64_t n;

    if (st != CM_OK || f.fault == CM_FAULT_NONE)
        return st;
    if (f.fault == CM_FAULT_CORRUPT && o->run.checks == 0 && o->run.check_every == 0)
        return CM_FAIL(CM_EINVAL, "--inject '%s' would not be noticed: -c/--check 0 checks nothing",
                       o->inject);
    if (f.fault == CM_FAULT_BW && o->run.graph > 0)
        return CM_FAIL(CM_EINVAL,
                       "--inject '%s': operations of a graph (-G) are not timed one by one",
                       o->inject);
    if (f.engine[0] != '\0' && cm_sides_find(&o->sides.list, f.engine) < 0)
        return CM_FAIL(CM_EINVAL, "--inject '%s' would never strike: no such engine runs (--%s)",
                       o->inject, o->sides.compare != NULL ? "compare" : "engine");
    if (f.phase == CM_AT_SETUP || f.phase == CM_AT_FINALIZE)
        return CM_OK;
    n = iterations(&o->run, f.phase);
    if (n > 0 && f.iter < n)
        return CM_OK;
    return CM_FAIL(CM_EINVAL,
                   "--inject '%s' would never strike: %s has %lld iterations (-n, -c, -w)",
                   o->inject, f.phase < 0 ? "the longest phase" : cm_phase_text((uint32_t)f.phase),
                   (long long)n);
}

enum cm_status cm_opts_check(struct cm_parse *p)
{
    enum cm_status st = check_sizes(p);

    if (st == CM_OK)
        st = check_per_iter(&p->o->run);
    if (st == CM_OK)
        st = check_cache(&p->o->run);
    if (st == CM_OK)
        st = check_reports(&p->o->report);
    if (st == CM_OK)
        st = check_chunk(&p->o->engine);
    if (st == CM_OK)
        st = check_wire(p->o);
    if (st == CM_OK)
        st = cm_opts_check_sides(p);
    if (st == CM_OK)
        st = check_inject(p->o);
    if (st == CM_OK)
        st = cm_opts_check_find(p);
    if (st == CM_OK)
        st = check_backend(p->o);
    return st == CM_OK ? check_graph(p->o) : st;
}
