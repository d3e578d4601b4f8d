/*
 * The table of known machines. A row is a figure that somebody published, with
 * its address and date; there are no figures by rule of thumb, so what nobody
 * published has no row, and its %peak is N/A.
 */
#include "common/peaks.h"

#include <fnmatch.h>
#include <strings.h>

#include "base/status.h"
#include "base/units.h"

static const struct cm_machine a100 = {"a100-sxm", "NVIDIA A100-SXM4-*", "NVLink 3"};
static const struct cm_machine h100 = {"h100-sxm", "NVIDIA H100 80GB HBM3", "NVLink 4"};
static const struct cm_machine h200 = {"h200-sxm", "NVIDIA H200", "NVLink 4"};
static const struct cm_machine b200 = {"b200-sxm", "NVIDIA B200", "NVLink 5"};

/* What a maintainer of NCCL answered. */
static const char issue149[] = "https://github.com/NVIDIA/nccl-tests/issues/149";
static const char issue212[] = "https://github.com/NVIDIA/nccl-tests/issues/212";
/* p2pBandwidthLatencyTest, one direction. */
static const char issue1264[] = "https://github.com/NVIDIA/nccl/issues/1264";
/* nccl-tests on 8 GiB, by number of GPUs; copies of a pair by nvbandwidth. */
static const char bekman[] =
    "https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/"
    "network/README.md";

/* clang-format off */
const struct cm_peak cm_peaks[] = {
    {&a100, CM_PEAK_RING,   8, 8, 230,   issue149, "2023-07-05"},
    {&h100, CM_PEAK_RING,   8, 8, 370,   issue212, "2024-05-06"},
    {&h100, CM_PEAK_SWITCH, 8, 8, 480,   issue212, "2024-05-06"},
    {&h100, CM_PEAK_COPY,   2, 8, 380,   issue1264, "2024-04-24"},
    {&h200, CM_PEAK_RING,   4, 4, 363.3, bekman, "2026-08-22"},
    {&h200, CM_PEAK_RING,   5, 5, 364.4, bekman, "2026-08-22"},
    {&h200, CM_PEAK_RING,   6, 6, 365.1, bekman, "2026-08-22"},
    {&h200, CM_PEAK_RING,   7, 7, 365.7, bekman, "2026-08-22"},
    {&h200, CM_PEAK_RING,   8, 8, 365.6, bekman, "2026-08-22"},
    {&h200, CM_PEAK_SWITCH, 5, 5, 414.2, bekman, "2026-08-22"},
    {&h200, CM_PEAK_SWITCH, 6, 6, 435.6, bekman, "2026-08-22"},
    {&h200, CM_PEAK_SWITCH, 7, 7, 460,   bekman, "2026-08-22"},
    {&h200, CM_PEAK_SWITCH, 8, 8, 473.1, bekman, "2026-08-22"},
    {&h200, CM_PEAK_COPY,   2, 8, 396.4, bekman, "2026-08-22"},
    {&b200, CM_PEAK_RING,   4, 4, 673.8, bekman, "2026-08-22"},
    {&b200, CM_PEAK_RING,   5, 6, 677.8, bekman, "2026-08-22"},
    {&b200, CM_PEAK_RING,   7, 7, 680.5, bekman, "2026-08-22"},
    {&b200, CM_PEAK_RING,   8, 8, 682.2, bekman, "2026-08-22"},
    {&b200, CM_PEAK_SWITCH, 6, 6, 778.2, bekman, "2026-08-22"},
    {&b200, CM_PEAK_SWITCH, 7, 7, 811.2, bekman, "2026-08-22"},
    {&b200, CM_PEAK_SWITCH, 8, 8, 838,   bekman, "2026-08-22"},
    {.machine = NULL},
};
/* clang-format on */

const char cm_peak_want[] =
    "GB/s (above 0, up to 1e+09), auto, or one of a100-sxm, h100-sxm, h200-sxm, b200-sxm";

const char *cm_peak_class_name(enum cm_peak_class c)
{
    static const char *const names[CM_NPEAK_CLASSES] = {
        [CM_PEAK_RING] = "ring", [CM_PEAK_SWITCH] = "in-switch", [CM_PEAK_COPY] = "copy"};

    return names[c];
}

enum cm_peak_class cm_peak_class_of(enum cm_coll coll, const char *algo)
{
    if (algo != NULL && (strncasecmp(algo, "nvls", 4) == 0 || strncasecmp(algo, "collnet", 7) == 0))
        return CM_PEAK_SWITCH;
    switch (coll) {
    case CM_ALLTOALL:
    case CM_ALLTOALLV:
    case CM_GATHER:
    case CM_SCATTER:
    case CM_SENDRECV:
        return CM_PEAK_COPY;
    default:
        return CM_PEAK_RING;
    }
}

const struct cm_machine *cm_peak_machine(const char *name)
{
    for (const struct cm_peak *p = cm_peaks; p->machine != NULL; p++) {
        if (strcasecmp(p->machine->name, name) == 0)
            return p->machine;
    }
    return NULL;
}

const struct cm_machine *cm_peak_machine_of_gpu(const char *gpu)
{
    for (const struct cm_peak *p = cm_peaks; p->machine != NULL; p++) {
        if (fnmatch(p->machine->gpu, gpu, 0) == 0)
            return p->machine;
    }
    return NULL;
}

const struct cm_peak *cm_peak_find(const struct cm_machine *machine, enum cm_peak_class c,
                                   int ranks, int nodes)
{
    for (const struct cm_peak *p = cm_peaks; p->machine != NULL; p++) {
        if (p->machine == machine && p->class == c && nodes == 1 && p->lo <= ranks &&
            ranks <= p->hi)
            return p;
    }
    return NULL;
}

double cm_peak_number(const char *text)
{
    double gbs;

    return cm_parse_real(text, 0, 1e9, &gbs) && gbs > 0 ? gbs : 0;
}

bool cm_peak_valid(const char *text)
{
    return cm_peak_number(text) > 0 || strcasecmp(text, "auto") == 0 ||
           cm_peak_machine(text) != NULL;
}
