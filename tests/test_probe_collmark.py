#!/usr/bin/env python3
"""scripts/collmark with launches of unlike placement or cache mode: like is held against like."""
import json
import os
import sys

sys.dont_write_bytecode = True

from collmark_rig import (  # noqa: E402
    TIMES, Call, check, document, folder_of, launches, read, run_tests)


def placed(*tags):
    """One launch per tag; those that are far take three times as long."""
    return [document({s: t * (3 if tag == "far" else 1) * (1 + i / 500) for s, t in TIMES.items()},
                     placement={"tag": tag, "why_not": None, "before": None, "after": None})
            for i, tag in enumerate(tags)]


def folders(folder, old, new):
    return (folder_of(os.path.join(folder, "old"), placed(*old)),
            folder_of(os.path.join(folder, "new"), placed(*new)))


NEAR, FAR, MOVED = ["near"] * 3, ["far"] * 3, ["moved"] * 3


def test_like_is_compared_with_like(folder):
    for name, old, new, said in (
            ("one", NEAR, NEAR + FAR,
             "NEW: placement near: 3 launches of 6 count, left out: 3 far"),
            ("other", FAR + MOVED, NEAR + FAR + ["far"],
             r"OLD: placement far: 3 launches of 6 count, left out: 3 moved"),
            ("moved", MOVED, MOVED + NEAR, "left out: 3 near"),
            ("most", NEAR * 2 + FAR, NEAR * 2 + FAR, "placement near: 6 launches of 9")):
        a, b = folders(os.path.join(folder, name), old, new)
        Call("compare", a, b).expect(0, r"^as fast as before: 8 same$", rf"^note +{said}|{said}")


def test_unlike_is_refused(folder):
    a, b = folders(folder, NEAR, FAR)
    Call("compare", a, b).expect(2, "placement: near -> far")
    Call("compare", a, b, "--force").expect(5, "^FORCED +placement: near -> far", "8 regressed")


def test_too_few_of_a_kind_are_not_filled_up(folder):
    a, b = folders(folder, NEAR, ["near", "near", "far", "far"])
    Call("compare", a, b).expect(2, "^not compared", "NEW has figures of 2 launches",
                                 "left out: 2 far")


def test_who_knows_no_placement_is_compared_with_all(folder):
    old = launches(os.path.join(folder, "old"), TIMES)
    new = folder_of(os.path.join(folder, "new"), placed(*NEAR))
    Call("compare", old, new).expect(0, "^differs +placement: unknown -> near")
    mixed = folder_of(os.path.join(folder, "mixed"), placed("near", "near", "mixed", "near"))
    Call("compare", old, mixed).expect(0, r"launches of unlike placement \(near . mixed\) count")


def test_a_baseline_is_of_one_placement(folder):
    a, b = folders(folder, FAR + NEAR + ["near"], NEAR)
    Call("baseline", "save", a, "--dir", folder, "--name", "x").expect(0)
    kept, = [os.path.join(d, "x.json") for d, _, files in os.walk(folder) if "x.json" in files]
    doc = json.loads(read(kept))
    check(doc["environment"]["placement"] == ["near"] and doc["launches"] == 4, read(kept))
    Call("compare", kept, b).expect(0, "8 same")
    far = folder_of(os.path.join(folder, "far"), placed(*FAR))
    Call("compare", kept, far).expect(2, "placement: near -> far")


def test_cache_modes_are_rows_of_their_own(folder):
    hot = launches(os.path.join(folder, "hot"), TIMES)
    cold = launches(os.path.join(folder, "cold"), TIMES, config__cache="cold")
    Call("compare", hot, cold).expect(2, "cache: hot -> cold")
    Call("compare", hot, cold, "--force").expect(0, "^FORCED +cache: hot -> cold")
    docs = [document(TIMES, config__cache=c) for c in ("hot", "touched") for _ in range(3)]
    both = folder_of(os.path.join(folder, "both"), docs)
    Call("compare", both, both).expect(0, "16 same", "^same +all_reduce float sum cache touched, ")
    Call("baseline", "save", hot, "--dir", folder, "--name", "x").expect(0)
    kept, = [os.path.join(d, "x.json") for d, _, files in os.walk(folder) if "x.json" in files]
    old = read(kept).replace(', "cache": "hot"', "").replace('"cache": "hot", ', "").replace(
        '  "cache": ["hot"],\n', "")
    check('"cache"' not in old, old)
    with open(kept, "w", encoding="utf-8") as f:  # as programs wrote it that had no such option
        f.write(old)
    Call("compare", kept, hot).expect(0, "8 same")
    Call("compare", kept, cold).expect(2, "cache: hot -> cold")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
