"""The command `baseline`: figures that later ones are held against, in files for a repository."""
import argparse
from pathlib import Path

from .baseline_file import parse, text_of
from .common import EXIT_OK, Refused, columns, count_text, say, slug, write_atomically
from .environment import machine_name
from .placement import grouped
from .result import launch_of, read_json
from .sample import sample_of
from .sources import BASELINES, find_baseline, launches_in
from .stats import LEAST_LAUNCHES, deviation, median

def usable_rows(sample):
    """Leave out what cannot be held against. Refused: data was wrong in a launch."""
    wrong = [k.text() for k, r in sorted(sample.rows.items()) if r.wrong]
    if wrong:
        raise Refused(f"{sample.name}: wrong data is no baseline: {'; '.join(wrong)}")
    empty = [k for k, r in sample.rows.items() if not r.times]
    for key in sorted(empty):
        say(f"left out, no figure: {key.text()}")
        del sample.rows[key]
    if not sample.rows:
        raise Refused(f"{sample.name}: no row with a figure")


def save(options):
    launches = []
    for name in options.results:
        path = Path(name)
        launches += launches_in(path)[0] if path.is_dir() else [launch_of(path, read_json(path))]
    sample = sample_of(" ".join(options.results), launches)
    sample = sample.only(next(iter(grouped(sample.parts))))
    usable_rows(sample)
    name = options.name or slug("-".join(sorted({k.collective for k in sample.rows})))
    if slug(name) != name:
        raise Refused(f"--name {name}: use a-z, 0-9, '.', '_' and '-' only, as in '{slug(name)}'")
    path = Path(options.dir) / machine_name(sample.facts) / f"{name}.json"
    text = text_of(sample)
    if path.exists() and not options.replace and path.read_text(encoding="utf-8") != text:
        raise Refused(f"{path} exists; --replace takes its place")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    for note in sample.notes:
        say(note)
    if sample.launches < LEAST_LAUNCHES:
        say(f"{count_text(sample.launches, 'launch')}: a comparison needs at least "
            f"{LEAST_LAUNCHES}, better 5")
    print(f"{path}: {count_text(len(sample.rows), 'row')}, "
          f"{count_text(sample.launches, 'launch')}")
    return EXIT_OK


def list_all(options):
    lines = [("baseline", "rows", "launches", "version", "measured")]
    for path in sorted(Path(options.dir).glob("*/*.json")):
        sample = parse(path, read_json(path))
        lines.append((sample.name, str(len(sample.rows)), str(sample.launches),
                      " | ".join(sample.facts.get("version", [])), sample.measured))
    if len(lines) == 1:
        say(f"no baselines in {options.dir}; 'collmark baseline save RESULT...' makes one")
    else:
        print("\n".join(columns(lines, left=(0, 4))))
    return EXIT_OK


def row_cells(key, row):
    middle = median(row.times)
    bandwidth = row.bandwidth(middle)
    return (key.text(), f"{middle:.2f}", f"{deviation(row.times):.2f}", f"{min(row.times):.2f}",
            f"{max(row.times):.2f}", str(len(row.times)), f"{bandwidth:.3f}" if bandwidth else "-")


def show(options):
    path = Path(options.name)
    if not path.is_file():
        path = find_baseline(options.name, None, Path(options.dir))
    sample = parse(path, read_json(path))
    print(sample.title())
    for name, values in sorted(sample.facts.items()):
        print(f"  {name}: {' | '.join(values)}")
    head = ("row", "median us", "MAD us", "min us", "max us", "launches", "busbw GB/s")
    print("\n".join(columns([head] + [row_cells(k, sample.rows[k]) for k in sorted(sample.rows)],
                            left=(0,))))
    return EXIT_OK


def parser():
    out = argparse.ArgumentParser(
        prog="collmark baseline", description="Figures that later ones are held against.")
    commands = out.add_subparsers(dest="command", required=True, metavar="save|list|show")
    saving = commands.add_parser(
        "save", help="keep results as a baseline",
        description="Keep results under <dir>/<machine>/<name>.json. The machine is named after "
                    "its CPU or GPU, ranks and nodes. Of launches of unlike placement (how far "
                    "apart cores were) the larger part is kept. Exit 2: wrong data, launches "
                    "that were not made alike, or a baseline of that name (--replace).")
    saving.add_argument("results", nargs="+", metavar="RESULT",
                        help="a folder of 'collmark run', or a file of -J")
    saving.add_argument("--name", help="default: the collectives")
    saving.add_argument("--replace", action="store_true", help="over an older one of that name")
    saving.set_defaults(call=save)
    listing = commands.add_parser("list", help="name all baselines")
    listing.set_defaults(call=list_all)
    showing = commands.add_parser("show", help="print one baseline")
    showing.add_argument("name", metavar="NAME", help="[machine/]name, or a file")
    showing.set_defaults(call=show)
    for command in (saving, listing, showing):
        command.add_argument("--dir", default=BASELINES, help="default: results/baselines")
    return out


def main(argv):
    options = parser().parse_args(argv)
    return options.call(options)
