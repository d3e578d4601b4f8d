#!/usr/bin/env bash
# The kernels as nvcc compiled them, run on the CPU (tests/sim/ptx2c.py): the same bits as from the
# source compiled for the CPU. COLLMARK_SLOW: under ThreadSanitizer, and in whole drivers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ptx/nvcc.sh
. tests/ptx/nvcc.sh

[[ -n "$NVCC" ]] || skip_all "no nvcc"
CUDA_INCLUDE="$(dirname "$(realpath "$NVCC")")/../include"
SIM_FLAGS=(-std=c++17 -fPIC -w -ffp-contract=off -DCM_SIM -Itests/sim -Isrc
    -isystem "$CUDA_INCLUDE")
RUNTIME_FLAGS=(-fno-exceptions -fno-rtti -fno-tree-loop-distribute-patterns)
CXX="${CXX:-g++}"
CLANGXX="${CLANGXX:-clang++}"
command -v "$CXX" >/dev/null || skip_all "no $CXX"

refuse_translation() { # refuse_translation STATEMENT REGEX
    printf '%s\n' '.entry k(' '.param .align 8 .b8 p[8]' ')' '{' '.reg .b32 %r<4>;' "$1" '}' \
        >"$WORK/bad.ptx"
    run 10 "$PYTHON" tests/sim/ptx2c.py "$WORK/bad.ptx"
    want_exit 1
    want_silent "$OUT"
    want_match "$ERR" "^$WORK/bad.ptx:6: $2"
}

begin "the translator names what it does not know"
refuse_translation 'lop3.b32 %r1, %r2, %r3, %r1, 150;' 'opcode lop3.b32'
refuse_translation 'ld.acquire.cluster.global.u64 %r1, [%r2];' 'opcode ld.acquire.cluster'
refuse_translation 'bar.sync 1, 64;' 'opcode bar.sync'
refuse_translation 'setp.foo.s32 %r1, %r2, %r3;' 'opcode setp.foo'
refuse_translation 'cvt.rni.f32.f32 %r1, %r2;' 'opcode cvt.rni'
refuse_translation 'add.s32 %r1, %r2, nowhere;' 'operand nowhere'
refuse_translation 'add.f16 %r1, %r2, %r3;' 'type .f16'
refuse_translation '.local .b8 depot[8];' 'directive .local'

translate() { # translate PTX CC
    run 60 "$PYTHON" tests/sim/ptx2c.py "$1"
    want_exit 0
    cp "$OUT" "$2"
}

library() { # library NAME SOURCE...: $WORK/NAME.so of C++ or CUDA sources
    run 300 "$CXX" "${SIM_FLAGS[@]}" -shared -o "$WORK/$1.so" -x c++ "${@:2}"
    want_exit 0
}

begin "the same bits from nvcc's PTX and from the source on the CPU"
ptx tests/ptx/kernels.cu 90
translate "$WORK/kernels.ptx" "$WORK/kernels.cc"
ptx tests/ptx/ops.cu 90
translate "$WORK/ops.ptx" "$WORK/ops.cc"
library ptx "$WORK/kernels.cc" "$WORK/ops.cc"
library shim tests/ptx/kernels.cu tests/ptx/ops.cu
for file in src/base/gpu.c src/base/status.c; do
    run 60 "${CC:-gcc}" -std=gnu11 -Isrc -c -o "$WORK/$(basename "$file").o" "$file"
    want_exit 0
done
run 120 "$CXX" "${SIM_FLAGS[@]}" "${RUNTIME_FLAGS[@]}" -O1 -r -o "$WORK/runtime.o" -nostdlib \
    tests/sim/cmsim*.cc
want_exit 0
run 120 "$CXX" "${SIM_FLAGS[@]}" -O1 -rdynamic -o "$WORK/differ" tests/ptx/differ.cc "$WORK"/*.o \
    -ldl -pthread
want_exit 0
run 60 "$WORK/differ" "$WORK/shim.so" "$WORK/ptx.so"
want_exit 0
want_silent "$ERR"

begin "a wrong instruction is noticed"
sed 's/sub\.rn\.f32/add.rn.f32/' "$WORK/ops.ptx" >"$WORK/wrong.ptx"
translate "$WORK/wrong.ptx" "$WORK/wrong.cc"
library wrong "$WORK/wrong.cc"
run 60 "$WORK/differ" "$WORK/shim.so" "$WORK/wrong.so"
want_exit 1
want_match "$ERR" 'operation 25 of '

[[ -n "$SLOW" ]] || finish

# ---- the long part ------------------------------------------------------------------------------

# watched NAME: run NAME's PTX under ThreadSanitizer, which knows the scopes (tests/sim)
watched() {
    translate "$WORK/$1.ptx" "$WORK/$1.cc"
    run 300 "$CLANGXX" "${SIM_FLAGS[@]}" -g -fsanitize=thread -shared \
        -o "$WORK/$1.so" "$WORK/$1.cc" "$WORK/ops.cc"
    want_exit 0
    run 300 setarch -R "$WORK/differ_tsan" "$WORK/$1.so" "$WORK/$1.so"
}

refuse_order() { # refuse_order FROM TO: the PTX with this change must be reported
    sed "s/$1/$2/" "$WORK/kernels.ptx" >"$WORK/weak.ptx"
    watched weak
    want_failure
    want_match "$ERR" 'data race'
}

begin "PTX under ThreadSanitizer: no race, and weaker orders are found"
if command -v "$CLANGXX" >/dev/null; then
    run 120 "$CLANGXX" "${SIM_FLAGS[@]}" -O1 -g -fsanitize=thread -rdynamic \
        -o "$WORK/differ_tsan" tests/ptx/differ.cc "$WORK"/*.o -ldl -pthread
    want_exit 0
    watched kernels
    want_exit 0
    refuse_order 'st\.release\.sys' 'st.relaxed.sys'
    refuse_order 'st\.release\.sys' 'st.release.cta'
    refuse_order 'ld\.acquire\.sys' 'ld.relaxed.sys'
else
    skip "no clang++"
fi

# Kernels from PTX take the place of those from the source; all else stays.
begin "drivers on virtual GPUs run kernels from PTX"
SIM="$(realpath -m "$BUILDDIR")/sim"
if [[ -e "$SIM/libcudart.so.13" ]] && ldd "$(program all_reduce)" | grep -q libcudart; then
    parts=()
    for object in "$SIM"/plain/src/kernels/*.o "$SIM"/own/*.o; do
        case "$(basename "$object" .o)" in
        exec_f32 | data) ;;
        *) parts+=("$object") ;;
        esac
    done
    for name in exec_f32 data; do
        ptx "src/kernels/$name.cu" 90
        translate "$WORK/$name.ptx" "$WORK/$name.cc"
        run 300 "$CXX" "${SIM_FLAGS[@]}" -c -o "$WORK/$name.obj" "$WORK/$name.cc"
        want_exit 0
    done
    run 60 "$CXX" -shared -o "$WORK/drop_in.so" "$WORK"/*.obj "${parts[@]}" -pthread
    want_exit 0
    for driver in all_reduce all_gather reduce_scatter broadcast; do
        run 120 env -u CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH="$SIM" \
            FAKECUDA_KERNELS="$WORK/drop_in.so" FAKECUDA_DEVICES=4 FAKECUDA_SMS=4 \
            "$(program "$driver")" --backend cuda -g 3 -b 8 -e 8K -f 32 -n 2
        want_exit 0
    done
else
    skip "built without CUDA, or no simulator"
fi
finish
