#!/usr/bin/env python3
"""scripts/bench_table.py: medians over launches, with two sides and with three."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from collmark_rig import check, run_tests  # noqa: E402

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "bench_table.py"
SHARED = """# mpi: Some MPI v1, /lib/mpi.so; threads single
# cpu: A CPU
# kernels: generic
# ranks: 2, float sum
# probe before: {probe} ns
# collective          bytes  collmark us       mpi us    ratio  same   plan
all_reduce                8        {ours}          4.0     2.00  ok     direct/copy
# probe after: 100 ns
"""
WIRE = """# mpi: Some MPI v1, /lib/mpi.so; threads single
# cpu: A CPU
# wire: tcp, lo, progress inline, sockets 1
# ranks: 2, medians
# row               bytes  collmark us   sockets us       mpi us  sockets      mpi  same   plan
ping_pong         1048576     {ours}        3.0        8.0     0.75     2.00  {same}  hier/64
"""


def table(*launches):
    """What the script prints for launches, and the one document that it keeps."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.txt" for i in range(len(launches))]
        for path, text in zip(paths, launches):
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, str(SCRIPT), f"{folder}/kept", *map(str, paths)],
                             capture_output=True, text=True, check=True)
        kept, = Path(folder, "kept").glob("*/*.json")
        return run.stdout, kept.name, json.loads(kept.read_text(encoding="utf-8"))


def test_shared_memory():
    text, name, kept = table(*(SHARED.format(ours=us, probe=100) for us in (1.0, 2.0, 4.0)))
    row, = kept["rows"]
    check(name == "some-mpi-v1-np2.json", name)
    check(kept["placement"] == ["near"] * 3, kept["placement"])
    check((row["collmark_us"], row["mpi_us"], row["launches"]) == (2, 4, 3), row)
    check((row["ratio"], row["ratio_min"], row["ratio_max"]) == (2, 1, 4), row)
    check("| all_reduce | 8 B | 2.00 | 4.00 | 2.00 | 1.00 … 4.00 |" in text, text)


def test_cores_that_moved():
    _, _, kept = table(SHARED.format(ours=1.0, probe=400))
    check(kept["placement"] == ["moved"], kept["placement"])


def test_three_sides():
    text, name, kept = table(WIRE.format(ours=4.0, same="ok"), WIRE.format(ours=2.0, same="ok"))
    row, = kept["rows"]
    check(name == "some-mpi-v1-tcp-np2.json", name)
    check("placement" not in kept and kept["wire"].startswith("tcp, lo"), kept)
    check((row["sockets_ratio"], row["ratio"], row["ratio_max"]) == (1.125, 3, 4), row)
    check(row["same"] is True, row)
    check("| ping_pong | 1 MiB | 3.00 | 3.00 | 8.00 | 1.12 | 0.75 … 1.50 | 3.00 |" in text, text)


def test_a_wrong_result_is_kept():
    _, _, kept = table(WIRE.format(ours=4.0, same="ok"), WIRE.format(ours=4.0, same="WRONG"))
    check(kept["rows"][0]["same"] is False, kept["rows"])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
