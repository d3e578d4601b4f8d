# Rows of scripts/gpu_check.sh, one JSON object a line, as a table: our time, NCCL's where it ran
# on as many ranks, and how much of the floor is reached.

BEGIN {
    FS = "[]:,{}\" ]+"
}

{
    for (i = 2; i < NF; i += 2)
        v[$i] = $(i + 1)
    key = v["collective"] " " v["ranks"] " " v["graph"] " " v["bytes"]
    if (v["engine"] == "nccl") {
        nccl[key] = sprintf("%.2f", v["time_us"])
    } else {
        if (!(key in ours))
            keys[++n] = key
        ours[key] = v["time_us"]
        floor[key] = v["of_floor"]
    }
}

END {
    printf "%-15s %5s %-5s %12s %12s %12s %8s\n", "collective", "ranks", "graph", "bytes", "us",
        "NCCL us", "of floor"
    for (i = 1; i <= n; i++) {
        key = keys[i]
        split(key, k, " ")
        printf "%-15s %5d %-5s %12d %12.2f %12s %8s\n", k[1], k[2], k[3], k[4], ours[key],
            key in nccl ? nccl[key] : "-", floor[key]
    }
}
