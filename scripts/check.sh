#!/usr/bin/env bash
# Install what the tests need, build, run them. Ends with "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
make -s -j "$(nproc)" all tests
exec make -s check
