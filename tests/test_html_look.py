#!/usr/bin/env python3
"""`collmark report`: how its pages look, and that two commands lead to one.

Chromium and tidy are used where they are installed (scripts/install_deps.sh browser).
"""
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

from collmark_rig import ROOT, STRETCH, check, run_tests  # noqa: E402
from html_check import Page, chromium, contrasts, measure, overlaps, screenshot  # noqa: E402
from html_pages import LIBRARY, Report, has_drawings, keep, make_document  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("BUILDDIR", "build"))
SUFFIX = os.environ.get("NAME_SUFFIX", "")


def test_colours():
    with open(os.path.join(LIBRARY, "report.css"), encoding="utf-8") as file:
        found = list(contrasts(file.read()))
    check(not found, found)


def test_the_checks_can_fail(folder):
    page = Report(folder, keep(folder, "good.json", make_document())).page
    spoiled = (
        ("</main>", ""), ("<h2 ", "<h4 "), ('<body>', '<body onload="x()">'),
        ("<style>", "<style>@import 'x';"), ('tabindex="0"', ""), ('scope="row"', ""),
        ('href="#rows"', 'href="#nowhere"'), ('href="#rows"', 'href="http://example.org"'),
        ("<body>", "<body><script>1</script>"), ('lang="en"', ""), ('id="rows"', 'id="charts"'),
        ("default-src 'none'", "default-src *"))
    for old, new in spoiled:
        check(old in page, f"{old} is not on the page")
        check(Page(page.replace(old, new, 1)).complaints(), f"{old} -> {new!r}: not noticed")


def test_tidy(folder):
    if not shutil.which("tidy"):
        return "no tidy"
    report = Report(folder, keep(folder, "good.json", make_document()), drawings=True)
    done = subprocess.run(["tidy", "-q", "-e", "-utf8", report.path], capture_output=True,
                          text=True, check=False)
    check(done.returncode < 2, done.stderr[:600])
    return None


def test_browser(folder):
    if not chromium():
        return "no Chromium"
    report = Report(folder, keep(folder, "good.json", make_document()),
                    keep(folder, "other.json", make_document(speed=1.3)), drawings=True)
    colours = {}
    for width, dark in ((390, False), (1280, True)):
        seen = measure(folder, report.page, width, dark)
        if seen is None:
            return "Chromium does not start here"
        colours[dark] = (seen["paper"], seen["line"])
        check(seen["wide"] <= 0, f"{width} wide: scrolls sideways by {seen['wide']}")
        check(seen["skip"] >= 0 and seen["outline"] != "none", "the skip link stays hidden")
        check(len(seen["texts"]) == (7 if has_drawings() else 0), f"{len(seen['texts'])} drawings")
        for texts in seen["texts"]:
            check(not list(overlaps(texts)), f"{width} wide: {list(overlaps(texts))}")
            check(min(t[4] - t[2] for t in texts) > 9, f"{width} wide: text too small to read")
    lines = ("rgb(10, 108, 176)", "rgb(93, 178, 240)") if has_drawings() else (None, None)
    check(colours[False] == ("rgb(255, 255, 255)", lines[0]), f"light: {colours[False]}")
    check(colours[True] == ("rgb(17, 22, 27)", lines[1]), f"dark: {colours[True]}")
    check(screenshot(folder, report.path, f"{folder}/page.png", 1280, 2000, dark=True),
          "no screenshot")
    return None


def test_the_same_bytes_every_time(folder):
    paths = [keep(folder, "a/run.json", make_document()),
             keep(folder, "b/run.json", make_document(speed=1.2)),
             keep(folder, "räck №1.json", make_document(speed=0.9))]
    pages = []
    for number, locale in enumerate(("C", "C.UTF-8")):
        report = Report(folder, *paths, out=f"{number}.html", drawings=True, env={
            "LC_ALL": locale, "PYTHONHASHSEED": str(number), "TZ": f"UTC{number}",
            "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
        report.expect("a/run", "b/run", "räck №1")
        pages.append(report.page)
    check(len(set(pages)) == 1, "the locale, the hash seed or the time is in the page")


def test_quickstart_names_the_second_command(folder):
    if not os.path.isfile(os.path.join(BUILD, f"all_reduce_perf{SUFFIX}")):
        return "no driver was built"
    tools = os.path.join(folder, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "make"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(os.path.join(tools, "make"), 0o755)
    first = subprocess.run(
        [os.path.join(ROOT, "scripts/quickstart.sh"), "-g", "2", "-b", "1K", "-e", "4K", "-f", "2",
         "-J", os.path.join(folder, "first.json")], capture_output=True, text=True, check=False,
        timeout=60 * STRETCH,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "BUILDDIR": BUILD})
    if "without JSON" in first.stderr or "cJSON" in first.stderr:
        return "a build without cJSON"
    check(first.returncode == 0, first.stderr)
    said = re.search(r"^  .*(scripts/collmark report \S+) -o report.html$", first.stderr, re.M)
    check(said, first.stderr)
    subprocess.run(f"{said[1]} -o {folder}/report.html", shell=True, check=True, cwd=ROOT,
                   capture_output=True, timeout=60 * STRETCH)
    with open(f"{folder}/report.html", encoding="utf-8") as file:
        page = Page(file.read())
    check(not page.complaints() and "All right" in page.text(), page.complaints())
    return None


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
