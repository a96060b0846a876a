#!/usr/bin/env python3
"""Asks k-hop queries of many users at once and compares each answer with a search over sets, written here.

    khop.py --ficus BINARY [--seed N] [--questions N] EDGE_LIST...

An edge list is text, one edge a line: source and target first, separated by commas, blanks or tabs; plain, `.gz` or `.zst`. Lines that do not
begin with a number are skipped. Each is loaded into a server of its own; 64 clients ask for the numbers of vertices reached by
random walks of one to four hops, forwards, backwards and both ways, some of them through vertices with a condition only: once alone, and once
while another client writes edges that no walk may take. Ends with status 1 if any answer differs. The seed is printed.
"""

import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

from check import Server

CLIENTS = 64

# Values of the property that conditions are on.
GROUPS = 7


def lines(path):
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as file:
            yield from file
    elif path.suffix == ".zst":
        with subprocess.Popen(["zstd", "-dc", str(path)], stdout=subprocess.PIPE, text=True) as process:
            yield from process.stdout
    else:
        with open(path) as file:
            yield from file


def edges_of(path):
    edges = []
    for line in lines(path):
        fields = re.split(r"[,\s]+", line.strip())
        if len(fields) >= 2 and fields[0].isdigit() and fields[1].isdigit():
            edges.append((int(fields[0]), int(fields[1])))
    return edges


class Oracle:
    """Neighbours in sets, and searches over them."""

    def __init__(self, edges):
        self.out, self.into = {}, {}
        for source, target in edges:
            self.out.setdefault(source, set()).add(target)
            self.into.setdefault(target, set()).add(source)

    def hop(self, frontier, direction, above):
        ways = {"out": [self.out], "in": [self.into], "both": [self.out, self.into]}[direction]
        reached = set().union(*(way.get(vertex, ()) for way in ways for vertex in frontier))
        return reached if above is None else {vertex for vertex in reached if vertex % GROUPS > above}

    def count(self, source, direction, hops, kind, above):
        frontier, reached = {source}, {source} if kind == "source" else set()
        for _ in range(hops):
            frontier = self.hop(frontier, direction, above)
            if kind != "exactly":
                frontier -= reached
                reached |= frontier
        return len(frontier if kind == "exactly" else reached)


def text_of(source, direction, hops, kind, above):
    condition = "" if above is None else f".has('group', gt({above}))"
    walk = f"repeat(__.{direction}('link'){condition})"
    walk = {"exactly": f"{walk}.times({hops})", "within": f"{walk}.emit().times({hops})",
            "source": f"emit().{walk}.times({hops})"}[kind]
    return f"g.V({source}).{walk}.dedup().count()"


def check(path, options, dice):
    edges = edges_of(path)
    work = options.work / path.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    vertices = sorted({vertex for edge in edges for vertex in edge})
    nodes = "".join(f"{vertex},{vertex % GROUPS}\n" for vertex in vertices)
    (work / "nodes.csv").write_text(f":ID,group:int\n{nodes}")
    (work / "edges.csv").write_text(":START_ID,:END_ID\n" + "".join(f"{a},{b}\n" for a, b in edges))
    command = [options.ficus, "load", "--data-dir", str(work / "data"), "--graph", "g", "--id-type", "long",
               "--vertices", f"node={work / 'nodes.csv'}", "--edges", f"link={work / 'edges.csv'}"]
    problems = []
    with open(work / "log", "wb") as log:
        if subprocess.run(command, stdout=log, stderr=log).returncode != 0:
            return {"set": path.name, "problems": [f"load failed; see {work / 'log'}"]}
        oracle, server = Oracle(edges), Server(options.ficus, work / "data", log)
        stop, written = threading.Event(), []

        def write():
            while not stop.is_set():
                a, b = dice.choice(vertices), dice.choice(vertices)
                server.ask(f"g.V({a}).addE('other').to(__.V({b})).iterate()")
                written.append(1)
                time.sleep(0.005)

        questions = [(dice.choice(vertices), dice.choice(["out", "in", "both"]), dice.randint(1, 4),
                      dice.choice(["exactly", "within", "source"]), dice.choice([None, 0, 3])) for _ in range(options.questions)]
        try:
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
                for writes in (False, True):
                    stop.clear()
                    writer = threading.Thread(target=write) if writes else None
                    if writer:
                        writer.start()
                    answers = list(clients.map(lambda question: server.ask(text_of(*question))[0], questions))
                    stop.set()
                    if writer:
                        writer.join()
                    for question, answer in zip(questions, answers):
                        expected = oracle.count(*question)
                        if answer != expected:
                            problems.append(f"{text_of(*question)} gives {answer}, not {expected}")
            if not written:
                problems.append("nothing was written meanwhile")
        finally:
            stop.set()
            server.kill()
    return {"set": path.name, "vertices": len(vertices), "edges": len(edges), "questions": 2 * len(questions),
            "writes": len(written), "problems": problems[:10]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ficus", required=True, help="the ficus binary")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--questions", type=int, default=300, help="of each round")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "ficus-khop")
    parser.add_argument("edge_lists", nargs="+", type=pathlib.Path, metavar="EDGE_LIST")
    options = parser.parse_args()
    print(json.dumps({"seed": options.seed}), flush=True)
    failed = False
    for path in options.edge_lists:
        result = check(path, options, random.Random(options.seed))
        print(json.dumps(result), flush=True)
        failed |= bool(result["problems"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
