/*
 * The statements of the topology text, strictly: every word has a meaning,
 * every name is known before it is used, nothing is said twice. The grammar is
 * in topo.h; topo_text.c cuts the text into words.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "engine/topo_int.h"

enum { KEYS = 6, VERSION = 1 };

static enum cm_status CM_PRINTF(2, 3) bad(const struct cm_topo_reader *r, const char *fmt, ...)
{
    char what[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return CM_FAIL(CM_EINVAL, "%s:%d: %s", r->name, r->line, what);
}

/* ---- words ---- */

/* Letters, digits and a few marks; `length` with its end fits into `room` bytes. */
static bool is_name(const char *s, size_t room)
{
    static const char marks[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
    size_t len = strlen(s);

    return len > 0 && len < room && strspn(s, marks) == len;
}

static bool is_path(const char *s)
{
    char copy[sizeof(((struct cm_topo_device *)NULL)->path)], *rest = copy, *word;
    int levels = 0;

    if (strlen(s) >= sizeof(copy))
        return false;
    strcpy(copy, s);
    while ((word = strsep(&rest, "/")) != NULL)
        if (!is_name(word, sizeof(copy)) || ++levels > CM_TOPO_LEVELS)
            return false;
    return true;
}

static enum cm_status whole(const struct cm_topo_reader *r, const char *what, const char *text,
                            int hi, int *out)
{
    int64_t v;

    if (!cm_parse_int(text, 0, hi, &v))
        return bad(r, "%s '%s' is not a whole number, 0 to %d", what, text, hi);
    *out = (int)v;
    return CM_OK;
}

static enum cm_status speed(const struct cm_topo_reader *r, const char *what, const char *text,
                            double *out)
{
    if (!cm_parse_real(text, 0, 1e6, out))
        return bad(r, "%s '%s' is not a number of GB/s, 0 to 1000000", what, text);
    return CM_OK;
}

/* ---- pairs of a key and a value ---- */

struct keys {
    const char *const *names; /* at most KEYS, NULL-terminated */
    const char *values[KEYS];
};

static const char *value_of(const struct keys *k, const char *name)
{
    for (int i = 0; k->names[i] != NULL; i++)
        if (strcmp(k->names[i], name) == 0)
            return k->values[i];
    return NULL;
}

/* Words from `first` on; the first `needed` names must be there. */
static enum cm_status read_keys(const struct cm_topo_reader *r, int first, int needed,
                                struct keys *k)
{
    for (int w = first; w < r->n; w += 2) {
        int i = 0;

        while (k->names[i] != NULL && strcmp(k->names[i], r->words[w]) != 0)
            i++;
        if (k->names[i] == NULL)
            return bad(r, "'%s' is no key of %s", r->words[w], r->words[0]);
        if (k->values[i] != NULL)
            return bad(r, "%s is given twice", k->names[i]);
        if (w + 1 == r->n)
            return bad(r, "%s has no value", k->names[i]);
        k->values[i] = r->words[w + 1];
    }
    for (int i = 0; i < needed; i++)
        if (k->values[i] == NULL)
            return bad(r, "%s is missing", k->names[i]);
    return CM_OK;
}

/* ---- statements ---- */

static enum cm_status read_nodes(struct cm_topo_reader *r)
{
    enum cm_status st;

    if (r->n != 2 || r->has_nodes)
        return bad(r, "nodes has one number and is given once");
    st = whole(r, "nodes", r->words[1], 1 << 20, &r->t->nodes);
    if (st == CM_OK && r->t->nodes == 0)
        return bad(r, "nodes '0': there is at least one");
    r->has_nodes = true;
    return st;
}

static enum cm_status read_numa(struct cm_topo_reader *r)
{
    static const char *const names[] = {"cpus", "socket", NULL};
    struct cm_topo_numa *numa = &r->t->numas[r->t->nnumas];
    struct keys k = {.names = names};
    int16_t cpus[CM_TOPO_CPUS];
    enum cm_status st;
    int n;

    if (r->n < 2)
        return bad(r, "numa has no id");
    if (r->t->nnumas == CM_TOPO_NUMAS)
        return bad(r, "more than %d NUMA nodes", CM_TOPO_NUMAS);
    st = whole(r, "numa", r->words[1], INT16_MAX, &numa->id);
    if (st == CM_OK && cm_topo_has_numa(r->t, numa->id))
        return bad(r, "numa %d is given twice", numa->id);
    if (st == CM_OK)
        st = read_keys(r, 2, 1, &k);
    numa->socket = -1;
    if (st == CM_OK && k.values[1] != NULL)
        st = whole(r, "socket", k.values[1], INT16_MAX, &numa->socket);
    if (st != CM_OK)
        return st;
    n = cm_topo_parse_list(k.values[0], cpus, CM_TOPO_CPUS);
    if (n < 0)
        return bad(r, "cpus '%s' is not a list like 0-31,64-95 of numbers up to %d", k.values[0],
                   CM_TOPO_CPUS - 1);
    for (int i = 0; i < n; i++) {
        if (r->t->numa_of[cpus[i]] >= 0)
            return bad(r, "cpu %d is given twice", cpus[i]);
        r->t->numa_of[cpus[i]] = (int16_t)numa->id;
        r->t->core_of[cpus[i]] = cpus[i];
    }
    r->t->nnumas++;
    return CM_OK;
}

/* The CPUs of one list join the cores of the first list's CPUs. */
static enum cm_status pair_up(struct cm_topo_reader *r, const char *list, int16_t *cores,
                              int *ncores)
{
    int16_t cpus[CM_TOPO_CPUS];
    int n = cm_topo_parse_list(list, cpus, CM_TOPO_CPUS);

    if (n < 0)
        return bad(r, "'%s' is not a list like 0-31,64-95", list);
    if (*ncores == 0) {
        memcpy(cores, cpus, (size_t)n * sizeof(cpus[0]));
        *ncores = n;
    }
    if (n != *ncores)
        return bad(r, "lists of %d and %d siblings", *ncores, n);
    for (int i = 0; i < n; i++) {
        if (r->t->numa_of[cpus[i]] < 0)
            return bad(r, "no numa node has cpu %d", cpus[i]);
        if (r->paired[cpus[i]])
            return bad(r, "cpu %d has siblings already", cpus[i]);
        r->paired[cpus[i]] = true;
        r->t->core_of[cpus[i]] = cores[i];
    }
    return CM_OK;
}

static enum cm_status read_siblings(struct cm_topo_reader *r)
{
    int16_t cores[CM_TOPO_CPUS];
    enum cm_status st = CM_OK;
    int ncores = 0;

    if (r->n < 3)
        return bad(r, "siblings has less than two lists");
    for (int i = 1; st == CM_OK && i < r->n; i++)
        st = pair_up(r, r->words[i], cores, &ncores);
    return st;
}

/* What GPUs and NICs have in common; the name is known. */
static enum cm_status read_device(const struct cm_topo_reader *r, struct keys *k,
                                  struct cm_topo_device *d)
{
    enum cm_status st = read_keys(r, 2, 2, k);
    const char *bus = value_of(k, "bus"), *path = value_of(k, "path"), *text;

    if (st != CM_OK)
        return st;
    d->numa = d->rail = -1;
    if (!cm_topo_bus_id(bus, d->bus_id))
        return bad(r, "bus '%s' is not a PCI bus id like 0000:1b:00.0", bus);
    if (!is_path(path))
        return bad(r, "path '%s' is not a path of at most %d names", path, CM_TOPO_LEVELS);
    snprintf(d->path, sizeof(d->path), "%s", path);
    if ((text = value_of(k, "numa")) != NULL)
        st = whole(r, "numa", text, INT16_MAX, &d->numa);
    if (st == CM_OK && d->numa >= 0 && !cm_topo_has_numa(r->t, d->numa))
        return bad(r, "there is no numa node %d", d->numa);
    if (st == CM_OK && (text = value_of(k, "rail")) != NULL)
        st = whole(r, "rail", text, INT16_MAX, &d->rail);
    if (st == CM_OK && (text = value_of(k, "pcie")) != NULL)
        st = speed(r, "pcie", text, &d->pcie_gbs);
    if (st == CM_OK && (text = value_of(k, "net")) != NULL)
        st = speed(r, "net", text, &d->net_gbs);
    return st;
}

static enum cm_status read_gpu(struct cm_topo_reader *r)
{
    static const char *const names[] = {"bus", "path", "numa", "pcie", NULL};
    struct cm_topo_device d = {.numa = -1};
    struct keys k = {.names = names};
    enum cm_status st;
    int number = -1;

    if (r->t->ngpus == CM_TOPO_GPUS)
        return bad(r, "more than %d GPUs", CM_TOPO_GPUS);
    if (r->n < 2)
        return bad(r, "gpu has no number");
    st = whole(r, "gpu", r->words[1], CM_TOPO_GPUS - 1, &number);
    if (st == CM_OK && number != r->t->ngpus)
        return bad(r, "gpu %d: the next one is gpu %d", number, r->t->ngpus);
    if (st == CM_OK)
        st = read_device(r, &k, &d);
    if (st != CM_OK)
        return st;
    if (cm_topo_find_gpu(r->t, d.bus_id) >= 0)
        return bad(r, "bus %s is given twice", d.bus_id);
    snprintf(d.name, sizeof(d.name), "GPU%d", number);
    r->t->gpus[r->t->ngpus++] = d;
    return CM_OK;
}

/* NICs may share a bus id: ports of one device. */
static enum cm_status read_nic(struct cm_topo_reader *r)
{
    static const char *const names[] = {"bus", "path", "numa", "pcie", "net", "rail", NULL};
    struct cm_topo_device d = {.numa = -1};
    struct keys k = {.names = names};
    enum cm_status st;

    _Static_assert(CM_LEN(names) <= KEYS + 1, "struct keys has too little room");
    if (r->t->nnics == CM_TOPO_NICS)
        return bad(r, "more than %d NICs", CM_TOPO_NICS);
    if (r->n < 2 || !is_name(r->words[1], sizeof(d.name)))
        return bad(r, "'%s' is no name of a NIC", r->n < 2 ? "" : r->words[1]);
    for (int i = 0; i < r->t->nnics; i++)
        if (strcmp(r->t->nics[i].name, r->words[1]) == 0)
            return bad(r, "nic %s is given twice", r->words[1]);
    st = read_device(r, &k, &d);
    if (st != CM_OK)
        return st;
    snprintf(d.name, sizeof(d.name), "%s", r->words[1]);
    r->t->nics[r->t->nnics++] = d;
    return CM_OK;
}

static enum cm_status read_nvlink(struct cm_topo_reader *r)
{
    static const char *const names[] = {"links", "gbs", NULL};
    struct keys k = {.names = names};
    struct cm_topo_nvlink l = {.links = 0};
    int a = 0, b = CM_TOPO_SWITCH;
    enum cm_status st;

    if (r->n < 3)
        return bad(r, "nvlink has less than two ends");
    st = whole(r, "gpu", r->words[1], CM_TOPO_GPUS - 1, &a);
    if (st == CM_OK && strcmp(r->words[2], "switch") != 0)
        st = whole(r, "gpu", r->words[2], CM_TOPO_GPUS - 1, &b);
    if (st == CM_OK && (a >= r->t->ngpus || (b != CM_TOPO_SWITCH && b >= r->t->ngpus) || a == b))
        return bad(r, "nvlink %s %s: not two of the %d GPUs", r->words[1], r->words[2],
                   r->t->ngpus);
    if (st == CM_OK)
        st = read_keys(r, 3, 2, &k);
    if (st == CM_OK)
        st = whole(r, "links", k.values[0], 255, &l.links);
    if (st == CM_OK)
        st = speed(r, "gbs", k.values[1], &l.gbs);
    if (st != CM_OK)
        return st;
    if (l.links == 0 || r->t->nvlinks[a][b].links > 0)
        return bad(r, "nvlink %s %s: no links, or given twice", r->words[1], r->words[2]);
    r->t->nvlinks[a][b] = l;
    if (b != CM_TOPO_SWITCH)
        r->t->nvlinks[b][a] = l;
    return CM_OK;
}

static enum cm_status read_version(struct cm_topo_reader *r)
{
    int64_t version;

    if (r->begun || r->n != 2 || !cm_parse_int(r->words[1], VERSION, VERSION, &version))
        return bad(r, "topology is given once, with version %d", VERSION);
    r->begun = true;
    return CM_OK;
}

enum cm_status cm_topo_statement(struct cm_topo_reader *r)
{
    static const struct {
        const char *word;
        enum cm_status (*read)(struct cm_topo_reader *r);
    } statements[] = {
        {"topology", read_version},  {"nodes", read_nodes}, {"numa", read_numa},
        {"siblings", read_siblings}, {"gpu", read_gpu},     {"nic", read_nic},
        {"nvlink", read_nvlink},
    };

    for (size_t i = 0; i < CM_LEN(statements); i++) {
        if (strcmp(r->words[0], statements[i].word) != 0)
            continue;
        if (!r->begun && statements[i].read != read_version)
            return bad(r, "the first statement must be 'topology %d'", VERSION);
        return statements[i].read(r);
    }
    return bad(r, "'%s' is no statement", r->words[0]);
}
