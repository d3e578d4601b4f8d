#!/usr/bin/env bash
# Install with apt what is missing, and nothing else.
#
#   scripts/install_deps.sh build     compiler, make, cJSON
#   scripts/install_deps.sh mpi       also Open MPI
#   scripts/install_deps.sh test      also MPICH, clang with its runtimes, linters, jsonschema
#
# A thing that works already is never touched. Debian 12, Ubuntu 22.04 and newer.
set -euo pipefail

want="${1:-build}"
missing=()

need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}

compiles() { # compiles COMPILER FLAGS... <source
    local compiler="$1" out ok=0
    shift
    out="$(mktemp)"
    "$compiler" -x c - -x none -o "$out" "$@" 2>/dev/null || ok=1
    rm -f "$out"
    return $ok
}

first_known() { # the first of these packages that apt can install, else the last
    local p
    for p in "$@"; do
        apt-cache show "$p" >/dev/null 2>&1 && break
    done
    echo "$p"
}

need_build() {
    need make make
    need gcc gcc
    need pkg-config pkg-config
    echo 'int main(void){return 0;}' | compiles gcc || missing+=(gcc libc6-dev)
    printf '#include <cjson/cJSON.h>\nint main(void){return cJSON_CreateNull()==0;}' |
        compiles gcc -lcjson || missing+=(libcjson-dev)
}

need_mpi() {
    need mpicc libopenmpi-dev
    need mpirun openmpi-bin
}

need_test() {
    need mpicc.openmpi libopenmpi-dev
    need mpirun.openmpi openmpi-bin
    need mpicc.mpich libmpich-dev
    need mpirun.mpich mpich
    need clang clang
    need cppcheck cppcheck
    need shellcheck shellcheck
    need timeout coreutils
    need awk mawk
    need git git
    python3 -c 'import jsonschema' 2>/dev/null ||
        /usr/bin/python3 -c 'import jsonschema' 2>/dev/null || missing+=(python3-jsonschema)
}

# The format of the tree is that of release 14; elsewhere any release serves the other tools.
need_clang_format() {
    command -v clang-format-14 >/dev/null 2>&1 && return
    [[ "$(clang-format --version 2>/dev/null)" == *" version 14."* ]] && return
    missing+=("$(first_known clang-format-14 clang-format)")
}

# Which package holds clang's runtimes depends on the release, so ask after clang is there.
need_clang_rt() {
    local major
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n){(void)d;(void)n;return 0;}' |
        compiles clang -fsanitize=fuzzer,address && return
    major="$(clang -dumpversion | cut -d. -f1)"
    missing+=("$(first_known "libclang-rt-$major-dev" "libclang-common-$major-dev")")
}

install_missing() {
    local -a root=()

    [[ ${#missing[@]} == 0 ]] && return
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing: ${missing[*]} (names of Debian packages)." >&2
        echo "There is no apt-get here: install them with your system's package manager." >&2
        exit 3
    fi
    if [[ "$(id -u)" != 0 ]]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2
            exit 3
        fi
        root=(sudo)
    fi
    echo "installing: ${missing[*]}" >&2
    "${root[@]}" apt-get update -qq >&2 || echo "apt-get update failed; trying to go on" >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
    missing=()
}

case "$want" in
build) need_build ;;
mpi) need_build && need_mpi ;;
test) need_build && need_test ;;
*)
    echo "usage: $0 build|mpi|test" >&2
    exit 2
    ;;
esac
install_missing
if [[ "$want" == test ]]; then
    need_clang_format
    need_clang_rt
    install_missing
fi
