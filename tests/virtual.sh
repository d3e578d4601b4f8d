# Virtual GPUs: the CUDA runtime of tests/sim in place of NVIDIA's, under drivers as nvcc built
# them. For tests that have lib.sh; skips them where that cannot be.
# shellcheck shell=bash

SIM="$PWD/$BUILDDIR/sim"
[[ "$BUILDDIR" == /* ]] && SIM="$BUILDDIR/sim"
ldd "$(program all_reduce)" | grep -q libcudart || skip_all "built without CUDA"
[[ -e "$SIM/libcudart.so.13" ]] || skip_all "no $SIM/libcudart.so.13: make config says why"
[[ "${SAN:-}" == thread ]] && skip_all "ThreadSanitizer does not know the simulator's fibers here"

export LD_LIBRARY_PATH="$SIM${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset CUDA_VISIBLE_DEVICES
export FAKECUDA_KERNELS="$SIM/libcm_simkernels.so" FAKECUDA_DEVICES=8 FAKECUDA_SMS=4
