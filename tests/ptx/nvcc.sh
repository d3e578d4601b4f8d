#!/usr/bin/env bash
# What the PTX tests share; they read it after tests/lib.sh.

NVCC="$(command -v "${NVCC:-${CUDA_HOME:+$CUDA_HOME/bin/}nvcc}" ||
    command -v /usr/local/cuda/bin/nvcc)"
FLAGS=(-std=c++17 --fmad=false -lineinfo -I"$PWD/src")

ptx() { # ptx FILE.cu ARCH [FLAG...]: writes FILE's PTX to $WORK/NAME.ptx
    run 120 "$NVCC" -ptx "${FLAGS[@]}" -arch="sm_$2" "${@:3}" -o "$WORK/$(basename "$1" .cu).ptx" \
        "$1"
    want_exit 0
}
