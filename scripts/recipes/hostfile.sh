#!/usr/bin/env bash
# Acceptance of the hosts in a file, by mpirun and ssh:
#
#   hostfile.sh FILE [options of collmark acceptance]
#
# FILE has a host per line, with its ranks: "node1 slots=8". Program and drivers have to be at the
# same path on all of them. Hosts that passed go to FILE.good, in the form of FILE, ready for the
# next job; what is wrong with the others is printed. The exit code is the verdict.
set -u
program="${ACCEPTANCE_PROGRAM:-collmark}"
if [[ $# == 0 || ! -f "$1" ]]; then
    echo "usage: $(basename "$0") FILE [options of collmark acceptance]" >&2
    exit 2
fi
file="$1"
shift
results="$PWD/collmark-acceptance-$(date +%Y%m%d-%H%M%S)-$$"

"$program" acceptance --hosts "$file" --out "$results" "$@"
code=$?

if [[ -f "$results/hosts/passed" ]]; then
    # The lines of FILE whose host, up to a blank or colon, is in the list.
    awk 'NR == FNR { good[$1]; next } { name = $1; sub(/:.*/, "", name) } name in good' \
        "$results/hosts/passed" "$file" >"$file.good"
    cat "$results/hosts/reasons"
fi
exit "$code"
