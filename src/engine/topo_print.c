/* The topology for people: the matrix of `nvidia-smi topo -m`, NICs of GPUs, the ring. */
#include <string.h>

#include "engine/topo_int.h"

/* Width of the columns, so that every name and class fits. */
static int column_width(const struct cm_topo *t)
{
    size_t width = 4;

    for (int d = 0; d < t->ngpus + t->nnics; d++) {
        size_t len = strlen(cm_topo_device(t, d)->name);

        width = len > width ? len : width;
    }
    return (int)width + 2;
}

static void print_header(const struct cm_topo *t, int width, FILE *f)
{
    fprintf(f, "%-*s", width, "");
    for (int d = 0; d < t->ngpus + t->nnics; d++)
        fprintf(f, "%-*s", width, cm_topo_device(t, d)->name);
    fputs("NUMA  CPUs\n", f);
}

static void print_row(const struct cm_topo *t, int d, int width, FILE *f)
{
    const struct cm_topo_device *me = cm_topo_device(t, d);
    int16_t cpus[CM_TOPO_CPUS];
    char text[16];

    fprintf(f, "%-*s", width, me->name);
    for (int other = 0; other < t->ngpus + t->nnics; other++) {
        struct cm_topo_link l = cm_topo_link(t, d, other);

        fprintf(f, "%-*s", width, cm_topo_class_text(&l, text));
    }
    if (me->numa < 0) {
        fputs("-     -\n", f);
        return;
    }
    fprintf(f, "%-4d  ", me->numa);
    cm_topo_print_list(f, cpus, cm_topo_cpus(t, me->numa, cpus));
    fputc('\n', f);
}

static void print_numa(const struct cm_topo *t, int i, FILE *f)
{
    int16_t cpus[CM_TOPO_CPUS];
    int n = cm_topo_cpus(t, t->numas[i].id, cpus), cores = 0;

    for (int k = 0; k < n; k++)
        cores += t->core_of[cpus[k]] == cpus[k];
    fprintf(f, "numa %d", t->numas[i].id);
    if (t->numas[i].socket >= 0)
        fprintf(f, " (socket %d)", t->numas[i].socket);
    fprintf(f, ": %d cores, cpus ", cores);
    cm_topo_print_list(f, cpus, n);
    fputc('\n', f);
}

static void print_speed(double gbs, FILE *f)
{
    if (gbs > 0)
        fprintf(f, ", %.10g GB/s", gbs);
}

/* "GPU3 uses mlx5_3 (PIX, 50 GB/s, rail 3)" */
static void print_nic(const struct cm_topo *t, int gpu, FILE *f)
{
    int nic = cm_topo_nic(t, gpu);
    struct cm_topo_link l;
    char text[16];

    if (nic < 0)
        return;
    l = cm_topo_link(t, gpu, t->ngpus + nic);
    fprintf(f, "GPU%d uses %s (%s", gpu, t->nics[nic].name, cm_topo_class_text(&l, text));
    print_speed(t->nics[nic].net_gbs, f);
    if (t->nics[nic].rail >= 0)
        fprintf(f, ", rail %d", t->nics[nic].rail);
    fputs(")\n", f);
}

static void print_ring(const struct cm_topo *t, FILE *f)
{
    int gpus[CM_TOPO_GPUS], order[CM_TOPO_GPUS];
    struct cm_topo_link weakest;
    char text[16];

    for (int i = 0; i < t->ngpus; i++)
        gpus[i] = i;
    weakest = cm_topo_ring(t, gpus, t->ngpus, order);
    fputs("ring", f);
    for (int i = 0; i < t->ngpus; i++)
        fprintf(f, " %d", order[i]);
    fprintf(f, ", weakest link %s", cm_topo_class_text(&weakest, text));
    print_speed(weakest.gbs, f);
    fputc('\n', f);
}

void cm_topo_matrix(const struct cm_topo *t, FILE *f)
{
    int width = column_width(t), devices = t->ngpus + t->nnics;

    for (int i = 0; i < t->nnumas; i++)
        print_numa(t, i, f);
    if (t->nodes > 1)
        fprintf(f, "%d nodes of this kind\n", t->nodes);
    if (devices == 0)
        return;
    print_header(t, width, f);
    for (int d = 0; d < devices; d++)
        print_row(t, d, width, f);
    fputs("NV# NVLinks; PIX one PCI switch, PXB several; PHB host bridge; NODE within a NUMA node, "
          "SYS between\n",
          f);
    for (int i = 0; i < t->ngpus; i++)
        print_nic(t, i, f);
    if (t->ngpus > 1)
        print_ring(t, f);
}
