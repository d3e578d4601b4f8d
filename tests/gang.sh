# Processes that find each other by variables, for tests that have lib.sh.
# shellcheck shell=bash disable=SC2034 # used by the tests and lib.sh

AR="$(program all_reduce)"
SMALL=(-b 8 -e 1K -f 8 -n 3 -w 1)

# free_port: sets PORT to one that nobody uses now
free_port() {
    PORT="$("$PYTHON" -S -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
}

# gang SECONDS "RANKS" CMD...: one process for each rank. RC is their exit code, or all of them
# if they differ. COMMON and each element of ODD ("RANK NAME=VALUE ...") add variables.
COMMON=()
ODD=()
gang() {
    local limit=$(($1 * STRETCH)) ranks="$2" rank odd begun extra pids=() codes=() pid
    shift 2
    COMMAND="ranks $ranks: ${COMMON[*]} ${ODD[*]} $*"
    : >"$OUT"
    : >"$ERR"
    begun="$(now_ms)"
    for rank in $ranks; do
        extra=("${COMMON[@]}")
        for odd in "${ODD[@]}"; do
            # shellcheck disable=SC2206 # words of a variable list
            [[ $odd == "$rank "* ]] && extra+=(${odd#* })
        done
        {
            env RANK="$rank" "${extra[@]}" timeout -k 2 "$limit" "$@" >>"$OUT" 2>>"$ERR" </dev/null
        } 2>/dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid"
        codes+=($?)
    done
    MS=$(($(now_ms) - begun))
    RC="$(printf '%s\n' "${codes[@]}" | sort -u | tr '\n' ' ')"
    RC="${RC% }"
}

world() { # world N: at a free port of loopback
    free_port
    COMMON=(WORLD_SIZE="$1" MASTER_ADDR=127.0.0.1 MASTER_PORT="$PORT")
    ODD=()
}
