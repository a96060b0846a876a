"""k-hop queries, breadth-first searches and PageRank in SuiteSparse:GraphBLAS, for `ficus bench khop`.

Arguments: the file of edges (CSV with a header: source, target), the number of vertices, a file of sources (one a line).
Prints one JSON object per measure: case, ms, and the count to compare.
"""

import json
import sys
import time

import graphblas as gb
import numpy as np
from graphblas import Matrix, Vector, binary, semiring

REPETITIONS = 5


def measured(case, work, repetitions=REPETITIONS):
    """Prints the best time of some repetitions, and what the work returned."""
    best, count = float("inf"), None
    for _ in range(repetitions):
        started = time.perf_counter()
        count = work()
        best = min(best, time.perf_counter() - started)
    print(json.dumps({"case": case, "ms": best * 1e3, "count": int(count)}), flush=True)


def each(case, works):
    """Prints the median time of single queries."""
    times, count = [], 0
    for work in works:
        started = time.perf_counter()
        count += work()
        times.append(time.perf_counter() - started)
    print(json.dumps({"case": case, "ms": sorted(times)[len(times) // 2] * 1e3, "count": int(count)}), flush=True)


def together(graph, sources, hops):
    """Distinct vertices within some hops of each source, all sources in one matrix."""
    rows = np.arange(len(sources))
    size = (len(sources), graph.nrows)
    visited = Matrix.from_coo(rows, sources, True, nrows=size[0], ncols=size[1])
    frontier = visited.dup()
    for _ in range(hops):
        frontier(~visited.S, replace=True) << semiring.any_pair(frontier @ graph)
        if frontier.nvals == 0:
            break
        visited(frontier.S) << True
    return visited.nvals


def alone(graph, source, hops):
    """As `together`, for one source in a vector."""
    visited = Vector(bool, size=graph.nrows)
    visited[source] = True
    frontier = visited.dup()
    for _ in range(hops):
        frontier(~visited.S, replace=True) << semiring.any_pair(frontier @ graph)
        if frontier.nvals == 0:
            break
        visited(frontier.S) << True
    return visited.nvals


def page_rank(graph, iterations=20, damping=0.85):
    """The iterations of PageRank, dangling mass spread evenly."""
    size = graph.nrows
    degree = graph.reduce_rowwise(gb.monoid.plus[float]).new(dtype=float)
    rank = Vector.from_scalar(1.0 / size, size, dtype=float)
    for _ in range(iterations):
        share = rank.ewise_mult(degree, binary.truediv).new()
        dangling = 1.0 - rank.dup(mask=degree.S).reduce().get(0.0)
        rank = Vector.from_scalar((1 - damping) / size + damping * dangling / size, size, dtype=float)
        moved = semiring.plus_first(share @ graph).new()
        rank(binary.plus) << (damping * moved)
    return round(rank.reduce().get(0.0) * 1e6)


def main():
    edges, vertices, sources = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    gb.ss.config["nthreads"] = 2
    pairs = np.loadtxt(edges, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64)
    graph = Matrix.from_coo(pairs[:, 0], pairs[:, 1], True, nrows=vertices, ncols=vertices)
    starts = np.loadtxt(sources, dtype=np.int64)
    hundred = starts[:100]
    for width in [10, 50, 100, 200, 350]:
        # Wide ones take seconds, which differ little.
        repetitions = REPETITIONS if width <= 100 else 1
        measured(f"{width} x 3 hops", lambda w=width: together(graph, starts[:w], 3), repetitions)
    measured("64 breadth-first searches", lambda: together(graph, starts[:64], vertices), 1)
    each("3 hops alone", [lambda s=s: alone(graph, s, 3) for s in hundred])
    each("search alone", [lambda s=s: alone(graph, s, vertices) for s in hundred[:20]])
    measured("20 iterations of PageRank", lambda: page_rank(graph))


main()
