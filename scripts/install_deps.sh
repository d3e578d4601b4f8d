#!/usr/bin/env bash
# Install with apt what is missing, and nothing else.
#
#   scripts/install_deps.sh build     compiler, make, cJSON, headers of libibverbs
#   scripts/install_deps.sh mpi       also Open MPI
#   scripts/install_deps.sh test      also MPICH, clang with its runtimes, linters, jsonschema,
#                                     xmllint, SciPy
#   scripts/install_deps.sh report    matplotlib, for the charts of `collmark report`
#   scripts/install_deps.sh browser   also Chromium and tidy, to test its pages
#   scripts/install_deps.sh ib        build, and a virtual machine with RDMA devices (make check-ib)
#   scripts/install_deps.sh cuda      build, and NVIDIA's compiler in .cuda/ if there is no nvcc
#
# A thing that works already is never touched. Debian 12, Ubuntu 22.04 and newer. Distributions
# carry no recent nvcc, so it comes from PyPI: compiler and runtime as NVIDIA publishes them there
# (150 MB, under NVIDIA's licence), for this folder only. The driver of a GPU is not installed.
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
    printf '#include <infiniband/verbs.h>\nint main(void){return IBV_QPS_RESET;}' |
        compiles gcc || missing+=(libibverbs-dev)
}

need_mpi() {
    need mpicc libopenmpi-dev
    need mpirun openmpi-bin
}

need_test() {
    need g++ g++
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
    need xmllint libxml2-utils
    need ip iproute2
    need nsenter util-linux
    python3 -c 'import scipy' 2>/dev/null ||
        /usr/bin/python3 -c 'import scipy' 2>/dev/null || missing+=(python3-scipy)
    python3 -c 'import jsonschema' 2>/dev/null ||
        /usr/bin/python3 -c 'import jsonschema' 2>/dev/null || missing+=(python3-jsonschema)
}

need_report() {
    need python3 python3
    python3 -c 'import matplotlib' 2>/dev/null ||
        /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || missing+=(python3-matplotlib)
}

need_browser() {
    command -v chromium >/dev/null 2>&1 || need chromium-browser chromium
    need tidy tidy
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
        compiles clang -fsanitize=fuzzer,address &&
        echo 'int main(void){return 0;}' | compiles clang -fsanitize=thread && return
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

# The parts of the toolkit that `make` uses; it looks into .cuda/ by itself.
install_cuda() {
    local part nvcc parts=()

    nvcc="$(command -v nvcc || compgen -G '/usr/local/cuda/bin/nvcc' ||
        compgen -G '.cuda/nvidia/cu*/bin/nvcc')" || true
    if [[ -n "$nvcc" ]]; then
        echo "nvcc: $nvcc" >&2
        return
    fi
    for part in nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime \
        nvidia-cuda-cccl; do
        parts+=("$part==13.0.*")
    done
    echo "installing into .cuda/: ${parts[*]}" >&2
    # In a container root is the only user there is: no warning about that.
    PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
        python3 -m pip install -q --no-deps --target .cuda "${parts[@]}" >&2
}

cd "$(dirname "$0")/.."
case "$want" in
build | ib) need_build ;;
mpi) need_build && need_mpi ;;
test) need_build && need_test ;;
report) need_report ;;
browser) need_report && need_browser ;;
cuda)
    need_build
    need g++ g++
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
    ;;
*)
    echo "usage: $0 build|mpi|test|report|browser|ib|cuda" >&2
    exit 2
    ;;
esac
install_missing
if [[ "$want" == cuda ]]; then
    install_cuda
elif [[ "$want" == ib ]]; then
    scripts/rdma-vm --install
elif [[ "$want" == test ]]; then
    need_clang_format
    need_clang_rt
    install_missing
fi
