/* The report's inside, shared by report*.c. */
#ifndef CM_COMMON_REPORT_INT_H
#define CM_COMMON_REPORT_INT_H

#include <locale.h>
#include <pthread.h>
#include <stdio.h>

#include "common/report.h"
#include "common/verdict.h"

enum { CM_MAX_NOTES = 16, CM_MAX_SINKS = 9, CM_UTC_BYTES = 32 };
enum { CM_MAX_NAMED = 8, CM_ROW_NAME_BYTES = 160 };

/* One group; bus bandwidth over its counted rows, both placements. */
struct cm_tally {
    int ranks, nodes;
    size_t n;
    double sum;
};

/* Rows that were judged (those with thresholds, and wrong ones), and the first that failed. */
struct cm_verdicts {
    size_t rows, failed;
    char *named[CM_MAX_NAMED]; /* "all_reduce float sum 64K: out of place ..."; owned */
};

/* --compare: placements in which the first engine was faster than the best other, equal, slower. */
struct cm_standing {
    size_t faster, equal, slower, unknown;
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
    bool late; /* it looks at the kept rows when it is closed; row is NULL */
};
extern const struct cm_sink_kind cm_sink_table, cm_sink_csv, cm_sink_json, cm_sink_junit,
    cm_sink_prometheus, cm_sink_github;
/* --find-bad: in place of the table and CSV, and its lists. */
extern const struct cm_sink_kind cm_sink_find, cm_sink_find_csv, cm_sink_find_lists;

/* May the table go to stdout, or is a document to have it? */
bool cm_report_shows(const struct cm_opts *o);

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
    int nodes;               /* of all ranks */
    struct cm_judge *judge;
    struct cm_verdicts verdicts;
    size_t checked;              /* placements that were checked */
    int64_t wrong, bad_rows;     /* wrong elements, and rows of groups that have some */
    struct cm_memory memory;     /* most over all rows */
    struct cm_standing standing; /* --compare: placements of rows */
    struct cm_note notes[CM_MAX_NOTES];
    int nnotes;
    const struct cm_find *find; /* --find-bad; NULL: a run of rows, or not begun */
    double first_us;            /* first operation of the run; 0: none yet */
    int64_t progress_ns;        /* when the line of --eta was last written; 0: never */
    bool progress_shown;        /* it stands on the terminal */
};

/* ---- figures over rows (report_figures.c) ---- */

/* Take a row into the figures. */
void cm_report_tally(struct cm_report *rep, const struct cm_row *row);

/* Average bus bandwidth of a group, NaN if it has no counted row. */
double cm_report_average(const struct cm_report *rep, int group);

/* The group with the lowest average; -1 if none has one. */
int cm_report_slowest(const struct cm_report *rep);

/* Does a group miss --min-bw? And which one, in a logged line. */
bool cm_report_average_is_below(const struct cm_report *rep);
void cm_report_tell_average(const struct cm_report *rep);

/* cm_report_below() for who holds the lock: the average, or a row. */
bool cm_report_is_below(const struct cm_report *rep);

/* "all_reduce float sum 64K", with root, cycle and group where there are several. Returns buf. */
char *cm_report_row_name(const struct cm_report *rep, const struct cm_row *row,
                         char buf[CM_ROW_NAME_BYTES]);

/* "out of place", "in place". */
const char *cm_report_placement(int half);

/* Name of a row's element type. */
const char *cm_report_type(const struct cm_row *row);

/* The most exact of 2, 1, 0 decimals or an exponent that fits into `width`; "N/A" if not finite.
   Returns buf, or a static text. */
enum { CM_FIT_BYTES = 32 };
const char *cm_report_fit(double v, int width, char *buf);

/* Name of the engine of a row, and whether rows have to name theirs to be told apart. */
const char *cm_report_engine(const struct cm_row *row);
bool cm_report_names_engine(const struct cm_row *row);

/* What `time` means under -a ("maximum over ranks"). */
const char *cm_report_time_over(const struct cm_opts *o);

/* RFC 3339 in UTC, "2026-01-31T09:30:00Z", with ".123" if `millis`. Returns buf (CM_UTC_BYTES). */
char *cm_utc(int64_t unix_ms, bool millis, char *buf);

/* ---- the verdict (report_verdict.c) ---- */

/* Judge a placement. The same result each time. */
void cm_report_judge(const struct cm_report *rep, const struct cm_row *row, int half,
                     struct cm_judged *out);

/* Take a row into the verdict. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_report_weigh(struct cm_report *rep, const struct cm_row *row);

/* Is there any threshold, of rows or of the average? */
bool cm_report_asks(const struct cm_report *rep);

/* "OK (18 rows: busbw >= 10 GB/s)", "FAILED: 2 of 18 rows (...)". */
void cm_report_put_verdict(FILE *f, const struct cm_report *rep, const struct cm_end *end);

/* Lines of the header that say what %peak is; nothing without --peak. */
void cm_header_print_peak(FILE *f, const struct cm_report *rep);

void cm_verdicts_free(struct cm_verdicts *v);

/* ---- --eta (report_progress.c) ---- */

/* Take the line away, before something else is written. CM_ESYS. */
CM_MUST_CHECK enum cm_status cm_report_clear_progress(struct cm_report *rep);

/* ---- output (report_out.c) ---- */

/* Write all `n` bytes. CM_ESYS names `what` ("stdout", "--csv 'PATH'"). */
CM_MUST_CHECK enum cm_status cm_write_all(int fd, const char *text, size_t n, const char *what);

/*
 * A piece of text that is written at once. f == NULL: no memory, end() will say so.
 * From begin to end or drop, on one thread, numbers have a decimal point in any locale.
 */
struct cm_page {
    FILE *f;
    char *text;
    size_t n;
    locale_t plain, before;
};
void cm_page_begin(struct cm_page *p);
CM_MUST_CHECK enum cm_status cm_page_end(struct cm_page *p, int fd, const char *what);
char *cm_page_take(struct cm_page *p); /* instead of end: the text, for free(); NULL: no memory */
void cm_page_drop(struct cm_page *p);  /* instead of end: nothing is written */

/* A report file. "-" is stdout. temp != NULL: the name until keep renames it to path. */
struct cm_outfile {
    int fd; /* -1: whole, and not begun */
    char *path, *temp;
    char *what; /* "--csv 'PATH'": its name in messages */
};
/*
 * whole: nothing appears under `path` before cm_outfile_keep(), and nothing at
 * all before cm_outfile_begin(): a run that is killed leaves no trace. It is
 * only tried whether that will be possible. Devices are written in place.
 * `option` is what named the path ("--csv"). CM_ESYS, CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_outfile_open(const char *option, const char *path, bool whole,
                                             struct cm_outfile *out);
/* Make f->fd ready; for files that are not whole it is already. */
CM_MUST_CHECK enum cm_status cm_outfile_begin(struct cm_outfile *f);
CM_MUST_CHECK enum cm_status cm_outfile_keep(struct cm_outfile *f);
void cm_outfile_drop(struct cm_outfile *f);

/* Bytes of the well-formed UTF-8 character at `s`, 0 if it is none. */
size_t cm_utf8_length(const char *s);

/* Bytes that are not UTF-8 become '?', as documents must stay valid. */
void cm_utf8_repair(char *text);

/* ---- documents that are written at the end (report_document.c) ---- */

/*
 * A document of `rep` is one page. It goes to its file if it is whole; else, and
 * if end is NULL, an older file stays. Failures are logged under the option's name.
 */
typedef enum cm_status cm_document_fn(FILE *f, const struct cm_report *rep,
                                      const struct cm_end *end);
CM_MUST_CHECK enum cm_status cm_document_open(const char *option, const char *path, void **state);
CM_MUST_CHECK enum cm_status cm_document_close(const struct cm_report *rep, void *state,
                                               const struct cm_end *end, cm_document_fn *write);

/*
 * Rows that are alike but for their figures (--run_cycles, sizes that round to the
 * same bytes): nth[i] of row i counts those before it, last[i] says whether none
 * follows. Arrays of rep->nrows. CM_ENOMEM, logged.
 */
CM_MUST_CHECK enum cm_status cm_report_repeats(const struct cm_report *rep, int *nth, bool *last);

/* ---- text inside of other languages (report_escape.c) ---- */

/* `text` may be any bytes: what is no UTF-8 and no control character has a place becomes '?'. */
void cm_put_plain(FILE *f, const char *text);    /* a line of its own */
void cm_put_xml(FILE *f, const char *text);      /* of an attribute or element */
void cm_put_label(FILE *f, const char *text);    /* of Prometheus, between quotes */
void cm_put_command(FILE *f, const char *text);  /* message of a workflow command */
void cm_put_property(FILE *f, const char *text); /* its property */
void cm_put_markdown(FILE *f, const char *text); /* a cell of a table */

/* ---- --compare (report_sides.c) ---- */

/* Version and file of an engine's library, but MPI's; false: none is loaded. */
enum { CM_LIBRARY_BYTES = 256 };
bool cm_report_library(const struct cm_rank *r, char buf[CM_LIBRARY_BYTES]);

/* Lines of the header: which engines run; nothing if it is the built-in one alone. */
void cm_header_print_sides(FILE *f, const struct cm_rank *r);

/* The table of several engines. The row of an engine that is not the last prints nothing. */
void cm_sides_print_titles(FILE *f, const struct cm_opts *o);
void cm_sides_print_row(FILE *f, const struct cm_report *rep, const struct cm_row *row);

/* Take the row of the last engine, and with it those before it, into the standing. */
void cm_sides_tally(struct cm_report *rep, const struct cm_row *row);

/* Line of the footer. */
void cm_sides_print_standing(FILE *f, const struct cm_report *rep);

/* ---- the JSON document (report_json.c) ---- */

extern const bool cm_json_built; /* false: this build has no cJSON */

/* The document, for free(); NULL: no memory. */
char *cm_json_document(const struct cm_report *rep, const struct cm_end *end);

/* ---- parts of the table (report_header.c) ---- */

void cm_header_print(FILE *f, const struct cm_report *rep);

/* "0-3,8": world ranks of a group. */
void cm_header_ranks(FILE *f, const struct cm_report *rep, int group);

/* CPUs that the ranks of rank 0's machine may use, and how many ranks these are. */
struct cm_share {
    int ranks, cpus;
};
struct cm_share cm_header_share(const struct cm_report *rep);

/* ---- between nodes (report_net.c) ---- */

enum { CM_WIRE_BYTES = 64 };

/* "shm", or with a network "shm+tcp", or "tcp" if no ranks share memory; in buf. */
const char *cm_header_wire(const struct cm_rank *r, char buf[CM_WIRE_BYTES]);

/* Lines of the header: which way processes are connected, and who differs. Nothing without. */
void cm_header_print_network(FILE *f, const struct cm_rank *r);

/* Line of the footer: how long the start took; nothing of one process, or if it is not known. */
void cm_footer_print_bootstrap(FILE *f, const struct cm_report *rep);

/* ---- caches and cores (report_probe.c) ---- */

/* Lines of the header: --cache, nothing for hot; and how far apart the ranks' cores are. */
void cm_header_print_cache(FILE *f, const struct cm_rank *r);
void cm_header_print_probe(FILE *f, const struct cm_rank *r);

/* Line of the footer, if cores were probed twice. */
void cm_footer_print_probe(FILE *f, const struct cm_rank *r);

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
