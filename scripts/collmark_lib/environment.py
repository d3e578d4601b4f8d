"""Where and how launches were made: what must agree before figures are compared, and what may
differ but has to be said, since it may be what is being tested.
"""
from .common import slug

# Without agreement on these, a ratio of figures means nothing. "key": the rows carry it too, so
# that a sample may hold several, and two samples must share one.
HARD = {
    "backend": "one", "device": "one", "processes": "one", "oversubscribed": "one",
    "shared_gpus": "one", "staged": "one", "time": "one",
    "ranks": "key", "nodes": "key", "algorithm asked": "key", "wire asked": "key",
    "cache": "key",
}

# Options that change what is measured, not how fast it is.
HARD_OPTIONS = frozenset(
    "average blocking agg_iters cudagraph stream_null report_cputime unalign per_iter_timing "
    "inject split oversubscribe check_every alltoallv_spread alltoallv_matrix_file "
    "alltoallv_matrix_scale".split())


def is_hard(name):
    return name in HARD or (name.startswith("option ")
                            and name[len("option "):] in HARD_OPTIONS)


def difference_text(name, old, new):
    return f"{name}: {' | '.join(old) or 'none'} -> {' | '.join(new) or 'none'}"


def differences(old, new):
    """(hard, soft): texts of what differs between the facts of two samples. Of options that one
    version of the program lacks, and of the machine that started the launches, one side may know
    nothing; the former are told in one line, the latter are no difference."""
    hard, soft, alone = [], [], []
    for name in sorted(set(old) | set(new)):
        a, b = old.get(name, []), new.get(name, [])
        if a == b or (name.startswith("host ") and not (a and b)):
            continue
        if HARD.get(name) == "key" and set(a) & set(b):
            continue
        if name.startswith("option ") and not (a and b):
            alone.append(f"{name[len('option '):]}={' | '.join(a or b)}")
        else:
            (hard if is_hard(name) else soft).append(difference_text(name, a, b))
    if alone:
        soft.append(f"options that one side does not have: {', '.join(alone)}")
    return hard, soft


def machine_name(facts):
    """Folder of a machine's baselines: model of CPU or GPU, ranks and nodes."""
    ranks, nodes = ("-".join(sorted(facts[k], key=int)) for k in ("ranks", "nodes"))
    return slug(f"{'+'.join(facts['device'])}-{ranks}r-{nodes}n")
