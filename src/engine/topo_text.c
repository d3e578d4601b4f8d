/* The topology text: cut into lines and words for the parser, read from a file, written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/topo_int.h"

enum { LINE = 8192, FILE_BYTES = 1 << 20 };

/* Cut a line (with room for its end) into words; false: there are too many. */
static bool split(struct cm_topo_reader *r, char *line)
{
    char *save = NULL;

    r->n = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *w = strtok_r(line, " \t\r", &save); w != NULL; w = strtok_r(NULL, " \t\r", &save)) {
        if (r->n == CM_TOPO_WORDS)
            return false;
        r->words[r->n++] = w;
    }
    return true;
}

/* Only what can be shown in a message is read. */
static bool is_text(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((s[i] < ' ' || s[i] > '~') && s[i] != '\t' && s[i] != '\r')
            return false;
    return true;
}

static enum cm_status read_line(struct cm_topo_reader *r, const char *at, size_t len)
{
    char line[LINE];

    if (len >= sizeof(line) || !is_text(at, len))
        return CM_FAIL(CM_EINVAL, "%s:%d: not a line of ASCII text of at most %d bytes", r->name,
                       r->line, LINE - 1);
    memcpy(line, at, len);
    line[len] = '\0';
    if (!split(r, line))
        return CM_FAIL(CM_EINVAL, "%s:%d: more than %d words", r->name, r->line, CM_TOPO_WORDS);
    return r->n > 0 ? cm_topo_statement(r) : CM_OK;
}

enum cm_status cm_topo_parse(const char *text, size_t length, const char *name,
                             struct cm_topo **out)
{
    struct cm_topo_reader r = {.t = cm_topo_new(), .name = name};
    const char *end = text + length;
    enum cm_status st = CM_OK;

    if (r.t == NULL)
        return CM_FAIL(CM_ENOMEM, "%s: %zu bytes", name, sizeof(*r.t));
    while (st == CM_OK && text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((eol != NULL ? eol : end) - text);

        r.line++;
        st = read_line(&r, text, len);
        text += len + (eol != NULL);
    }
    if (st == CM_OK && !r.begun)
        st = CM_FAIL(CM_EINVAL, "%s:%d: there is no statement", name, r.line);
    if (st == CM_OK)
        *out = r.t;
    else
        cm_topo_free(r.t);
    return st;
}

enum cm_status cm_topo_read(const char *path, struct cm_topo **out)
{
    FILE *f = fopen(path, "re");
    enum cm_status st;
    char *text;
    size_t n;

    if (f == NULL)
        return CM_FAIL(CM_EINVAL, "topology %s: %s", path, strerror(errno));
    text = malloc(FILE_BYTES + 1);
    n = text != NULL ? fread(text, 1, FILE_BYTES + 1, f) : 0;
    if (text == NULL)
        st = CM_FAIL(CM_ENOMEM, "topology %s: %d bytes", path, FILE_BYTES);
    else if (ferror(f))
        st = CM_FAIL(CM_EINVAL, "topology %s: %s", path, strerror(errno));
    else if (n > FILE_BYTES)
        st = CM_FAIL(CM_EINVAL, "topology %s: more than %d bytes", path, FILE_BYTES);
    else
        st = cm_topo_parse(text, n, path, out);
    free(text);
    fclose(f);
    return st;
}

/* ---- writing ---- */

static void dump_numas(const struct cm_topo *t, FILE *f)
{
    int16_t cpus[CM_TOPO_CPUS];

    for (int i = 0; i < t->nnumas; i++) {
        int n = cm_topo_cpus(t, t->numas[i].id, cpus);

        fprintf(f, "numa %d", t->numas[i].id);
        if (t->numas[i].socket >= 0)
            fprintf(f, " socket %d", t->numas[i].socket);
        fputs(" cpus ", f);
        cm_topo_print_list(f, cpus, n);
        fputc('\n', f);
    }
}

/* The k-th CPU of a core (k from 0), or -1. */
static int sibling(const struct cm_topo *t, int core, int k)
{
    for (int cpu = 0; cpu < CM_TOPO_CPUS; cpu++)
        if (t->core_of[cpu] == core && k-- == 0)
            return cpu;
    return -1;
}

/* Cores of `threads` CPUs: a list of all their first CPUs, of all their second ones ... */
static void dump_siblings(const struct cm_topo *t, const int *threads_of, int threads, FILE *f)
{
    int16_t list[CM_TOPO_CPUS];

    fputs("siblings", f);
    for (int k = 0; k < threads; k++) {
        int n = 0;

        for (int core = 0; core < CM_TOPO_CPUS; core++)
            if (threads_of[core] == threads)
                list[n++] = (int16_t)sibling(t, core, k);
        fputc(' ', f);
        cm_topo_print_list(f, list, n);
    }
    fputc('\n', f);
}

/* One line for each number of threads that cores have. */
static void dump_cores(const struct cm_topo *t, FILE *f)
{
    int threads_of[CM_TOPO_CPUS] = {0}, cores_with[CM_TOPO_WORDS] = {0};

    for (int cpu = 0; cpu < CM_TOPO_CPUS; cpu++)
        if (t->core_of[cpu] >= 0)
            threads_of[t->core_of[cpu]]++;
    for (int core = 0; core < CM_TOPO_CPUS; core++)
        if (threads_of[core] < CM_TOPO_WORDS)
            cores_with[threads_of[core]]++;
    for (int threads = 2; threads < CM_TOPO_WORDS; threads++)
        if (cores_with[threads] > 0)
            dump_siblings(t, threads_of, threads, f);
}

static void dump_device(const struct cm_topo_device *d, FILE *f)
{
    fprintf(f, " bus %s path %s", d->bus_id, d->path);
    if (d->numa >= 0)
        fprintf(f, " numa %d", d->numa);
    if (d->pcie_gbs > 0)
        fprintf(f, " pcie %.10g", d->pcie_gbs);
    if (d->net_gbs > 0)
        fprintf(f, " net %.10g", d->net_gbs);
    if (d->rail >= 0)
        fprintf(f, " rail %d", d->rail);
    fputc('\n', f);
}

static void dump_nvlinks(const struct cm_topo *t, int gpu, FILE *f)
{
    const struct cm_topo_nvlink *row = t->nvlinks[gpu];

    for (int peer = gpu + 1; peer < t->ngpus; peer++)
        if (row[peer].links > 0)
            fprintf(f, "nvlink %d %d links %d gbs %.10g\n", gpu, peer, row[peer].links,
                    row[peer].gbs);
    if (row[CM_TOPO_SWITCH].links > 0)
        fprintf(f, "nvlink %d switch links %d gbs %.10g\n", gpu, row[CM_TOPO_SWITCH].links,
                row[CM_TOPO_SWITCH].gbs);
}

void cm_topo_dump(const struct cm_topo *t, FILE *f)
{
    fputs("topology 1\n", f);
    if (t->nodes != 1)
        fprintf(f, "nodes %d\n", t->nodes);
    dump_numas(t, f);
    dump_cores(t, f);
    for (int i = 0; i < t->ngpus; i++) {
        fprintf(f, "gpu %d", i);
        dump_device(&t->gpus[i], f);
    }
    for (int i = 0; i < t->nnics; i++) {
        fprintf(f, "nic %s", t->nics[i].name);
        dump_device(&t->nics[i], f);
    }
    for (int i = 0; i < t->ngpus; i++)
        dump_nvlinks(t, i, f);
}
