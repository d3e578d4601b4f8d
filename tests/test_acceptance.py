#!/usr/bin/env python3
"""Parts of scripts/collmark acceptance: hostfiles, launchers, who is slower than peers, whom a
message names, and what is refused before anything runs. All of it: tests/test_acceptance.sh."""
import os
import sys

sys.dont_write_bytecode = True

from collmark_rig import Call, check, document, run_tests  # noqa: E402
from collmark_lib import acceptance, acceptance_alone, acceptance_hosts as hosts  # noqa: E402
from collmark_lib import acceptance_judge as judge, acceptance_launch as launch  # noqa: E402
from collmark_lib import acceptance_text as text  # noqa: E402
from collmark_lib.acceptance_joint import Together, owners  # noqa: E402
from collmark_lib.acceptance_run import Stage  # noqa: E402
from collmark_lib.common import Refused  # noqa: E402


def write(folder, name, content, mode=0o644):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    os.chmod(path, mode)
    return path


def refusal(call, *arguments):
    try:
        call(*arguments)
    except Refused as e:
        return str(e)
    return "not refused"


# ---- nodes ------------------------------------------------------------------------------------

def test_hostfiles(folder):
    for content, want in (("a\nb\n", (["a", "b"], [None, None])),
                          ("# x\n\na slots=8 max_slots=9 # y\nb:8", (["a", "b"], [8, 8])),
                          ("a\na\nb\nb\n", (["a", "b"], [2, 2])),
                          ("a slots=2\na slots=2\n", (["a"], [4])),
                          ("10.0.0.1\nfd77::1 slots=3", (["10.0.0.1", "fd77::1"], [None, 3]))):
        got = hosts.read_hostfile(write(folder, "hosts", content))
        check(got == want, f"{content!r}: {got}")
    for content, said in (("", "no host in it"), ("a\na;b", ":2: 'a;b' is no name"),
                          ("a slots=0", "'0' is no number of ranks"), ("-x", "is no name"),
                          ("a:b", "'b' is no number"), ("../a", "is no name"),
                          ("a user=root", "'user=root' is not understood")):
        got = refusal(hosts.read_hostfile, write(folder, "hosts", content))
        check(said in got, f"{content!r}: {got}")


def test_reasons_are_one_plain_line():
    for given, want in (('say "no"\n\tnow', "say 'no' now"), ("x" * 300, "x" * 197 + "..."),
                        ("caf\u00e9 \x1b[1mred", "caf [1mred")):
        check(hosts.plain(given) == want, f"{given!r}: {hosts.plain(given)!r}")


# ---- launchers --------------------------------------------------------------------------------

def test_launchers(folder):
    nodes = [hosts.Node("a"), hosts.Node("b")]
    for said, want in (("mpirun (Open MPI) 4.1.4", "-np 16 --host a:8,b:8 --map-by slot"),
                       ("prterun (PRRTE) 3.0", "-np 16 --host a:8,b:8 --map-by slot"),
                       ("HYDRA build details:", "-hosts a,b -ppn 8 -np 16"),
                       ("Intel(R) MPI Library", "-hosts a,b -ppn 8 -np 16")):
        path = write(folder, "mpirun", f"#!/bin/sh\necho '{said}'\n", 0o755)
        words = launch.make(path, "--more 'x y'").words(nodes, 8)
        plain = [w for at, w in enumerate(words) if w != "-x" and words[at - 1] != "-x"]
        check(plain == [path, *want.split(), "--more", "x y"], f"{said}: {words}")
    got = refusal(launch.make, write(folder, "mpirun", "#!/bin/sh\necho hello\n", 0o755), "")
    check("neither Open MPI nor MPICH" in got and "'hello'" in got, got)
    check("No closing quotation" in refusal(launch.make, None, "'"), "quotes")


def test_settings_reach_other_nodes(folder):
    path = write(folder, "mpirun", "#!/bin/sh\necho 'Open MPI'\n", 0o755)
    os.environ.update({"NCCL_SOCKET_IFNAME": "eth0", "OMPI_MCA_x": "1"})
    words = " ".join(launch.make(path, "").words([hosts.Node("a")], 1))
    del os.environ["NCCL_SOCKET_IFNAME"], os.environ["OMPI_MCA_x"]
    check("-x NCCL_SOCKET_IFNAME" in words and "OMPI_MCA_x" not in words, words)


# ---- what launches say ------------------------------------------------------------------------

def test_slower_than_peers():
    for values, crowded, want in (
            ([10, 10, 10, 8], False, [3]), ([10, 10, 10, 8.6], False, []),
            ([10, 12, 8, 11, 7], False, []),      # scattered: five deviations are more
            ([10, 10.1, 9.9, 10, 5], False, [4]), ([10, 10, 10, 5], True, []),
            ([10, 10, 10, 0.9], True, [3]), ([10, 5], False, []), ([], False, []),
            ([10, 10, 5], False, [2]), ([10, 10, 20], False, [])):
        got = sorted(judge.slow_ones(dict(enumerate(values)), crowded))
        check(got == want, f"{values}, crowded {crowded}: {got}")


def test_whom_a_message_names():
    died = ("process 2 (rank 2, pid 1) on host b died: its connection\n  seen by rank 0 host a: x\n"
            "  did not arrive: rank 3 host c pid 1: x\n")
    check(judge.blamed(died) == [(2, "b")], judge.blamed(died))
    waits = ("rank 1 host a: time-out after 2 s, waiting for rank 2\n"
             "  did not arrive: rank 2 host b pid 7: phase warmup\n")
    check(judge.blamed(waits) == [(2, "b")], judge.blamed(waits))
    check(judge.blamed("rank 1 host a: element 3 is wrong\n") == [], "a rank that tells")
    noise = "-" * 70 + "\nPrimary job  terminated normally, but\n\nrank 1 host a: really\n"
    check(judge.first_message(noise) == "rank 1 host a: really", judge.first_message(noise))


def test_reports_with_gaps(folder):
    times = {64: 1.0, 128: 2.0}
    for given, ranks, want in ((document(times), 2, None),
                               (document(times), 3, "2 ranks took part"),
                               (document({}), 2, "no rows"),
                               (document({64: None}), 2, "row without a figure"),
                               (document(times, pairs={"complete": False}), 2, "not all pairs"),
                               (document(times, results__0__in_place__nwrong=None), 2,
                                "not checked")):
        path = write(folder, "r.json", text.json.dumps(given))
        got = judge.gaps(acceptance.Path(path), given, ranks)
        check(got is None if want is None else want in str(got), f"{got}, wanted {want}")


class FakeRun:
    ranks = 2

    def __init__(self, *names):
        self.nodes = [hosts.Node(n, host) for n, host in names]
        self.accused = {}

    def good(self):
        return self.nodes

    def over(self):
        return False

    def accuse(self, stage, node, code, why):
        self.accused[node.name] = why


class FakeJob:
    """A job whose later launches take `again` us."""

    def __init__(self, node, again):
        self.nodes, self.again, self.starts = [node], again, 0

    def start(self, _seconds):
        self.starts += 1
        return judge.Outcome(0, document=document({1 << 20: self.again}))


def test_slow_nodes_run_again_beside_others():
    for first, again, want, starts in (
            ([100, 100, 101, 300], [100, 100, 101, 300], "d", [1, 1, 0, 1]),
            ([100, 100, 101, 300], [100, 100, 101, 101], "", [1, 1, 0, 1]),
            ([100, 100, 101, 300], [290, 300, 300, 300], "", [1, 1, 0, 1]),  # now all are
            ([100, 100, 101, 102], [100, 100, 101, 102], "", [0, 0, 0, 0]),
            ([100, 100, 101, 102, 100, 300, 200], [100, 100, 101, 102, 100, 300, 100], "f",
             [1, 1, 1, 0, 0, 1, 1])):
        run = FakeRun(*((name, name) for name in "abcdefg"[:len(first)]))
        jobs = {n.name: FakeJob(n, t) for n, t in zip(run.nodes, again)}
        documents = {n.name: document({1 << 20: t}) for n, t in zip(run.nodes, first)}
        acceptance_alone.retest(run, Stage("nodes"), jobs, documents, 1)
        check(sorted(run.accused) == list(want), f"{first} {again}: {run.accused}")
        got = [jobs[n.name].starts for n in run.nodes]
        check(got == starts, f"{first}: launches {got}")


def test_guilty_nodes():
    own = FakeRun(("a", "ha"), ("b", "hb"), ("c", "hc"), ("d", "hd"))
    same = FakeRun(("a", "h"), ("b", "h"), ("c", "h"), ("d", "h"))
    for run, code, names, want in ((own, 3, [(6, "hb")], "b"), (own, 4, [(0, "hd")], "d"),
                                   (same, 3, [(3, "h")], "b"), (own, 1, [(0, "ha")], ""),
                                   (own, 3, [], ""), (same, 3, [(99, "h")], ""),
                                   (own, 3, [(0, "ha"), (0, "hb"), (0, "hc")], "")):
        got = Together(run, None, "x", "x", None).guilty(judge.Outcome(code, names=names))
        check([n.name for n in got] == list(want), f"{code} {names}: {got}")


def test_units_of_pairs_are_nodes():
    nodes = FakeRun(("a", "ha"), ("b", "hb")).nodes
    for units, want in ((["hb", "ha"], "ba"), (["h", "h"], "ab")):
        got = owners(nodes, {"units": [{"host": h} for h in units]})
        check([got[u].name for u in (0, 1)] == list(want), f"{units}: {got}")
    unit = {"verdict": "good", "retested": False}
    bad, doubt, links = judge.find_bad({
        "suspects": [{"name": "x", "why": "slow: 1 of 9"}, {"name": "y - z", "why": "hangs"}],
        "units": [dict(unit, name="x", verdict="slow", retested=True), dict(unit, name="y"),
                  dict(unit, name="z"), dict(unit, name="w", verdict="unknown")],
        "links": [{"a": "y", "b": "z", "verdict": "hangs"}]})
    check(bad == {0: (5, "slow: 1 of 9, retested")}, bad)
    check(doubt == {1: "link y - z hangs", 2: "link y - z hangs", 3: "not tested"}, doubt)
    check(links == ["y - z hangs"], links)


# ---- the command ------------------------------------------------------------------------------

def test_refusals(folder):
    hosts_file = write(folder, "hosts", "n0:2\nn1:2\n")
    other = write(folder, "other", "n0:2\nn1:1\n")
    plain = write(folder, "plain", "n0\nn1\n")
    os.makedirs(os.path.join(folder, "full", "x"))
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        os.environ.pop(name, None)
    for said, *words in (
            ("unrecognized arguments: --bogus", "--bogus"),
            ("'foo': want some of ranks,nodes,pairs,all", "--stages", "foo"),
            ("argument --time-budget: invalid", "--time-budget", "0"),
            ("not allowed with argument --quick", "--quick", "--full"),
            ("--hosts /nonexistent: No such file", "--hosts", "/nonexistent"),
            (r"how many ranks has n0\? --ranks N", "--hosts", plain),
            ("n0 has 2 slots and n1 has 1", "--hosts", other),
            ("one rank alone has no peers", "-g", 1),
            ("--thresholds /nonexistent: no such file", "-g", 2, "--thresholds", "/nonexistent"),
            ("--baseline no: no such file, and none", "-g", 2, "--baseline", "no",
             "--baseline-dir", folder),
            ("which --stages leaves out", "-g", 2, "--baseline", "no", "--stages", "ranks"),
            (r"which nodes\? --hosts FILE", "--launcher", "srun"),
            ("--launcher nosuch: no such program", "--hosts", hosts_file, "--launcher", "nosuch"),
            ("one machine needs no list", "--hosts", hosts_file, "--launcher", "none"),
            ("there is no launcher on one machine", "--launcher-args", "-x", "-g", 2),
            ("--min-peak is for stage nodes", "-g", 2, "--min-peak", 50, "--stages", "pairs"),
            ("full: not empty", "-g", 2, "--out", os.path.join(folder, "full"))):
        call = Call("acceptance", "--backend", "host", *words)
        check(call.code == 2, f"{words}: exit {call.code}: {call.out}{call.err}")
        check(acceptance.hosts.re.search(said, call.err), f"{words}: no {said!r} in {call.err}")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
