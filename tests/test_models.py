#!/usr/bin/env python3
"""Proofs of the kernels' flag protocols under the PTX memory model, within stated bounds.

Every file of tests/sim/models but litmus.py is a protocol:

  build(mutant, **variant)   its program
  SAFE, UNSAFE               {text: variant} that must be proved, must be refuted
  SURVIVORS                  {mutant: reason} weakenings that are harmless; all others of the
                             program's labelled synchronisation must be refuted

The litmus tests hold the checker itself against the model's text.
"""

import importlib
import pathlib
import sys

SIM = pathlib.Path(__file__).resolve().parent / "sim"
sys.path[:0] = [str(SIM), str(SIM / "models")]
sys.dont_write_bytecode = True

from ptxmm import fault, outcomes  # noqa: E402
from ptxprog import weakenings  # noqa: E402

counts = {True: 0, False: 0}


def verdict(ok, name, detail):
    counts[ok] += 1
    print(f"{'ok    ' if ok else 'not ok'} {name}: {detail}")


def check_litmus(tests):
    for name, program, outcome, allowed in tests:
        got = tuple(sorted(outcome.items())) in outcomes(program)
        verdict(got == allowed, f"litmus {name}", "allowed" if got else "forbidden")


def check_safe(name, program):
    text, count = fault(program)
    # A program without executions is safe for the wrong reason.
    verdict(not text and count > 0, name, text or f"safe in all {count} executions")


def check_unsafe(name, program):
    text, _ = fault(program)
    verdict(text is not None, name, text or "no fault was found")


def check_model(model):
    name = model.__name__
    check_safe(name, model.build())
    for text, variant in model.SAFE.items():
        check_safe(f"{name}, {text}", model.build(**variant))
    for text, variant in model.UNSAFE.items():
        check_unsafe(f"{name}, {text}", model.build(**variant))
    mutants = list(weakenings(model.build()))
    for mutant in mutants:
        check = check_safe if mutant in model.SURVIVORS else check_unsafe
        check(f"{name}, {mutant[0]}: {mutant[1]}", model.build(mutant=mutant))
    unknown = [m for m in model.SURVIVORS if m not in mutants]
    verdict(not unknown, f"{name}, survivors exist", unknown or len(model.SURVIVORS))


def main():
    names = sorted(p.stem for p in (SIM / "models").glob("*.py"))
    for name in names:
        module = importlib.import_module(name)
        if name == "litmus":
            check_litmus(module.TESTS)
        else:
            check_model(module)
    print(f"{counts[True]} passed, {counts[False]} failed, 0 skipped")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
