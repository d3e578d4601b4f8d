#!/usr/bin/env python3
"""Static gates over the kernels. Prints "where: rule: detail"; exits 1 if it found anything.

  gates.py golden TABLE FILE.ptx     every kernel of FILE has exactly the instructions of TABLE
  gates.py covered TABLE HEADER      every device function of HEADER has a row in TABLE
  gates.py ptx TABLE FILE.ptx...     nothing that the rules forbid; of the instructions that
                                     order memory or let threads meet only those of TABLE
  gates.py source FILE...            the dialect of src/kernels/cm_device.h
"""

import re
import sys

# Opcodes that touch memory, order it, or let threads meet. All others only compute.
MEMORY = set("""ld ldu st atom red membar fence bar barrier mbarrier shfl vote match activemask
    elect redux cp call nanosleep prefetch prefetchu applypriority discard multimem suld
    sust sured tex tld4 griddepcontrol clusterlaunchcontrol setmaxnreg""".split())
# A weak access, of any width, to a named space or to a generic address.
WEAK = re.compile(r"(ld|st)(\.global|\.shared|\.param)?(\.v2|\.v4)?\.[bsuf]\d+")

FORBIDDEN_PTX = [
    ("local", r"\.local\b", "an indexed array of registers, or too few of them"),
    ("call", r"^call\b", "device functions are inlined"),
    ("fence", r"^(membar|fence)\b", "the rules know no bare fence"),
    ("volatile", r"\.volatile\b", "has no order"),
    ("non-coherent", r"\.nc\b", "does not see what peers write"),
    ("inexact", r"\.(approx|full|ftz)\b", "host and device would differ"),
    ("contraction", r"^fma\.", "the host rounds the product, so must the device"),
    ("variable", r"^(\.visible |\.extern |\.weak )*\.(global|const) ", "no memory but the areas"),
]

FORBIDDEN_SOURCE = [
    ("asm", r"\b(asm|__asm|__asm__)\b"),
    ("volatile", r"\bvolatile\b"),
    ("barrier", r"\b(__syncthreads\w*|__syncwarp|__threadfence\w*|__nanosleep)\b"),
    ("warp", r"\b(__(shfl|ballot|any|all|match|reduce|activemask)\w*|warpSize)\b"),
    ("atomic", r"\b(atomic\w+|__atomic\w+|__nv_atomic\w+|cuda::\w+)"),
    ("position", r"\b(threadIdx|blockIdx|blockDim|gridDim)\b"),
    ("qualifier", r"\b__(global|device|shared|constant|managed|host|launch_bounds)__\b"),
    ("cached", r"\b__(ldg|ldc[agsv]|ldlu|st(wb|cg|cs|wt)|prefetch\w*|pipeline\w*)\b"),
    ("library", r"\b(printf|malloc|new|delete|assert|__trap|clock|clock64|cooperative_groups)\b"),
    ("launch", r"<<<"),
    ("static", r"^\s*static\b[^()]*[;=]"),
]

# Fields that are flags: touched by an accessor with an order, which takes their address.
FLAG = re.compile(r"(&[^;|=]*)?(->|\.)(seq|value)\b")


class Findings:
    def __init__(self):
        self.count = 0

    def add(self, where, rule, detail):
        print(f"{where}: {rule}: {detail}")
        self.count += 1


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def strip_comments(text):
    """Comments and strings become blanks, lines stay."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


# ---- PTX -------------------------------------------------------------------------------------

def statements(path):
    """(line, statement) of the code; debug sections and labels are left out."""
    text = strip_comments(read(path)).split(".section", 1)[0]
    for number, line in enumerate(text.splitlines(), 1):
        for part in re.split(r"[;{}](?![^\[]*\])|^\s*\$?\w+:", line):
            part = re.sub(r"^@!?%\w+\s+", "", part.strip())
            if part and not re.match(r"\.(loc|file)\s", part):
                yield number, part


def opcode(statement):
    return statement.split(None, 1)[0].rstrip(",")


def touches_memory(op):
    return op.split(".", 1)[0] in MEMORY and not op.startswith("ld.param")


def kernels(path):
    """{kernel: list of its instructions as TABLE writes them}"""
    found, name = {}, None
    for _, s in statements(path):
        entry = re.search(r"\.entry\s+(\w+)", s)
        if entry:
            name = entry.group(1)
            found[name] = []
        elif name and touches_memory(opcode(s)):
            found[name].append(opcode(s))
        elif name and opcode(s).startswith("mov.") and re.search(r"%\w*(tid|ctaid)\.", s):
            found[name].append(re.search(r"%\w*(tid|ctaid)\.\w", s).group())
    return found


def table(path):
    rows = (line.split() for line in read(path).splitlines() if line and line[0] != "#")
    return {row[0]: row[1:] for row in rows}


def gate_golden(found, table_path, ptx_path):
    want, got = table(table_path), kernels(ptx_path)
    for name in sorted(want.keys() | got.keys()):
        if want.get(name) != got.get(name):
            found.add(name, "golden", f"wanted {want.get(name)}, got {got.get(name)}")


def gate_covered(found, table_path, header):
    rows = table(table_path)
    for name in re.findall(r"^(?:template <class T> )?CM_DEV [\w ]*?\b(cm_\w+)\(",
                           read(header), flags=re.M):
        if not any(row == f"golden_{name}" or row.startswith(f"golden_{name}_u") for row in rows):
            found.add(header, "covered", f"{name} has no row in {table_path}")


def gate_ptx(found, table_path, *paths):
    allowed = {op for ops in table(table_path).values() for op in ops}
    for path in paths:
        for line, s in statements(path):
            where, op = f"{path}:{line}", opcode(s)
            for rule, pattern, why in FORBIDDEN_PTX:
                if re.search(pattern, s):
                    found.add(where, rule, f"{s[:60]}: {why}")
            if touches_memory(op) and not WEAK.fullmatch(op) and op not in allowed:
                found.add(where, "memory", f"{op} is no function of cm_device.h")


# ---- source ----------------------------------------------------------------------------------

def without_host_part(text):
    """What the kernels' compiler sees with CM_SIM: host launchers are not in the dialect."""
    out, hidden, depth = [], 0, 0
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(ifndef\s+CM_SIM\b|if|else|endif)", line)
        word = directive.group(1) if directive else ""
        if word.startswith("if"):
            depth += 1
            if word.startswith("ifndef") and not hidden:
                hidden = depth
        out.append("" if hidden else line)
        if word == "endif":
            hidden = 0 if hidden == depth else hidden
            depth -= 1
        elif word == "else" and hidden == depth:
            hidden = 0
    return out


def gate_source(found, *paths):
    for path in paths:
        for number, line in enumerate(without_host_part(strip_comments(read(path))), 1):
            where = f"{path}:{number}"
            for rule, pattern in FORBIDDEN_SOURCE:
                match = re.search(pattern, line)
                if match:
                    found.add(where, rule, f"{match.group().strip()}: use src/kernels/cm_device.h")
            for flag in FLAG.finditer(line):
                if not flag.group(1):
                    found.add(where, "flag", f"{flag.group(3)}: flags are never accessed weakly")
            if re.search(r"\bcm_(ld|st)\(\s*&[^,;]*(->|\.)(seq|value)\b", line):
                found.add(where, "flag", "a weak access: use acquire, release or relaxed")


GATES = {"golden": gate_golden, "covered": gate_covered, "ptx": gate_ptx, "source": gate_source}


def main(args):
    if len(args) < 2 or args[0] not in GATES:
        print(__doc__, file=sys.stderr)
        return 2
    found = Findings()
    GATES[args[0]](found, *args[1:])
    return 1 if found.count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
