/* libFuzzer: any text as a tuning table. What parses answers every question within its choices. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/algo.h"
#include "engine/tune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A rule that is found for some size must be among those that may be taken. */
static bool is_listed(const struct cm_tune *t, enum cm_coll coll, int ranks, int nodes,
                      const char *algo)
{
    struct cm_choice c;
    int at = 0;

    while (cm_tune_next(t, coll, ranks, nodes, &at, &c)) {
        if (strcmp(c.algo, algo) == 0)
            return true;
    }
    return false;
}

static void ask(const struct cm_tune *t, enum cm_coll coll, int ranks, size_t bytes)
{
    struct cm_choice c;
    int nodes = ranks > 2 ? ranks / 2 : 1;

    if (!cm_tune_find(t, coll, ranks, nodes, bytes, &c))
        return;
    if (!is_listed(t, coll, ranks, nodes, c.algo))
        abort();
    if (cm_algo_find(c.algo) == NULL || c.channels < 1 || c.channels > CM_GPU_BLOCKS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int ranks[] = {1, 2, 7, 64};
    static const size_t bytes[] = {0, 1, 2048, 1 << 20, SIZE_MAX};
    char *text = malloc(size + 1);
    struct cm_tune *t = NULL;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (cm_tune_parse(text, "fuzz", &t) == CM_OK)
        for (int i = 0; i < CM_NCOLLS * 20; i++)
            ask(t, (enum cm_coll)(i / 20), ranks[i % 4], bytes[i / 4 % 5]);
    cm_tune_free(t);
    free(text);
    return 0;
}
