/*
 * The parser of the command line: strict, and driven by the table of options.
 *
 * Forms: --name value, --name=value, -n value, -nvalue. A long name may be cut
 * as long as it stays unique, and '-' and '_' in it are alike. The last of
 * several occurrences wins. Nothing is guessed: the first word that is no
 * option, has no value or a bad one ends the program with one line.
 */
#include "common/opts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/launch_env.h"
#include "common/opts_table.h"

enum { WHERE_BYTES = 64 };

/* What one word of the command line asks for. */
struct word {
    const struct cm_option *row;
    const char *value;       /* attached to the word, or NULL */
    char where[WHERE_BYTES]; /* the option's name in messages */
};

const struct cm_option *cm_option_named(const char *name)
{
    const struct cm_option *row = cm_options;

    while (strcmp(row->name, name) != 0)
        row++;
    return row;
}

/* Do the first n characters of `typed` begin `name`? '-' and '_' are alike. */
static bool begins(const char *name, const char *typed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool dash = (typed[i] == '-' || typed[i] == '_') && (name[i] == '-' || name[i] == '_');

        if (name[i] == '\0' || (name[i] != typed[i] && !dash))
            return false;
    }
    return true;
}

/* How `typed`, n characters, fits a row: not, as the beginning of a name, as all of it. */
enum fit { FIT_NOT, FIT_BEGINS, FIT_WHOLE };

static enum fit fit_of(const char *name, const char *typed, size_t n)
{
    if (name == NULL || !begins(name, typed, n))
        return FIT_NOT;
    return name[n] == '\0' ? FIT_WHOLE : FIT_BEGINS;
}

static enum fit fit_row(const struct cm_option *row, const char *typed, size_t n)
{
    enum fit a = fit_of(row->name, typed, n), b = fit_of(row->also, typed, n);

    return a > b ? a : b;
}

/* "--name" or "--name=value": an exact name wins, else the only one that begins so. */
static enum cm_status find_long(const char *typed, struct word *w)
{
    size_t n = strcspn(typed, "=");
    const struct cm_option *found = NULL;

    for (const struct cm_option *row = cm_options; n > 0 && row->name != NULL; row++) {
        enum fit fit = fit_row(row, typed, n);

        if (fit == FIT_WHOLE) {
            found = row;
            break;
        }
        if (fit == FIT_NOT || row->group == CM_GROUP_HIDDEN)
            continue;
        if (found != NULL)
            return CM_FAIL(CM_EINVAL, "option '--%.*s' is ambiguous: --%s, --%s", (int)n, typed,
                           found->name, row->name);
        found = row;
    }
    if (found == NULL)
        return CM_FAIL(CM_EINVAL, "unknown option '--%s' (see --help)", typed);
    w->row = found;
    w->value = typed[n] == '=' ? typed + n + 1 : NULL;
    return CM_OK;
}

/* "-n" or "-nvalue". */
static enum cm_status find_short(const char *typed, struct word *w)
{
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (row->letter != 0 && row->letter == typed[0]) {
            w->row = row;
            w->value = typed[1] != '\0' ? typed + 1 : NULL;
            return CM_OK;
        }
    }
    return CM_FAIL(CM_EINVAL, "unknown option '-%s' (see --help)", typed);
}

static enum cm_status read_word(const char *text, struct word *w)
{
    enum cm_status st;

    if (text[0] != '-' || text[1] == '\0')
        return CM_FAIL(CM_EINVAL, "leftover word '%s': not an option (see --help)", text);
    st = text[1] == '-' ? find_long(text + 2, w) : find_short(text + 1, w);
    if (st != CM_OK)
        return st;
    if (w->row->letter != 0)
        snprintf(w->where, sizeof(w->where), "-%c/--%s", w->row->letter, w->row->name);
    else
        snprintf(w->where, sizeof(w->where), "--%s", w->row->name);
    return CM_OK;
}

/* Set every field that has a default from its text, as if the user had written it. */
static enum cm_status set_presets(struct cm_opts *o)
{
    enum cm_status st = CM_OK;

    for (const struct cm_option *row = cm_options; row->name != NULL && st == CM_OK; row++) {
        if (row->preset != NULL)
            st = cm_option_set(row, row->name, row->preset, o);
    }
    return st;
}

/* One option whose row takes no value. */
static enum cm_status take_flag(struct cm_parse *p, const struct word *w,
                                const struct cm_bench *bench, enum cm_parsed *what)
{
    if (w->value != NULL)
        return CM_FAIL(CM_EINVAL, "%s '%s': takes no value", w->where, w->value);
    if (w->row->kind == CM_OPTION_PRINT) {
        *what = CM_PARSED_STOP;
        if (!cm_env_speaks())
            return CM_OK;
        w->row->print(stdout, bench, p->o->program);
        return fflush(stdout) == 0 ? CM_OK : cm_fail_errno("stdout");
    }
    return cm_option_set(w->row, w->where, "1", p->o);
}

static enum cm_status read_words(struct cm_parse *p, int argc, char **argv,
                                 const struct cm_bench *bench, enum cm_parsed *what)
{
    for (int i = 1; i < argc; i++) {
        struct word w;
        enum cm_status st = read_word(argv[i], &w);

        if (st != CM_OK)
            return st;
        p->from[w.row - cm_options] = CM_FROM_COMMAND;
        if (w.row->arg == NULL) {
            st = take_flag(p, &w, bench, what);
            if (st != CM_OK || *what == CM_PARSED_STOP)
                return st;
            continue;
        }
        if (w.value == NULL && i + 1 < argc)
            w.value = argv[++i];
        if (w.value == NULL)
            return CM_FAIL(CM_EINVAL, "%s: value is missing", w.where);
        st = cm_option_set(w.row, w.where, w.value, p->o);
        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

static const char *program_of(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

    if (argc == 0)
        return "collmark";
    return slash != NULL ? slash + 1 : argv[0];
}

enum cm_status cm_opts_parse(int argc, char **argv, const struct cm_bench *bench, struct cm_opts *o,
                             enum cm_parsed *what)
{
    struct cm_parse p;
    enum cm_status st;

    memset(o, 0, sizeof(*o));
    memset(&p, 0, sizeof(p));
    p.o = o;
    o->program = program_of(argc, argv);
    *what = CM_PARSED_RUN;
    st = set_presets(o);
    if (st == CM_OK)
        st = read_words(&p, argc, argv, bench, what);
    if (st != CM_OK || *what == CM_PARSED_STOP)
        return st;
    st = cm_env_read(&p);
    if (st != CM_OK)
        return st;
    return cm_opts_check(&p);
}

void cm_opts_free(struct cm_opts *o)
{
    for (size_t i = 0; o->from_env != NULL && o->from_env[i] != NULL; i++)
        free(o->from_env[i]);
    free(o->from_env);
    o->from_env = NULL;
}
