/*
 * Options: one table row each (opts_table.c) gives the parser, the environment
 * variable, --help, the README table and the JSON echo. Constant after parsing,
 * passed down, never global.
 */
#ifndef CM_COMMON_OPTS_H
#define CM_COMMON_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/plan.h"
#include "base/status.h"
#include "common/sides.h"

enum cm_placement { CM_PLACE_BOTH, CM_PLACE_OUT, CM_PLACE_IN };
enum cm_cache_mode { CM_CACHE_HOT, CM_CACHE_TOUCHED, CM_CACHE_COLD };
enum cm_average { CM_AVG_RANK0, CM_AVG_MEAN, CM_AVG_MIN, CM_AVG_MAX }; /* -a 0..3 */
enum cm_backend_choice { CM_BACKEND_AUTO, CM_BACKEND_HOST, CM_BACKEND_CUDA };
enum cm_split_op { CM_SPLIT_NONE, CM_SPLIT_AND, CM_SPLIT_OR, CM_SPLIT_MOD, CM_SPLIT_DIV };
enum { CM_ALL = -1 };       /* -d all, -o all, -r all */
enum { CM_PORT_SLOTS = 4 }; /* what --buffsize is divided into */

struct cm_opts_launch {
    int threads; /* -t, >= 1 */
    int gpus;    /* -g, >= 1 */
    enum cm_backend_choice backend;
    enum cm_split_op split; /* on the world rank */
    uint64_t split_value;
    const char *node_map; /* "0,0,1,1" as given, or NULL; parsed by cm_parse_node_map */
    const char *wire;     /* forced wire or NULL */
    int device;           /* first device of a process, -1: by local rank; no effect on the host */
    bool parallel_init;   /* -p */
    bool oversubscribe;   /* several ranks may share a GPU */
    bool null_stream;     /* -y: the NULL stream of each device */
};
struct cm_opts_sweep {
    size_t min_bytes, max_bytes, step_bytes;
    int step_factor;     /* 1: additive by step_bytes */
    int dtype, op, root; /* index or CM_ALL */
    int cycles;          /* -N; 0: for ever */
};
struct cm_opts_run {
    int iters, warmup, agg_iters;
    int checks;      /* -c: verified launches per row and placement; 0: none */
    int check_every; /* also verify every N-th timed iteration; 0: off */
    enum cm_placement placement;
    enum cm_average average;
    enum cm_cache_mode cache;
    int blocking;      /* -z 0..3 */
    int unalign;       /* -u elements */
    int graph;         /* -G: launches of the captured loop; 0: no graph */
    bool per_iter;     /* -I */
    int per_iter_skip; /* -K */
    bool cpu_time;     /* -C */
    double timeout_s;  /* -T; 0: the default deadlines */
    double max_time_s; /* --max-time; 0: none */
    uint64_t seed;
};
/* Which engines run the rows. */
struct cm_opts_sides {
    int engine;          /* enum cm_engine_id */
    const char *compare; /* "builtin,mpi": they take turns; NULL: `engine` alone */
    int rounds;          /* of turns; --compare-rounds */
    struct cm_sides list;
};
struct cm_opts_engine {
    const char *algo;      /* NULL: the tuning table chooses */
    int mode;              /* enum cm_mode or -1 */
    int proto;             /* enum cm_proto */
    int channels;          /* 0: automatic */
    size_t chunk;          /* 0: automatic */
    const char *tuning;    /* file of rules before the built-in table, or NULL */
    size_t buffer;         /* NCCL_BUFFSIZE: bytes of one port (all slots); 0: default */
    bool p2p_disable;      /* GPUs reach each other through host memory; no effect on the host */
    const char *p2p_level; /* how far apart GPUs may be that address each other; NULL: any */
};
enum cm_progress { CM_PROGRESS_AUTO, CM_PROGRESS_THREAD, CM_PROGRESS_INLINE };
enum cm_net_use { CM_NET_USE_AUTO, CM_NET_USE_TCP, CM_NET_USE_IB };
enum cm_ip { CM_IP_ANY, CM_IP_4, CM_IP_6 };
/* Between nodes. */
struct cm_opts_net {
    int use;                /* enum cm_net_use: the wire; ib must be there if it is named */
    int ip;                 /* enum cm_ip: version of the addresses */
    const char *ifname;     /* as cm_net_select() has it; NULL: the best there is */
    const char *ports;      /* "7000-7100": where to listen; NULL: any */
    const char *rendezvous; /* "mpi", "env", "file:PATH"; NULL: found out */
    int progress;           /* enum cm_progress: who moves the data */
    int sockets;            /* of a connection; 0: automatic */
    const char *ib_hca;     /* NCCL_IB_HCA: devices and ports; NULL: all that are up */
    int ib_gid;             /* GID index; -1: automatic */
    int ib_qps;             /* queue pairs of a connection */
    int ib_mtu;             /* bytes; 0: the smaller of both ends' */
    int ib_adaptive;  /* packets may take several ways: 1, 0; -1: on InfiniBand, not on RoCE */
    int ib_timeout;   /* 4.096 us x 2^n until a packet is sent again */
    int ib_retries;   /* how often */
    int ib_tc, ib_sl; /* traffic class and service level */
    bool ib_disable;  /* NCCL_IB_DISABLE */
    bool shm_disable; /* NCCL_SHM_DISABLE: processes of one node do not share memory */
};
enum cm_eta_use { CM_ETA_AUTO, CM_ETA_ALWAYS, CM_ETA_NEVER };
struct cm_opts_report {
    const char *json, *csv; /* paths, "-" is stdout, NULL: none */
    const char *junit, *prometheus;
    bool github;             /* annotations, and the step's summary */
    int eta;                 /* enum cm_eta_use: a line on stderr while rows are measured */
    bool timestamps, memory; /* -S, -M */
    const char *debug;       /* NCCL_DEBUG level in lower case, or NULL */
    const char *log;         /* where its messages go, as cm_debug_open() has it; NULL: stderr */
    double min_bw_gbs;       /* the average bus bandwidth must reach 0.9 of it; 0: no threshold */
    double min_busbw_gbs;    /* of every row and placement; 0: no threshold */
    double max_time_us;      /* likewise */
    const char *thresholds;  /* path of a file of rules (thresholds.h), or NULL */
    const char *peak;        /* GB/s, a machine of cm_peaks or "auto"; NULL: no %peak */
    double min_peak_pct;     /* of every row and placement; 0: no threshold */
    bool plan;               /* --plan: print, verify and end */
    const char *topo;        /* --topo: what to show, or a file, see topo_mode.h; NULL: neither */
};
/* The search for bad nodes. */
struct cm_opts_find {
    bool on;
    const char *pairs; /* as cm_find_parse_pairs() has it; NULL: by the number of nodes */
    const char *out;   /* folder of the lists, or NULL */
    double slow_pct;   /* so much slower than the others is bad, at least */
};
/* Traffic of alltoallv. */
struct cm_opts_alltoallv {
    double spread;           /* 0 (even) .. 1 (nothing to oneself) */
    const char *matrix_file; /* NULL: generated from spread */
    double matrix_scale;     /* factor of the file's values, >= 0 */
    bool print_summary;      /* per-rank lines */
};
struct cm_opts {
    struct cm_opts_launch launch;
    struct cm_opts_sweep sweep;
    struct cm_opts_run run;
    struct cm_opts_sides sides;
    struct cm_opts_engine engine;
    struct cm_opts_net net;
    struct cm_opts_report report;
    struct cm_opts_alltoallv alltoallv;
    struct cm_opts_find find;
    const char *inject;  /* fault spec as given, or NULL; parsed by cm_inject_parse */
    const char *program; /* argv[0] without its folder */
    uint32_t colls;      /* collectives that the program runs: bits 1 << enum cm_coll */
    /* what the environment set: "NCCL_ALGO=ring" lines for the header, NULL-terminated, owned */
    char **from_env;
};

enum cm_parsed {
    CM_PARSED_RUN,
    CM_PARSED_STOP /* --help, --version, --list: rank 0 has printed the text, exit 0 */
};

/*
 * Read the command line, then the environment for what it left open:
 * COLLMARK_<OPTION> wins over the names of NCCL and nccl-tests. -r and -o are
 * accepted by every driver, as nccl-tests does. Strings point into argv or are
 * owned by *o: free with cm_opts_free(), also after a failure. CM_EINVAL: one
 * line on stderr names the option or variable and its value; CM_EUNSUP: this
 * build cannot do it; CM_ENOMEM. Texts that the user asked for go to `out`,
 * or nowhere if it is NULL.
 */
struct cm_bench;
CM_MUST_CHECK enum cm_status cm_opts_parse(int argc, char **argv, const struct cm_bench *bench,
                                           struct cm_opts *o, enum cm_parsed *what);
void cm_opts_free(struct cm_opts *o);

/* "-G/--cudagraph '4'": the first option in use that only the CUDA backend has; false: none. */
enum { CM_GPU_OPTION_BYTES = 64 };
bool cm_opts_gpu_option(const struct cm_opts *o, char text[CM_GPU_OPTION_BYTES]);

/*
 * Who set an option that is set: "NCCL_SOCKET_IFNAME", "COLLMARK_IFNAME", or
 * "--ifname" for the command line. `option` is its long name. Returns buf.
 */
enum { CM_SET_BY_BYTES = 64 };
const char *cm_opts_set_by(const struct cm_opts *o, const char *option, char buf[CM_SET_BY_BYTES]);

/* Checks that need the number of ranks: roots, length of the node map. CM_EINVAL, logged. */
CM_MUST_CHECK enum cm_status cm_opts_check_ranks(const struct cm_opts *o, int nranks);

/* node_of[nranks] from "0,0,1,1"; false if it does not parse or has another length. */
bool cm_parse_node_map(const char *text, int nranks, int32_t *node_of);

/* Colour of a world rank under the split option. */
uint64_t cm_split_colour(const struct cm_opts_launch *o, int rank);

#endif
