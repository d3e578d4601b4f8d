/*
 * libFuzzer target: the command line, node maps and split specs.
 *
 * The input is cut at newlines into the words of a command line. Whatever they
 * are, parsing ends with a status, and what it accepted keeps its promises.
 * `make fuzz` builds and runs it; -close_fd_mask=3 keeps the messages away.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "common/coll.h"
#include "common/opts.h"
#include "common/opts_table.h"

enum { MAX_WORDS = 32, MAX_BYTES = 1024, RANKS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cm_bench bench = {.coll = CM_ALL_REDUCE, .what = "fuzzed"};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static int cut(char *text, char **words)
{
    int n = 0;

    words[n++] = text;
    for (char *c = text; *c != '\0' && n < MAX_WORDS; c++) {
        if (*c == '\n') {
            *c = '\0';
            words[n++] = c + 1;
        }
    }
    return n;
}

static void check_accepted(const struct cm_opts *o)
{
    struct cm_option_value v;

    require(o->sweep.min_bytes <= o->sweep.max_bytes && o->sweep.step_bytes > 0);
    require(o->sweep.step_factor == 1 || o->sweep.min_bytes > 0);
    require(o->run.iters > 0 && o->run.per_iter_skip < o->run.iters);
    require(o->launch.split != CM_SPLIT_MOD || o->launch.split_value != 0);
    for (const struct cm_option *row = cm_options; row->name != NULL; row++)
        cm_option_get(row, o, &v);
    if (cm_opts_check_ranks(o, RANKS) == CM_OK)
        require(o->sweep.root < RANKS);
    for (int r = 0; r < RANKS; r++)
        (void)cm_split_colour(&o->launch, r);
}

static void check_texts(const char *text)
{
    int32_t node_of[RANKS];
    enum cm_split_op op = CM_SPLIT_NONE;
    uint64_t value = 0;

    if (cm_parse_node_map(text, RANKS, node_of))
        require(cm_node_map_length(text) == RANKS);
    if (cm_parse_split(text, &op, &value))
        require(op != CM_SPLIT_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MAX_BYTES + 1], *words[MAX_WORDS];
    enum cm_parsed what;
    struct cm_opts o;

    if (size > MAX_BYTES)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_texts(text);
    if (cm_opts_parse(cut(text, words), words, &bench, &o, &what) == CM_OK && what == CM_PARSED_RUN)
        check_accepted(&o);
    cm_opts_free(&o);
    return 0;
}
