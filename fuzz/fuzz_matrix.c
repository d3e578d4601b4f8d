/* libFuzzer: any bytes as a traffic matrix. What parses must be square and in range. */
#include <stdint.h>
#include <stdlib.h>

#include "base/plan.h"
#include "common/matrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cm_traffic t;
    size_t elements[64 * 64];
    int n;

    if (cm_matrix_parse((const char *)data, size, "fuzz", &t) != CM_OK)
        return 0;
    if (t.dim < 1 || t.dim > CM_MAX_RANKS)
        abort();
    for (int i = 0; i < t.dim * t.dim; i++)
        if (!(t.bytes[i] >= 0 && t.bytes[i] <= 1e18))
            abort();
    n = t.dim < 64 ? t.dim : 64;
    if (cm_matrix_of_traffic(&t, 1.5, n, 4, elements) &&
        cm_matrix_max_sent(elements, n) == SIZE_MAX)
        abort();
    cm_traffic_free(&t);
    return 0;
}
