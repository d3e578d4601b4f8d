"""PTX instructions as C++ statements, for ptx2c.py. What each means is in ptx2c.h."""

import re

CTYPES = {"pred": "bool", "f32": "float", "f64": "double"}
for width in (8, 16, 32, 64):
    CTYPES[f"u{width}"] = CTYPES[f"b{width}"] = f"uint{width}_t"
    CTYPES[f"s{width}"] = f"int{width}_t"
SPECIAL = {"%tid.x": "cm_tid()", "%ntid.x": "cm_nthr()", "%ctaid.x": "cm_bid_x()",
           "%ctaid.y": "cm_bid_y()", "%nctaid.x": "cm_nblk_x()"}

# Opcodes whose meaning is a function of ptx2c.h on operands of the instruction's one type.
PLAIN = {"add": 2, "sub": 2, "mul": 2, "mul.lo": 2, "mul.hi": 2, "mul.wide": 2, "div": 2, "rem": 2,
         "neg": 1, "abs": 1, "min": 2, "max": 2, "fma.rn": 3,
         "shf.l.wrap": 3, "shf.r.wrap": 3, "prmt": 3}
# The first n operands have the type, the others are 32-bit counts.
COUNTED = {"shl": (1, 1), "shr": (1, 1), "bfi": (2, 2), "bfe": (1, 2)}
LOGIC = {"and": "&", "or": "|", "xor": "^"}
# The same as PLAIN, written as an operator: integers in 64 bits, so that they wrap.
OPERATORS = {"add": "+", "sub": "-", "mul.lo": "*"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNSIGNED_COMPARE = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
# Ordered accesses, by the instruction without ".global".
ORDERED_LOADS = {
    "ld.acquire.sys.u64": "cm_ld_acquire_sys((const uint64_t *)({at}))",
    "ld.acquire.gpu.u64":
        "cmsim_ld_acquire((const uint64_t *)({at}), CMSIM_GPU, {{__FILE__, __LINE__}})",
    "ld.acquire.cta.u64":
        "cmsim_ld_acquire((const uint64_t *)({at}), CMSIM_CTA, {{__FILE__, __LINE__}})",
    "ld.relaxed.sys.u32": "cm_ld_relaxed_sys((const uint32_t *)({at}))",
    "ld.relaxed.sys.u64": "cm_ld_relaxed_sys_u64((const uint64_t *)({at}))",
}
ORDERED_STORES = {
    "st.release.sys.u64": "cm_st_release_sys((uint64_t *)({at}), {v})",
    "st.release.gpu.u64":
        "cmsim_st_release((uint64_t *)({at}), {v}, CMSIM_GPU, {{__FILE__, __LINE__}})",
    "st.release.cta.u64":
        "cmsim_st_release((uint64_t *)({at}), {v}, CMSIM_CTA, {{__FILE__, __LINE__}})",
    "st.relaxed.sys.u32": "cm_st_relaxed_sys((uint32_t *)({at}), {v})",
    "st.relaxed.sys.u64": "cm_st_relaxed_sys_u64((uint64_t *)({at}), {v})",
}


class Unknown(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Unknown(why)


def ctype(name):
    need(name in CTYPES, f"type .{name}")
    return CTYPES[name]


class Instructions:
    """What an instruction needs to know of its kernel: registers, parameter, shared memory."""

    def __init__(self, param):
        self.param = param
        self.shared = {}  # name: bytes from the start of the block's shared memory
        self.registers = {}  # name: C type

    # ---- operands

    def read(self, operand, kind):
        """An operand as a value of a type."""
        want, have = ctype(kind), self.registers.get(operand)
        if have == want:
            return self.raw(operand)
        if want in ("float", "double"):
            return f"ptx::get<{want}>({self.raw(operand)})"
        if want == "bool":
            return f"({self.raw(operand)} != 0)"
        return f"({want})({self.raw(operand)})"

    def raw(self, operand):
        """An operand's bits as a C++ expression."""
        if operand in SPECIAL:
            return SPECIAL[operand]
        if re.fullmatch(r"%\w+", operand):
            return "v_" + operand[1:]
        if re.fullmatch(r"!%\w+", operand):
            return "!v_" + operand[2:]
        if re.fullmatch(r"0f[0-9a-fA-F]{8}", operand):
            return f"0x{operand[2:]}u"
        if re.fullmatch(r"0d[0-9a-fA-F]{16}", operand):
            return f"0x{operand[2:]}ull"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", operand):
            value = int(operand.rstrip("U"), 0)
            return str(value) if 0 <= value < 1 << 31 else f"(int64_t){value & (1 << 64) - 1:#x}ull"
        if operand == self.param:
            return "(uint64_t)&a"
        need(operand in self.shared, f"operand {operand}")
        return str(self.shared[operand])

    def address(self, operand, space):
        match = re.fullmatch(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]", operand)
        need(match, f"address {operand}")
        base = self.raw(match.group(1))
        if space == "shared":
            base = f"(uint64_t)shared.b + {base}"
        return f"{base} + ({match.group(2) or 0})"

    def assign(self, dest, value, kind=None):
        """kind: what the value is converted to before it fills the register; None: it is that."""
        need(dest in self.registers, f"destination {dest}")
        if kind is None or kind[0] == "f":
            return f"ptx::set(v_{dest[1:]}, {value});"
        value = f"({ctype(kind)})({value})"
        if ctype(kind) != self.registers[dest]:
            value = f"({self.registers[dest]}){value}"
        return f"v_{dest[1:]} = {value};"

    # ---- instructions

    def instruction(self, text):
        guard = re.match(r"@(!?)%(\w+)\s+", text)
        if guard:
            text = text[guard.end():]
        op, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        operands = [o.strip() for o in re.split(r",(?![^{\[]*[}\]])", rest.strip()) if o.strip()]
        code = self.translate(op.strip(), operands)
        if guard:
            code = f"if ({guard.group(1)}v_{guard.group(2)}) {{ {code} }}"
        return code

    def translate(self, op, args):
        parts = op.split(".")
        method = getattr(self, "op_" + parts[0], None)
        if method:
            return method(op, parts[1:], args)
        kind = parts[-1]
        # Float operations state their rounding; the host rounds to nearest, too.
        name = op[:-len(kind) - 1]
        if kind in ("f32", "f64") and name.split(".")[0] in ("add", "sub", "mul", "div"):
            name = name.removesuffix(".rn")
        if name in OPERATORS and kind[0] != "f":
            a, b = (f"(uint64_t){self.read(x, kind)}" for x in args[1:])
            return self.assign(args[0], f"{a} {OPERATORS[name]} {b}", kind)
        if name in PLAIN:
            need(len(args) == PLAIN[name] + 1, f"operands of {op}")
            values = ", ".join(self.read(a, kind) for a in args[1:])
            template = "" if name == "prmt" else f"<{ctype(kind)}>"
            return self.assign(args[0], f"ptx::{name.replace('.', '_')}{template}({values})")
        if name in COUNTED:
            typed, counts = COUNTED[name]
            need(len(args) == 1 + typed + counts, f"operands of {op}")
            if name[:2] == "sh" and args[2].isdigit() and int(args[2]) < int(kind[1:]):
                shift = "<<" if name == "shl" else ">>"
                return self.assign(args[0], f"{self.read(args[1], kind)} {shift} {args[2]}", kind)
            values = [self.read(a, kind) for a in args[1:1 + typed]]
            values += [self.read(a, "u32") for a in args[1 + typed:]]
            return self.assign(args[0], f"ptx::{name}<{ctype(kind)}>({', '.join(values)})")
        if name in LOGIC:
            a, b = (self.read(x, kind) for x in args[1:])
            return self.assign(args[0], f"{a} {LOGIC[name]} {b}", kind)
        raise Unknown(f"opcode {op}")

    def op_not(self, op, mods, args):
        sign = "!" if mods[0] == "pred" else "~"
        return self.assign(args[0], sign + self.read(args[1], mods[0]), mods[0])

    def op_mad(self, op, mods, args):
        need(mods[0] in ("lo", "hi", "wide"), f"opcode {op}")
        kind = mods[1]
        product = f"ptx::mul_{mods[0]}<{ctype(kind)}>({self.read(args[1], kind)}, " \
                  f"{self.read(args[2], kind)})"
        if mods[0] == "wide":
            kind = kind[0] + str(2 * int(kind[1:]))
        added = self.read(args[3], kind)
        return self.assign(args[0], f"ptx::add<{ctype(kind)}>({product}, {added})")

    def op_selp(self, op, mods, args):
        yes, no = self.read(args[1], mods[0]), self.read(args[2], mods[0])
        return self.assign(args[0], f"{self.read(args[3], 'pred')} ? {yes} : {no}", mods[0])

    def op_setp(self, op, mods, args):
        kind, compare = mods[-1], UNSIGNED_COMPARE.get(mods[0], mods[0])
        need(re.fullmatch(r"(eq|ne|lt|le|gt|ge)u?|nan|num", compare), f"opcode {op}")
        a, b = self.read(args[1], kind), self.read(args[2], kind)
        if kind[0] == "f":
            value = f"ptx::cmp_{compare}<{ctype(kind)}>({a}, {b})"
        else:
            need(compare in COMPARE, f"opcode {op}")
            value = f"({a} {COMPARE[compare]} {b})"
        if len(mods) == 3:
            need(mods[1] in LOGIC and len(args) == 4, f"opcode {op}")
            value = f"{value} {LOGIC[mods[1]]} {self.read(args[3], 'pred')}"
        else:
            need(len(mods) == 2 and len(args) == 3, f"opcode {op}")
        return self.assign(args[0], value, "pred")

    def op_mov(self, op, mods, args):
        kind, (dest, source) = mods[0], args
        if dest.startswith("{"):
            parts = self.vector(dest)
            part = int(kind[1:]) // len(parts)
            return " ".join(
                self.assign(d, f"(uint{part}_t)({self.read(source, kind)} >> {i * part})")
                for i, d in enumerate(parts) if d != "_")
        if source.startswith("{"):
            parts = self.vector(source)
            part = int(kind[1:]) // len(parts)
            values = (f"({ctype(kind)}){self.read(s, f'u{part}')} << {i * part}"
                      for i, s in enumerate(parts))
            return self.assign(dest, f"({ctype(kind)})({' | '.join(values)})")
        return self.assign(dest, self.read(source, kind), kind)

    def op_cvta(self, op, mods, args):
        """Generic addresses are real ones; only shared memory is counted from its own start."""
        space = mods[-2]
        need(space in ("global", "param", "shared") and mods[-1] == "u64", f"opcode {op}")
        value = self.read(args[1], "u64")
        if space == "shared":
            value += " - (uint64_t)shared.b" if mods[0] == "to" else " + (uint64_t)shared.b"
        return self.assign(args[0], value, "u64")

    def op_cvt(self, op, mods, args):
        plain = [m for m in mods if m in CTYPES]
        if mods[0] in ("rn", "rzi", "rni"):
            mode, mods = mods[0], mods[1:]
        else:
            mode = None
        if len(plain) == 2 and len(mods) == 2:
            return self.assign(args[0], self.convert(op, mode, mods, args[1]), mods[0])
        pair = re.fullmatch(r"(rn\.)?(f32)\.(f16|bf16)|rn\.(f16|bf16)\.(f32)", op[4:])
        if pair and pair.group(2):
            return self.assign(args[0], f"ptx::widen(ptx::{pair.group(3)}, "
                                        f"{self.read(args[1], 'b16')})")
        if pair:
            return self.assign(args[0], f"(uint16_t)ptx::narrow(ptx::{pair.group(4)}, "
                                        f"{self.read(args[1], 'f32')}, false)")
        return self.convert_pair(op, args)

    def convert(self, op, mode, kinds, source):
        to, value = kinds[0], self.read(source, kinds[1])
        if to[0] == "f" or kinds[1][0] != "f":
            need(mode in (None, "rn"), f"opcode {op}")
            return f"({ctype(to)}){value}"
        need(mode in ("rzi", "rni"), f"opcode {op}")
        rounding = "trunc" if mode == "rzi" else "rint"
        return f"ptx::to_int<{ctype(to)}>(({ctype(kinds[1])}){rounding}({value}))"

    def convert_pair(self, op, args):
        """Two small floats at once, the first operand in the upper half."""
        down = re.fullmatch(r"cvt\.rn\.(satfinite\.)?(e4m3|e5m2|f16|bf16)x2\.f32", op)
        up = re.fullmatch(r"cvt\.rn\.f16x2\.(e4m3|e5m2)x2", op)
        if up:
            return self.assign(args[0], f"ptx::widen2_f16(ptx::{up.group(1)}, "
                                        f"{self.read(args[1], 'b16')})")
        need(down, f"opcode {op}")
        half = [f"ptx::narrow(ptx::{down.group(2)}, {self.read(a, 'f32')}, "
                f"{'true' if down.group(1) else 'false'})" for a in args[1:]]
        width = 16 if down.group(2) in ("f16", "bf16") else 8
        return self.assign(args[0], f"(uint{2 * width}_t)({half[0]} << {width} | {half[1]})")

    # ---- memory

    @staticmethod
    def vector(text):
        return [x.strip() for x in text.strip("{} ").split(",")]

    def access(self, op, mods):
        """(space, number of elements, type) of a weak access."""
        spaces = [m for m in mods if m in ("global", "shared", "param")]
        counts = [int(m[1]) for m in mods if m in ("v2", "v4")]
        need(len(mods) == len(spaces) + len(counts) + 1 and len(spaces) < 2, f"opcode {op}")
        return (spaces + ["generic"])[0], (counts + [1])[0], mods[-1]

    def op_ld(self, op, mods, args):
        ordered = ORDERED_LOADS.get(op.replace(".global", ""))
        if ordered:
            return self.assign(args[0], ordered.format(at=self.address(args[1], "global")))
        space, count, kind = self.access(op, mods)
        how = "load_own" if space in ("shared", "param") else "load"
        at = self.address(args[1], space)
        dests = self.vector(args[0])
        if count == 1 and space in ("shared", "param"):
            return self.assign(args[0], f"*(const {ctype(kind)} *)({at})")
        if count == 1:
            return self.assign(args[0], f"cm_ld((const {ctype(kind)} *)({at}))")
        parts = " ".join(self.assign(d, f"x.v[{i}]") for i, d in enumerate(dests) if d != "_")
        return f"{{ auto x = ptx::{how}<{ctype(kind)}, {count}>({at}); {parts} }}"

    def op_st(self, op, mods, args):
        ordered = ORDERED_STORES.get(op.replace(".global", ""))
        if ordered:
            return ordered.format(at=self.address(args[0], "global"),
                                  v=self.read(args[1], mods[-1])) + ";"
        space, count, kind = self.access(op, mods)
        need(space != "param", f"opcode {op}")
        how = "store_own" if space == "shared" else "store"
        values = ", ".join(self.read(v, kind) for v in self.vector(args[1]))
        at = self.address(args[0], space)
        return f"ptx::{how}<{ctype(kind)}, {count}>({at}, {{{{{values}}}}});"

    def op_atom(self, op, mods, args):
        need(op == "atom.relaxed.gpu.global.add.u64", f"opcode {op}")
        at, value = self.address(args[1], "global"), self.read(args[2], "u64")
        return self.assign(args[0], f"cm_add_relaxed_gpu((uint64_t *)({at}), {value})")

    # ---- control

    def op_bar(self, op, mods, args):
        if op == "bar.sync" and args == ["0"]:
            return "cm_bar();"
        need(op == "bar.red.or.pred" and args[1] == "0" and len(args) == 3, f"opcode {op}")
        return self.assign(args[0], f"cm_bar_or({self.read(args[2], 'pred')})")

    def op_bra(self, op, mods, args):
        return f"goto {args[0].lstrip('$')};"

    def op_ret(self, op, mods, args):
        return "return;"

    op_exit = op_ret

    def op_nanosleep(self, op, mods, args):
        return f"cm_pause_ns({self.read(args[0], 'u32')});"

    def op_prefetch(self, op, mods, args):
        return f"cm_prefetch((const void *)({self.address(args[0], 'global')}));"
