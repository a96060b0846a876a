#!/usr/bin/env python3
"""Draws what `ficus bench dataflow --json` measured: plots as SVG, and the tables of a page.

    draw.py --out FOLDER MEASURES...

Measures are JSON objects, one a line, of one run or several; of equal ones the last counts. Writes `dataflow-….svg` into the folder and prints the
tables in Markdown. Needs nothing but Python.
"""

import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "khop"))

from plots import number, plot  # noqa: E402


def read(files):
    """Values by (case, metric), with their targets."""
    values = {}
    for file in files:
        for line in pathlib.Path(file).read_text().splitlines():
            if line.startswith("{"):
                measure = json.loads(line)
                if measure["suite"] == "dataflow":
                    values[measure["case"], measure["metric"]] = (measure["value"], measure["target"], measure["op"])
    return values


def cases(values, pattern):
    """What is in the places of the pattern, with the measures of the case, in order of appearance."""
    found = {}
    for (case, metric), (value, _, _) in values.items():
        place = re.fullmatch(pattern, case)
        if place:
            found.setdefault(place.groups(), {})[metric] = value
    return found


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(number(cell) if isinstance(cell, float) else str(cell) for cell in row) + " |")
    print()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("measures", nargs="+")
    given = arguments.parse_args()
    values = read(given.measures)

    usual = cases(values, r"scopes: (\w+) as users get it")
    scoped = cases(values, r"scopes: (\w+) in scopes")
    rows = []
    for (query,), own in usual.items():
        other = scoped.get((query,), {})
        row = [query]
        for way in (own, other):
            row += [way.get("with", "–"), way.get("without", "–"), way.get("without / with", "–")]
        rows.append(row)
    table(["query", "as users get it, ms", "without, ms", "ratio", "in scopes, ms", "without, ms", "ratio"], rows)

    policies = cases(values, r"policies: CQ6, first (\d+)")
    lines = [(name, [(int(limit), own[name]) for (limit,), own in policies.items()]) for name in ("fifo", "dfs")]
    plot(given.out / "dataflow-policies.svg", "CQ6: first rows by policy of its loop", "rows asked for", "ms", lines, log_x=True)
    table(["rows", "fifo, ms", "dfs, ms", "ratio"], [[f, o["fifo"], o["dfs"], o["fifo / dfs"]] for (f,), o in policies.items()])

    instances = cases(values, r"instantiation: (\w+), maxInstances (\d+)")
    table(["query", "instances at once", "overhead, %"], [[q, n, own["overhead"]] for (q, n), own in instances.items()])

    executors = cases(values, r"executors: (\w+) on (\d+)")
    names = list(dict.fromkeys(query for query, _ in executors))
    counts = sorted({int(count) for _, count in executors})
    table(
        ["query", *(f"on {count}, ms" for count in counts), "ratio"],
        [
            [query, *(executors[query, str(count)]["time"] for count in counts), values[f"executors: {query}", "one / two"][0]]
            for query in names
            if (f"executors: {query}", "one / two") in values
        ],
    )

    width = cases(values, r"width: IC6, W = (\d+)")
    plot(
        given.out / "dataflow-width.svg",
        "IC6: throughput by queries at once",
        "queries at once",
        "queries/s",
        [("IC6", [(int(count), own["rate"]) for (count,), own in width.items()])],
        log_x=True,
        log_y=False,
    )
    table(["at once", "queries/s"], [[count, own["rate"]] for (count,), own in width.items()])

    foreground = cases(values, r"foreground: (\w+) beside 4 of (\w+)")
    for query in dict.fromkeys(query for query, _ in foreground):
        lines = []
        for (own, beside), times in foreground.items():
            if own == query:
                shares = [(metric, float(metric[1:])) for metric in times if re.fullmatch(r"p\d+", metric)]
                lines.append((f"beside {beside}", [(times[metric], share) for metric, share in shares]))
        path = given.out / f"dataflow-foreground-{query.lower()}.svg"
        plot(path, f"{query} beside four clients: how many are done", "ms", "%", lines, log_y=False)
    table(
        ["query", "beside 4 of", "p50, ms", "p95, ms", "p99, ms"],
        [[query, beside, own["p50"], own["p95"], own["p99"]] for (query, beside), own in foreground.items()],
    )

    patterns = cases(values, r"patterns: (.*)")
    table(
        ["pattern", "found", "match(), ms", "by hand, ms"],
        [[name, own["found"], own["match()"], own["by hand"]] for (name,), own in patterns.items()],
    )


if __name__ == "__main__":
    main()
