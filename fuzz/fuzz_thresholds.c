/* libFuzzer: any bytes as a file of thresholds. What parses gives limits that can be met. */
#include <stdint.h>
#include <stdlib.h>

#include "common/thresholds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct cm_thresholds *t, const struct cm_subject *s)
{
    const struct cm_limits *l = cm_thresholds_find(t, s);

    if (l == NULL)
        return;
    if (l->line < 1 || l->ignored != (l->min_busbw_gbs == 0 && l->max_time_us == 0))
        abort();
    if (!(l->min_busbw_gbs >= 0) || !(l->max_time_us >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cm_subject subjects[] = {
        {"all_reduce", "float", "ring", "loop", 65536, 8, 1},
        {"sendrecv", "int8", "", "shm+tcp", 0, 1, 1},
        {"all_gather", "bfloat16", "hier", "tcp", SIZE_MAX, 1024, 128},
    };
    struct cm_thresholds *t = NULL;

    if (cm_thresholds_parse((const char *)data, size, "fuzz", &t) != CM_OK)
        return 0;
    for (size_t i = 0; i < CM_LEN(subjects); i++)
        ask(t, &subjects[i]);
    cm_thresholds_free(t);
    return 0;
}
