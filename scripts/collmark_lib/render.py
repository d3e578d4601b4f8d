"""A comparison as text, as Markdown and as annotations of GitHub. The same report gives the same
bytes: no time of day, no order of chance.
"""
from .common import EXIT_BELOW, EXIT_OK, EXIT_USAGE, columns, count_text, one_line
from .verdict import FAILING, IMPROVED, ORDER, SAME

MOST_ANNOTATIONS = 10  # GitHub shows no more of one step


def change_text(row):
    return "-" if row.change is None else f"{row.change * 100:+.1f} %"


def cells(row):
    old, new = row.figures()
    return (row.verdict, one_line(row.key.text()), old, new, change_text(row),
            "-" if row.noise is None else f"{row.noise * 100:.1f} %",
            "-" if row.p is None else f"{row.p:.2g}", one_line(row.why))


HEAD = ("verdict", "row", "old", "new", "change", "noise", "p", "")


def in_order(rows):
    """What matters first, within that by key."""
    return sorted(rows, key=lambda r: (ORDER.index(r.verdict), r.key))


def headline(report):
    c = report.comparison
    words = {
        EXIT_OK: "as fast as before",
        EXIT_BELOW: "not as fast as before, or not shown to be",
        EXIT_USAGE: "not compared, no row has figures of enough launches on both sides"}
    text = f"{words[c.exit_code()]}: {c.in_short()}"
    if c.exit_code() == EXIT_OK and c.having(IMPROVED):
        text += "; a new baseline would keep what was gained"
    return text


def preface(report):
    """Samples, what differs between them, and how they were judged; (label, text)."""
    out = [("OLD", report.old.title()), ("NEW", report.new.title())]
    out += [("note", f"{side}: {note}") for side, sample in (("OLD", report.old),
                                                             ("NEW", report.new))
            for note in sample.notes]
    out += [("FORCED", text) for text in report.forced]
    out += [("differs", text) for text in report.soft]
    out += [("method", text) for text in report.comparison.method]
    return [(label, one_line(text)) for label, text in out]


def text(report):
    lines = [f"{label:<8} {value}" for label, value in preface(report)]
    rows = [HEAD] + [cells(r) for r in in_order(report.comparison.rows)]
    lines += ["", *columns(rows, left=(0, 1, 7)), "", headline(report)]
    for row in in_order(report.comparison.having(*FAILING)):
        lines.append(f"{row.verdict}: {sentence(row)}")
    return "\n".join(lines)


def sentence(row):
    """A row in words."""
    old, new = row.figures()
    parts = [row.key.text()]
    if row.change is not None:
        parts.append(f"{old} -> {new} ({change_text(row)}, noise {row.noise * 100:.1f} %)")
    if row.why:
        parts.append(row.why)
    return one_line("; ".join(parts))


def escaped(value):
    """For a cell of a Markdown table, which is also HTML."""
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\|`*_[]":
        value = value.replace(mark, "\\" + mark)
    return " ".join(value.split())


def table(rows):
    head = [h or "remark" for h in HEAD]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---:|---:|---:|---:|---:|---|"]
    return lines + ["| " + " | ".join(escaped(c) for c in cells(r)) + " |" for r in rows]


def markdown(report):
    """Rows that changed in a table, the others folded away."""
    rows = in_order(report.comparison.rows)
    changed = [r for r in rows if r.verdict != SAME]
    same = [r for r in rows if r.verdict == SAME]
    lines = [f"### Collmark: {escaped(headline(report))}", ""]
    lines += [f"- **{label}** {escaped(value)}" for label, value in preface(report)]
    if changed:
        lines += ["", *table(changed)]
    if same:
        lines += ["", f"<details><summary>{count_text(len(same), 'row')} the same</summary>", "",
                  *table(same), "", "</details>"]
    return "\n".join(lines) + "\n"


def message_text(value):
    for mark in "%\r\n":
        value = value.replace(mark, f"%{ord(mark):02X}")
    return value


def property_text(value):
    value = message_text(value)
    for mark in ":,":
        value = value.replace(mark, f"%{ord(mark):02X}")
    return value


def annotations(report):
    """GitHub's workflow commands: an error per failing row, and one notice in short."""
    failing = in_order(report.comparison.having(*FAILING))
    named = len(failing) if len(failing) <= MOST_ANNOTATIONS else MOST_ANNOTATIONS - 1
    out = []
    for row in failing[:named]:
        title = property_text(f"Collmark: {row.verdict}")
        out.append(f"::error title={title}::{message_text(sentence(row))}")
    if len(failing) > named:
        out.append(f"::error title=Collmark::and {len(failing) - named} rows more")
    out.append(f"::notice title=Collmark::{message_text(headline(report))}")
    return out
