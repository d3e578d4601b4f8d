/* What to know about caches and cores before times are read or compared. */
#include <string.h>

#include "base/units.h"
#include "common/cache.h"
#include "common/probe.h"
#include "common/report_int.h"

static void print_between(FILE *f, enum cm_cache_mode mode)
{
    const struct cm_flusher *flusher = cm_flusher_find();

    fprintf(f, "# Cache: %s: before each operation, untimed, ", cm_cache_name(mode));
    if (mode == CM_CACHE_TOUCHED)
        fputs("results are read and inputs rewritten\n", f);
    else if (flusher != NULL)
        fprintf(f, "buffers are flushed (%s)\n", flusher->name);
    else
        fputs("a buffer larger than the caches is written\n", f);
}

void cm_header_print_cache(FILE *f, const struct cm_rank *r)
{
    enum cm_cache_mode mode = r->opts->run.cache;

    if (mode == CM_CACHE_HOT)
        return;
    print_between(f, mode);
    fprintf(f, "# Start: ranks start each operation %s; one clock read, %.0f ns, is in its time\n",
            cm_cache_aligns(r) ? "together, by the clock" : "when they leave a barrier",
            cm_cache_clock_ns());
}

/* "62 ns", "62 to 270 ns" */
static void print_figures(FILE *f, const struct cm_probe *p)
{
    if (p->pairs == 1)
        fprintf(f, "%.0f ns", p->least_ns);
    else
        fprintf(f, "%.0f to %.0f ns", p->least_ns, p->most_ns);
}

void cm_header_print_probe(FILE *f, const struct cm_rank *r)
{
    const struct cm_probe *p = r->probes != NULL ? &r->probes->before : NULL;

    if (p == NULL || r->n == 1 || r->backend != NULL)
        return;
    if (p->pairs == 0) {
        fprintf(f, "# Placement: not measured: %s\n", p->why);
        return;
    }
    fprintf(f, "# Placement: %s: two ranks exchange flags in ", cm_probe_class(p));
    print_figures(f, p);
    if (p->pairs > 1)
        fprintf(f, " (%d pairs)", p->pairs);
    fputc('\n', f);
}

void cm_footer_print_probe(FILE *f, const struct cm_rank *r)
{
    const struct cm_probes *p = r->probes;
    const char *tag = p != NULL ? cm_probes_tag(p) : NULL;

    if (tag == NULL)
        return;
    fprintf(f, "# Placement            : %s, ", tag);
    print_figures(f, &p->before);
    fputs(" before, ", f);
    print_figures(f, &p->after);
    fputs(" after", f);
    if (strcmp(tag, "moved") == 0)
        fputs(": cores changed places, so rows differ for that", f);
    fputc('\n', f);
}
