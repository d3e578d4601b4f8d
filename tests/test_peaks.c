/* The table of known machines, and that a row is compared with its own kind. */
#include "common/peaks.h"

#include <string.h>

#include "base/status.h"
#include "test.h"

static void test_rows_are_well_formed(void)
{
    for (const struct cm_peak *p = cm_peaks; p->machine != NULL; p++) {
        const char *name = p->machine->name;
        int digits = 0;

        for (const char *c = p->date; *c != '\0'; c++)
            digits += *c >= '0' && *c <= '9';
        CHECK(p->gbs > 0 && p->lo >= 2 && p->lo <= p->hi, "%s: %d to %d ranks, %g GB/s", name,
              p->lo, p->hi, p->gbs);
        CHECK(strlen(p->date) == 10 && digits == 8 && p->date[4] == '-' && p->date[7] == '-',
              "%s: date '%s'", name, p->date);
        CHECK(strncmp(p->source, "https://", 8) == 0, "%s: source '%s'", name, p->source);
        CHECK(strstr(cm_peak_want, name) != NULL, "%s is not in '%s'", name, cm_peak_want);
        CHECK(cm_peak_valid(name) && cm_peak_machine(name) == p->machine, "%s", name);
    }
}

static void test_figures_do_not_overlap(void)
{
    for (const struct cm_peak *p = cm_peaks; p->machine != NULL; p++) {
        for (int n = p->lo; n <= p->hi; n++)
            CHECK(cm_peak_find(p->machine, p->class, n, 1) == p, "%s %s, %d ranks",
                  p->machine->name, cm_peak_class_name(p->class), n);
        CHECK(cm_peak_find(p->machine, p->class, p->lo, 2) == NULL, "%s: on two nodes",
              p->machine->name);
    }
}

static void test_a_ring_is_judged_as_a_ring(void)
{
    static const struct {
        enum cm_coll coll;
        const char *algo;
        enum cm_peak_class want;
        double gbs;
    } cases[] = {
        {CM_ALL_REDUCE, "ring", CM_PEAK_RING, 370},
        {CM_ALL_REDUCE, "direct", CM_PEAK_RING, 370},
        {CM_ALL_REDUCE, "hier", CM_PEAK_RING, 370},
        {CM_ALL_REDUCE, NULL, CM_PEAK_RING, 370},
        {CM_BROADCAST, "tree", CM_PEAK_RING, 370},
        {CM_ALL_REDUCE, "NVLS", CM_PEAK_SWITCH, 480},
        {CM_ALL_REDUCE, "nvlstree", CM_PEAK_SWITCH, 480},
        {CM_ALLTOALL, "direct", CM_PEAK_COPY, 380},
        {CM_SENDRECV, "direct", CM_PEAK_COPY, 380},
    };
    const struct cm_machine *h100 = cm_peak_machine("H100-SXM");

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        enum cm_peak_class c = cm_peak_class_of(cases[i].coll, cases[i].algo);
        const struct cm_peak *p = cm_peak_find(h100, c, 8, 1);

        CHECK(c == cases[i].want, "case %zu: %s", i, cm_peak_class_name(c));
        CHECK(p != NULL && p->gbs == cases[i].gbs, "case %zu: %g", i, p != NULL ? p->gbs : 0);
    }
    CHECK(cm_peak_find(h100, CM_PEAK_RING, 4, 1) == NULL, "nobody published it");
}

static void test_machines_by_gpu(void)
{
    static const struct {
        const char *gpu, *want;
    } cases[] = {
        {"NVIDIA A100-SXM4-80GB", "a100-sxm"}, {"NVIDIA A100 80GB PCIe", NULL},
        {"NVIDIA H100 80GB HBM3", "h100-sxm"}, {"NVIDIA H100 PCIe", NULL},
        {"NVIDIA H200", "h200-sxm"},           {"NVIDIA H200 NVL", NULL},
        {"NVIDIA B200", "b200-sxm"},           {"", NULL},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        const struct cm_machine *m = cm_peak_machine_of_gpu(cases[i].gpu);
        const char *got = m != NULL ? m->name : "none";

        CHECK(strcmp(got, cases[i].want != NULL ? cases[i].want : "none") == 0, "%s: %s",
              cases[i].gpu, got);
    }
}

static void test_values_of_peak(void)
{
    static const char *const bad[] = {"0", "-1", "nan", "inf", "1e10", "12GB", "", "h1000", "0x10"};
    static const char *const fine[] = {"12", "0.5", "1e3", "auto", "AUTO", "b200-sxm"};

    for (size_t i = 0; i < CM_LEN(bad); i++)
        CHECK(!cm_peak_valid(bad[i]), "'%s'", bad[i]);
    for (size_t i = 0; i < CM_LEN(fine); i++)
        CHECK(cm_peak_valid(fine[i]), "'%s'", fine[i]);
}

int main(void)
{
    RUN(test_rows_are_well_formed);
    RUN(test_figures_do_not_overlap);
    RUN(test_a_ring_is_judged_as_a_ring);
    RUN(test_machines_by_gpu);
    RUN(test_values_of_peak);
    return test_end();
}
