#!/usr/bin/env python3
"""Draws what `ficus bench khop --json` measured: plots as SVG, and the tables of a page.

    plots.py --out FOLDER MEASURES...

Measures are JSON objects, one a line, of one run or several; of equal ones the last counts. Writes `khop-….svg` into the folder and prints the
tables in Markdown. Needs nothing but Python.
"""

import argparse
import json
import math
import pathlib
import re

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 70, 55, 40, 150
COLOURS = ["#1b6ca8", "#d1495b", "#3b7a57", "#8d6a9f", "#c77d1e", "#4a4a4a"]


def read(files):
    """Values by (scale, case, metric), and targets by the same."""
    values, targets = {}, {}
    for file in files:
        for line in pathlib.Path(file).read_text().splitlines():
            if not line.startswith("{"):
                continue
            measure = json.loads(line)
            found = re.fullmatch(r"scale (\d+): (.*)", measure["case"])
            if found and measure["suite"] == "khop":
                key = (int(found[1]), found[2], measure["metric"])
                values[key] = measure["value"]
                targets[key] = (measure["target"], measure["op"], measure["unit"])
    return values, targets


def ticks(low, high, is_log):
    """Numbers for an axis."""
    if is_log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [10.0**power for power in powers]
    step = 10 ** math.floor(math.log10(high or 1))
    step = next(step / part for part in (5, 2, 1) if high / (step / part) <= 8 or part == 1)
    return [step * number for number in range(int(high / step) + 2)]


def number(value):
    return f"{value:g}"


def plot(path, title, x_name, y_name, series, log_x=False, log_y=True):
    """Lines with points. Series: name, list of (x, y)."""
    series = [(name, sorted(points)) for name, points in series if points]
    if not series:
        return
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points]
    y_ticks = ticks(min(ys), max(ys), log_y)
    x_ticks = sorted(set(xs)) if len(set(xs)) <= 10 else ticks(min(xs), max(xs), log_x)

    def place(value, marks, is_log, start, length):
        low, high = min(marks), max(marks)
        if is_log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return start + length * ((value - low) / ((high - low) or 1))

    def at(x, y):
        return (
            place(x, x_ticks, log_x, LEFT, WIDTH - LEFT - RIGHT),
            place(y, y_ticks, log_y, HEIGHT - BOTTOM, TOP + BOTTOM - HEIGHT),
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{title}</text>',
    ]
    for tick in y_ticks:
        _, y = at(x_ticks[0], tick)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in x_ticks:
        x, _ = at(tick, y_ticks[0])
        out.append(f'<line x1="{x:.1f}" y1="{HEIGHT - BOTTOM}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM + 4}" stroke="#888"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number(tick)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{x_name}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text transform="rotate(-90 16 {middle})" x="16" y="{middle}" text-anchor="middle">{y_name}</text>')
    for position, (name, points) in enumerate(series):
        colour = COLOURS[position % len(COLOURS)]
        line = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in points:
            out.append('<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(x, y), colour))
        y = TOP + 16 * position
        out.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 28}" y="{y + 10}">{name}</text>')
    path.write_text("\n".join(out + ["</svg>", ""]))


def series_of(values, pattern, metric):
    """Points by scale: x is the number in the case."""
    by_scale = {}
    for (scale, case, own), value in values.items():
        found = re.fullmatch(pattern, case)
        if found and own == metric:
            by_scale.setdefault(scale, []).append((int(found[1]), value))
    return by_scale


def draw(values, folder):
    scales = sorted({scale for scale, _, _ in values})
    ours = series_of(values, r"(\d+) x 3 hops", "time")
    peer = series_of(values, r"(\d+) x 3 hops, GraphBLAS", "time")
    lines = []
    for scale in scales:
        lines.append((f"scale {scale}", ours.get(scale, [])))
        lines.append((f"GraphBLAS, {scale}", peer.get(scale, [])))
    few = [line for line in lines if line[0].endswith(("16", "20"))]
    plot(folder / "khop-queries.svg", "3-hop queries in one pass", "queries", "ms", few)
    searches = series_of(values, r"(\d+) breadth-first searches", "time")
    lines = [(f"scale {scale}", searches.get(scale, [])) for scale in scales]
    plot(folder / "khop-searches.svg", "Breadth-first searches in one pass", "searches", "ms", lines, log_x=True)
    lines = []
    for scale in scales:
        case = "100 users ask 3 hops at once"
        points = [(values[scale, case, f"p{share}"], share) for share in [*range(10, 100, 10), 99, 100]
                  if (scale, case, f"p{share}") in values]
        lines.append((f"scale {scale}", points))
    plot(folder / "khop-distribution.svg", "100 users ask 3 hops at once", "ms until answered", "% of users", lines,
         log_x=True, log_y=False)
    cases = [("100 x 3 hops", "100 × 3 hops"), ("3 hops alone", "3 hops alone"), ("search alone", "search alone"),
             ("20 iterations of PageRank", "20 × PageRank")]
    for peer in ["", "GraphBLAS", "igraph"]:
        lines = []
        for case, name in cases:
            own = f"{case}, {peer}" if peer else case
            metrics = ["time", "p50"]
            points = [(scale, values[scale, own, metric]) for scale in scales for metric in metrics
                      if (scale, own, metric) in values]
            lines.append((name, points))
        title = f"Growing graphs: {peer}" if peer else "Growing graphs"
        plot(folder / f"khop-scaling{'-' + peer.lower() if peer else ''}.svg", title, "scale", "ms", lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("measures", nargs="+")
    arguments = parser.parse_args()
    values, targets = read(arguments.measures)
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(values, arguments.out)
    for scale in sorted({scale for scale, _, _ in values}, reverse=True):
        print(f"\n| Scale {scale} | | Measured | Good |\n| --- | --- | --- | --- |")
        for (own, case, metric), value in values.items():
            target, op, unit = targets[own, case, metric]
            if own == scale:
                good = "" if target is None else f"{'at least' if op == '>=' else 'at most'} {target:.3g}"
                print(f"| {case} | {metric} | {value:,.4g} {unit} | {good} |")


main()
