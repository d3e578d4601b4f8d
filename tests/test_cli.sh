#!/usr/bin/env bash
# The command line: what is wrong is refused at once, in one line that names it, with nothing on
# stdout; what asks for text gets it on stdout.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# exit code | what the line must name | options
refused=(
    '2|iters|-n abc'
    '2|iters|-n 5x'
    '2|iters|-n 0'
    '2|warmup|-w -1'
    '2|stepfactor|-f 1.5'
    '2|stepfactor|-f 0'
    '2|minbytes|-b 0 -f 2'
    '2|stepbytes|-i 0'
    '2|datatype.*bfloat16|-d floaty'
    '2|op.*mulsum|-o sumx'
    '2|no-such|--no-such'
    '2|root.*4 ranks|-r 9 -g 4'
    '2|maxbytes|-e 1P'
    '2|minbytes|-b 1P -e 1P'
    '2|minbytes|-b 8 -e 4'
    '2|leftover|leftover'
    '2|cudagraph|-G 1 --backend host'
    '2|local_register|-R 1'
    '3|maxbytes.*available|-b 1T -e 1T'
)
# Once is enough: all drivers share the parser.
refused_once=(
    '2|minbytes|-b nan'
    '2|minbytes|-b inf -e inf'
    '2|minbytes|-b 1e99'
    '2|minbytes|-b 0x10'
    '2|minbytes|-b -5'
    '2|minbytes|-b 18446744073709551616'
    '2|minbytes|-b 9223372036854775807'
    '2|maxbytes|-e 16E'
    '2|ngpus|-g'
    '2|ngpus|-g 0'
    '2|ngpus|-g 99999'
    '2|nthreads|-t 0'
    '2|timeout|-T soon'
    '2|average|-a 4'
    '2|blocking|-z 4'
    '2|per_iter_timing|-I 2'
    '2|per_iter_skip|-K 20 -I 1'
    '2|check|-c -1'
    '2|check-every|--check-every x'
    '2|stepfactor|-f 2 -i 8 -b 8 -e 8'
    '2|inject|--inject foo'
    '2|inject.*rank|--inject corrupt:rank=9 -g 2'
    '2|split|--split mod:0'
    '2|split|--split div:0'
    '2|split|--split mask:zz'
    '2|node-map|--node-map 0,1 -g 3'
    '2|node-map|--node-map 0,x -g 2'
    '2|algo.*ring|--algo foo'
    '2|proto.*simple|--proto foo'
    '2|mode.*copy|--mode foo'
    '2|wire.*shm, tcp, ib|--wire foo'
    '2|ifname|--ifname ^'
    '2|port-range.*65535|--port-range 0-99999'
    '2|rendezvous.*file:PATH|--rendezvous tcp'
    '2|net.*ib-disable|--net ib --ib-disable 1'
    '2|wire.*net|--wire tcp --net ib'
    '2|wire.*shm-disable|--wire shm --shm-disable 1'
    '2|progress|--progress foo'
    '2|sockets|--sockets 17'
    '2|ib-hca|--ib-hca mlx5_0:x'
    '2|ib-timeout|--ib-timeout 0'
    '2|p2p-level.*nvl|--p2p-level near'
    '2|placement|--placement foo'
    '2|channels|--channels 0'
    '2|chunk|--chunk 3'
    '2|seed|--seed x'
    '2|max-time|--max-time x'
    '2|min-bw|--min-bw x'
    '2|debug|--debug loud'
    '2|stream_null|-y 1 --backend host'
    '2|cta_policy|-x 1'
    '2|device_implementation|-D 1'
    '2|output_file.*csv|-J - --csv -'
    '3|/nonexistent/x|-J /nonexistent/x -b 8 -e 8'
    '3|/nonexistent/x|--csv /nonexistent/x -b 8 -e 8'
)

check_refused() { # check_refused DRIVER ROW...
    local driver="$1" row code name options
    shift
    for row in "$@"; do
        IFS='|' read -r code name options <<<"$row"
        # shellcheck disable=SC2086
        run 5 "$(program "$driver")" $options
        want_refused "$code" "$name"
    done
}

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver refuses bad options"
    check_refused "$driver" "${refused[@]}"
done

begin "all_reduce refuses more bad options"
check_refused all_reduce "${refused_once[@]}"

begin "a backend that is not there"
run 5 "$(program all_reduce)" --backend cuda
if [[ -e "$BUILDDIR/obj/src/kernels/exec_launch.cu.o" ]]; then
    want_refused 3 'backend cuda: no usable GPU'
else
    want_refused 77 'this build has no CUDA'
fi

begin "a value that is empty"
run 5 "$(program all_reduce)" -b ''
want_refused 2 minbytes
run 5 "$(program all_reduce)" ''
want_refused 2 leftover

begin "two mistakes, one line"
run 5 "$(program all_reduce)" -n abc -d floaty --no-such
want_refused 2 iters

begin "-h, --version, --list go to stdout"
for option in -h --help --version --list; do
    run 5 "$(program all_reduce)" "$option"
    want_exit 0
    want_silent "$ERR"
    want_match "$OUT" 'all_reduce|collmark'
done

begin "--list names every driver, type, operation and algorithm"
run 5 "$(program gather)" --list
want_exit 0
want_silent "$ERR"
for word in "${ALL_DRIVERS[@]}" int8 bfloat16 f8e5m2 mulsum ring tree direct loop shm tcp ib; do
    want_match "$OUT" "\\b$word\\b"
done

begin "variables: COLLMARK_ beats NCCL_TESTS_, the command line beats both, the header names them"
run 10 env COLLMARK_MINBYTES=16 COLLMARK_MAXBYTES=16 NCCL_ALGO=ring \
    "$(program all_reduce)" -g 2 -e 32 -i 16
want_right rows=2
want_match "$OUT" '^#.*COLLMARK_MINBYTES'
want_match "$OUT" '^#.*NCCL_ALGO'
run 5 env COLLMARK_ITERS=abc "$(program all_reduce)"
want_refused 2 COLLMARK_ITERS
run 5 env NCCL_ALGO=nope "$(program all_reduce)"
want_refused 2 NCCL_ALGO

begin "variables of NCCL between nodes: taken and shown, or refused by name"
run 10 env NCCL_SOCKET_IFNAME=^docker NCCL_IB_DISABLE=1 NCCL_NET=Socket NCCL_P2P_LEVEL=NVL \
    "$(program all_reduce)" -g 2 -b 8 -e 8
want_right rows=1
for variable in NCCL_SOCKET_IFNAME=^docker NCCL_IB_DISABLE=1 NCCL_NET=Socket NCCL_P2P_LEVEL=NVL; do
    grep -qxF "# Environment: $variable" "$OUT" || bad "the header does not show $variable"
done
run 5 env "NCCL_NET=AWS Libfabric" "$(program all_reduce)"
want_refused 2 "NCCL_NET 'AWS Libfabric': want one of Socket, IB"
run 5 env NCCL_IB_TIMEOUT=31 "$(program all_reduce)"
want_refused 2 "NCCL_IB_TIMEOUT '31'"

begin "sizes step as asked"
run 20 "$(program all_reduce)" -b 2K -e 8K -i 2K -g 2 -n 1
want_right rows=4
want_equal "$(awk '!/^#/ && NF { printf "%s ", $1 }' "$OUT")" "2048 4096 6144 8192 " "sizes"

begin "stdout stays a table when messages are on"
run 10 "$(program all_reduce)" -g 2 -b 8 -e 64 -f 2 --debug trace
want_exit 0
want_table rows=4
run 10 env NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$WORK/debug" "$(program all_reduce)" -g 2 -b 8 -e 8
want_right
if [[ ! -s "$WORK/debug" ]]; then
    bad "NCCL_DEBUG_FILE is empty"
fi

begin "a threshold that is missed: exit 5, and the line says so"
run 10 "$(program all_reduce)" -g 2 -b 8 -e 8 --min-bw 1000
want_exit 5
want_match "$OUT" '^# Avg bus bandwidth .*FAILED'
run 10 "$(program all_reduce)" -g 2 -b 1M -e 1M --min-bw 0.0001
want_right
want_match "$OUT" '^# Avg bus bandwidth .*OK'

begin "launch mistakes: a launcher's variable, but a world of one"
for setting in OMPI_COMM_WORLD_SIZE=4 PMI_SIZE=4 MV2_COMM_WORLD_SIZE=2 \
    "SLURM_NTASKS=4 SLURM_PROCID=2"; do
    # shellcheck disable=SC2086
    run 20 env $setting "$(program all_reduce)" -b 8 -e 8
    want_exit 3
    want_silent "$OUT"
    want_lines "$ERR" 1
    want_match "$ERR" "^${setting%% *} "
done

begin "a step of Slurm is a launch, and lacks an address"
run 20 env SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_PROCID=0 "$(program all_reduce)" -b 8 -e 8
want_refused 2 '^MASTER_ADDR is not set'

begin "an allocation is not a launch"
run 20 env SLURM_NTASKS=4 SLURM_JOB_ID=7 "$(program all_reduce)" -b 8 -e 8
want_right bw=any

finish
