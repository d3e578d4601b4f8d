/*
 * Texts made from the tables: --help, the option table of the README, --list
 * and --version. They go to stdout, because the user asked for them.
 */
#include <string.h>

#include "common/coll.h"
#include "common/engine.h"
#include "common/opts_table.h"
#include "common/version.h"
#include "engine/algo.h"
#include "transport/wire.h"

enum { HELP_COLUMN = 36 };

void cm_help_version(FILE *f, const struct cm_bench *bench, const char *program)
{
    (void)bench;
    fprintf(f, "%s (collmark) %s\n", program, cm_version);
}

/* One option: "  -n, --iters N            help [default]". */
static void print_row(FILE *f, const struct cm_option *row)
{
    char left[80];
    int n = row->letter != 0 ? snprintf(left, sizeof(left), "  -%c, --%s", row->letter, row->name)
                             : snprintf(left, sizeof(left), "      --%s", row->name);

    if (row->arg != NULL)
        snprintf(left + n, sizeof(left) - (size_t)n, " %s", row->arg);
    fprintf(f, "%-*s%s", HELP_COLUMN, left, row->help);
    if (row->also != NULL)
        fprintf(f, " (also --%s)", row->also);
    if (row->refused != NULL)
        fprintf(f, ": %s", row->refused);
    fprintf(f, row->preset != NULL ? " [%s]\n" : "\n", row->preset);
}

static void print_exit_codes(FILE *f)
{
    fputs(
        "\nExit codes: 0 all right, 1 wrong data, 2 usage, 3 system or launch error, 4 time-out,\n"
        "  5 below a threshold, 6 ended early (signal, --max-time), 77 not supported here\n",
        f);
}

void cm_help_print(FILE *f, const struct cm_bench *bench, const char *program)
{
    fprintf(f, "Usage: %s [options]\n%s\n", program, bench->what);
    for (int g = 0; g < CM_GROUP_HIDDEN; g++) {
        fprintf(f, "\n%s\n", cm_option_groups[g]);
        for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
            if ((int)row->group == g)
                print_row(f, row);
        }
    }
    fputs(
        "\nEnvironment: COLLMARK_<OPTION> (COLLMARK_MINBYTES=8, COLLMARK_PLAN=1) for every option\n"
        "above; the command line wins over it, and it wins over\n",
        f);
    cm_env_print(f);
    print_exit_codes(f);
}

/* '|' would end a cell of the table. */
static void put_cell(FILE *f, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', f);
        fputc(*text, f);
    }
}

static void markdown_row(FILE *f, const struct cm_option *row)
{
    char want[CM_WANT_BYTES];

    fputs("| ", f);
    if (row->letter != 0)
        fprintf(f, "`-%c`, ", row->letter);
    fprintf(f, "`--%s` | ", row->name);
    if (row->preset != NULL)
        fprintf(f, "`%s`", row->preset);
    fputs(" | ", f);
    if (row->arg != NULL)
        put_cell(f, cm_option_want(row, want, sizeof(want)));
    fputs(" | ", f);
    put_cell(f, row->help);
    if (row->also != NULL)
        fprintf(f, " (also `--%s`)", row->also);
    if (row->refused != NULL)
        fprintf(f, ": %s", row->refused);
    fputs(" |\n", f);
}

void cm_help_markdown(FILE *f, const struct cm_bench *bench, const char *program)
{
    (void)bench;
    (void)program;
    for (int g = 0; g < CM_GROUP_HIDDEN; g++) {
        fprintf(f, "%s**%s**\n\n| Option | Default | Values | Meaning |\n|---|---|---|---|\n",
                g == 0 ? "" : "\n", cm_option_groups[g]);
        for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
            if ((int)row->group == g)
                markdown_row(f, row);
        }
    }
}

/* The choices of an option, but for auto. */
static void list_choices(FILE *f, const char *title, const char *option)
{
    fprintf(f, "%s\n", title);
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        if (strcmp(row->name, option) != 0)
            continue;
        for (const char *const *c = row->choices; *c != NULL; c++)
            if (strcmp(*c, "auto") != 0)
                fprintf(f, "  %s\n", *c);
    }
}

/* Which algorithms a collective has: what may be forced, and what a tuning rule may name. */
static void list_forms(FILE *f)
{
    fputs("algorithms of collectives\n", f);
    for (int i = 0; i < CM_NCOLLS; i++) {
        fprintf(f, "  %-16s", cm_colls[i].name);
        for (const struct cm_algo *a = cm_algos; a->name != NULL; a++)
            if (a->build[i] != NULL)
                fprintf(f, " %s", a->name);
        fputc('\n', f);
    }
}

void cm_help_list(FILE *f, const struct cm_bench *bench, const char *program)
{
    (void)bench;
    (void)program;
    fputs("collectives\n", f);
    for (int i = 0; i < CM_NCOLLS; i++)
        fprintf(f, "  %-16s%s%s%s\n", cm_colls[i].name, cm_colls[i].rooted ? " rooted" : "",
                cm_colls[i].reduces ? " reduces" : "", cm_colls[i].in_place ? " in-place" : "");
    fputs("types\n", f);
    for (int i = 0; i < CM_NDTYPES; i++)
        fprintf(f, "  %-16s %zu byte%s\n", cm_dtypes[i].name, cm_dtypes[i].bytes,
                cm_dtypes[i].bytes == 1 ? "" : "s");
    fputs("operations\n", f);
    for (int i = 0; i < CM_NOPS; i++)
        fprintf(f, "  %-16s %s\n", cm_ops[i].name, cm_ops[i].what);
    fputs("algorithms\n", f);
    for (int i = 0; cm_algos[i].name != NULL; i++)
        fprintf(f, "  %-16s %s\n", cm_algos[i].name, cm_algos[i].what);
    list_forms(f);
    list_choices(f, "modes", "mode");
    list_choices(f, "protocols", "proto");
    fputs("engines\n", f);
    for (int i = 0; i < CM_NENGINES; i++)
        fprintf(f, "  %-16s %s%s%s\n", cm_engines[i].name, cm_engines[i].what,
                cm_engine_absent(i) != NULL ? ": " : "",
                cm_engine_absent(i) != NULL ? cm_engine_absent(i) : "");
    fputs("wires\n", f);
    for (int i = 0; cm_wires[i] != NULL; i++)
        fprintf(f, "  %-16s %s\n", cm_wires[i]->name, cm_wires[i]->what);
    for (int i = 0; cm_net_wires[i].name != NULL; i++)
        fprintf(f, "  %-16s %s\n", cm_net_wires[i].name, cm_net_wires[i].what);
}
