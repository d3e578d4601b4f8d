/* --p2p-level: which pairs of GPUs of known machines are within a level, and what is refused. */
#include <string.h>

#include "capture.h"
#include "common/launch.h"
#include "common/p2p_level.h"
#include "test.h"

static const struct {
    const char *file, *level;
    int within, beyond;
} cases[] = {
    {"a100-nvswitch", "nvl", 28, 0}, {"a100-nvswitch", "pix", 28, 0}, {"pcie-4+4", "nvl", 0, 28},
    {"pcie-4+4", "pxb", 4, 24},      {"pcie-4+4", "phb", 12, 16},     {"pcie-4+4", "sys", 28, 0},
    {"v100-cube", "nvl", 16, 12},    {"v100-cube", "sys", 28, 0},     {"2-sockets", "nvl", 0, 0},
};

static void test_known_machines(void)
{
    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_p2p_pairs p;
        struct cm_topo *t = NULL;
        char path[128];

        snprintf(path, sizeof(path), "tests/topo/%s.topo", cases[i].file);
        if (cm_topo_read(path, &t) != CM_OK) {
            CHECK(false, "%s", path);
            continue;
        }
        cm_p2p_count(t, cases[i].level, &p);
        CHECK(p.within == cases[i].within && p.beyond == cases[i].beyond,
              "%s, %s: %d within, %d beyond", cases[i].file, cases[i].level, p.within, p.beyond);
        CHECK((p.example[0][0][0] != '\0') == (p.within > 0) &&
                  (p.example_kind[1][0] != '\0') == (p.beyond > 0),
              "%s, %s: examples", cases[i].file, cases[i].level);
        cm_topo_free(t);
    }
}

static void test_sums_keep_an_example_of_each(void)
{
    struct cm_p2p_pairs all = {0}, near = {.within = 3}, far = {.beyond = 2};

    strcpy(near.example[0][0], "near");
    strcpy(far.example[1][0], "far");
    cm_p2p_add(&all, &near);
    cm_p2p_add(&all, &far);
    cm_p2p_add(&all, &near);
    CHECK(all.within == 6 && all.beyond == 2, "%d within, %d beyond", all.within, all.beyond);
    CHECK(strcmp(all.example[0][0], "near") == 0 && strcmp(all.example[1][0], "far") == 0,
          "examples '%s', '%s'", all.example[0][0], all.example[1][0]);
}

/* A job of two processes, of which this is one. The other has `other`. */
static enum cm_status gather_two(const struct cm_boot *b, const void *mine, size_t bytes, void *all)
{
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, bytes == sizeof(struct cm_p2p_pairs) ? b->ctx : mine, bytes);
    return CM_OK;
}

static void test_what_others_have_counts(void)
{
    static const struct {
        int within, beyond;
        enum cm_status status;
        bool far;
    } rows[] = {
        {0, 0, CM_OK, false},
        {6, 0, CM_OK, false},
        {0, 6, CM_OK, true},
        {2, 4, CM_EUNSUP, false},
    };
    struct cm_rank_info infos[1] = {{.rank = 0}};

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_p2p_pairs other = {.within = rows[i].within, .beyond = rows[i].beyond};
        struct cm_boot b = {.nprocs = 2, .ctx = &other, .gather = gather_two};
        bool far = false;
        struct capture err;
        enum cm_status st;

        capture_begin(&err, STDERR_FILENO);
        st = cm_p2p_level(&b, "nvl", &(struct cm_p2p_job){infos, 0, 0, NULL},
                          &far); /* no GPUs here */
        capture_end(&err);
        CHECK(st == rows[i].status && (st != CM_OK || far == rows[i].far),
              "%d within, %d beyond: status %d far %d: %s", rows[i].within, rows[i].beyond, (int)st,
              far, err.text);
        CHECK((strstr(err.text, "--p2p-level nvl") != NULL) == (st != CM_OK), "'%s'", err.text);
    }
}

static void test_gpus_nobody_knows(void)
{
    struct cm_rank_info infos[2] = {{.bus_id = "ffff:fe:1f.0"}, {.bus_id = "ffff:ff:1f.0"}};
    struct cm_p2p_pairs other = {0};
    struct cm_boot b = {.nprocs = 2, .ctx = &other, .gather = gather_two};
    struct capture err;
    enum cm_status st;
    bool far = false;

    capture_begin(&err, STDERR_FILENO);
    st = cm_p2p_level(&b, "pix", &(struct cm_p2p_job){infos, 2, 0, NULL}, &far);
    capture_end(&err);
    CHECK(st == CM_EUNSUP, "status %d", (int)st);
    CHECK(strstr(err.text, "ffff:fe:1f.0") != NULL, "'%s'", err.text);
}

int main(void)
{
    RUN(test_known_machines);
    RUN(test_sums_keep_an_example_of_each);
    RUN(test_what_others_have_counts);
    RUN(test_gpus_nobody_knows);
    return test_end();
}
