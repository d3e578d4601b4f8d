#!/usr/bin/env bash
# Is this machine, or cluster, fit for use? Each rank by itself, each node, pairs, all together, and
# one verdict. The same as `collmark acceptance`, which `make install` installs.
#
#   scripts/acceptance.sh                              this machine, at most 2 minutes
#   scripts/acceptance.sh --full --hosts FILE -g 8     the nodes of a hostfile, at most 30 minutes
#   scripts/acceptance.sh --help
exec "$(dirname "$0")/collmark" acceptance "$@"
