/* Inside of topo*.c: what detection, parser and tests share. */
#ifndef CM_ENGINE_TOPO_INT_H
#define CM_ENGINE_TOPO_INT_H

#include <stdbool.h>

#include "engine/topo.h"

enum { CM_TOPO_LEVELS = 16 /* components of a path */, CM_TOPO_WORDS = 32 /* of a line */ };

/* An empty topology of one node, or NULL. */
struct cm_topo *cm_topo_new(void);

/* Is there a NUMA node `id`? */
bool cm_topo_has_numa(const struct cm_topo *t, int id);

/* Index of the GPU with this bus id (normal form), or -1. */
int cm_topo_find_gpu(const struct cm_topo *t, const char *bus_id);

/*
 * Bring a PCI bus id to its normal form: lower case, a domain of 4 digits if
 * it has no more. False (out untouched): it is none.
 */
bool cm_topo_bus_id(const char *text, char out[16]);

/* Parse "0-31,64-95" into cpus[max], in the order of the text; their number or -1: it is none. */
int cm_topo_parse_list(const char *text, int16_t *cpus, int max);

/* Write CPUs as such a list. */
void cm_topo_print_list(FILE *f, const int16_t *cpus, int n);

/* CPUs of a NUMA node, ascending; their number. */
int cm_topo_cpus(const struct cm_topo *t, int numa, int16_t cpus[CM_TOPO_CPUS]);

/* The text being read, one line at a time. */
struct cm_topo_reader {
    struct cm_topo *t;
    const char *name;
    int line;
    bool begun, has_nodes;
    bool paired[CM_TOPO_CPUS]; /* a line of siblings has named the CPU */
    char *words[CM_TOPO_WORDS];
    int n; /* of words, at least 1 */
};

/* Carry out the statement that the words are. CM_EINVAL, logged. */
CM_MUST_CHECK enum cm_status cm_topo_statement(struct cm_topo_reader *r);

/*
 * Order 0 .. n-1 as a ring by the symmetric matrix `strength` (n x n, row by
 * row; the diagonal is not read). See cm_topo_ring() for what is best.
 */
void cm_ring_search(const int64_t *strength, int n, int *order);

/* The functions of NVML that are used; remote_type and capability may be NULL. */
struct cm_nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct cm_nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus_id)(const char *bus_id, void **device);
    int (*link_state)(void *device, unsigned link, unsigned *active);
    int (*remote_pci)(void *device, unsigned link, struct cm_nvml_pci *pci);
    int (*remote_type)(void *device, unsigned link, unsigned *type);
    int (*capability)(void *device, int *major, int *minor);
};

/* Fill in the NVLinks of t's GPUs. What NVML does not answer stays absent. */
void cm_topo_ask_nvml(struct cm_topo *t, const struct cm_nvml *nvml);

/* The same with the library of the driver, if there is one. */
void cm_topo_load_nvml(struct cm_topo *t);

#endif
