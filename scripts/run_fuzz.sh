#!/usr/bin/env bash
# Run each libFuzzer program for FUZZ_SECONDS (10). A finding is kept in build-fuzz/findings.
#
#   scripts/run_fuzz.sh PROGRAM...
#
# What the parsers say about bad input is dropped (-close_fd_mask=3); a finding still shows.
# Seeds come from fuzz/corpus/<name>, if there are any; new inputs are not kept.
set -u
cd "$(dirname "$0")/.." || exit 3

seconds="${FUZZ_SECONDS:-10}"
work="$(mktemp -d)" || exit 3
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

for program in "$@"; do
    name="$(basename "$program")"
    findings="$(dirname "$program")/../findings"
    corpus="$work/$name"
    mkdir -p "$corpus" "$findings"
    seeds=("$corpus")
    [[ -d "fuzz/corpus/${name#fuzz_}" ]] && seeds+=("fuzz/corpus/${name#fuzz_}")
    if "$program" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 \
        -verbosity=0 -close_fd_mask=3 -artifact_prefix="$findings/$name-" \
        "${seeds[@]}" >"$work/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "  ok   $name"
    else
        failed=$((failed + 1))
        sed 's/^/    | /' "$work/$name.log" | tail -n 40
        echo "  FAIL $name (input kept in $findings)"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
