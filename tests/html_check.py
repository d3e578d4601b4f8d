"""What a page must be like, whatever it says: for tests/test_html_report.py.

    Page(text)          parsed strictly; its complaints() are faults of structure, of access for
                        keyboard and screen readers, and everything that reaches out of the file
    contrasts(css)      pairs of colours of a style sheet that are too close to each other
    browse(...)         what headless Chromium makes of it
"""
import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from html.parser import HTMLParser

VOID = set("area base br col embed hr img input link meta source track wbr".split())
# The one attribute that loads something is a reference within the page.
OUTWARD = re.compile(r"https?:|//[a-z]|@import|url\((?!#)|javascript:", re.I)


class Page(HTMLParser):
    """Elements as (tag, attributes, path of tags above), and what is wrong with their nesting."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source, self.stack, self.elements, self.faults = text, [], [], []
        self.words = []
        self.feed(text)
        self.close()
        if self.stack:
            self.faults.append(f"never closed: {self.stack}")

    def handle_starttag(self, tag, attrs):
        names = [n for n, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice: {names}")
        self.elements.append((tag, dict(attrs), tuple(self.stack)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.stack)))
        if "svg" not in self.stack:
            self.faults.append(f"<{tag}/> closes itself outside of an SVG")

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.faults.append(f"</{tag}> at line {self.getpos()[0]} closes another element")

    def handle_data(self, data):
        if "style" not in self.stack:
            self.words.append(data)

    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [(a, above) for t, a, above in self.elements if t == tag]

    # ---- complaints ----

    def outward(self):
        allowed = {"script", "iframe", "object", "embed", "img", "link", "form", "base"}
        yield from (f"<{t}>" for t, _, _ in self.elements if t in allowed)
        for tag, attrs, _ in self.elements:
            for name, value in attrs.items():
                if name.startswith("on") or name in ("src", "srcset", "action", "ping"):
                    yield f"{name} of <{tag}>"
                if name.endswith("href") and not value.startswith("#"):
                    yield f"<{tag} {name}={value!r}>"
                if name == "style" and OUTWARD.search(value):
                    yield f"<{tag} style={value!r}>"
        style = re.search(r"<style>(.*?)</style>", self.source, re.S)
        if style and OUTWARD.search(style[1]):
            yield "the style sheet reaches out"
        if "default-src 'none'" not in self.source:
            yield "no content security policy"

    def references(self):
        ids = [a["id"] for _, a, _ in self.elements if "id" in a]
        yield from (f"id {i} twice" for i in set(ids) if ids.count(i) > 1)
        for tag, attrs, _ in self.elements:
            wanted = re.findall(r"url\(#([^)]+)\)", " ".join(v or "" for v in attrs.values()))
            wanted += [attrs["href"][1:]] if attrs.get("href", "").startswith("#") else []
            wanted += attrs.get("aria-labelledby", "").split()
            yield from (f"<{tag}> refers to #{w}" for w in wanted if w not in ids)

    def outline(self):
        levels = [int(t[1]) for t, _, _ in self.elements if re.fullmatch("h[1-6]", t)]
        if levels[:1] != [1] or levels.count(1) != 1:
            yield f"headings: {levels}"
        yield from (f"heading h{b} after h{a}" for a, b in zip(levels, levels[1:]) if b > a + 1)
        for tag in ("header", "main", "footer", "nav", "title"):
            if len(self.all(tag)) != 1:
                yield f"{len(self.all(tag))} <{tag}>"
        if not self.all("html") or not self.all("html")[0][0].get("lang"):
            yield "no language"

    def access(self):
        for attrs, above in self.all("svg"):
            named = attrs.get("role") == "img" and attrs.get("aria-label")
            if not named and attrs.get("aria-hidden") != "true":
                yield f"a drawing without a text: {attrs}"
            if named and "figure" not in above:
                yield "a drawing outside of a figure has no table of its data"
        for attrs, _ in self.all("div"):
            if "scroll" in attrs.get("class", "").split() and not (
                    attrs.get("tabindex") == "0" and attrs.get("aria-label")):
                yield f"a box that scrolls, but not by keyboard: {attrs}"
        yield from ("<th> without scope" for a, _ in self.all("th") if not a.get("scope"))
        pieces = re.findall(r"<figure>.*?</figure>", self.source, re.S)
        yield from ("a figure without a table" for p in pieces if "<table>" not in p)

    def complaints(self):
        found = [*self.faults, *self.outward(), *self.references(), *self.outline(),
                 *self.access()]
        if not self.source.startswith("<!DOCTYPE html>\n<html"):
            found.append("no doctype")
        return found


# ---- colours -----------------------------------------------------------------------------------

def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def contrasts(css):
    """Complaints by WCAG 2 AA: 4.5 for text, 3 for what is drawn; for both sides of the page."""
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    light = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", blocks[0]))
    dark = {**light, **dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", blocks[1]))}
    texts = [(ink, on) for ink in ("ink", "soft", "link", "good", "bad", "warn")
             for on in ("paper", "panel")] + [("bad", "bad-panel"), ("ink", "bad-panel")]
    texts += [(f"hi{i}", f"h{i}") for i in range(7)]
    drawn = [(f"s{i}", "paper") for i in range(8)] + [("focus", "paper"), ("axis", "paper")]
    for side, colours in (("light", light), ("dark", dark)):
        for least, pairs in ((4.5, texts), (3.0, drawn)):
            for a, b in pairs:
                got = contrast(colours[a], colours[b])
                if got < least:
                    yield f"{side}: {a} on {b} has {got:.2f}, wanted {least}"


# ---- Chromium ----------------------------------------------------------------------------------

def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


# Measures a page in a frame, so that the page itself needs no script: its policy forbids one.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>
<pre id="out"></pre><script>
onload = () => {
  const d = document.querySelector('iframe').contentDocument, w = d.defaultView;
  const style = (s) => w.getComputedStyle(d.querySelector(s));
  const boxes = (svg) => [...svg.querySelectorAll('text')].map(t => {
    const b = t.getBoundingClientRect();
    return [t.textContent, b.left, b.top, b.right, b.bottom];
  });
  d.querySelector('.skip').focus();
  document.getElementById('out').textContent = JSON.stringify({
    wide: d.documentElement.scrollWidth - d.documentElement.clientWidth,
    paper: style('body').backgroundColor, ink: style('body').color,
    skip: d.querySelector('.skip').getBoundingClientRect().left,
    outline: style('.skip').outlineStyle,
    line: d.querySelector('figure svg[role=img]') && w.getComputedStyle(
      d.querySelector('figure svg[role=img] path[style*="--s0"]')).stroke,
    texts: [...d.querySelectorAll('figure > svg')].map(boxes)});
};
</script>"""


def chrome(folder, dark, *args):
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--disable-background-networking", "--disable-dev-shm-usage",
               f"--user-data-dir={folder}/chromium",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", *args]
    return subprocess.run(command, capture_output=True, timeout=90, check=False, text=True,
                          env={**os.environ, "HOME": folder})


def measure(folder, page, width, dark=False):
    """What the probe saw, or None if Chromium does not start here."""
    path = os.path.join(folder, "probe.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROBE % (width, escape(page)))
    done = chrome(folder, dark, "--window-size=1400,1000", "--virtual-time-budget=4000",
                  "--dump-dom", f"file://{path}")
    found = re.search(r'<pre id="out">(.+?)</pre>', done.stdout, re.S)
    return json.loads(unescape(found[1])) if found else None


def screenshot(folder, path, out, width, height, dark=False):
    done = chrome(folder, dark, f"--window-size={width},{height}", f"--screenshot={out}",
                  f"file://{path}")
    return done.returncode == 0 and os.path.isfile(out)


def overlaps(texts):
    """Pairs of labels of a drawing that lie on one another."""
    for i, (a, *p) in enumerate(texts):
        for b, *q in texts[:i]:
            if min(p[2], q[2]) - max(p[0], q[0]) > 1 and min(p[3], q[3]) - max(p[1], q[1]) > 1:
                yield f"{a!r} over {b!r}"
