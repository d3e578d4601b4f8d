#!/usr/bin/env bash
# What the Makefile makes of CUDA: found, left out, refused; the flags that results depend on; and
# what a driver then needs to run. Toolkits of several layouts are made up of stubs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

KIT="$WORK/kit"
MACHINE="$(gcc -dumpmachine)"
KERNEL="$(find src/kernels -name '*.cu' | sort | head -n 1)"

# kit LIBRARY: a toolkit with this runtime library; nvcc knows three compute capabilities
kit() {
    rm -rf "$KIT"
    mkdir -p "$KIT/bin" "$KIT/include" "$(dirname "$KIT/$1")"
    cat >"$KIT/bin/nvcc" <<'STUB'
#!/bin/sh
case "$*" in
*list-gpu-arch*) printf 'compute_80\ncompute_90\ncompute_100\n' ;;
*dryrun*) echo "#\$ TOP=$(dirname "$0")/.." >&2 ;;
*) exit 1 ;;
esac
STUB
    chmod +x "$KIT/bin/nvcc"
    touch "$KIT/include/cuda_runtime.h" "$KIT/$1"
}

# Without what calls this test, and without a toolkit of this machine.
makefile() {
    run 20 env -u CUDA -u SAN -u CUDA_HOME -u NVCC -u CUDA_ARCHS \
        -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s MPI=0 BUILDDIR="$WORK/b" "$@"
}

begin "a toolkit is found in every layout"
for library in lib64/libcudart.so lib/libcudart.so.13 "targets/$MACHINE/lib/libcudart.so" \
    targets/x86_64-linux/lib/libcudart.so; do
    [[ $library == targets/$MACHINE/* ]] && continue
    kit "$library"
    makefile config CUDA_HOME="$KIT"
    want_exit 0
    want_match "$OUT" "✓ CUDA +: $KIT/bin/nvcc for sm 80 90 100$"
    makefile -n CUDA_HOME="$KIT"
    want_match "$OUT" "$KIT/$library -Wl,-rpath,$KIT/${library%/*} -Wl,--enable-new-dtags"
done

begin "nvcc alone tells where its toolkit is"
kit lib64/libcudart.so
mkdir "$WORK/bin"
printf '#!/bin/sh\nexec %s/bin/nvcc "$@"\n' "$KIT" >"$WORK/bin/nvcc"
chmod +x "$WORK/bin/nvcc"
makefile config NVCC="$WORK/bin/nvcc"
want_match "$OUT" "✓ CUDA +: $WORK/bin/nvcc for sm 80 90 100$"

begin "an incomplete toolkit is left out, and said"
kit lib64/libcudart.so
rm "$KIT/lib64/libcudart.so"
makefile config NVCC="$WORK/bin/nvcc"
if ! compgen -G "/usr/lib/*/libcudart.so" >/dev/null; then
    want_match "$OUT" "✗ CUDA +: .*nvcc but no libcudart.so"
fi
makefile config NVCC="$WORK/none"
want_exit 0
want_match "$OUT" '✗ CUDA +: no nvcc: host backend only'

begin "what was asked for and is not there is an error with its remedy"
makefile CUDA=1 NVCC="$WORK/none"
want_failure
want_match "$ERR" 'CUDA=1 but no nvcc.*CUDA_HOME=.*NVCC='
makefile CUDA=yes
want_failure
want_match "$ERR" 'CUDA=yes: use auto, 0 or 1'

begin "without CUDA nothing of it is compiled or linked"
kit lib64/libcudart.so
makefile -n CUDA=0 CUDA_HOME="$KIT"
want_exit 0
want_no_match "$OUT" 'nvcc|_cuda\.o|\.cu\.o|cudart'
want_match "$OUT" "gcc -o $WORK/b/all_reduce_perf|-o $WORK/b/all_reduce_perf"

begin "compute capabilities"
makefile -n CUDA_HOME="$KIT" CUDA_ARCHS=90
want_match "$OUT" 'arch=compute_90,code=sm_90 .*arch=compute_90,code=compute_90'
want_no_match "$OUT" 'sm_80|sm_100'
makefile -n CUDA_HOME="$KIT" CUDA_ARCHS='90 120'
want_match "$OUT" 'code=sm_90 .*code=sm_120 .*arch=compute_120,code=compute_120'

begin "flags that results depend on"
makefile -n CUDA_HOME="$KIT"
for flag in --fmad=false '-Xptxas --warn-on-spills,--warn-on-local-memory-usage' \
    '-Werror all-warnings' '-std=c[+][+]17'; do
    want_match "$OUT" "nvcc .*$flag .*$KERNEL"
done
want_no_match "$OUT" 'use_fast_math|-rdc'

begin "kernels that spill do not compile"
if command -v nvcc >/dev/null; then
    # The command that make would run, on another file.
    run 20 env -u CUDA -u SAN -u MAKEFLAGS make -n CUDA_ARCHS=90 BUILDDIR="$WORK/real" \
        "$WORK/real/obj/$KERNEL.o"
    command="$(grep -o '[^ ]*nvcc .* -c -o ' "$OUT")"
    mkdir -p "$WORK/real/obj/src/kernels"
    cat >"$WORK/spill.cu" <<'CODE'
extern "C" __global__ void spill(int *p)
{
    int a[64];
    for (int i = 0; i < 64; i++)
        a[i] = p[i];
    for (int i = 0; i < 64; i++)
        p[i] = a[p[i] & 63];
}
CODE
    echo 'extern "C" __global__ void fine(int *p) { *p = 1; }' >"$WORK/fine.cu"
    # shellcheck disable=SC2086
    run 60 $command "$WORK/o" "$WORK/spill.cu"
    want_failure
    want_match "$ERR" 'local memory|stack'
    # shellcheck disable=SC2086
    run 60 $command "$WORK/o" "$WORK/fine.cu"
    want_exit 0
else
    skip "no nvcc"
fi

begin "a driver needs the shared runtime, finds it, and no C++ library"
if ldd "$(program all_reduce)" | grep -q libcudart; then
    run 10 readelf -d "$(program all_reduce)"
    want_match "$OUT" 'NEEDED.*libcudart\.so\.[0-9]+'
    want_match "$OUT" 'RUNPATH.*/'
    want_no_match "$OUT" 'NEEDED.*libstdc'
    run 10 nm "$(program all_reduce)"
    want_match "$OUT" ' [DRV] cm_backend_cuda$'
else
    skip "built without CUDA"
fi

finish
