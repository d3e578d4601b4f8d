#!/usr/bin/env bash
# Do the tests of the kernels notice when a kernel is broken? Takes minutes, so only with MUTANTS
# set; `make mutants` sets it and builds what tests/sim/mutants.py needs.
set -u
cd "$(dirname "$0")/.." || exit 3

if [[ -z "${MUTANTS:-}" ]]; then
    echo "skip   mutants of the kernels: make mutants"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
exec python3 tests/sim/mutants.py "$@"
