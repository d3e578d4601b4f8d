# Text rules for C, headers and scripts. Prints "file:line: rule: detail"; no output is a pass.
# Function bodies are found by the format: `{` and `}` alone in column 1.

function complain(rule, detail)
{
    printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, detail
}

function folder_of(path,    parts)
{
    split(path, parts, "/")
    return parts[1]
}

function is_door(header)
{
    return header ~ /^base\// || header in door
}

function check_include(header,    to)
{
    if (!in_src)
        return
    to = folder_of(header)
    if (header == "cmsim.h" && FILENAME == "src/kernels/cm_device.h")
        return # the simulator of tests/sim takes nvcc's place
    if (!(to in floor))
        complain("include", "\"" header "\": write it as \"folder/file.h\"")
    else if (floor[to] > floor[own])
        complain("floor", own " is floor " floor[own] ", \"" header "\" is floor " floor[to])
    else if (to != own && !is_door(header))
        complain("door", "\"" header "\" is private to src/" to)
}

function check_foreign(header,    key)
{
    for (key in home)
        if (header ~ key && FILENAME !~ home[key])
            complain("foreign", "<" header "> belongs only into " home_name[key])
}

# What only builds with CUDA link is called by files that only they compile.
function check_cuda_include(header)
{
    if (in_src && FILENAME ~ /\.c$/ && FILENAME !~ /_cuda\.c$/ && header in cuda_only)
        complain("cuda", "\"" header "\" is for files named *_cuda.c")
}

# Kernels are written in the dialect of cm_device.h, so that the simulator runs all of them;
# a file *_launch.cu has launchers only.
function check_kernel_line()
{
    if ($0 ~ /(^|[^a-z_])(asm|__asm__)( volatile)? *\(/)
        complain("ptx", "assembly belongs into kernels/cm_device.h")
    if (FILENAME !~ /_launch\.cu$/ && match($0, dialect))
        complain("dialect", "\"" substr($0, RSTART, RLENGTH) "\" is spelled in kernels/cm_device.h")
}

function foreign(key, where, name)
{
    home[key] = where
    home_name[key] = name
}

# Commas of the outer parameter list of a definition's text.
function parameters(text,    i, c, depth, n)
{
    n = 1
    for (i = index(text, "("); i > 0 && i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(")
            depth++
        else if (c == ")" && --depth == 0)
            return n
        else if (c == "," && depth == 1)
            n++
    }
    return n
}

function check_c_line()
{
    if ($0 ~ /typedef[ ]+(struct|union)/)
        complain("typedef", "write `struct name` out")
    if ($0 ~ /^#define [A-Z][A-Z0-9_]* +\(?-?(0x[0-9a-fA-F]+|[0-9]+)\)?( *\/\*.*)?$/)
        complain("define", "a whole constant is an enum")
    if (in_src && FILENAME ~ /\.c$/ && $0 ~ /^ *static [^(]*(=|;)/ &&
        $0 !~ /const|_Thread_local|thread_local|sig_atomic_t/)
        complain("mutable", "static data that can change")
    if ($0 ~ /^#include "/)
        check_include(substr($2, 2, length($2) - 2))
    if ($0 ~ /^#include "/)
        check_cuda_include(substr($2, 2, length($2) - 2))
    if ($0 ~ /^#include </)
        check_foreign(substr($2, 2, length($2) - 2))
}

function check_function_line()
{
    if ($0 == "{" && head ~ /^(namespace|class|extern "C" *$)/) {
        head = ""
    } else if ($0 == "{") {
        body = FNR
        if (parameters(head) > 6 && FILENAME !~ /sim\/fake/) # interfaces of NVIDIA's
            complain("parameters", parameters(head) " of them, at most 6")
    } else if ($0 ~ /^}/ && body) {
        if (FNR - body - 1 > 60)
            complain("function", FNR - body - 1 " lines, at most 60")
        body = 0
    } else if (body && $0 ~ /^# *if/) {
        complain("ifdef", "preprocessor condition inside a function")
    } else if (body && $0 ~ /^                +(if|for|while|switch|do) ?[({]/) {
        complain("nesting", "more than 3 deep")
    }
    if (!body)
        head = $0 ~ /^$|^}|;$|^#|\*\/$/ ? "" : head $0
}

function finish_file()
{
    if (last > 400)
        printf "%s:%d: file: %d lines, at most 400\n", file, last, last
    if (ends_blank)
        printf "%s:%d: blank: empty line at the end\n", file, last
}

BEGIN {
    split("base kernels transport engine common collectives", order, " ")
    for (i in order)
        floor[order[i]] = i - 1
    split("kernels/gpu_launch.h kernels/gpu_data.h transport/p2p.h", list, " ")
    for (i in list)
        door[list[i]] = cuda_only[list[i]] = 1
    split("transport/fdpass.h transport/hub.h transport/ib.h transport/meet.h transport/net.h " \
          "transport/proxy.h transport/swap.h transport/wire.h kernels/kernels.h engine/comm.h " \
          "engine/algo.h engine/gang.h " \
          "engine/verify.h engine/tune.h engine/peers.h engine/topo.h common/coll.h", list, " ")
    for (i in list)
        door[list[i]] = 1
    dialect = "__(syncthreads|syncwarp|threadfence|shfl|any_sync|all_sync|ballot_sync|activemask)" \
        "[a-z_]*|__(global|device|shared|constant)__|<<<|atomic[A-Z][A-Za-z]* *\\(|" \
        "(^|[^.>A-Za-z_])((thread|block)Idx|(block|grid)Dim)"
    foreign("^mpi\\.h$", "^(src/common/(launch|engine)_mpi\\.c|bench/)", "src/common/*_mpi.c")
    foreign("cJSON\\.h$", "^src/common/report_json(_rows|_find)?\\.c$", "src/common/report_json*.c")
    foreign("^infiniband/", "^src/transport/verbs\\.h$", "src/transport/verbs.h")
    foreign("^(cuda(_runtime.*|_profiler.*)?\\.h|cooperative_groups|nvtx3/)",
            "^(src/base/dev[a-z_]*_cuda\\.[ch]|.*\\.cu|bench/.*_cuda\\.c|tests/.*)$",
            "src/base/dev*_cuda.c and *.cu")
    foreign("^cuda_(fp|bf)[0-9]+\\.h", "^(src/kernels|tests)/", "src/kernels/")
    foreign("^nccl", "^$", "no file: NCCL is loaded at run time")
}

FNR == 1 {
    if (file != "")
        finish_file()
    file = FILENAME
    body = 0
    head = ""
    in_src = FILENAME ~ /^src\//
    own = in_src ? folder_of(substr(FILENAME, 5)) : ""
    is_c = FILENAME ~ /\.(c|cc|h|cu|cuh)$/
    is_kernel = FILENAME ~ /^src\/kernels\/.*\.(h|cu|cuh)$/ && FILENAME !~ /\/cm_device\.h$/
}

{
    last = FNR
    ends_blank = $0 == ""
    line = $0
    gsub(/[\200-\277]/, "", line) # bytes that continue a UTF-8 character take no column
    if (length(line) > 100)
        complain("columns", length(line) " columns, at most 100")
    if (index($0, "\t"))
        complain("tab", "indent with spaces")
    if ($0 ~ /[ \r]$/)
        complain("blank", "blank at the end of the line")
    if ($0 ~ marker && $0 !~ /#[0-9]+/)
        complain("marker", "unfinished work needs an issue number, like #12")
    if (is_c) {
        check_c_line()
        check_function_line()
    }
    if (is_kernel)
        check_kernel_line()
}

END {
    if (file != "")
        finish_file()
}
