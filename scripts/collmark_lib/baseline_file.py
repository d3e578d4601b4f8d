"""The file of a baseline: results/baselines/<machine>/<name>.json.

The same launches always give the same bytes: keys are sorted, a row is a line, and the one time of
day is the end of the last launch. So a change of a few rows is a diff of a few lines.
"""
import json

from .common import Refused
from .result import Key, Row, number
from .sample import Sample
from .stats import deviation, median

KIND, VERSION = "collmark baseline", 1


def rounded(value):
    """Six digits: more are noise, and would be a change in every diff."""
    return float(f"{value:.6g}")


def row_line(key, row):
    times = sorted(rounded(t) for t in row.times)
    entry = dict(key._asdict(), launches=len(times), times_us=times,
                 median_us=rounded(median(times)), mad_us=rounded(deviation(times)),
                 min_us=times[0], max_us=times[-1], plans=sorted(row.plans),
                 busbw_gbs=rounded(row.bandwidth(median(times))) if row.work else None)
    return json.dumps(entry, sort_keys=True)


def text_of(sample):
    """The file of a sample."""
    facts = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}"
                       for k, v in sorted(sample.facts.items()))
    rows = ",\n".join("  " + row_line(k, sample.rows[k]) for k in sorted(sample.rows))
    return (f'{{\n "environment": {{\n{facts}\n }},\n "kind": {json.dumps(KIND)},\n'
            f' "launches": {sample.launches},\n "measured": {json.dumps(sample.measured)},\n'
            f' "rows": [\n{rows}\n ],\n "version": {VERSION}\n}}\n')


def is_baseline(doc):
    return isinstance(doc, dict) and doc.get("kind") == KIND


def parse_row(entry):
    key = Key(**{name: entry[name] for name in Key._fields
                 if name in entry or name not in Key._field_defaults})
    times = [t for t in map(number, entry["times_us"]) if t is not None]
    work = entry["busbw_gbs"] * entry["median_us"] if entry["busbw_gbs"] else None
    return key, Row(times=times, work=work, without=len(entry["times_us"]) - len(times),
                    plans=set(entry["plans"]))


def parse(path, doc):
    """A sample from its file. Refused: another kind of file, or a newer version."""
    if not is_baseline(doc):
        raise Refused(f"{path}: not a baseline")
    if not isinstance(doc.get("version"), int) or doc["version"] > VERSION:
        raise Refused(f"{path}: baseline version {doc.get('version')}; this program reads up to "
                      f"{VERSION}")
    try:
        rows = dict(parse_row(entry) for entry in doc["rows"])
        facts = {"cache": ["hot"], **doc["environment"]}
        return Sample(f"{path.parent.name}/{path.stem}", doc["launches"], doc["measured"],
                      facts, rows)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise Refused(f"{path}: damaged ({type(e).__name__}: {e})") from e
