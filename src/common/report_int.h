/* The report's inside, shared by report*.c. */
#ifndef CM_COMMON_REPORT_INT_H
#define CM_COMMON_REPORT_INT_H

#include <pthread.h>
#include <stdio.h>

#include "common/report.h"

enum { CM_MAX_NOTES = 16, CM_MAX_SINKS = 3, CM_UTC_BYTES = 32 };

/* Bus bandwidth of one group over its counted rows, both placements. */
struct cm_tally {
    size_t n;
    double sum;
};

/* A remark, and how many rows it concerns. */
struct cm_note {
    const char *text;
    size_t count;
};

/* How the run ended, for the sinks. */
struct cm_end {
    struct cm_summary summary;
    enum cm_exit exit;
    int64_t unix_ms;
};

struct cm_sink_kind {
    const char *name;
    bool (*wanted)(const struct cm_opts *o);
    enum cm_status (*open)(struct cm_report *rep, void **state);
    enum cm_status (*row)(struct cm_report *rep, void *state, const struct cm_row *row);
    /* Frees the state. end == NULL: the report never started, leave nothing behind. */
    enum cm_status (*close)(struct cm_report *rep, void *state, const struct cm_end *end);
    /* A reader who pauses (a pager) must not hold up the other sinks' end: rows are written
       without the lock, maybe after close. Only for sinks without a state. */
    bool patient;
};
extern const struct cm_sink_kind cm_sink_table, cm_sink_csv, cm_sink_json;

struct cm_sink {
    const struct cm_sink_kind *kind;
    void *state;
};

struct cm_report {
    const struct cm_bench *bench;
    const struct cm_rank *rank;
    const struct cm_opts *opts;
    int argc;
    char **argv;
    int64_t start_unix_ms;

    pthread_mutex_t lock;  /* guards everything below */
    bool ended;            /* the sinks are closed */
    enum cm_status status; /* first failure to write */
    _Atomic bool deaf;     /* stdout takes nothing more: what goes there is dropped */
    struct cm_sink sinks[CM_MAX_SINKS];
    int nsinks;
    bool keeps_rows, keeps_samples; /* some sink writes rows at the end */
    struct cm_row *rows;
    size_t nrows, cap_rows;
    struct cm_tally *groups; /* one per group */
    size_t checked;          /* placements that were checked */
    int64_t wrong, bad_rows; /* wrong elements, and rows of groups that have some */
    struct cm_memory memory; /* most over all rows */
    struct cm_note notes[CM_MAX_NOTES];
    int nnotes;
    int64_t progress_ns; /* when progress was last shown; 0: nothing is shown */
};

/* ---- figures over rows (report_figures.c) ---- */

/* Take a row into the figures. */
void cm_report_tally(struct cm_report *rep, const struct cm_row *row);

/* Average bus bandwidth of a group, NaN if it has no counted row. */
double cm_report_average(const struct cm_report *rep, int group);

/* The group with the lowest average; -1 if none has one. */
int cm_report_slowest(const struct cm_report *rep);

/* cm_report_below() for who holds the lock. */
bool cm_report_is_below(const struct cm_report *rep);

/* Ranks in a group. */
int cm_report_group_size(const struct cm_report *rep, int group);

/* Name of a row's element type. */
const char *cm_report_type(const struct cm_row *row);

/* What `time` means under -a ("maximum over ranks"). */
const char *cm_report_time_over(const struct cm_opts *o);

/* RFC 3339 in UTC, "2026-01-31T09:30:00Z", with ".123" if `millis`. Returns buf (CM_UTC_BYTES). */
char *cm_utc(int64_t unix_ms, bool millis, char *buf);

/* ---- output (report_out.c) ---- */

/* Write all `n` bytes. CM_ESYS names `what`. */
CM_MUST_CHECK enum cm_status cm_write_all(int fd, const char *text, size_t n, const char *what);

/* A piece of text that is written at once. f == NULL: no memory, end() will say so. */
struct cm_page {
    FILE *f;
    char *text;
    size_t n;
};
void cm_page_begin(struct cm_page *p);
CM_MUST_CHECK enum cm_status cm_page_end(struct cm_page *p, int fd, const char *what);
void cm_page_drop(struct cm_page *p); /* instead of end: nothing is written */

/* A report file. "-" is stdout. temp != NULL: the name until keep renames it to path. */
struct cm_outfile {
    int fd; /* -1: whole, and not begun */
    char *path, *temp;
};
/*
 * whole: nothing appears under `path` before cm_outfile_keep(), and nothing at
 * all before cm_outfile_begin(): a run that is killed leaves no trace. It is
 * only tried whether that will be possible. Devices are written in place.
 */
CM_MUST_CHECK enum cm_status cm_outfile_open(const char *path, bool whole, struct cm_outfile *out);
/* Make f->fd ready; for files that are not whole it is already. */
CM_MUST_CHECK enum cm_status cm_outfile_begin(struct cm_outfile *f);
CM_MUST_CHECK enum cm_status cm_outfile_keep(struct cm_outfile *f);
void cm_outfile_drop(struct cm_outfile *f);

/* Bytes that are not UTF-8 become '?', as documents must stay valid. */
void cm_utf8_repair(char *text);

/* ---- parts of the table (report_header.c) ---- */

void cm_header_print(FILE *f, const struct cm_report *rep);

/* "0-3,8": world ranks of a group. */
void cm_header_ranks(FILE *f, const struct cm_report *rep, int group);

/* CPUs that the ranks of rank 0's machine may use, and how many ranks these are. */
struct cm_share {
    int ranks, cpus;
};
struct cm_share cm_header_share(const struct cm_report *rep);

/* ---- backend and GPUs (report_gpu.c) ---- */

enum { CM_VERSION_BYTES = 24 };

const char *cm_header_backend(const struct cm_rank *r);     /* "host", "cuda" */
const char *cm_header_clock(const struct cm_rank *r);       /* where times come from */
const char *cm_header_kernels(const struct cm_rank *r);     /* what reduces */
const char *cm_header_device(const struct cm_rank_info *i); /* name of the GPU, or of the CPU */

/* "13.0" for 13000, in buf (CM_VERSION_BYTES); NULL if it is not known. */
char *cm_cuda_version(int version, char *buf);

/* Lines of the header: the backend's, nothing for a host that was asked for. */
void cm_header_print_gpus(FILE *f, const struct cm_rank *r);

/* Line of a rank on a GPU. */
void cm_header_print_gpu(FILE *f, const struct cm_rank_info *i);

/* Line of the footer; nothing if there is nothing to tell. */
void cm_footer_print_gpu_memory(FILE *f, const struct cm_memory *m);

#endif
