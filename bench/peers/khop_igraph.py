"""k-hop queries and breadth-first searches in igraph, for `ficus bench khop`. Arguments and output as in khop_graphblas.py."""

import json
import sys
import time

import igraph
import numpy as np


def each(case, works):
    """Prints the median time of single queries."""
    times, count = [], 0
    for work in works:
        started = time.perf_counter()
        count += work()
        times.append(time.perf_counter() - started)
    print(json.dumps({"case": case, "ms": sorted(times)[len(times) // 2] * 1e3, "count": int(count)}), flush=True)


def main():
    edges, vertices, sources = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    pairs = np.loadtxt(edges, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64)
    graph = igraph.Graph(n=vertices, edges=pairs, directed=True)
    starts = [int(source) for source in np.loadtxt(sources, dtype=np.int64)]
    each("3 hops alone", [lambda s=s: graph.neighborhood_size(s, order=3, mode="out") for s in starts[:100]])
    each("search alone", [lambda s=s: len(graph.subcomponent(s, mode="out")) for s in starts[:20]])


main()
