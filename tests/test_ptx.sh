#!/usr/bin/env bash
# Static checks of the CUDA kernels: the dialect in their source, the instructions in nvcc's PTX,
# spills and local memory in ptxas. Every gate is shown what it must refuse. Without nvcc only the
# source is checked. COLLMARK_SLOW: all kernels, and a cross-section on more architectures.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ptx/nvcc.sh
. tests/ptx/nvcc.sh

TABLE=tests/ptx/accessors.golden
HEADER=src/kernels/cm_device.h
OTHER_ARCHS=(80 100 120)

gate() {
    run 20 "$PYTHON" tests/ptx/gates.py "$@"
}

want_clean() {
    want_exit 0
    want_silent "$OUT"
    want_silent "$ERR"
}

want_found() { # want_found REGEX
    want_exit 1
    want_silent "$ERR"
    want_match "$OUT" "$1"
}

assemble() { # assemble FILE.cu ARCH: ptxas with its warnings as errors
    run 120 "$NVCC" -cubin "${FLAGS[@]}" -arch="sm_$2" -Werror all-warnings \
        -Xptxas --warn-on-spills,--warn-on-local-memory-usage -o "$WORK/cubin" "$1"
}

# Files in the kernels' dialect; cm_device.h is what it is made of.
mapfile -t DIALECT < <(grep -lE '\bCM_(DEV|FN|KERNEL)\b' src/kernels/*.{cu,cuh,h} 2>/dev/null |
    grep -v "^$HEADER$")

# ---- the source ------------------------------------------------------------------------------

refuse_source() { # refuse_source RULE TEXT
    printf '%s\n' "$2" >"$WORK/bad.cu"
    gate source "$WORK/bad.cu"
    want_found "^$WORK/bad.cu:1: $1: "
}

begin "kernels keep to the dialect"
if [[ ${#DIALECT[@]} == 0 ]]; then
    bad "no file in the dialect was found"
else
    gate source "${DIALECT[@]}"
    want_clean
fi

begin "the dialect's gate refuses what is outside"
refuse_source asm 'asm volatile("membar.sys;");'
refuse_source volatile 'volatile int *p;'
refuse_source barrier '__syncthreads();'
refuse_source barrier '__threadfence_system();'
refuse_source warp 'x = __shfl_xor_sync(~0u, x, 1);'
refuse_source atomic 'atomicAdd_system(p, 1);'
refuse_source atomic 'cuda::atomic_ref<int> r(*p);'
refuse_source position 'int i = threadIdx.x;'
refuse_source qualifier '__device__ int counter;'
refuse_source cached 'x = __ldg(p);'
refuse_source library 'printf("%d", x);'
refuse_source launch 'k<<<1, 1>>>(a);'
refuse_source static 'static int calls;'
refuse_source flag 'while (line->seq < want);'
refuse_source flag 'if (cm_ld(&w->value) == 1) {'
refuse_source flag 'cm_st(&line->seq, 1);'

begin "the dialect's gate accepts what is inside"
cat >"$WORK/good.cu" <<'EOF'
/* asm, __syncthreads() and volatile in a comment */
cm_st_release_sys(&line->seq, 1); // threadIdx
return &(cm_at<cm_gpu_word>(area, words_at) + index)->value;
static CM_FN bits store(acc a) { return (bits)a; }
#ifndef CM_SIM
void launch(void) { static int first; printf("%d", threadIdx.x); }
#if X
volatile int x;
#endif
#endif
EOF
gate source "$WORK/good.cu"
want_clean
echo '__syncthreads();' >>"$WORK/good.cu"
gate source "$WORK/good.cu"
want_found ":11: barrier: "

begin "every device function has a row in the table"
gate covered "$TABLE" "$HEADER"
want_clean
{
    cat "$HEADER"
    echo 'CM_DEV uint64_t cm_ld_volatile(const uint64_t *p)'
} >"$WORK/more.h"
gate covered "$TABLE" "$WORK/more.h"
want_found "covered: cm_ld_volatile "

# ---- the PTX ---------------------------------------------------------------------------------

refuse_ptx() { # refuse_ptx RULE STATEMENT
    printf '.visible .entry k(\n)\n{\n\t%s\n}\n' "$2" >"$WORK/bad.ptx"
    gate ptx "$TABLE" "$WORK/bad.ptx"
    want_found "^$WORK/bad.ptx:4: $1: "
}

begin "the PTX gate refuses what is forbidden"
refuse_ptx local '.local .align 16 .b8 __local_depot0[64];'
refuse_ptx local 'ld.local.u32 %r1, [%rd1];'
refuse_ptx call 'call.uni (retval0), f, (param0);'
refuse_ptx fence '@%p1 membar.sys;'
refuse_ptx fence 'fence.acq_rel.sys;'
refuse_ptx volatile 'ld.volatile.global.u64 %rd1, [%rd2];'
refuse_ptx non-coherent 'ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];'
refuse_ptx inexact 'div.approx.f32 %f1, %f2, %f3;'
refuse_ptx inexact 'add.ftz.f32 %f1, %f2, %f3;'
refuse_ptx contraction 'fma.rn.f32 %f1, %f2, %f3, %f4;'
refuse_ptx memory 'ld.acquire.gpu.global.u64 %rd1, [%rd2];'
refuse_ptx memory 'st.release.cta.global.u64 [%rd1], %rd2;'
refuse_ptx memory '@!%p1 shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;'
refuse_ptx memory 'barrier.sync 1, 64;'
refuse_ptx memory 'atom.global.cas.b32 %r1, [%rd1], %r2, %r3;'

begin "the PTX gate accepts what kernels do"
cat >"$WORK/good.ptx" <<'EOF'
.visible .entry k(
    .param .align 8 .b8 k_param_0[24]
)
{
    .shared .align 8 .b8 _ZZ1kE1s[16];
    ld.param.v2.u64 {%rd1, %rd2}, [k_param_0];
$L__BB0_1:
    ld.global.v2.f64 {%fd1, %fd2}, [%rd1];
    @%p1 st.shared.u8 [_ZZ1kE1s+4], %rs1;
    ld.u32 %r1, [%rd2]; // membar.sys
    bar.sync     0;
    ret;
}
    .section    .debug_str
    { .b8 99,97,108,108,0 }
EOF
gate ptx "$TABLE" "$WORK/good.ptx"
want_clean

if [[ -z "$NVCC" ]]; then
    begin "what nvcc makes of the kernels"
    skip "no nvcc"
    finish
fi

begin "each device function is the instruction that the table says"
for arch in 90 ${SLOW:+"${OTHER_ARCHS[@]}"}; do
    ptx tests/ptx/accessors.cu "$arch"
    gate golden "$TABLE" "$WORK/accessors.ptx"
    want_clean
done

# One header with a mistake in each accessor: the table misses none of them.
begin "a weaker, narrower or volatile accessor is noticed"
mkdir -p "$WORK/src/kernels"
sed -e 's/ld\.acquire\.sys/ld.relaxed.sys/' -e 's/st\.release\.sys/st.release.gpu/' \
    -e 's/ld\.relaxed\.sys\.global\.u32/ld.volatile.global.u32/' \
    -e 's/st\.relaxed\.sys\.global\.u64/st.global.u64/' \
    -e 's/ld\.global\.v4\.u32 {%0, %1, %2, %3}, \[%4\]/ld.global.u32 %0, [%4]/' \
    -e 's/atom\.relaxed\.gpu/atom.relaxed.cta/' -e 's/__syncthreads()/__syncwarp()/' \
    -e 's/blockIdx\.y/blockIdx.x/' -e 's/nanosleep\.u32 %0/mov.u32 %0, %0/' \
    "$HEADER" >"$WORK/$HEADER"
run 60 "$NVCC" -ptx -I"$WORK/src" "${FLAGS[@]}" -arch=sm_90 -o "$WORK/mutant.ptx" \
    tests/ptx/accessors.cu
want_exit 0
gate golden "$TABLE" "$WORK/mutant.ptx"
for name in ld_acquire_sys st_release_sys ld_relaxed_sys st_ll ld16 add_relaxed_gpu bar bid_y \
    pause_ns; do
    want_found "^golden_cm_$name: golden: "
done

check_kernels() { # check_kernels FILE.cu ARCH
    begin "PTX of $1, sm_$2"
    ptx "$1" "$2"
    gate ptx "$TABLE" "$WORK/$(basename "$1" .cu).ptx"
    want_clean
}

check_kernels tests/ptx/kernels.cu 90
if [[ -n "$SLOW" ]]; then
    for arch in "${OTHER_ARCHS[@]}"; do
        check_kernels tests/ptx/kernels.cu "$arch"
    done
    while read -r file; do
        check_kernels "$file" 90
    done < <(grep -lE 'CM_(EXEC_)?KERNEL' src/kernels/*.cu)
fi

# ---- ptxas -----------------------------------------------------------------------------------

begin "ptxas's gate refuses spills and local memory"
cat >"$WORK/local.cu" <<'EOF'
extern "C" __global__ void k(unsigned *p)
{
    unsigned a[32] = {0};
    for (int i = 1; i < 99; i++)
        a[p[i] % 32] += i;
    p[0] = a[p[99] % 32];
}
EOF
assemble "$WORK/local.cu" 90
want_failure
want_match "$ERR" "[Ll]ocal memory"
cat >"$WORK/spill.cu" <<'EOF'
extern "C" __global__ void __launch_bounds__(1024, 2) k(double *p)
{
    double a[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        a[i] = p[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++)
        p[i * 1024 + threadIdx.x] = a[i] * a[63 - i];
}
EOF
assemble "$WORK/spill.cu" 90
want_failure
want_match "$ERR" "[Ss]pill"

# The build holds every kernel to this gate, for every architecture.
begin "ptxas's gate accepts a kernel without them"
assemble tests/ptx/accessors.cu 90
want_exit 0
finish
