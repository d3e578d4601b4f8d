/*
 * What machines are known to reach: the bus bandwidth that %peak is a part of.
 *
 * A figure holds for a way to move data. Where a switch reduces (NVLS), fewer
 * bytes cross the links than busbw counts, so that it exceeds what any ring
 * could reach; and a copy is not slowed by arithmetic. So every figure has a
 * class, and a row is only ever compared with its own.
 */
#ifndef CM_COMMON_PEAKS_H
#define CM_COMMON_PEAKS_H

#include <stdbool.h>

#include "base/plan.h"

enum cm_peak_class {
    CM_PEAK_RING,   /* ranks reduce or relay: ring, tree, direct, hier, ... */
    CM_PEAK_SWITCH, /* the switch reduces: names that begin with nvls or collnet */
    CM_PEAK_COPY,   /* each block goes once from one rank to another */
    CM_NPEAK_CLASSES
};

struct cm_machine {
    const char *name; /* for --peak */
    const char *gpu;  /* name of its GPUs, as CUDA has it: a glob */
    const char *link; /* between them */
};

/* All of it for ranks on one node with a GPU each. */
struct cm_peak {
    const struct cm_machine *machine; /* rows of a machine are together */
    enum cm_peak_class class;
    int lo, hi;         /* ranks */
    double gbs;         /* bus bandwidth of large messages, 1e9 bytes per second */
    const char *source; /* address */
    const char *date;   /* of the source, "2026-08-22" */
};

/* The last row has no machine. */
extern const struct cm_peak cm_peaks[];

/* "ring", "in-switch", "copy". */
const char *cm_peak_class_name(enum cm_peak_class c);

/* The class of a row; `algo` may be NULL. */
enum cm_peak_class cm_peak_class_of(enum cm_coll coll, const char *algo);

/* A machine by its name, in capitals or not, or by its GPU; NULL: not known. */
const struct cm_machine *cm_peak_machine(const char *name);
const struct cm_machine *cm_peak_machine_of_gpu(const char *gpu);

/* NULL: no figure is known. */
const struct cm_peak *cm_peak_find(const struct cm_machine *machine, enum cm_peak_class c,
                                   int ranks, int nodes);

/* Is it a value of --peak: GB/s above 0, a machine or "auto"? And what is, in words. */
bool cm_peak_valid(const char *text);
extern const char cm_peak_want[];

/* GB/s, if `text` is a number that --peak takes; else 0. */
double cm_peak_number(const char *text);

#endif
