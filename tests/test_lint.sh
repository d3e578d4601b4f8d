#!/usr/bin/env bash
# The lint rules see what they are for: a clean tree passes, and each bad line is reported
# with its file, line and rule.
set -u
cd "$(dirname "$0")/.." || exit 3
tree="$(mktemp -d)" || exit 3
trap 'rm -rf "$tree"' EXIT
passed=0 failed=0
tab="$(printf '\t')"

fresh() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/src/{base,kernels,transport,engine,common,collectives} \
        "$tree"/{tests,bench,scripts}
    cat >"$tree/src/engine/good.c" <<'GOOD'
/* A clean file: doors, constants, a function. */
#include <stddef.h>

#include "base/status.h"
#include "engine/private.h"
#include "transport/wire.h"

static const int table[] = {1, 2, 3};

int cm_good(size_t i)
{
    for (;;) {
        if (i > 2)
            return table[0];
        i++;
    }
}
GOOD
}

verdict() { # verdict NAME OK
    if [[ "$2" == 1 ]]; then
        passed=$((passed + 1))
        echo "ok     $1"
    else
        failed=$((failed + 1))
        echo "not ok $1"
    fi
}

# refuse RULE FILE LINE TEXT: TEXT as FILE of a clean tree must give FILE:LINE: RULE
refuse() {
    local out
    fresh
    printf '%b' "$4" >"$tree/$2"
    out="$(scripts/lint.sh --rules "$tree")" && echo "    $2 passed: $4"
    if grep -q "^$2:$3: $1: " <<<"$out"; then
        verdict "$1 $2" 1
    else
        echo "    wanted $2:$3: $1, got: $out"
        verdict "$1 $2" 0
    fi
}

# accept NAME FILE TEXT: TEXT as FILE of a clean tree passes
accept() {
    local out
    fresh
    printf '%b' "$3" >"$tree/$2"
    if out="$(scripts/lint.sh --rules "$tree")"; then
        verdict "passes: $1" 1
    else
        echo "    $out"
        verdict "passes: $1" 0
    fi
}

repeat() { # repeat N TEXT
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%s' "$2"
    done
}

fresh
if out="$(scripts/lint.sh --rules "$tree")"; then
    verdict "clean tree passes" 1
else
    echo "    $out"
    verdict "clean tree passes" 0
fi

refuse floor src/base/a.c 2 '/* a */\n#include "engine/comm.h"\n'
refuse floor src/transport/a.c 1 '#include "common/coll.h"\n'
refuse door src/common/a.c 1 '#include "engine/private.h"\n'
refuse include src/common/a.c 1 '#include "opts.h"\n'
refuse foreign src/engine/a.c 1 '#include <mpi.h>\n'
refuse foreign src/common/report.c 1 '#include <cjson/cJSON.h>\n'
refuse foreign src/transport/shm.c 1 '#include <infiniband/verbs.h>\n'
refuse foreign src/base/clock.c 1 '#include <cuda_runtime.h>\n'
refuse foreign src/engine/run_cuda.c 1 '#include <cuda_runtime_api.h>\n'
refuse foreign src/common/a.c 1 '#include <cuda_fp16.h>\n'
refuse foreign bench/a.c 1 '#include <nccl.h>\n'
refuse cuda src/engine/a.c 1 '#include "kernels/gpu_launch.h"\n'
refuse cuda src/common/a.c 1 '#include "transport/p2p.h"\n'
refuse ptx src/kernels/a.cu 1 'asm volatile("membar.sys;");\n'
refuse ptx src/kernels/a.h 1 '    asm("exit;");\n'
refuse dialect src/kernels/a.cu 1 '    __syncthreads();\n'
refuse dialect src/kernels/a.cuh 1 '    int i = threadIdx.x;\n'
refuse dialect src/kernels/a.cu 1 '    atomicAdd(p, 1);\n'
refuse dialect src/kernels/a.cu 1 '    k<<<1, 2>>>();\n'
accept 'a kernel and its launcher' src/kernels/a.cu '#include <cuda_runtime.h>\n
#include "kernels/cm_device.h"\n\nint f(void)\n{\n    c.gridDim = dim3(1);\n}\n'
accept 'the device' src/base/dev_cuda.c '#include <cuda_runtime_api.h>\n'
accept 'a caller of launchers' src/engine/run_cuda.c '#include "kernels/gpu_launch.h"\n'
refuse file src/base/a.c 401 "$(repeat 401 'int x;\n')"
refuse function src/base/a.c 64 "void f(void)\n{\n$(repeat 61 '    g();\n')}\n"
refuse parameters src/base/a.c 2 'void f(int a, int b, int c, int d, int e, int f, int g)\n{\n}\n'
refuse parameters src/base/a.c 3 \
    'void f(int a, int b, int c, int d,\n       int e, int f, int g)\n{\n}\n'
refuse nesting src/base/a.c 3 'void f(void)\n{\n                if (x)\n}\n'
refuse ifdef src/base/a.c 3 'void f(void)\n{\n#ifdef X\n    g();\n#endif\n}\n'
refuse typedef src/base/a.c 1 'typedef struct a a;\n'
refuse define src/base/a.c 1 '#define LIMIT 400\n'
refuse mutable src/base/a.c 1 'static int counter;\n'
refuse mutable src/base/a.c 3 'int f(void)\n{\n    static int calls = 0;\n}\n'
refuse tab src/base/a.c 1 "${tab}int x;\n"
refuse blank src/base/a.c 1 'int x; \n'
refuse blank src/base/a.c 2 'int x;\n\n'
refuse columns src/base/a.c 1 "/* $(repeat 95 x) */\n"
refuse columns scripts/a.sh 1 "# $(repeat 99 x)\n"
refuse marker src/base/a.c 1 '/* TO''DO: later */\n'

echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
