/*
 * The command line: what is accepted means what it says, what is not ends with
 * one line that names option and value.
 */
#include "common/opts_table.h"
#include "engine/comm.h"
#include "parsed.h"

static void test_defaults(void)
{
    const struct cm_opts *o = &r.o;

    if (!accepted(""))
        return;
    CHECK(strcmp(o->program, "x_perf") == 0, "program %s", o->program);
    CHECK(o->launch.threads == 1 && o->launch.gpus == 1, "-t %d -g %d", o->launch.threads,
          o->launch.gpus);
    CHECK(o->sweep.min_bytes == 32 << 20 && o->sweep.max_bytes == 32 << 20, "-b %zu -e %zu",
          o->sweep.min_bytes, o->sweep.max_bytes);
    CHECK(o->sweep.step_bytes == 1 << 20 && o->sweep.step_factor == 1, "-i %zu -f %d",
          o->sweep.step_bytes, o->sweep.step_factor);
    CHECK(o->sweep.dtype == CM_FLOAT && o->sweep.op == CM_SUM && o->sweep.root == 0, "-d %d -o %d",
          o->sweep.dtype, o->sweep.op);
    CHECK(o->run.iters == 20 && o->run.warmup == 1 && o->run.agg_iters == 1, "-n %d", o->run.iters);
    CHECK(o->run.checks == 1 && o->run.average == CM_AVG_MAX && o->sweep.cycles == 1, "-c %d -a %d",
          o->run.checks, (int)o->run.average);
    CHECK(o->engine.algo == NULL && o->engine.mode == -1 && o->engine.proto == CM_PROTO_AUTO &&
              o->engine.channels == 0 && o->engine.chunk == 0,
          "mode %d proto %d", o->engine.mode, o->engine.proto);
    CHECK(o->alltoallv.spread == 1 && o->alltoallv.matrix_scale == 1, "spread %g",
          o->alltoallv.spread);
    CHECK(o->from_env == NULL, "something came from the environment");
}

static void test_forms_of_an_option(void)
{
    static const char *const lines[] = {"-n|7",      "-n7",      "--iters|7",
                                        "--iters=7", "--iter=7", "-n|9|-n|7"};

    for (size_t i = 0; i < CM_LEN(lines); i++) {
        if (accepted(lines[i]))
            CHECK(r.o.run.iters == 7, "'%s': -n %d", lines[i], r.o.run.iters);
    }
    if (accepted("--output-file|x.json|--agg-iters=3"))
        CHECK(strcmp(r.o.report.json, "x.json") == 0 && r.o.run.agg_iters == 3, "-J %s -m %d",
              r.o.report.json, r.o.run.agg_iters);
}

static void test_values(void)
{
    if (accepted("-b|1.5K|-e|2T|-f|3"))
        CHECK(r.o.sweep.min_bytes == 1536 && r.o.sweep.max_bytes == (size_t)2 << 40 &&
                  r.o.sweep.step_factor == 3,
              "-b %zu -e %zu", r.o.sweep.min_bytes, r.o.sweep.max_bytes);
    if (accepted("-b|64M"))
        CHECK(r.o.sweep.max_bytes == 64 << 20, "-e %zu", r.o.sweep.max_bytes);
    if (accepted("-b|0|-e|8|-i|4"))
        CHECK(r.o.sweep.min_bytes == 0, "-b %zu", r.o.sweep.min_bytes);
    if (accepted("-f|1|-i|4K"))
        CHECK(r.o.sweep.step_bytes == 4096, "-i %zu", r.o.sweep.step_bytes);
    if (accepted("-d|all|-o|all|-r|all"))
        CHECK(r.o.sweep.dtype == CM_ALL && r.o.sweep.op == CM_ALL && r.o.sweep.root == CM_ALL,
              "-r %d", r.o.sweep.root);
    if (accepted("-r|-1|-d|f8e5m2|-o|mulsum"))
        CHECK(r.o.sweep.dtype == CM_F8E5M2 && r.o.sweep.op == CM_MULSUM && r.o.sweep.root == CM_ALL,
              "-d %d -o %d", r.o.sweep.dtype, r.o.sweep.op);
    if (accepted("--algo|RING|--proto|LL|--mode|Direct|--channels|2|--chunk|64K"))
        CHECK(strcmp(r.o.engine.algo, "ring") == 0 && r.o.engine.proto == CM_PROTO_LL &&
                  r.o.engine.mode == CM_MODE_DIRECT && r.o.engine.channels == 2 &&
                  r.o.engine.chunk == 65536,
              "algo %s proto %d mode %d", r.o.engine.algo, r.o.engine.proto, r.o.engine.mode);
    if (accepted("-n|010|-T|2.5|--seed|9007199254740992|--plan"))
        CHECK(r.o.run.iters == 10 && r.o.run.timeout_s == 2.5 &&
                  r.o.run.seed == 9007199254740992u && r.o.report.plan,
              "-n %d -T %g", r.o.run.iters, r.o.run.timeout_s);
    accepted("-G|0|-y|0|-R|0|-x|-1|-D|0|-V|16|-p|1|-z|3|-M|1|-S|1|-C|1");
    accepted("-I|1|-K|4|-n|5");
    if (accepted("--device|3|--p2p_disable|1"))
        CHECK(r.o.launch.device == 3 && r.o.engine.p2p_disable, "--device %d", r.o.launch.device);
    accepted("--inject|corrupt:rank=1,iter=17|--backend|host|--wire|loop");
}

static const struct {
    const char *line;
    enum cm_status status;
    const char *name, *value;
} refused[] = {
    {"--no-such", CM_EINVAL, "--no-such", ""},
    {"--", CM_EINVAL, "--", ""},
    {"-Q|1", CM_EINVAL, "-Q", ""},
    {"word", CM_EINVAL, "leftover", "'word'"},
    {"-n|3|word", CM_EINVAL, "leftover", "'word'"},
    {"-", CM_EINVAL, "leftover", "'-'"},
    {"-n", CM_EINVAL, "-n/--iters", "missing"},
    {"--csv", CM_EINVAL, "--csv", "missing"},
    {"--step|1", CM_EINVAL, "--step", "--stepfactor"},
    {"--plan=1", CM_EINVAL, "--plan", "'1'"},
    {"-n|abc", CM_EINVAL, "-n/--iters", "'abc'"},
    {"-n|5x", CM_EINVAL, "-n/--iters", "'5x'"},
    {"-n|0x5", CM_EINVAL, "-n/--iters", "'0x5'"},
    {"-n|0", CM_EINVAL, "-n/--iters", "'0'"},
    {"-n|", CM_EINVAL, "-n/--iters", "''"},
    {"-w|-1", CM_EINVAL, "-w/--warmup_iters", "'-1'"},
    {"-t|0", CM_EINVAL, "-t/--nthreads", "'0'"},
    {"-g|99999999999", CM_EINVAL, "-g/--ngpus", "'99999999999'"},
    {"-f|1.5", CM_EINVAL, "-f/--stepfactor", "'1.5'"},
    {"-f|0", CM_EINVAL, "-f/--stepfactor", "'0'"},
    {"-i|0", CM_EINVAL, "-i/--stepbytes", "'0'"},
    {"-e|1P", CM_EINVAL, "-e/--maxbytes", "'1P'"},
    {"-b|nan", CM_EINVAL, "-b/--minbytes", "'nan'"},
    {"-b|-5", CM_EINVAL, "-b/--minbytes", "'-5'"},
    {"-b|0|-f|2", CM_EINVAL, "-b/--minbytes", "-f/--stepfactor '2'"},
    {"-b|8|-e|4", CM_EINVAL, "-b/--minbytes '8'", "-e/--maxbytes '4'"},
    {"-e|4", CM_EINVAL, "-b/--minbytes '32M' (the default)", "-e/--maxbytes '4'"},
    {"-f|2|-i|8", CM_EINVAL, "-f/--stepfactor", "-i/--stepbytes"},
    {"-d|floaty", CM_EINVAL, "'floaty'", "bfloat16"},
    {"-o|sumx", CM_EINVAL, "'sumx'", "mulsum"},
    {"-o|SUM", CM_EINVAL, "-o/--op", "'SUM'"},
    {"-r|x", CM_EINVAL, "-r/--root", "'x'"},
    {"-r|-2", CM_EINVAL, "-r/--root", "'-2'"},
    {"-a|4", CM_EINVAL, "-a/--average", "'4'"},
    {"-c|-1", CM_EINVAL, "-c/--check", "'-1'"},
    {"-S|yes", CM_EINVAL, "-S/--report_timestamps", "'yes'"},
    {"-K|1", CM_EINVAL, "-K/--per_iter_skip", "-I"},
    {"-I|1|-K|20", CM_EINVAL, "-K/--per_iter_skip", "'20'"},
    {"-T|-1", CM_EINVAL, "-T/--timeout", "'-1'"},
    {"--max-time|inf", CM_EINVAL, "--max-time", "'inf'"},
    {"--algo|nvls", CM_EINVAL, "'nvls'", "ring"},
    {"--proto|LL128", CM_EINVAL, "'LL128'", "simple"},
    {"--mode|push", CM_EINVAL, "'push'", "direct"},
    {"--channels|9", CM_EINVAL, "--channels", "'9'"},
    {"--chunk|100", CM_EINVAL, "--chunk", "'100'"},
    {"--chunk|8M", CM_EINVAL, "--chunk", "'8M'"},
    {"--wire|udp", CM_EINVAL, "'udp'", "shm, tcp, ib"},
    {"--placement|none", CM_EINVAL, "--placement", "'none'"},
    {"--split|MOD 0", CM_EINVAL, "--split", "'MOD 0'"},
    {"--node-map|0,,1", CM_EINVAL, "--node-map", "'0,,1'"},
    {"--inject|nonsense", CM_EINVAL, "--inject", "nonsense"},
    {"--inject|corrupt|-c|0", CM_EINVAL, "--inject", "-c/--check 0"},
    {"--inject|corrupt:phase=warmup", CM_EINVAL, "--inject", "warm-up"},
    {"--inject|stall:iter=20", CM_EINVAL, "--inject", "20 iterations"},
    {"--inject|stall:iter=20,phase=timed|-w|50", CM_EINVAL, "--inject", "timed has 20"},
    {"--inject|stall:iter=2,phase=warmup", CM_EINVAL, "--inject", "warmup has 2"},
    {"--inject|stall:phase=check|-c|0", CM_EINVAL, "--inject", "check has 0"},
    {"--chunk|64K|--buffsize|128K", CM_EINVAL, "--chunk '64K'", "--buffsize '128K'"},
    {"--backend|rocm", CM_EINVAL, "--backend", "'rocm'"},
    {"--backend|cuda", CM_EUNSUP, "--backend 'cuda'", "built without nvcc"},
    {"-J|-|--csv|-", CM_EINVAL, "-J/--output_file", "--csv"},
    {"-G|-1", CM_EINVAL, "-G/--cudagraph", "'-1'"},
    {"-y|2", CM_EINVAL, "-y/--stream_null", "'2'"},
    {"--oversubscribe=1", CM_EINVAL, "--oversubscribe", "'1'"},
    {"--p2p-disable|2", CM_EINVAL, "--p2p-disable", "'2'"},
    /* tests are linked without the CUDA backend */
    {"-G|4", CM_EINVAL, "-G/--cudagraph '4'", "no CUDA backend"},
    {"-y|1", CM_EINVAL, "-y/--stream_null '1'", "no CUDA backend"},
    {"--oversubscribe", CM_EINVAL, "--oversubscribe", "no CUDA backend"},
    {"-G|4|--backend|host", CM_EINVAL, "-G/--cudagraph '4'", "CUDA"},
    {"-R|2", CM_EINVAL, "-R/--local_register '2'", "only 0 is accepted"},
    {"-x|0", CM_EINVAL, "-x/--cta_policy '0'", "--channels"},
    {"-D|1", CM_EINVAL, "-D/--device_implementation '1'", "--algo"},
    {"-V|32", CM_EINVAL, "-V/--device_cta_count '32'", "--channels"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < CM_LEN(refused); i++)
        expect_refused(refused[i].line, refused[i].status, refused[i].name, refused[i].value);
}

static void test_texts_go_to_stdout(void)
{
    static const struct {
        const char *line, *has;
    } cases[] = {
        {"--help", "--stepfactor"},      {"-h", "Exit codes"},
        {"--version", "collmark"},       {"--list", "bfloat16"},
        {"--help-markdown", "| `-b`, "}, {"--help|--no-such", "Usage"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        parse(cases[i].line, &r);
        CHECK(r.status == CM_OK && r.what == CM_PARSED_STOP, "'%s': status %d", cases[i].line,
              (int)r.status);
        CHECK(strstr(r.out.text, cases[i].has) != NULL, "'%s': no '%s'", cases[i].line,
              cases[i].has);
        CHECK(r.err.text[0] == '\0', "'%s': stderr '%s'", cases[i].line, r.err.text);
    }
    parse("--help", &r);
    for (const struct cm_option *row = cm_options; row->name != NULL; row++) {
        char name[64];

        snprintf(name, sizeof(name), "--%s", row->name);
        CHECK((strstr(r.out.text, name) != NULL) == (row->group != CM_GROUP_HIDDEN),
              "--%s in --help", row->name);
    }
}

/* ---- the table itself ---- */

static void test_rows_are_sound(void)
{
    for (const struct cm_option *a = cm_options; a->name != NULL; a++) {
        char want[CM_WANT_BYTES];

        CHECK(a->help != NULL && cm_option_groups[a->group] != NULL, "--%s", a->name);
        CHECK(strlen(cm_option_want(a, want, sizeof(want))) + 1 < sizeof(want), "--%s: '%s' is cut",
              a->name, want);
        CHECK((a->kind == CM_OPTION_PRINT) == (a->print != NULL), "--%s", a->name);
        CHECK((a->kind == CM_OPTION_REFUSED) == (a->refused != NULL), "--%s", a->name);
        for (const struct cm_option *b = cm_options; b < a; b++) {
            CHECK(strcmp(a->name, b->name) != 0, "--%s twice", a->name);
            CHECK(a->letter == 0 || a->letter != b->letter, "-%c twice", a->letter);
        }
    }
}

/* Letters and long names of nccl-tests: each must exist here. */
static void test_names_of_nccl_tests(void)
{
    static const char letters[] = "tgbeifnmwNpcodrzyTGCSJaRxDVMuIKh";
    static const char *const names[] = {
        "nthreads",
        "ngpus",
        "minbytes",
        "maxbytes",
        "stepbytes",
        "stepfactor",
        "iters",
        "agg_iters",
        "warmup_iters",
        "run_cycles",
        "parallel_init",
        "check",
        "op",
        "datatype",
        "root",
        "blocking",
        "stream_null",
        "timeout",
        "cudagraph",
        "report_cputime",
        "report_timestamps",
        "output_file",
        "average",
        "local_register",
        "cta_policy",
        "device_implementation",
        "device_cta_count",
        "memory",
        "unalign",
        "per_iter_timing",
        "per_iter_skip",
        "help",
    };

    for (size_t i = 0; i < CM_LEN(names); i++) {
        const struct cm_option *row = cm_options;

        while (row->name != NULL && strcmp(row->name, names[i]) != 0)
            row++;
        CHECK(row->name != NULL && row->letter == letters[i], "-%c --%s", letters[i], names[i]);
    }
}

int main(void)
{
    RUN(test_defaults);
    RUN(test_forms_of_an_option);
    RUN(test_values);
    RUN(test_refusals);
    RUN(test_texts_go_to_stdout);
    RUN(test_rows_are_sound);
    RUN(test_names_of_nccl_tests);
    return test_end();
}
