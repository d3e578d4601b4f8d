/*
 * Fuzz target of the number parsers. The input is the text. What must hold for
 * any text: a refused one leaves the result alone; an accepted size or integer
 * comes back from its printed form, is in range, and uses only the characters
 * of the grammar.
 */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* abort() is what the fuzzer takes for a finding, whatever the build's assert() does. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_size(const char *text)
{
    size_t v = 1234, back;
    char buf[32];

    if (!cm_parse_size(text, &v)) {
        require(v == 1234);
        return;
    }
    require(v <= SIZE_MAX / 2 && text[strspn(text, "0123456789.kmgtibKMGTIB")] == '\0');
    require(cm_parse_size(cm_format_size(v, buf), &back) && back == v);
    require(strlen(buf) < sizeof(buf) && buf[strspn(buf, "0123456789.KMGT")] == '\0');
}

static void check_int(const char *text)
{
    int64_t v = 1234, back = 0;
    char buf[32];

    if (!cm_parse_int(text, -1000000, INT64_MAX, &v)) {
        require(v == 1234);
        return;
    }
    require(v >= -1000000 && text[strspn(text, "-0123456789")] == '\0');
    snprintf(buf, sizeof(buf), "%" PRId64, v);
    require(cm_parse_int(buf, v, v, &back) && back == v);
}

static void check_real(const char *text)
{
    double v = 1234, back = 0;
    char buf[32];

    if (!cm_parse_real(text, -1e300, INFINITY, &v)) {
        require(v == 1234);
        return;
    }
    require(isfinite(v) && v >= -1e300 && text[strspn(text, "-+.eE0123456789")] == '\0');
    snprintf(buf, sizeof(buf), "%.17g", v);
    require(cm_parse_real(buf, v, v, &back));
}

/* Every size has an exact short form: take the input's bytes as a number, too. */
static void check_format(const uint8_t *data, size_t size)
{
    uint64_t v = 0;
    size_t back;
    char buf[32];

    memcpy(&v, data, size < sizeof(v) ? size : sizeof(v));
    v >>= 1;
    require(cm_parse_size(cm_format_size((size_t)v, buf), &back) && back == v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exact, so that a read beyond the end is seen */

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_size(text);
    check_int(text);
    check_real(text);
    check_format(data, size);
    free(text);
    return 0;
}
