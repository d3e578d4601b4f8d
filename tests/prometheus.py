"""A strict reader of Prometheus' text format 0.0.4, as a textfile collector takes it.

    prometheus.py FILE...       exit 0 if every file keeps to the format

Beyond the grammar: a metric has HELP and TYPE, in this order, before its samples, which stand
together; no series comes twice; samples have no time stamp; the text is UTF-8; names, also those
of labels, are in lower case; gauges have no suffix that belongs to counters.
"""
import math
import re
import sys

NAME = r"[a-z_:][a-z0-9_:]*"
LABEL = r"[a-z_][a-z0-9_]*"
VALUE = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|Inf)|NaN"
PAIR = re.compile(rf'({LABEL})="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? ({VALUE})")


class Wrong(ValueError):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def read_labels(text, line):
    """{name: value} from what stands between the braces."""
    labels, at = {}, 0
    while at < len(text):
        pair = PAIR.match(text, at)
        check(pair, f"labels from {text[at:at + 40]!r}: {line}")
        name, value = pair.groups()
        check(not name.startswith("__") and name not in labels, f"label {name}: {line}")
        check(value, f"label {name} is empty, which is as good as absent: {line}")
        labels[name] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)
        at = pair.end()
        check(at == len(text) or text[at] == ",", f"no comma behind {name}: {line}")
        at += 1
    return labels


def read(data):
    """[(metric, labels, value)] of a file's bytes."""
    text = data.decode("utf-8")
    check(text.endswith("\n"), "the last line has no end")
    samples, seen, closed, helped, typed, current = [], set(), set(), None, None, None
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if comment and comment[1] == "HELP":
            check(comment[2] not in closed and comment[2] != current, f"HELP twice: {line}")
            check(not re.search(r"\\(?![\\n])", comment[3]), f"escapes: {line}")
            closed.add(current)
            helped, typed, current = comment[2], None, comment[2]
        elif comment:
            check(comment[2] == helped and typed is None, f"TYPE without HELP before it: {line}")
            check(comment[3] == "gauge", f"not a gauge: {line}")
            check(not re.search(r"_(total|bucket|sum|count)$", comment[2]), f"name: {line}")
            typed = comment[2]
        else:
            sample = SAMPLE.fullmatch(line)
            check(sample, f"not a line of the format: {line!r}")
            check(sample[1] == typed, f"sample of another metric than {typed}: {line}")
            labels = read_labels(sample[2] or "", line)
            key = (sample[1], tuple(sorted(labels.items())))
            check(key not in seen, f"the series comes twice: {line}")
            seen.add(key)
            value = float(sample[3].replace("Inf", "inf"))
            check(math.isfinite(value), f"value: {line}")
            samples.append((sample[1], labels, value))
    return samples


def main(paths):
    failed = False
    for path in paths:
        try:
            with open(path, "rb") as f:
                read(f.read())
        except (Wrong, UnicodeDecodeError) as wrong:
            print(f"{path}: {wrong}")
            failed = True
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
