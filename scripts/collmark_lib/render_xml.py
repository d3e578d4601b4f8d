"""A comparison as JUnit XML, as Jenkins, GitLab and others read it (tests/junit.xsd).

A row is a test case: regressed and missing are failures, unusable is an error, new is skipped.
"""
from xml.etree import ElementTree

from .common import one_line
from .render import preface, sentence
from .verdict import MISSING, NEW, REGRESSED, UNUSABLE

KINDS = {REGRESSED: "failure", MISSING: "failure", UNUSABLE: "error", NEW: "skipped"}


def add_properties(suite, report):
    properties = ElementTree.SubElement(suite, "properties")
    facts = [(f"new {name}", " | ".join(values)) for name, values in
             sorted(report.new.facts.items())]
    for name, value in preface(report) + facts:
        ElementTree.SubElement(properties, "property", name=one_line(name), value=one_line(value))


def add_case(suite, row):
    case = ElementTree.SubElement(
        suite, "testcase", classname=one_line(f"collmark.{row.key.collective}"),
        name=one_line(f"{row.key.text()}, {row.key.ranks} ranks, {row.key.nodes} nodes"), time="0")
    kind = KINDS.get(row.verdict)
    said = sentence(row)
    if kind == "skipped":
        ElementTree.SubElement(case, kind, message=said)
    elif kind:
        ElementTree.SubElement(case, kind, message=said, type=row.verdict).text = said
    else:
        ElementTree.SubElement(case, "system-out").text = f"{row.verdict}: {said}"


def junit(report):
    rows = report.comparison.rows
    counts = {kind: str(sum(1 for r in rows if KINDS.get(r.verdict) == kind))
              for kind in ("failure", "error", "skipped")}
    totals = {"tests": str(len(rows)), "failures": counts["failure"], "errors": counts["error"],
              "time": "0"}
    root = ElementTree.Element("testsuites", name="collmark compare", **totals)
    suite = ElementTree.SubElement(
        root, "testsuite", name=one_line(f"{report.old.name} to {report.new.name}"),
        skipped=counts["skipped"], **totals)
    add_properties(suite, report)
    for row in rows:
        add_case(suite, row)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
