#!/usr/bin/env bash
# Is the machine still right, and as fast, after a new driver, kernel, firmware or MPI?
#
#   driver-upgrade.sh before [options of collmark acceptance]
#   ... the upgrade, a reboot ...
#   driver-upgrade.sh after [the same options]
#
# `before` keeps figures of five launches, `after` holds as many against them. Exit code of `after`:
# 0 right and as fast, 5 slower (the rows are named), others as of collmark acceptance.
# UPGRADE_DIR is where both keep what they find; default: ~/collmark-upgrade.
set -u
program="${ACCEPTANCE_PROGRAM:-collmark}"
dir="${UPGRADE_DIR:-$HOME/collmark-upgrade}"
when="${1:-}"
case "$when" in
before | after) shift ;;
*)
    echo "usage: $(basename "$0") before|after [options of collmark acceptance]" >&2
    exit 2
    ;;
esac
mkdir -p "$dir" || exit 3
results="$dir/$when-$(date +%Y%m%d-%H%M%S)-$$"

if [[ $when == before ]]; then
    "$program" acceptance --launches 5 --time-budget 10m --out "$results" "$@" || exit
    exec "$program" baseline save "$results/all" --name upgrade --dir "$dir/baselines" --replace
fi
"$program" acceptance --launches 5 --time-budget 10m --out "$results" \
    --baseline upgrade --baseline-dir "$dir/baselines" "$@"
code=$?
if [[ -n "${GITHUB_STEP_SUMMARY:-}" && -f "$results/compare.md" ]]; then
    cat "$results/compare.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
