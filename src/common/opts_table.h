/*
 * The table of options, seen from inside opts*.c and the JSON report: what a
 * row says, and how its value is read, shown and described.
 */
#ifndef CM_COMMON_OPTS_TABLE_H
#define CM_COMMON_OPTS_TABLE_H

#include <stdio.h>

#include "common/opts.h"

enum cm_option_kind {
    CM_OPTION_INT,      /* int in [lo, hi] */
    CM_OPTION_SEED,     /* uint64_t in [lo, hi] */
    CM_OPTION_SIZE,     /* size_t in [lo, hi] */
    CM_OPTION_REAL,     /* double in [lo, hi] */
    CM_OPTION_BOOL,     /* bool: 0 or 1 */
    CM_OPTION_FLAG,     /* bool, takes no value */
    CM_OPTION_PRINT,    /* takes no value: row->print(), then the program ends */
    CM_OPTION_TEXT,     /* const char *, not empty */
    CM_OPTION_CHOICE,   /* int: lo + index in row->choices */
    CM_OPTION_WORD,     /* const char *: one of row->choices */
    CM_OPTION_DTYPE,    /* int: index or CM_ALL */
    CM_OPTION_OP,       /* int: index or CM_ALL */
    CM_OPTION_ROOT,     /* int: rank or CM_ALL */
    CM_OPTION_ALGO,     /* const char *: name of a row of cm_algos */
    CM_OPTION_WIRE,     /* const char *: name of a wire */
    CM_OPTION_NODE_MAP, /* const char *: "0,0,1,1" */
    CM_OPTION_SPLIT,    /* the split fields of struct cm_opts_launch */
    CM_OPTION_INJECT,   /* const char *: a fault spec */
    CM_OPTION_REFUSED   /* an integer of which only the preset is accepted; stored nowhere */
};

enum cm_option_group {
    CM_GROUP_RANKS,
    CM_GROUP_SWEEP,
    CM_GROUP_MEASURE,
    CM_GROUP_CHECK,
    CM_GROUP_SIDES,
    CM_GROUP_ENGINE,
    CM_GROUP_NET,
    CM_GROUP_REPORT,
    CM_GROUP_VERDICT,
    CM_GROUP_FIND,
    CM_GROUP_ALLTOALLV,
    CM_GROUP_REFUSED,
    CM_GROUP_OTHER,
    CM_GROUP_HIDDEN,
    CM_NGROUPS
};

struct cm_option {
    const char *name; /* long name */
    const char *also; /* an older long name, as good as the other, or NULL */
    char letter;      /* or 0 */
    enum cm_option_group group;
    enum cm_option_kind kind;
    size_t at;                  /* offset of the field in struct cm_opts */
    const char *arg;            /* placeholder in help; NULL: takes no value */
    const char *preset;         /* default as a user would write it; NULL: not set */
    double lo, hi;              /* SEED, SIZE: whole numbers up to 2^53 */
    int multiple;               /* SIZE: must divide the value; 0: anything */
    const char *const *choices; /* NULL-terminated */
    const char *help;
    const char *refused; /* REFUSED: why */
    /* TEXT: is it one? and in words, what is; NULL: any that is not empty */
    bool (*valid)(const char *text);
    const char *want;
    void (*print)(FILE *f, const struct cm_bench *bench, const char *program);
};

enum { CM_MAX_OPTIONS = 112, CM_WANT_BYTES = 256 };

/* Rows in the order of --help; the last has no name. */
extern const struct cm_option cm_options[];
extern const char *const cm_option_groups[CM_NGROUPS];

/* Where a value came from, per row. */
enum cm_source { CM_FROM_PRESET, CM_FROM_ENV, CM_FROM_COMMAND };
struct cm_parse {
    struct cm_opts *o;
    enum cm_source from[CM_MAX_OPTIONS];
};

/* Row named exactly `name`; it must exist. */
const struct cm_option *cm_option_named(const char *name);

/*
 * Set the row's field(s) from `text`, which must outlive *o. `where` names the
 * source in the message ("-n/--iters", "NCCL_ALGO"). CM_EINVAL, logged.
 */
CM_MUST_CHECK enum cm_status cm_option_set(const struct cm_option *row, const char *where,
                                           const char *text, struct cm_opts *o);

/* Texts of options between nodes (opts_net.c): see the `want` of their rows. */
bool cm_valid_ifname(const char *text);
bool cm_valid_hca(const char *text);
bool cm_valid_ports(const char *text);
bool cm_valid_rendezvous(const char *text);

/* --pairs, and what goes with --find-bad and what does not (opts_find.c). CM_EINVAL, CM_EUNSUP. */
bool cm_valid_pairs(const char *text);
CM_MUST_CHECK enum cm_status cm_opts_check_find(const struct cm_parse *p);

/* Which engines run, what goes with them and what does not (opts_sides.c). CM_EINVAL, CM_EUNSUP. */
bool cm_valid_compare(const char *text);
CM_MUST_CHECK enum cm_status cm_opts_check_sides(const struct cm_parse *p);

/* Describe valid values: "an integer, 1 to 8". `size` >= CM_WANT_BYTES; returns buf. */
const char *cm_option_want(const struct cm_option *row, char *buf, size_t size);

/* The value in *o, for reports. `text` may point to `room`: do not copy the struct. */
struct cm_option_value {
    enum { CM_VALUE_NONE, CM_VALUE_BOOL, CM_VALUE_WHOLE, CM_VALUE_REAL, CM_VALUE_TEXT } type;
    int64_t whole; /* BOOL: 0 or 1 */
    double real;
    const char *text;
    char room[40];
};
void cm_option_get(const struct cm_option *row, const struct cm_opts *o, struct cm_option_value *v);

/* Fill in, from the environment, the options that the command line left open (opts_env.c). */
CM_MUST_CHECK enum cm_status cm_env_read(struct cm_parse *p);

/* Print the variables that stand for an option beside COLLMARK_<OPTION>. */
void cm_env_print(FILE *f);

/* What options mean together: derived defaults, then conflicts (opts_check.c). */
CM_MUST_CHECK enum cm_status cm_opts_check(struct cm_parse *p);

/* Parse "mod:2", "MOD 2", "%2", "mask:0x3", ...; false (outputs untouched) otherwise. */
bool cm_parse_split(const char *text, enum cm_split_op *op, uint64_t *value);

/* Entries of a node map, or -1 if it is not one. */
int cm_node_map_length(const char *text);

/* The texts of --help, --help-markdown, --list and --version (opts_help.c). */
void cm_help_print(FILE *f, const struct cm_bench *bench, const char *program);
void cm_help_markdown(FILE *f, const struct cm_bench *bench, const char *program);
void cm_help_list(FILE *f, const struct cm_bench *bench, const char *program);
void cm_help_version(FILE *f, const struct cm_bench *bench, const char *program);

#endif
