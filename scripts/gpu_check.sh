#!/usr/bin/env bash
# What only a machine with NVIDIA GPUs can tell, in one command: builds for its GPU, checks results
# and failures, measures, compares with NCCL, keeps everything as JSON.
#
#   scripts/gpu_check.sh [--budget SECONDS] [--max SIZE] [--ranks N] [--out FOLDER] [STEP...]
#
#   --budget   240: what does not fit is left out, and said
#   --max      1G: largest message of the sweeps, lowered to what the GPU's memory holds
#   --ranks    8: most ranks; they share GPUs where there are fewer
#   --out      results/gpu/<device>: check.json and table.txt
#   STEP       build copy correct faults processes sweep nccl sanitizer, in this order; default: all
#
# Needs gcc, make and the CUDA toolkit; uses MPI, cJSON, NCCL and compute-sanitizer if they are
# there. A step that fails does not end the others. Exit code: 0 all passed, 1 something failed,
# 2 usage, 3 nothing could run, 6 all passed but the budget left something out.
set -u
cd "$(dirname "$0")/.." || exit 3

budget=240 max=1G most=8 out=
steps=(build copy correct faults processes sweep nccl sanitizer)
drivers=(all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter
    sendrecv hypercube)
swept=(all_reduce all_gather reduce_scatter broadcast alltoall)

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
chosen=()
while [[ $# -gt 0 ]]; do
    case "$1" in
    --budget | --max | --ranks | --out)
        [[ $# -gt 1 ]] || usage
        case "$1" in
        --budget) budget="$2" ;;
        --max) max="$2" ;;
        --ranks) most="$2" ;;
        --out) out="$2" ;;
        esac
        shift
        ;;
    -*) usage ;;
    *)
        [[ " ${steps[*]} " == *" $1 "* ]] || usage
        chosen+=("$1")
        ;;
    esac
    shift
done
[[ "$budget" =~ ^[1-9][0-9]*$ && "$most" =~ ^[1-9][0-9]*$ ]] || usage
[[ ${#chosen[@]} -gt 0 ]] && steps=("${chosen[@]}")

build="${BUILDDIR:-build-gpu}"
work="$(mktemp -d)" || exit 3
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
step='' gpus=0 memory_mb=0 device=unknown caps='' copy_gbs='' driver=''
: >"$work/cases" # TAB-separated: step, verdict, seconds, exit code, name
: >"$work/rows"  # JSON objects, one a line

# ---- running -------------------------------------------------------------------------------------

left() { # seconds of the budget that are left
    echo $((budget - SECONDS))
}

record() { # record VERDICT SECONDS CODE NAME
    printf '%s\t%s\t%s\t%s\t%s\n' "$step" "$1" "$2" "$3" "$4" >>"$work/cases"
}

skip() { # skip NAME REASON
    skipped=$((skipped + 1))
    record skipped 0 0 "$1: $2"
    echo "  skip $1: $2"
}

# want CODE LIMIT NAME CMD...: one case; stdout is kept in $work/out, stderr in $work/err.
want() {
    local code=$1 limit=$2 name="$3" start=$SECONDS rc took verdict
    shift 3
    if [[ $(left) -lt 3 ]]; then
        skip "$name" "out of budget"
        return 1
    fi
    [[ $limit -gt $(left) ]] && limit=$(left)
    timeout -k 5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    took=$((SECONDS - start))
    if [[ $rc == "$code" ]]; then
        passed=$((passed + 1)) verdict=passed
    elif [[ $rc == 77 ]]; then
        skip "$name" "$(tail -n 1 "$work/err")"
        return 1
    else
        failed=$((failed + 1)) verdict=failed
        echo "  FAIL $name: exit $rc after $took s, wanted $code"
        echo "       $*"
        { cat "$work/err" && grep -v '^#' "$work/out"; } | tail -n 6 | sed 's/^/       | /'
    fi
    record "$verdict" "$took" "$rc" "$name"
    [[ $verdict == passed ]]
}

program() {
    echo "$build/$1_perf${NAME_SUFFIX:-}"
}

# share N: the options for N ranks on the GPUs there are, one a line
share() {
    printf '%s\n' --backend cuda -g "$1"
    [[ $1 -le $gpus ]] || echo --oversubscribe
}

rank_counts() { # 1 2 4 ... up to the most
    local n
    for ((n = 1; n <= most; n *= 2)); do
        echo "$n"
    done
}

# The largest size, at most LIMIT or --max, at which the buffers take half of the memory.
fitting() { # fitting RANKS [LIMIT]
    awk -v max="$max" -v limit="${2:-$max}" -v mb="$memory_mb" -v ranks="$1" -v gpus="$gpus" '
        function bytes(text,    unit) {
            unit = toupper(substr(text, length(text)))
            return text * (unit == "K" ? 2^10 : unit == "M" ? 2^20 : unit == "G" ? 2^30 : 1)
        }
        BEGIN {
            size = bytes(limit) < bytes(max) ? bytes(limit) : bytes(max)
            share = gpus > 0 && ranks > gpus ? int((ranks + gpus - 1) / gpus) : 1
            while (mb > 0 && size > 8 && 3 * share * size > mb * 2^20 / 2)
                size /= 2
            printf "%.0f\n", size
        }'
}

# ---- steps ---------------------------------------------------------------------------------------

# name, memory and compute capability; without nvidia-smi, what nvcc's own helper finds.
look() {
    local nvcc query
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,memory.total,compute_cap,driver_version \
            --format=csv,noheader,nounits >"$work/smi" 2>/dev/null
        IFS=, read -r device memory_mb caps driver <"$work/smi"
        gpus="$(grep -c , "$work/smi")"
        memory_mb="${memory_mb// /}" caps="${caps// /}" driver="${driver// /}"
    fi
    if [[ ! "$caps" =~ ^[0-9]+\.[0-9]+$ ]]; then
        nvcc="$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")"
        query="$(dirname "$(realpath "$nvcc")")/__nvcc_device_query"
        caps="$("$query" 2>/dev/null | cut -d, -f1 | sed 's/.$/.&/')"
    fi
    [[ "$caps" =~ ^[0-9]+\.[0-9]+$ ]]
}

step_build() {
    local -a flags=(-s -j "$(nproc)" CUDA=1 "CUDA_ARCHS=${caps/./}" "BUILDDIR=$build")
    # Without network a GPU machine may lack cJSON; only -J needs it.
    make "${flags[@]}" config 2>/dev/null | grep -q '✓ cJSON' || flags+=(CJSON=0)
    want 0 "$budget" "build for sm_${caps/./}" make "${flags[@]}" all benches
}

step_copy() {
    want 0 30 "copy bandwidth" "$build/bench/copy_cuda" "$(fitting 1)" || return
    gpus="$(awk -F, 'NR > 1 && $1 >= n { n = $1 + 1 } END { print n + 0 }' "$work/out")"
    copy_gbs="$(awk -F, 'NR > 1 && $1 == $2 { print $4; exit }' "$work/out")"
    cp "$work/out" "$work/copy.csv"
    echo "  $gpus x $device: copies at $copy_gbs GB/s"
}

step_correct() {
    local driver ranks row small big
    small=(-b 8 -e "$(fitting 4 1M)" -f 32 -n 3)
    big="$(fitting 4 64M)"
    local variants=(
        '-d all -o all -b 1K -e 1K -n 1' '--mode copy --proto simple' '--mode copy --proto ll'
        '--mode direct' '--algo ring' '--algo tree' '--algo direct' '--algo oneshot'
        '--algo recdbl' '-G 3' '-G 2 -m 4' '-u 1 -d int8' '-u 3' '-I 1' '-z 1' '-z 3' '-m 5' '-y 1'
        '--check-every 1' '--channels 4 --chunk 4K' '-n 500 -w 20 -b 8 -e 8' "-b $big -e $big -n 2"
    )
    for driver in "${drivers[@]}"; do
        for ranks in $(rank_counts); do
            # shellcheck disable=SC2046
            want 0 60 "$driver on $ranks" "$(program "$driver")" $(share "$ranks") "${small[@]}"
        done
    done
    for row in "${variants[@]}"; do
        # shellcheck disable=SC2046,SC2086
        want 0 60 "all_reduce $row" "$(program all_reduce)" $(share 4) "${small[@]}" $row
    done
}

step_faults() {
    local name few
    name="$(program all_reduce)"
    mapfile -t few < <(share 2)
    few+=(-b 1K -e 1K)
    want 1 30 "corrupt data are found" "$name" "${few[@]}" --inject corrupt:rank=1
    want 4 30 "a stalled rank is found" "$name" "${few[@]}" -T 3 \
        --inject stall:rank=1,iter=5
    want 137 30 "a crash" "$name" "${few[@]}" --inject crash:rank=1
    want 0 30 "the GPU works after them" "$name" "${few[@]}"
    want 3 30 "more than the memory is refused" "$name" "${few[@]}" -b 1T -e 1T
    if [[ $gpus -lt 2 ]]; then
        want 3 30 "sharing a GPU unasked is refused" "$name" --backend cuda -g 2 -b 8 -e 8
    fi
}

# Two processes: with a GPU each they map each other's memory, on one GPU the host helps out.
step_processes() {
    local launcher driver half=$((gpus / 2)) args=(-b 8 -e 1M -f 32 -n 3)
    launcher="$(command -v mpirun)" || { skip processes "no mpirun" && return; }
    ldd "$(program all_reduce)" | grep -q libmp || { skip processes "built without MPI" && return; }
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
    [[ $gpus -lt 2 ]] && args+=(--oversubscribe)
    for driver in "${drivers[@]}"; do
        want 0 60 "$driver in two processes" "$launcher" -np 2 "$(program "$driver")" \
            --backend cuda "${args[@]}"
    done
    if [[ $half == 0 ]]; then # two processes on one GPU would leave the work to the host
        skip "two nodes" "needs two GPUs"
        return
    fi
    for driver in "${drivers[@]}"; do
        want 0 60 "$driver on two nodes" "$launcher" -np 2 "$(program "$driver")" \
            --backend cuda --wire tcp -g $((half > 4 ? 4 : half)) "${args[@]}"
    done
}

truth() {
    [[ $1 == 1 ]] && echo true || echo false
}

# CSV of a driver to JSON rows. The floor is what the ranks of one GPU read and write at least,
# over the bandwidth of a copy on it; links between GPUs are not in it.
keep_sweep() { # keep_sweep DRIVER RANKS GRAPH <csv
    awk -F, -v driver="$1" -v ranks="$2" -v graph="$(truth "$3")" -v gpus="$gpus" \
        -v gbs="${copy_gbs:-0}" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["time_us"] == "" { next }
        {
            s = $at["size"]
            blocks = driver ~ /^all_gather|^reduce_scatter|^broadcast/
            bytes = blocks ? (ranks + 1) * s : 2 * ranks * s
            floor = gbs > 0 ? bytes / (gpus < ranks ? gpus : ranks) / gbs / 1e3 : 0
            printf "{\"engine\": \"collmark\", \"collective\": \"%s\", \"ranks\": %d, " \
                "\"graph\": %s, \"bytes\": %d, \"time_us\": %s, \"busbw\": %s, " \
                "\"algo\": \"%s\", \"mode\": \"%s\", \"proto\": \"%s\", \"of_floor\": %.3f}\n",
                driver, ranks, graph, s, $at["time_us"], $at["busbw_gbs"],
                $at["algorithm"], $at["mode"], $at["protocol"], floor / $at["time_us"]
        }' >>"$work/rows"
}

sweep() { # sweep DRIVER RANKS GRAPH
    local -a graph=()
    [[ $3 == 1 ]] && graph=(-G 1)
    # shellcheck disable=SC2046
    want 0 60 "$1 on $2$([[ $3 == 1 ]] && echo ' as a graph')" "$(program "$1")" $(share "$2") \
        -b 8 -e "$(fitting "$2")" -f 2 -w 3 -c 0 --placement out "${graph[@]}" --csv - || return
    keep_sweep "$1" "$2" "$3" <"$work/out"
}

has_rows() { # has_rows DRIVER RANKS GRAPH
    grep -q "\"collmark\", \"collective\": \"$1\", \"ranks\": $2, \"graph\": $(truth "$3")" \
        "$work/rows"
}

step_sweep() {
    local driver ranks graph
    for driver in "${swept[@]}"; do
        for graph in 0 1; do
            sweep "$driver" "$most" "$graph"
        done
    done
    for ranks in $(rank_counts); do
        [[ $ranks == "$most" ]] && continue
        for graph in 0 1; do
            sweep all_reduce "$ranks" "$graph"
        done
    done
}

# NCCL on as many ranks as we had; before 2.30 it wants a GPU for each.
step_nccl() {
    local graph driver ranks="$most" name lib
    [[ -x "$build/bench/nccl_cuda" ]] || { skip NCCL "not built" && return; }
    # Behind the system's own: the NCCL of a Python package.
    lib="$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null)"
    [[ -z "$lib" ]] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib"
    if ! "$build/bench/nccl_cuda" -g "$ranks" -b 8 -e 8 >/dev/null 2>"$work/refusal"; then
        echo "  $(tail -n 1 "$work/refusal"); trying $gpus"
        ranks=$gpus
    fi
    for graph in 0 1; do
        name="NCCL on $ranks$([[ $graph == 1 ]] && echo ' as a graph')"
        want 0 60 "$name" "$build/bench/nccl_cuda" -g "$ranks" -b 8 -e "$(fitting "$ranks")" \
            -G "$graph" || continue
        cp "$work/out" "$work/nccl-$ranks-$graph.csv"
        awk -F, '/^# nccl/ || $1 == "collective" { next }
            { printf "{\"engine\": \"nccl\", \"collective\": \"%s\", \"ranks\": %d, " \
                "\"graph\": %s, \"bytes\": %d, \"time_us\": %s, \"busbw\": %s}\n",
                $1, $2, $3 ? "true" : "false", $4, $5, $6 }' "$work/out" >>"$work/rows"
        for driver in "${swept[@]}"; do
            has_rows "$driver" "$ranks" "$graph" || sweep "$driver" "$ranks" "$graph"
        done
    done
}

step_sanitizer() {
    local tool mode found few
    found="$(command -v compute-sanitizer ||
        compgen -G "${CUDA_HOME:-/usr/local/cuda}/*/compute-sanitizer")" ||
        { skip compute-sanitizer "not found" && return; }
    # Some sandboxes (gVisor) keep it from the device: that says nothing about the kernels.
    timeout 60 "$found" --error-exitcode 9 "$build/bench/copy_cuda" 1048576 >"$work/out" 2>&1 ||
        { skip compute-sanitizer "does not work here: $(tail -n 1 "$work/out")" && return; }
    mapfile -t few < <(share 2)
    few+=(-b 8 -e 64K -f 64 -n 1 -w 0 -T 60)
    for mode in '' '--mode copy --proto simple' '--mode copy --proto ll' '--mode direct'; do
        for tool in memcheck racecheck; do
            [[ $tool == racecheck && $mode != '--mode copy'* ]] && continue
            # shellcheck disable=SC2086
            want 0 60 "$tool $mode" "$found" --tool $tool --error-exitcode 9 \
                "$(program all_reduce)" "${few[@]}" $mode
        done
    done
}

# ---- what is kept --------------------------------------------------------------------------------

text() { # text VALUE: as a JSON string
    printf '"%s"' "$(sed 's/\\/\\\\/g; s/"/\\"/g; s/[[:cntrl:]]/ /g' <<<"$1")"
}

version() { # version CMD...: its last line with a number
    "$@" 2>/dev/null | grep '[0-9]' | tail -n 1
}

list() { # list <lines: as members of a JSON array
    sed '$!s/$/,/; s/^/  /'
}

write_json() {
    local nccl
    nccl="$(sed -n 's/^# nccl //p' "$work"/nccl-*.csv 2>/dev/null | head -n 1)"
    printf '{\n "date": %s,\n "commit": %s,\n' "$(text "$(date -u +%FT%TZ)")" \
        "$(text "$(git describe --always --dirty 2>/dev/null)")"
    printf ' "device": %s,\n "gpus": %d,\n "compute_capability": %s,\n' "$(text "$device")" \
        "$gpus" "$(text "$caps")"
    printf ' "versions": {"driver": %s, "nvcc": %s, "gcc": %s, "nccl": %s, "kernel": %s},\n' \
        "$(text "$driver")" "$(text "$(version nvcc --version)")" \
        "$(text "$(version gcc -dumpfullversion)")" "$(text "$nccl")" "$(text "$(uname -r)")"
    printf ' "seconds": %d,\n "passed": %d,\n "failed": %d,\n "skipped": %d,\n' \
        "$SECONDS" "$passed" "$failed" "$skipped"
    printf ' "copy_gbs": [\n'
    [[ -f "$work/copy.csv" ]] && sed 1d "$work/copy.csv" |
        sed 's/\(.*\),\(.*\),.*,\(.*\)/{"from": \1, "to": \2, "gbs": \3}/' | list
    printf ' ],\n "cases": [\n'
    sed 's/\\/\\\\/g; s/"/\\"/g' "$work/cases" | awk -F'\t' '{
        printf "{\"step\": \"%s\", \"verdict\": \"%s\", \"seconds\": %d, \"exit\": %d, " \
            "\"name\": \"%s\"}\n", $1, $2, $3, $4, $5 }' | list
    printf ' ],\n "rows": [\n'
    list <"$work/rows"
    printf ' ]\n}\n'
}

# ---- all of it -----------------------------------------------------------------------------------

if ! look; then
    echo "no NVIDIA GPU found: neither nvidia-smi nor nvcc's __nvcc_device_query names one" >&2
    exit 3
fi
echo "$device, compute capability $caps, $memory_mb MiB, driver ${driver:-unknown}"
for step in "${steps[@]}"; do
    echo "== $step ($(left) s left)"
    case $step in
    build) step_build || break ;;
    copy) step_copy ;;
    correct) step_correct ;;
    faults) step_faults ;;
    processes) step_processes ;;
    sweep) step_sweep ;;
    nccl) step_nccl ;;
    sanitizer) step_sanitizer ;;
    esac
done

slug="$(tr '[:upper:]' '[:lower:]' <<<"$device" | sed 's/[^a-z0-9]\{1,\}/-/g; s/^-*//; s/-*$//')"
out="${out:-results/gpu/$slug}"
mkdir -p "$out" && write_json >"$out/check.json"
[[ -s "$work/rows" ]] && awk -f scripts/gpu_table.awk "$work/rows" | tee "$out/table.txt"
grep -P '\tfailed\t' "$work/cases" | cut -f1,5 | sed 's/^/failed: /'
echo "kept in $out after $SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $step == build && $failed != 0 ]] && exit 3
[[ $failed != 0 ]] && exit 1
grep -q 'out of budget$' "$work/cases" && exit 6
exit 0
