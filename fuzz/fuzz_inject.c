/* Fuzz the parser of --inject: whatever it accepts must be in range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/inject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { NRANKS = 7 };
    struct cm_inject f;
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (cm_inject_parse(text, NRANKS, &f) == CM_OK) {
        bool sane = f.fault > CM_FAULT_NONE && f.fault <= CM_FAULT_CRASH && f.rank >= 0 &&
                    f.rank < NRANKS && f.iter >= -1 && f.phase >= -1 && f.phase < CM_NPHASES &&
                    f.us >= 0;
        if (!sane)
            abort();
    }
    free(text);
    return 0;
}
