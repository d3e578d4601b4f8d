"""How an acceptance starts a driver on some of its nodes: mpirun, srun, or alone as threads.

A launcher gives the words in front of the driver. mpirun of Open MPI and of MPICH's family want
other ones, so its --version is asked once.
"""
import os
import re
import shlex
import shutil
import subprocess

from .common import EXIT_SYSTEM, Refused

# What users set for drivers and MPI here has to hold on the other nodes too.
FORWARDED = re.compile(r"(COLLMARK|NCCL|UCX)_.*|CUDA_VISIBLE_DEVICES|LD_LIBRARY_PATH")


class Alone:
    """No launcher: ranks are threads of one process on this machine."""

    name = "threads of one process"

    def words(self, nodes, ranks):
        del nodes, ranks
        return []

    def options(self, ranks):
        """Options of the driver that make its ranks."""
        return ["-g", str(ranks)]


class Processes:
    """A process per rank."""

    def __init__(self, program, more):
        self.program, self.more = program, more

    def options(self, ranks):
        del ranks
        return []


class OpenMpi(Processes):
    name = "mpirun (Open MPI)"

    def words(self, nodes, ranks):
        hosts = ",".join(f"{n.name}:{ranks}" for n in nodes)
        passed = sorted(n for n in os.environ if FORWARDED.fullmatch(n))
        forward = [word for name in passed for word in ("-x", name)]
        return [self.program, "-np", str(len(nodes) * ranks), "--host", hosts,
                "--map-by", "slot", *forward, *self.more]


class Hydra(Processes):
    name = "mpirun (MPICH, Intel MPI)"

    def words(self, nodes, ranks):
        return [self.program, "-hosts", ",".join(n.name for n in nodes), "-ppn", str(ranks),
                "-np", str(len(nodes) * ranks), *self.more]


class Srun(Processes):
    """A step of its own per job. Processes find each other by themselves, without an MPI."""

    name = "srun"

    def words(self, nodes, ranks):
        return [self.program, "--mpi=none", "--overlap", f"--nodes={len(nodes)}",
                f"--ntasks={len(nodes) * ranks}", f"--ntasks-per-node={ranks}",
                f"--nodelist={','.join(n.name for n in nodes)}", *self.more]


def mpirun_of(program, more):
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Refused(f"{program} --version: {e}", EXIT_SYSTEM) from e
    said = done.stdout + done.stderr
    if re.search(r"Open MPI|OpenRTE|Open RTE|PRRTE|prterun", said):
        return OpenMpi(program, more)
    if re.search(r"HYDRA|MPICH|Intel\(R\) MPI", said):
        return Hydra(program, more)
    first = said.strip().split("\n")[0]
    raise Refused(f"--launcher {program}: neither Open MPI nor MPICH nor Intel MPI: '{first}'")


def make(program, arguments):
    """A launcher from --launcher (None: alone) and --launcher-args."""
    try:
        more = shlex.split(arguments)
    except ValueError as e:
        raise Refused(f"--launcher-args {arguments!r}: {e}") from e
    if program is None:
        if more:
            raise Refused("--launcher-args: there is no launcher on one machine alone")
        return Alone()
    path = shutil.which(program)
    if path is None:
        raise Refused(f"--launcher {program}: no such program")
    if os.path.basename(program).startswith("srun"):
        return Srun(path, more)
    return mpirun_of(path, more)
