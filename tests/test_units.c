/* Numbers as users write them: what is accepted, what is refused, and that formatting is exact. */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

static void test_sizes_are_read(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"0", 0},
        {"8", 8},
        {"010", 10},
        {"8B", 8},
        {"8b", 8},
        {"64K", 64 * KIB},
        {"64k", 64 * KIB},
        {"64KB", 64 * KIB},
        {"64kib", 64 * KIB},
        {"64KiB", 64 * KIB},
        {"1.5K", 1536},
        {"1.50K", 1536},
        {"1.0", 1},
        {"1.000B", 1},
        {"0.5K", 512},
        {"1.5M", 3 * MIB / 2},
        {"2GiB", 2 * GIB},
        {"0.25g", GIB / 4},
        {"3T", 3 * TIB},
        {"0.0009765625K", 1},
        {"0.0000000000009094947017729282379150390625T", 1},
        {"0000000000000000000000000000001", 1},
        {"9223372036854775807", SIZE_MAX / 2},
        {"8388607T", 8388607 * TIB},
        {"8388607.9999999999990905052982270717620849609375T", SIZE_MAX / 2},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        size_t got = 77;

        CHECK(cm_parse_size(cases[i].text, &got), "\"%s\" refused", cases[i].text);
        CHECK(got == cases[i].bytes, "\"%s\": got %zu, want %zu", cases[i].text, got,
              cases[i].bytes);
    }
}

static void test_bad_sizes_are_refused(void)
{
    static const char *const bad[] = {
        "",
        " ",
        "K",
        "B",
        "KiB",
        ".",
        ".5K",
        "1.",
        "1.K",
        "1.3K",
        "1.5",
        "0.1",
        "1.0001K",
        "-1",
        "+1",
        "1e3",
        "1E3K",
        "0x10",
        "nan",
        "inf",
        "infinity",
        " 1",
        "1 ",
        "1 K",
        "1K ",
        "1\n",
        "1Ki",
        "1KiBs",
        "1BB",
        "1iB",
        "1KK",
        "1P",
        "1E",
        "1,5K",
        "1.5.5K",
        "1_000",
        "9223372036854775808",
        "18446744073709551616",
        "8388608T",
        "8589934592G",
        "99999999999999999999999999",
        "9223372036854775807K",
        "\xc2\xb2",
        "1.\xff",
    };

    for (size_t i = 0; i < CM_LEN(bad); i++) {
        size_t got = 77;

        CHECK(!cm_parse_size(bad[i], &got), "\"%s\" accepted as %zu", bad[i], got);
        CHECK(got == 77, "\"%s\": out was written: %zu", bad[i], got);
    }
}

static void test_sizes_are_formatted(void)
{
    static const struct {
        size_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {512, "512"},
        {1000, "1000"},
        {1023, "1023"},
        {1024, "1K"},
        {1025, "1025"},
        {1536, "1.5K"},
        {64 * KIB, "64K"},
        {MIB, "1M"},
        {3 * MIB / 2, "1.5M"},
        {MIB + 1, "1048577"},
        {MIB + KIB, "1025K"},
        {5 * GIB, "5G"},
        {TIB, "1T"},
        {2048 * TIB, "2048T"},
        {SIZE_MAX / 2, "9223372036854775807"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        char buf[32];

        CHECK(cm_format_size(cases[i].bytes, buf) == buf, "returns another pointer");
        CHECK(strcmp(buf, cases[i].text) == 0, "%zu: got \"%s\", want \"%s\"", cases[i].bytes, buf,
              cases[i].text);
    }
}

static void check_read_back(size_t bytes)
{
    size_t got = 0;
    char buf[32];

    CHECK(cm_parse_size(cm_format_size(bytes, buf), &got) && got == bytes, "%zu -> \"%s\" -> %zu",
          bytes, buf, got);
}

/* Numbers around small multiples of every power of two, which give fractions. */
static void test_formatted_sizes_read_back(void)
{
    for (int bit = 0; bit < 58; bit++)
        for (size_t factor = 1; factor < 32; factor += 2)
            for (size_t off = 0; off <= 4; off++)
                check_read_back((factor << bit) - off % 2 + off / 2);
}

static bool read_range(const char *text, struct cm_range *out)
{
    char copy[32];

    snprintf(copy, sizeof(copy), "%s", text);
    return cm_parse_range(copy, out);
}

static void test_ranges(void)
{
    static const struct {
        const char *text;
        size_t lo, hi;
    } good[] = {{"*", 0, SIZE_MAX},  {"8", 8, 8},           {"0-2K", 0, 2048},
                {"2-", 2, SIZE_MAX}, {"4K-4K", 4096, 4096}, {"1.5K-1M", 1536, 1 << 20}};
    static const char *const bad[] = {"", "-", "-8", "9-8", "8-x", "x-8", "**", "1-2-3", "8 - 9"};
    struct cm_range r;

    for (size_t i = 0; i < CM_LEN(good); i++) {
        CHECK(read_range(good[i].text, &r) && r.lo == good[i].lo && r.hi == good[i].hi,
              "\"%s\": %zu to %zu", good[i].text, r.lo, r.hi);
        CHECK(cm_in_range(&r, good[i].lo) && cm_in_range(&r, good[i].hi), "ends of \"%s\"",
              good[i].text);
        CHECK(good[i].lo == 0 || !cm_in_range(&r, good[i].lo - 1), "below \"%s\"", good[i].text);
        CHECK(good[i].hi == SIZE_MAX || !cm_in_range(&r, good[i].hi + 1), "above \"%s\"",
              good[i].text);
    }
    for (size_t i = 0; i < CM_LEN(bad); i++)
        CHECK(!read_range(bad[i], &r), "\"%s\" accepted", bad[i]);
}

static void test_integers(void)
{
    static const struct {
        const char *text;
        int64_t lo, hi;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", 0, 9, true, 0},
        {"9", 0, 9, true, 9},
        {"010", 0, 99, true, 10},
        {"-5", -9, 9, true, -5},
        {"-0", 0, 9, true, 0},
        {"9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN},
        {"10", 0, 9, false, 0},
        {"-1", 0, 9, false, 0},
        {"", 0, 9, false, 0},
        {"-", -9, 9, false, 0},
        {"--1", -9, 9, false, 0},
        {"+1", 0, 9, false, 0},
        {" 1", 0, 9, false, 0},
        {"1 ", 0, 9, false, 0},
        {"1.0", 0, 9, false, 0},
        {"1e1", 0, 99, false, 0},
        {"0x1", 0, 99, false, 0},
        {"1K", 0, 9999, false, 0},
        {"9223372036854775808", INT64_MIN, INT64_MAX, false, 0},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, false, 0},
        {"18446744073709551617", INT64_MIN, INT64_MAX, false, 0},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        int64_t got = 77;
        bool good = cm_parse_int(cases[i].text, cases[i].lo, cases[i].hi, &got);

        CHECK(good == cases[i].good, "\"%s\": accepted %d", cases[i].text, good);
        CHECK(got == (cases[i].good ? cases[i].value : 77), "\"%s\": got %" PRId64, cases[i].text,
              got);
    }
}

static void test_reals(void)
{
    static const struct {
        const char *text;
        bool good;
        double value;
    } cases[] = {
        {"0", true, 0},       {"1.5", true, 1.5},    {"-2.25", true, -2.25}, {"1e3", true, 1000},
        {"1E+3", true, 1000}, {"25e-2", true, 0.25}, {"007", true, 7},       {"1e-400", true, 0},
        {"", false, 0},       {"-", false, 0},       {"+1", false, 0},       {".5", false, 0},
        {"1.", false, 0},     {"1e", false, 0},      {"1e+", false, 0},      {"e1", false, 0},
        {"nan", false, 0},    {"inf", false, 0},     {"-inf", false, 0},     {"0x1p3", false, 0},
        {"1e400", false, 0},  {" 1", false, 0},      {"1 ", false, 0},       {"1s", false, 0},
        {"1,5", false, 0},    {"1001", false, 0},    {"-1000.5", false, 0},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        double got = 77;
        bool good = cm_parse_real(cases[i].text, -1000, 1000, &got);

        CHECK(good == cases[i].good, "\"%s\": accepted %d", cases[i].text, good);
        CHECK(got == (cases[i].good ? cases[i].value : 77), "\"%s\": got %g", cases[i].text, got);
    }
}

static void test_reals_are_finite_in_any_range(void)
{
    double got = 77;

    CHECK(!cm_parse_real("1e999", -INFINITY, INFINITY, &got), "1e999 accepted as %g", got);
    CHECK(cm_parse_real("1e300", -INFINITY, INFINITY, &got), "1e300 refused");
}

int main(void)
{
    RUN(test_sizes_are_read);
    RUN(test_bad_sizes_are_refused);
    RUN(test_sizes_are_formatted);
    RUN(test_formatted_sizes_read_back);
    RUN(test_ranges);
    RUN(test_integers);
    RUN(test_reals);
    RUN(test_reals_are_finite_in_any_range);
    return test_end();
}
