#!/usr/bin/env python3
"""Translate nvcc's PTX into C++ for the simulator: the kernels as the compiler left them.

  ptx2c.py FILE.ptx >FILE.cc      exit 1 and "FILE.ptx:LINE: why" for what it does not know

The output is compiled like a .cu file of the source shim, exports the same NAME_thunk and
NAME_argbytes (the size in the PTX, so a stale struct shows), and goes through the same accessors,
with the order, scope and width that the PTX states. Registers become variables, labels labels,
.loc becomes #line. An opcode is known or an error; nothing is guessed.
"""

import re
import sys

sys.dont_write_bytecode = True

from ptxops import Instructions, Unknown, ctype, need  # noqa: E402


class Kernel(Instructions):
    """One .entry: its C++ text in self.out."""

    def __init__(self, name, align, param, size, files):
        super().__init__(param)
        self.name, self.align, self.size, self.files = name, align, size, files
        self.out, self.shared_bytes = [], 0

    def declare_registers(self, statement):
        match = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", statement, re.S)
        kind = {"f32": "b32", "f64": "b64"}.get(match.group(1), match.group(1))
        for one in match.group(2).split(","):
            name, many = re.fullmatch(r"%(\w+?)(?:<(\d+)>)?", one.strip()).groups()
            names = [f"{name}{i}" for i in range(int(many))] if many else [name]
            self.registers.update((f"%{n}", ctype(kind)) for n in names)
            self.out.append(f"{ctype(kind)} {', '.join('v_' + n for n in names)};")

    def declare_shared(self, statement):
        match = re.fullmatch(r"\.shared\s+\.align\s+(\d+)\s+\.(\w+)\s+(\w+)(?:\[(\d+)\])?",
                             statement)
        need(match, statement)
        align, size = int(match.group(1)), int(re.sub(r"\D", "", match.group(2)))
        self.shared_bytes = (self.shared_bytes + align - 1) // align * align
        self.shared[match.group(3)] = self.shared_bytes
        self.shared_bytes += size // 8 * int(match.group(4) or 1)

    def statement(self, text):
        if text.startswith(".reg"):
            self.declare_registers(text)
        elif text.startswith(".shared"):
            self.declare_shared(text)
        elif not text.startswith(".pragma"):
            need(not text.startswith("."), f"directive {text.split()[0]}")
            self.out.append(self.instruction(text))

    def location(self, text):
        number, line = re.match(r"\.loc\s+(\d+)\s+(\d+)", text).groups()
        if int(line):
            self.out.append(f'#line {line} "{self.files[number]}"')

    def body(self, text, line):
        """Statements, labels, blocks and locations, in turn; `line` is where the text starts."""
        token = re.compile(r"\s*(?:(\.loc\s[^\n]*)|(\$?\w+):|([{}])|([^;]+);)")
        at = 0
        while text[at:].strip():
            match = token.match(text, at)
            need(match, f"{text[at:at + 60]!r}")
            where, label, brace, code = match.groups()
            try:
                if where:
                    self.location(where)
                elif label:
                    self.out.append(f"{label.lstrip('$')}:;")
                elif brace:
                    self.out.append(brace)
                else:
                    self.statement(code.strip())
            except Unknown as e:
                raise Unknown(f"{line + text.count(chr(10), 0, match.end())}: {e}") from None
            at = match.end()

    def text(self):
        head = [f"struct {self.name}_struct {{ alignas({self.align}) unsigned char "
                f"b[{self.size}]; }};",
                f"static_assert(sizeof({self.name}_struct) == {self.size}, \"no padding\");",
                f"CM_KERNEL({self.name}, {self.name}_struct)", "{"]
        if self.shared_bytes:
            head.append(f"CM_SHARED(ptx::bytes<{self.shared_bytes}>, shared);")
        return "\n".join(head + self.out + ["}", ""])


def translate(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"//[^\n]*", "", f.read())
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', text, re.M))
    code = text.split("\t.file", 1)[0]
    out = ['#include "ptx2c.h"', ""]
    entry = re.compile(r"\.entry\s+(\w+)\s*\(\s*"
                       r"\.param\s+\.align\s+(\d+)\s+\.b8\s+(\w+)\[(\d+)\]\s*\)[^{;]*\{")
    starts = list(entry.finditer(code))
    if len(starts) != len(re.findall(r"\.entry\b", code)) or re.search(r"\.func\b", code):
        raise Unknown("1: an entry without exactly one struct, or a function")
    ends = [m.start() for m in starts[1:]] + [len(code)]
    for match, end in zip(starts, ends):
        body = code[match.end():end]
        body = body[:body.rindex("}")]
        kernel = Kernel(*match.groups(), files)
        kernel.body(body, code.count("\n", 0, match.end()) + 1)
        out.append(kernel.text())
    return "\n".join(out)


def main(args):
    if len(args) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(translate(args[0]))
    except Unknown as e:
        print(f"{args[0]}:{e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
