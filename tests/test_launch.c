/*
 * From a process to ranks: launch mistakes, CPUs, options that must agree,
 * exit codes. The launcher is `alone`; each launch runs in a child.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "capture.h"
#include "common/affinity.h"
#include "common/agree.h"
#include "common/launch.h"
#include "common/launch_env.h"
#include "forked.h"
#include "test.h"

enum { MAX_VARIABLES = 4 };

static const char *const known[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",     "PMI_RANK",      "PMIX_RANK",
    "MPI_LOCALNRANKS",      "SLURM_NTASKS", "SLURM_PROCID",  "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS", "PMIX_SIZE",    "FLUX_JOB_SIZE", "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",   "RANK",         "WORLD_SIZE",
};

static void test_launch_mistakes(void)
{
    static const struct {
        const char *set[MAX_VARIABLES][2];
        const char *names; /* the variable of the message; NULL: no mistake */
    } rows[] = {
        {{{NULL, NULL}}, NULL},
        {{{"OMPI_COMM_WORLD_SIZE", "4"}}, "OMPI_COMM_WORLD_SIZE=4"},
        {{{"OMPI_COMM_WORLD_SIZE", "1"}}, NULL},
        {{{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}, "PMI_SIZE=2"},
        {{{"PMI_SIZE", "junk"}}, NULL},
        {{{"PMIX_RANK", "0"}}, NULL},
        {{{"PMIX_RANK", "3"}}, "PMIX_RANK=3"},
        {{{"MPI_LOCALNRANKS", "2"}}, "MPI_LOCALNRANKS=2"},
        {{{"SLURM_NTASKS", "4"}}, NULL},
        {{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}, NULL},
        {{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}, "SLURM_NTASKS=4"},
        {{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, "SLURM_NTASKS=4"},
        {{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}}, NULL},
        {{{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, NULL},
        {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, NULL},
        {{{"PMI_SIZE", "2"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}, "PMI_SIZE=2"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct capture c;
        enum cm_status st;

        for (size_t k = 0; k < CM_LEN(known); k++)
            unsetenv(known[k]);
        for (int k = 0; k < MAX_VARIABLES && rows[i].set[k][0] != NULL; k++)
            setenv(rows[i].set[k][0], rows[i].set[k][1], 1);
        capture_begin(&c, STDERR_FILENO);
        st = cm_env_check_alone(NULL, false);
        capture_end(&c);
        CHECK((st != CM_OK) == (rows[i].names != NULL), "row %zu: status %d: %s", i, st, c.text);
        if (rows[i].names != NULL)
            CHECK(strstr(c.text, rows[i].names) == c.text, "row %zu: %s", i, c.text);
        CHECK(rows[i].set[0][0] == NULL || strncmp(rows[i].set[0][0], "SLURM_NT", 8) == 0 ||
                  strcmp(rows[i].set[0][0], "RANK") == 0 || cm_env_launched(),
              "row %zu: no launcher seen", i);
    }
    for (size_t k = 0; k < CM_LEN(known); k++)
        unsetenv(known[k]);
}

static void test_one_process_speaks(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_RANK", "PMIX_RANK",        "PMI_RANK", "SLURM_PROCID",
        "SLURM_STEP_ID",        "OMPI_NUM_APP_CTX", "RANK",     "WORLD_SIZE"};
    static const struct {
        const char *set[MAX_VARIABLES][2];
        bool speaks;
    } rows[] = {
        {{{NULL, NULL}}, true},
        {{{"OMPI_COMM_WORLD_RANK", "0"}}, true},
        {{{"OMPI_COMM_WORLD_RANK", "3"}}, false},
        {{{"OMPI_COMM_WORLD_RANK", "junk"}}, true},
        {{{"PMIX_RANK", "1"}}, false},
        {{{"PMI_RANK", "0"}}, true},
        {{{"PMI_RANK", "2"}}, false},
        {{{"SLURM_PROCID", "0"}}, true},
        {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, true},
        {{{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}, false},
        /* mpirun inside a batch job: its own variable counts */
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, false},
        /* torchrun in a task of Slurm; RANK alone may be anybody's */
        {{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}},
         false},
        {{{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}, true},
        {{{"RANK", "3"}}, true},
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_NUM_APP_CTX", "1"}}, false},
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_NUM_APP_CTX", "2"}}, true},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        for (size_t k = 0; k < CM_LEN(names); k++)
            unsetenv(names[k]);
        for (int k = 0; k < MAX_VARIABLES && rows[i].set[k][0] != NULL; k++)
            setenv(rows[i].set[k][0], rows[i].set[k][1], 1);
        CHECK(cm_env_speaks() == rows[i].speaks, "row %zu", i);
    }
    for (size_t k = 0; k < CM_LEN(names); k++)
        unsetenv(names[k]);
}

static void test_cpu_sets_in_words(void)
{
    static const struct {
        int cpus[5];
        int n;
        const char *want;
    } rows[] = {
        {{0}, 0, ""},        {{0}, 1, "0"},
        {{0, 1}, 2, "0-1"},  {{0, 2, 3, 63, 64}, 5, "0,2-3,63-64"},
        {{1023}, 1, "1023"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_cpus s = {.bits = {0}};
        char text[32];

        for (int k = 0; k < rows[i].n; k++)
            cm_cpus_add(&s, rows[i].cpus[k]);
        cm_cpus_format(&s, text, sizeof(text));
        CHECK(strcmp(text, rows[i].want) == 0, "row %zu: %s, not %s", i, text, rows[i].want);
        CHECK(cm_cpus_count(&s) == rows[i].n, "row %zu: %d", i, cm_cpus_count(&s));
    }
}

static void test_long_cpu_sets_are_cut(void)
{
    struct cm_cpus s = {.bits = {0}};
    char text[32];

    for (int cpu = 0; cpu < CM_MAX_CPUS; cpu += 2)
        cm_cpus_add(&s, cpu);
    cm_cpus_format(&s, text, sizeof(text));
    CHECK(strstr(text, "...") != NULL, "%s", text);
}

/* Every rank has a CPU of its process's mask, and none has two ranks; or none has any. */
static bool assignment_is_sound(const struct cm_cpu_plan *p, const int32_t *cpu_of, bool enough)
{
    struct cm_cpus taken = {.bits = {0}};
    bool sound = true;

    for (int k = 0; k < p->nprocs; k++)
        for (int r = p->first_of[k]; r < p->first_of[k + 1]; r++) {
            int cpu = cpu_of[r];

            sound = sound && (enough ? cm_cpus_has(&p->masks[k], cpu) && !cm_cpus_has(&taken, cpu)
                                     : cpu == -1);
            cm_cpus_add(&taken, cpu >= 0 ? cpu : 0);
        }
    return sound;
}

/* Masks as bits, ranks per process; can each rank have a CPU of its own? */
static void test_cpus_are_assigned_once(void)
{
    static const struct {
        uint64_t masks[4];
        int ranks[4];
        int nprocs, quota;
        bool enough;
    } rows[] = {
        {{0x3}, {2}, 1, CM_MAX_CPUS, true},
        {{0x3}, {3}, 1, CM_MAX_CPUS, false},
        {{0x3, 0x3}, {1, 1}, 2, CM_MAX_CPUS, true},
        {{0x3, 0x1}, {1, 1}, 2, CM_MAX_CPUS, true}, /* the wide mask must not take CPU 0 */
        {{0x1, 0x1}, {1, 1}, 2, CM_MAX_CPUS, false},
        {{0x1, 0x2}, {2, 1}, 2, CM_MAX_CPUS, false},
        {{0xf0, 0x0f, 0xff}, {4, 3, 1}, 3, CM_MAX_CPUS, true},
        {{0xff}, {4}, 1, 3, false},
        {{0x0}, {1}, 1, CM_MAX_CPUS, false},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_cpus masks[4] = {{.bits = {0}}};
        int32_t first_of[5] = {0}, cpu_of[16];
        struct cm_cpu_plan p = {rows[i].nprocs, masks, first_of, rows[i].quota};
        bool enough;

        for (int k = 0; k < rows[i].nprocs; k++) {
            masks[k].bits[0] = rows[i].masks[k];
            first_of[k + 1] = first_of[k] + rows[i].ranks[k];
        }
        enough = cm_cpu_assign(&p, cpu_of);
        CHECK(enough == rows[i].enough, "row %zu: %d", i, enough);
        CHECK(assignment_is_sound(&p, cpu_of, enough), "row %zu", i);
    }
}

static void parse(int argc, const char *const *args, struct cm_opts *o)
{
    static char copies[8][64];
    char *argv[8 + 1] = {NULL};
    enum cm_parsed what;

    for (int i = 0; i < argc; i++)
        argv[i] = strcpy(copies[i], args[i]);
    if (cm_opts_parse(argc, argv, NULL, o, &what) != CM_OK)
        abort();
}

static void test_options_are_compared_by_value(void)
{
    static const struct {
        const char *args[3];
        int argc;
        const char *differs;
    } rows[] = {
        {{"x"}, 1, NULL},
        {{"x", "-n", "20"}, 3, NULL}, /* the default */
        {{"x", "-n", "21"}, 3, "iters"},
        {{"x", "-t", "3"}, 3, NULL},
        {{"x", "-g", "3"}, 3, NULL},
        {{"x", "--split", "mod:2"}, 3, "split"},
        {{"x", "--inject", "stall"}, 3, "inject"},
        {{"x", "-T", "1.5"}, 3, "timeout"},
    };
    static const char *const plain[] = {"x"};
    struct cm_opts base, other;

    parse(1, plain, &base);
    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_digest a, b;
        const char *name;

        parse(rows[i].argc, rows[i].args, &other);
        cm_digest_fill(&base, &a);
        cm_digest_fill(&other, &b);
        name = cm_digest_difference(&a, &b);
        CHECK((name == NULL) == (rows[i].differs == NULL) &&
                  (name == NULL || strcmp(name, rows[i].differs) == 0),
              "row %zu: %s", i, name != NULL ? name : "no difference");
        cm_opts_free(&other);
    }
    cm_opts_free(&base);
}

/* One launch: what rank 1 of three returns, and more. */
struct launch {
    const char *args[8];
    int argc;
    enum cm_status arena, body;
    int exit_code;
    const char *says; /* on stderr, or NULL: nothing */
};

static enum cm_status launch_arena(const struct cm_opts *o, int n, const struct cm_room *room,
                                   void *arg, size_t *out)
{
    const struct launch *l = arg;

    (void)o;
    if (room->ranks != n || room->bytes == 0)
        return CM_FAIL(CM_ESYS, "room: %d ranks", room->ranks);
    *out = (size_t)n * 1000;
    return l->arena == CM_OK ? CM_OK : CM_FAIL(l->arena, "no arena");
}

static bool rank_is_sound(const struct cm_rank *r)
{
    char *arena = (char *)r->base + cm_arena_at(r->layout, r->rank);

    memset(arena, 1, r->arena_bytes);
    return r->n == 3 && r->group_world[r->group_rank] == r->rank &&
           r->infos[r->rank].group == r->group && r->infos[r->rank].pid == (int)getpid() &&
           r->arena_bytes >= 3000 && r->waiter.diag->host[0] != '\0' && *r->signal == 0;
}

static enum cm_status launch_body(struct cm_rank *r, void *arg)
{
    const struct launch *l = arg;
    enum cm_status st = cm_team_barrier(&r->team);

    if (st == CM_OK && !rank_is_sound(r))
        return CM_FAIL(CM_ESYS, "rank %d has wrong facts", r->rank);
    if (st != CM_OK || l->body == CM_OK)
        return st;
    if (l->body == CM_EDATA || l->body == CM_ETRUNC) /* a verdict: the rank runs to its end */
        return r->rank == 1 ? l->body : CM_OK;
    /* A failure: the others wait for rank 1 and must be freed. */
    return r->rank == 1 ? CM_FAIL(l->body, "broken") : cm_team_barrier(&r->team);
}

static enum cm_status patient_body(struct cm_rank *r, void *arg)
{
    enum cm_status st = CM_OK;
    bool any = false;

    (void)arg;
    if (r->rank == 0)
        kill(getpid(), SIGTERM);
    while (st == CM_OK && !any)
        st = cm_team_or(&r->team, *r->signal != 0, &any);
    return st != CM_OK ? st : CM_ETRUNC;
}

static int launch_child(struct cm_boot *b, void *arg)
{
    struct launch *l = arg;
    struct capture c;
    struct cm_opts o;
    enum cm_exit code;

    (void)b;
    parse(l->argc, l->args, &o);
    capture_begin(&c, STDERR_FILENO);
    code = cm_launch(NULL, NULL, &o, launch_arena,
                     l->body == CM_EABORT ? patient_body : launch_body, l);
    capture_end(&c);
    cm_opts_free(&o);
    if ((int)code != l->exit_code || (l->says != NULL && strstr(c.text, l->says) == NULL) ||
        (l->says == NULL && c.text[0] != '\0')) {
        fprintf(stderr, "exit code %d, stderr: %s\n", code, c.text);
        return 1;
    }
    return 0;
}

static void test_exit_codes(void)
{
    static struct launch rows[] = {
        {.args = {"x", "-g", "3"}, .argc = 3},
        {.args = {"x", "-t", "3"}, .argc = 3},
        {.args = {"x", "-t", "3", "--wire", "shm"}, .argc = 5},
        {.args = {"x", "-t", "3", "--split", "mod:2"}, .argc = 5},
        {.args = {"x", "-t", "3"}, .argc = 3, .body = CM_EDATA, .exit_code = CM_EXIT_WRONG},
        {.args = {"x", "-t", "3"}, .argc = 3, .body = CM_ETRUNC, .exit_code = CM_EXIT_TRUNCATED},
        {.args = {"x", "-t", "3"},
         .argc = 3,
         .body = CM_EUNSUP,
         .exit_code = CM_EXIT_UNSUPPORTED,
         .says = "broken"},
        {.args = {"x", "-t", "3"},
         .argc = 3,
         .body = CM_ENOMEM,
         .exit_code = CM_EXIT_SYSTEM,
         .says = "broken"},
        {.args = {"x", "-t", "3"},
         .argc = 3,
         .arena = CM_EINVAL,
         .exit_code = CM_EXIT_USAGE,
         .says = "no arena"},
        {.args = {"x", "-t", "3", "--inject", "stall:rank=1,phase=init", "-T", "0.5"},
         .argc = 7,
         .exit_code = CM_EXIT_TIMEOUT,
         .says = "did not arrive: rank 1"},
        {.args = {"x", "-t", "3", "--inject", "stall:rank=2,phase=finalize", "-T", "0.5"},
         .argc = 7,
         .exit_code = CM_EXIT_TIMEOUT,
         .says = "did not arrive: rank 2"},
        {.args = {"x", "-t", "3", "--inject", "stall:rank=3"},
         .argc = 5,
         .exit_code = CM_EXIT_USAGE,
         .says = "--inject stall:rank=3: no such rank"},
        {.args = {"x", "-t", "3", "-r", "5"},
         .argc = 5,
         .exit_code = CM_EXIT_USAGE,
         .says = "root"},
        {.args = {"x", "-t", "3"},
         .argc = 3,
         .body = CM_EABORT,
         .exit_code = CM_EXIT_TRUNCATED}, /* patient_body: a signal comes */
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        int status[1];

        CHECK(forked_run(1, launch_child, &rows[i], status), "row %zu", i);
        CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0, "row %zu: 0x%x", i,
              (unsigned)status[0]);
    }
}

int main(void)
{
    RUN(test_launch_mistakes);
    RUN(test_one_process_speaks);
    RUN(test_cpu_sets_in_words);
    RUN(test_long_cpu_sets_are_cut);
    RUN(test_cpus_are_assigned_once);
    RUN(test_options_are_compared_by_value);
    RUN(test_exit_codes);
    return test_end();
}
