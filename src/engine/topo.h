/*
 * What connects the devices of a machine: NUMA nodes and sockets, the PCI
 * paths of GPUs and NICs, NVLinks. It is found in sysfs and NVML, or read from
 * a text that says the same, and it is constant afterwards.
 *
 * The text has one statement a line; '#' starts a comment; [ ] may be absent:
 *
 *   topology 1                       the version of this grammar comes first
 *   nodes N                          machines like this one, joined by their NICs; default 1
 *   numa ID [socket S] cpus LIST
 *   siblings LIST LIST ...           the k-th CPUs of all lists share a core
 *   gpu N bus ID path PATH [numa ID] [pcie GBS]                  N counts from 0
 *   nic NAME bus ID path PATH [numa ID] [pcie GBS] [net GBS] [rail R]
 *   nvlink GPU PEER links N gbs GBS  PEER: a GPU or "switch"; GBS of one link
 *
 * LIST is as in 0-31,64-95. PATH leads from the PCI host bridge down to the
 * bridge above the device, as in pci0000:16/0000:16:01.0. A name is used after
 * the line that brings it; pairs of a key and a value come in any order. GBS
 * is 1e9 bytes per second in one direction, 0 or absent: unknown. A rail is
 * the network that equal NICs of all nodes are cabled to.
 */
#ifndef CM_ENGINE_TOPO_H
#define CM_ENGINE_TOPO_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

enum {
    CM_TOPO_GPUS = 64,
    CM_TOPO_NICS = 64,
    CM_TOPO_NUMAS = 64,
    CM_TOPO_CPUS = 1024,
    CM_TOPO_NAME = 32,
    CM_TOPO_SWITCH = CM_TOPO_GPUS /* the peer of links that end in an NVSwitch */
};

/* How far two devices are from each other, near to far: the words of `nvidia-smi topo -m`. */
enum cm_topo_class {
    CM_TOPO_X,    /* the device itself */
    CM_TOPO_NV,   /* NVLink, direct or through NVSwitch */
    CM_TOPO_PIX,  /* at most one PCI switch */
    CM_TOPO_PXB,  /* several PCI switches */
    CM_TOPO_PHB,  /* the PCI host bridge */
    CM_TOPO_NODE, /* host bridges of one NUMA node */
    CM_TOPO_SYS,  /* the interconnect between NUMA nodes */
    CM_TOPO_NCLASSES
};

struct cm_topo_numa {
    int id, socket; /* socket -1: unknown */
};
struct cm_topo_device {
    char name[CM_TOPO_NAME]; /* of a NIC: "mlx5_0"; of a GPU: "GPU3" */
    char bus_id[16];         /* "0000:1b:00.0" */
    char path[256];
    int numa; /* id of its NUMA node, -1: unknown */
    int rail; /* of a NIC, -1: unknown */
    double pcie_gbs, net_gbs;
};
struct cm_topo_nvlink {
    int links;
    double gbs; /* of one link */
};
struct cm_topo {
    int nodes, nnumas, ngpus, nnics;
    struct cm_topo_numa numas[CM_TOPO_NUMAS];
    int16_t numa_of[CM_TOPO_CPUS]; /* NUMA id of a CPU, -1: there is no such CPU */
    int16_t core_of[CM_TOPO_CPUS]; /* one CPU that stands for the core; -1 */
    struct cm_topo_device gpus[CM_TOPO_GPUS], nics[CM_TOPO_NICS];
    struct cm_topo_nvlink nvlinks[CM_TOPO_GPUS][CM_TOPO_GPUS + 1]; /* symmetric among GPUs */
};

/* The way between two devices. */
struct cm_topo_link {
    enum cm_topo_class kind;
    int nvlinks; /* NV */
    double gbs;  /* NV: all links together; else the slower PCI link; 0: unknown */
};

/*
 * Look at the machine whose file system starts at `root` ("/"; a test has a
 * copy of /sys elsewhere). GPUs are numbered as in bus_ids[n] ("0000:1b:00.0",
 * any case, domain of 4 or 8 digits), or with n = 0 those of NVIDIA in the
 * order of their bus ids. NICs are those that are up, without virtual
 * functions of a NIC that is there itself. NVLinks come from NVML, if there
 * is one, and only for "/". What the system does not tell stays unknown.
 * *out is the caller's: cm_topo_free(). Any thread; reads files only.
 * CM_EINVAL: a bus id is no device. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_topo_detect(const char *root, const char *const *bus_ids, int n,
                                            struct cm_topo **out);

/* Parse a text. CM_EINVAL: logged as "name:line: what is wrong". CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_topo_parse(const char *text, size_t length, const char *name,
                                           struct cm_topo **out);

/* Parse a file of at most 1 MiB. Also CM_EINVAL if it cannot be read. */
CM_MUST_CHECK enum cm_status cm_topo_read(const char *path, struct cm_topo **out);
void cm_topo_free(struct cm_topo *t);

/* Write the text that parses to the same topology. Errors are those of `f`. */
void cm_topo_dump(const struct cm_topo *t, FILE *f);

/* Write, for people, the matrix of classes, the NIC of each GPU and the ring of all GPUs. */
void cm_topo_matrix(const struct cm_topo *t, FILE *f);

/* The way between devices a and b: GPUs are 0 .. ngpus-1, NICs follow. Symmetric. */
struct cm_topo_link cm_topo_link(const struct cm_topo *t, int a, int b);
const struct cm_topo_device *cm_topo_device(const struct cm_topo *t, int d);

/* "NV12", "PIX", ... into buf (>= 16 bytes); returns buf. */
char *cm_topo_class_text(const struct cm_topo_link *l, char *buf);

/*
 * The best NICs of a GPU, in order: fastest way to the network, then nearest.
 * Several if they are equally good. Returns how many are in nics[].
 */
int cm_topo_nics(const struct cm_topo *t, int gpu, int nics[CM_TOPO_NICS]);

/* The one of them that a GPU should use: GPUs with the same NICs take turns. -1: no NIC. */
int cm_topo_nic(const struct cm_topo *t, int gpu);

/*
 * Order gpus[n], 1 <= n <= CM_TOPO_GPUS, as a ring: its weakest link is as
 * strong as possible (GB/s, then class), then as few links as possible are
 * that weak, then the sum is largest. Exact up to 8, a local optimum above;
 * the same everywhere. order[n] starts with gpus[0]. Returns the weakest link
 * (n = 1: the device itself).
 */
struct cm_topo_link cm_topo_ring(const struct cm_topo *t, const int *gpus, int n, int *order);

/*
 * gpu[i] is that of rank i (NULL: GPU i), no two ranks of a node have the same, and order[n]
 * is a ring order of ranks grouped by node: bring the ranks of each node into the order of
 * the ring of their GPUs.
 */
void cm_topo_order(const struct cm_topo *t, const int32_t *node, const int32_t *gpu, int n,
                   int32_t *order);

/* Receives one line of text, valid during the call. */
typedef void cm_topo_tell(void *arg, const char *text);

/*
 * Tell of GPUs that have fewer NVLinks, or NVLink to fewer GPUs, than more
 * than half of all have. Returns how many lines were told.
 */
int cm_topo_warn_nvlink(const struct cm_topo *t, cm_topo_tell *tell, void *arg);

/*
 * Tell of ranks that share a core: cpu_of[n] is the CPU of each rank on this
 * machine, -1: not bound. Returns how many lines were told (one a core).
 */
int cm_topo_warn_cores(const struct cm_topo *t, const int32_t *cpu_of, int n, cm_topo_tell *tell,
                       void *arg);

#endif
