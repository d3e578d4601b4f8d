#!/usr/bin/env python3
"""scripts/collmark tune: a driver whose cost is known, and the grammar in the real one."""
import json
import os
import random
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from collmark_rig import MIB, ROOT, Call, check, document, read, run_tests  # noqa: E402
from collmark_lib import tune_bench, tune_choose, tune_model, tune_search  # noqa: E402
from collmark_lib.tune_rule import Rule, Scope, heading, rule_line  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("BUILDDIR", "build"))
SUFFIX = "_perf" + os.environ.get("NAME_SUFFIX", "")
LISTING = """algorithms of collectives
  all_reduce       direct ring tree
  sendrecv         direct
modes
  copy
  direct
protocols
  simple
  ll
"""
DEFAULT = Rule("direct", "direct", "simple")
RING, TREE = Rule("ring", "direct", "simple"), Rule("tree", "copy", "simple")
K = 1 << 10


# ---- a made-up driver --------------------------------------------------------------------------

def parsed(text):
    """[(low, high, rule)] of a tuning file, read as src/engine/tune.h has it."""
    out, units = [], {"": 0, "K": 10, "M": 20}
    for line in text.splitlines():
        f = line.partition("#")[0].split()
        if f:
            ends = [int(e.rstrip("KM")) << units[e.lstrip("0123456789")] if e else 1 << 60
                    for e in f[3].split("-")] if f[3] != "*" else [0, 1 << 60]
            chunk = 0 if f[8] == "-" else int(f[8].rstrip("KM")) << units[f[8].lstrip("0123456789")]
            out.append((ends[0], ends[-1], Rule(*f[4:7], int(f[7]), chunk)))
    return out


class Fake:
    """Plays launch.run_job(), and the time: a launch takes `seconds`."""

    def __init__(self, cost, default=DEFAULT, noise=0.0, seconds=1.0, seed=1):
        self.cost, self.default, self.noise, self.seconds = cost, default, noise, seconds
        self.random, self.now, self.launches = random.Random(seed), 0.0, 0
        self.exits, self.wrong, self.interrupt, self.asked = {}, set(), None, []

    def monotonic(self):
        return self.now

    def rule_at(self, rules, size):
        rule = next((r for low, high, r in rules if low <= size <= high), self.default)
        if rule.proto == "ll" and size > 4 * K:
            rule = DEFAULT  # the shared slots are too small
        return rule

    def rows(self, words, rules, alone):
        at = dict(zip(words, words[1:]))
        size, out = int(at["-b"]), {}
        while size <= int(at["-e"]):
            rule = self.rule_at(rules, size)
            factor = 1 + self.noise * self.random.uniform(-1, 1)
            out[size] = (rule, self.cost(rule, size, alone) * factor)
            size *= int(at.get("-f", 1 << 30))
        return out

    def run_job(self, words, out, err, requests, deadline):
        self.launches += 1
        self.now += self.seconds
        if self.launches == self.interrupt:
            requests.seen.append(2)
            return -2, "signal", 0
        if self.now > deadline:
            return -15, "budget", 0
        file = words[words.index("--tuning") + 1] if "--tuning" in words else None
        rules = parsed(read(file)) if file else []
        self.asked.append(rules)
        with open(err, "w", encoding="utf-8") as f:
            f.write("no such form\n")
        code = self.exits.get(rules[0][2].form if rules else None, 0)
        with open(out, "w", encoding="utf-8") as f:
            if code == 0:
                f.write(json.dumps(self.document(self.rows(words, rules, len(rules) < 2))))
        return code, None, 0

    def document(self, rows):
        doc = document({s: t for s, (_, t) in rows.items()}, network=None)
        for row, (rule, _) in zip(doc["results"], rows.values()):
            row.update(algorithm=rule.algo, mode=rule.mode, protocol=rule.proto,
                       channels=rule.channels)
            row["out_of_place"]["nwrong"] = 3 if rule.form in self.wrong else 0
        return doc


def program(folder):
    path = os.path.join(folder, "all_reduce_perf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    os.chmod(path, 0o700)
    return path


def tune(folder, fake, *options, out="tuned.txt", resume=False):
    """`collmark tune` of the made-up driver; the call, and the rules in the file."""
    path, name = os.path.join(folder, out), program(folder)
    kept = tune_bench.launch.run_job, tune_bench.time, tune_search.time
    tune_bench.launch.run_job, tune_bench.time, tune_search.time = fake.run_job, fake, fake
    try:
        call = Call("tune", *options, "--resume" if resume else "--out", path,
                    *(() if resume else ("--", name, "-g", "2")))
    finally:
        tune_bench.launch.run_job, tune_bench.time, tune_search.time = kept
    return call, parsed(read(path)) if os.path.exists(path) else None


def base(rule, size):
    return 1 + size / 1000 + (0.2 if rule.mode == "copy" else 0)


def crossing(rule, size, _alone):
    """ring is twice as fast from 64K on, tree by a half from 512 to 8K, all others slower."""
    if rule.form == RING.form and size >= 64 * K:
        return base(DEFAULT, size) / 2 * (1.05 if rule.channels > 1 else 1)
    if rule.form == TREE.form and 512 <= size <= 8 * K and rule == TREE:
        return base(DEFAULT, size) / 1.5
    return base(rule, size) * (1 if rule == DEFAULT else 1.3)


# ---- the search --------------------------------------------------------------------------------

def test_the_best_is_found(folder):
    """Two rows, with the crossovers where they are; the rest is left to the default."""
    fake = Fake(crossing, noise=0.01)
    call, rules = tune(folder, fake, "--budget", "10m")
    call.expect(0, "rule: all_reduce +2 +1 ", r"1\.5\d times as fast", r"2\.0\d times as fast")
    check(rules == [(512, 8 * K, TREE), (64 * K, 16 * MIB, RING)], rules)
    check(fake.now < 600, f"{fake.now} s")
    text = read(os.path.join(folder, "tuned.txt"))
    check(max(map(len, text.splitlines())) < 200, "a line is too long")
    check("Test CPU" in text and "collmark tune --budget 10m" in text, text)
    check(not [n for n in os.listdir(folder) if n.startswith(".collmark")], os.listdir(folder))


def test_touching_rows(folder):
    """Where one rule follows on another, no size is left out, and none belongs to both."""
    def cost(rule, size, _alone):
        fast = TREE if size <= 4 * K else RING
        return base(DEFAULT, size) * (0.5 if rule == fast else 1.0)
    _, rules = tune(folder, Fake(cost), "-b", "8", "-e", "256K", "--budget", "10m")
    check(rules == [(0, 4 * K, TREE), (4 * K, 256 * K, RING)], rules)


def test_noise_is_no_gain(folder):
    for seed in range(4):
        fake = Fake(lambda rule, size, _: base(DEFAULT, size), noise=0.3, seed=seed)
        call, rules = tune(folder, fake, "--budget", "20m", out=f"noise{seed}")
        call.expect(0, "nothing to gain")
        check(rules == [], rules)


def test_variants_by_the_model(folder):
    """Steps cost: many channels win at large sizes, and not all variants were tried for it."""
    best = Rule("tree", "copy", "simple", 4, MIB)
    def cost(rule, size, _alone):
        if rule.form != TREE.form:
            return 1 + size / 1000
        return 2 + size / 4000 + 100 * tune_model.steps(rule, size)
    fake = Fake(cost)
    _, rules = tune(folder, fake, "--budget", "20m", "-b", "1M", "-e", "16M")
    check(rules and rules[-1][2] == best, rules)
    tried = {r for rules in fake.asked for _, _, r in rules if r.form == TREE.form}
    check(Rule(*TREE.form, 1, 64 * K) not in tried, tried)


def test_guesses_are_measured(folder):
    """What the model promises for a size where the rule was not launched, and does not keep."""
    def cost(rule, size, _alone):
        if rule.form != TREE.form or size > 2 * MIB:
            return base(DEFAULT, size) * (1 if rule == DEFAULT else 1.5 + 9 * (rule.channels > 1))
        return base(DEFAULT, size) / (1 + rule.channels / 4)
    _, rules = tune(folder, Fake(cost), "--budget", "20m")
    check(rules and rules[-1][1:] == (2 * MIB, TREE._replace(channels=4)), rules)


def test_wrong_data_is_never_chosen(folder):
    fake = Fake(lambda rule, size, _: base(rule, size) / (10 if rule.form == RING.form else 1))
    fake.wrong = {RING.form}
    call, rules = tune(folder, fake)
    call.expect(1, r"WRONG DATA: ring/direct/simple: 8 B")
    check(all(r.form != RING.form for _, _, r in rules), rules)
    check("WRONG DATA: ring/direct/simple" in read(os.path.join(folder, "tuned.txt")), "file")
    fake = Fake(lambda rule, size, _: base(rule, size))
    fake.wrong = {DEFAULT.form}
    call, rules = tune(folder, fake, out="none")
    check((call.code, rules) == (1, None) and "built-in choices" in call.err, call.err)


def test_refused_and_failed(folder):
    fake = Fake(lambda rule, size, _: base(rule, size) / (1 if rule == DEFAULT else 9))
    fake.exits = {RING.form: 77, TREE.form: 3}
    call, rules = tune(folder, fake)
    call.expect(0, "1 refused, 1 of them of no effect at some size, 1 failed",
                r"failed: tree/copy/simple: exit 3, no such form")
    check(rules and all(r.form not in fake.exits for _, _, r in rules), rules)
    fake.exits = {None: 4}
    call, rules = tune(folder, fake, out="none")
    check((call.code, rules) == (4, None) and "code 4" in call.err, call.err)


def test_rows_that_do_not_last_drop_out(folder):
    """Alone the rules are faster, together they are not."""
    for slow, said in ((1.5, "slower when confirmed"), (1.0, "within the spread when confirmed")):
        def cost(rule, size, alone, slow=slow):
            return crossing(rule, size, alone) if alone else base(DEFAULT, size) * slow
        call, rules = tune(folder, Fake(cost, noise=0.001, seed=3), "--budget", "10m",
                           out=f"file{slow}")
        call.expect(0, f"dropped: .* {said}", "nothing to gain")
        check(rules == [], rules)


# ---- time, and interruptions -------------------------------------------------------------------

def test_budget(folder):
    call, rules = tune(folder, Fake(crossing, seconds=10), "--budget", "60s", out="short")
    call.expect(6, "not measured: every form: ", "nothing could be judged")
    check(rules is None and "--resume" in call.err, call.err)
    fake = Fake(crossing, seconds=10)
    call, rules = tune(folder, fake, "--budget", "10m", out="middle")
    call.expect(0, "not measured: ")
    check(rules and fake.now <= 600, f"{rules}: {fake.now} s")
    fake = Fake(crossing, seconds=1000)
    call, rules = tune(folder, fake, "--budget", "60s", out="none")
    check((call.code, rules) == (6, None) and "first launch" in call.err, call.err)


def test_resume(folder):
    """The same file, and no launch is made twice."""
    whole, rules = Fake(crossing), None
    _, rules = tune(folder, whole, "--budget", "20m")
    for stop in (1, 7, 40):
        name, first, second = f"again{stop}", Fake(crossing), Fake(crossing)
        first.interrupt = stop
        call, none = tune(folder, first, "--budget", "20m", out=name)
        check((call.code, none) == (6, None) and "--resume" in call.err, call.err)
        call, again = tune(folder, second, "--budget", "20m", out=name, resume=True)
        call.expect(0)
        check(again == rules, f"{again}, not {rules}")
        check(first.launches - 1 + second.launches == whole.launches, second.launches)
        bodies = [re.sub(r"^# Made by(.*\n#  )*.*", "", read(os.path.join(folder, n)), flags=re.M)
                  for n in ("tuned.txt", name)]
        check(bodies[0] == bodies[1], bodies)


def test_journals(folder):
    path = os.path.join(folder, "tuned.txt")
    Call("tune", "--resume", path).expect(2, "no journal of a tuning")
    fake = Fake(crossing)
    fake.interrupt = 3
    tune(folder, fake)
    call, _ = tune(folder, Fake(crossing))
    call.expect(2, "did not come to its end: --resume")
    with open(path + ".journal", "a", encoding="utf-8") as f:
        f.write('{"key": "cut o')
    name = program(folder)
    Call("tune", "--resume", path, "--", name, "-g", "3").expect(2, "another command")
    call, rules = tune(folder, Fake(crossing), resume=True)
    call.expect(0)
    check(rules, "rules")


def test_usage(folder):
    name = program(folder)
    for words, said in ((("--",), "what shall be tuned"), (("--", "-g", "2"), "a driver comes"),
                        (("--", name, "-b", "8"), "-b: the tuning"), (("--", name, "-f4"), "-f4"),
                        (("--", name, "--algo=ring"), "--algo=ring"),
                        (("--launches", "2", "--", name), "fewer than 3"),
                        (("-b", "1M", "-e", "1K", "--", name), "not above"),
                        (("--", "no_such_perf"), "no such program")):
        Call("tune", "--out", os.path.join(folder, "x"), *words).expect(2, said)
    Call("tune", "--dry-run", "-e", "4K", "--", name).expect(
        0, "sizes: 8 B, 64 B, 512 B, 4 KiB;", "7 forms", r"^  direct/copy/ll$")


# ---- its parts ---------------------------------------------------------------------------------

def test_model():
    def law(rule, size):
        return 3 + size / 500 + 2 * tune_model.steps(rule, size)
    some = [TREE, TREE._replace(channels=4), TREE._replace(chunk=16 * K)]
    model = tune_model.Model([(r, s, law(r, s)) for r in some
                              for s in (64 * K, 512 * K, 4 * MIB)])
    for rule in (TREE._replace(channels=2, chunk=64 * K), TREE._replace(chunk=MIB)):
        for size in (128 * K, MIB):
            found, error = model.predict(rule, size)
            check(abs(found / law(rule, size) - 1) < 0.01, f"{rule} {size}: {found}")
            check(error < 0.01, error)
    check(model.predict(RING, MIB) is None, "a form that was not measured")
    check(model.predict(TREE, 64) is None, "far from all that was measured")
    # Nothing is less than nothing: a falling time gives a constant, not a negative beta.
    (alpha, beta, gamma), error = tune_model.fit([(RING, 8, 2.0), (RING, 64, 1.0)])
    check(alpha > 0 and beta == gamma == 0 and error > 0.2, (alpha, beta, gamma, error))


def test_few_rows():
    """Two that are equal do not alternate; where nothing is won the default stays."""
    figures = tune_choose.Figures()
    for i, size in enumerate((8, 64, 512, 4096, 32768)):
        for n in range(5):
            figures.add(None, size, 10 + n / 100)
            figures.add(RING, size, (5.0 if i < 4 else 10) + (i % 2) / 20 + n / 100)
            figures.add(TREE, size, (5.0 if i < 4 else 10) + ((i + 1) % 2) / 20 + n / 100)
    got = tune_choose.assign(figures, [RING, TREE], figures.sizes(), lambda rule, size: None)
    check(len(set(got[:4])) == 1 and got[0] is not None and got[4] is None, got)
    # What a rule is predicted to gain counts if the model errs by less than half of it.
    for gain, error, want in ((1.5, 0.1, RING), (1.5, 0.3, None), (1.01, 0.0, None)):
        got = tune_choose.assign(tune_choose.Figures(), [RING], [8],
                                 lambda rule, size, g=gain, e=error: (g, e))
        check(got == [want], f"{gain} {error}: {got}")


# ---- the real driver ---------------------------------------------------------------------------

def real(collective, *words):
    done = subprocess.run([os.path.join(BUILD, collective + SUFFIX), *words], capture_output=True,
                          text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_grammar(folder):
    """What is written is read, and does what it says."""
    path = os.path.join(folder, "rules.txt")
    scope = Scope("all_reduce", 2, 1)
    rules = [(0, 64, Rule("recdbl", "direct", "simple")), (64, 4 * K, Rule("tree", "copy", "simple",
                                                                         2, 64 * K)),
             (24 * K, MIB, Rule("ring", "copy", "simple", 4, MIB))]
    with open(path, "w", encoding="utf-8") as f:
        f.write("# " + "long " * 100 + "\n" + heading() + "\n")
        f.write("".join(rule_line(scope, *r, remark="1.10 times as fast") + "\n" for r in rules))
    code, out, err = real("all_reduce", "-g", "2", "-b", "8", "-e", "1M", "-f", "8", "-n", "3",
                          "--tuning", path, "-J", "-")
    check(code == 0, f"exit {code}: {err}")
    for row in json.loads(out)["results"]:
        want = next((r for low, high, r in rules if low <= row["size"] <= high), None)
        check(want is None or want.ran_as(row, "host"), f"{row['size']}: {row}, not {want}")
        check(want or row["algorithm"] == "direct", f"the built-in choice: {row}")


def test_bad_files(folder):
    path = os.path.join(folder, "rules.txt")
    rule = "all_reduce 2 1 0-1M ring copy simple 1 64K\n"
    for text, more, said in ((rule.replace("64K", "100"), (), "rules.txt:1: bad chunk"),
                             (rule + "broadcast 2 1 * recdbl copy simple 1 -\n", (),
                              "rules.txt:2: bad algorithm"), ("\0", (), "not a text"),
                             (rule, ("--buffsize", "4K"), "a slot has 1024"),
                             (None, (), "No such")):
        if text is None:
            os.unlink(path)
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        code, _, err = real("all_reduce", "-g", "2", "-b", "8", "-e", "8", "--tuning", path, *more)
        check(code == 2 and said in err, f"{text!r}: exit {code}: {err}")


def test_a_real_tuning(folder):
    if os.environ.get("SAN"):
        return "a sanitizer makes it long; the driver's part is in the other tests"
    path, begin = os.path.join(folder, "tuned.txt"), time.monotonic()
    call = Call("tune", "-b", "64", "-e", "64", "--launches", "3", "--budget", "20s", "--out", path,
                "--", os.path.join(BUILD, "sendrecv" + SUFFIX), "-g", "2", "-n", "2")
    check(call.code in (0, 6) and time.monotonic() - begin < 25, f"{call.out}{call.err}")
    if call.code == 0:
        code, _, err = real("sendrecv", "-g", "2", "-b", "64", "-e", "64", "--tuning", path)
        check(code == 0, err)
    return None


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
