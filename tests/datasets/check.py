#!/usr/bin/env python3
"""Loads whole data sets, asks stated queries, pulls the plug and asks them again.

    check.py --data FOLDER --ficus BINARY [--work FOLDER] [--only NAME]... [--format json]

FOLDER holds the sets in folders `snb-sf0.1`, `snb-sf1`, `films`, `graphs` and `tinkerpop`. Each set is loaded with `ficus load`
into an empty data directory, its counts are compared with those stated here, its queries are answered, the server is killed
with SIGKILL while it is idle, started again, and has to give the same answers. Ends with status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

MAPPINGS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "mappings"

SNB_QUERIES = [
    "g.V().hasLabel('person').values('firstName').dedup().order().limit(20)",
    "g.V('person:933').out('knows').id().order()",
    "g.V().hasLabel('tagclass').in('hasType').count()",
    "g.V().hasLabel('person').order().by(both('knows').count(), desc).by(id).limit(5).id()",
    "g.V().hasLabel('place').groupCount().by('name').unfold().count()",
    "g.E().groupCount().by(label)",
    "g.V('person:933').both('knows').both('knows').dedup().count()",
    "g.V('person:933').in('hasCreator').out('hasTag').groupCount().by('name').order(local).by(values, desc).by(keys).limit(local, 5)",
    "g.V('person:933').repeat(both('knows')).times(3).dedup().count()",
]


def snb_counts(person, forum, post, comment, **edges):
    vertices = {"person": person, "forum": forum, "post": post, "comment": comment,
                "organisation": 7955, "tag": 16080, "tagclass": 71}
    return {"vertices": vertices, "edges": edges}


SETS = {
    "snb-sf0.1": {
        "paths": ["snb-sf0.1"], "mapping": "snb.toml",
        "counts": snb_counts(1528, 13805, 137646, 165475, knows=13982, hasInterest=35475, workAt=3313, studyAt=1209,
                             hasMember=123743, hasTag=47752 + 56623 + 212689, likes=52153 + 68923),
        "queries": SNB_QUERIES,
    },
    "snb-sf1": {
        "paths": ["snb-sf1"], "mapping": "snb.toml",
        "counts": snb_counts(9892, 90585, 1004034, 2055697, knows=180118, hasInterest=229166, workAt=21654,
                             studyAt=7949, hasMember=1609887, hasTag=309859 + 708619 + 2670042,
                             likes=726138 + 1409602),
        "queries": SNB_QUERIES,
    },
    "films": {
        "paths": ["films"], "mapping": "films.toml",
        "counts": {"vertices": {"film": 6137, "person": 56754, "genre": 19}, "edges": {"actedIn": 76570, "directed": 4785}},
        "queries": [
            "g.V().hasLabel('film').groupCount().by('type')",
            "g.V().hasLabel('genre').project('genre','films').by('name').by(__.in().count()).order().by('films', desc).by('genre').limit(10)",
            "g.V().hasLabel('person').order().by(out('actedIn').count(), desc).by(id).limit(3).values('name')",
            "g.V().hasLabel('film').has('release_year', 1999).values('title').order().limit(10)",
        ],
    },
    "air-routes": {
        "paths": ["tinkerpop/air-routes.json.gz"],
        "counts": {"total": (3749, 57645)},
        "queries": [
            "g.V().groupCount().by(label)",
            "g.V().has('code','AUS').out('route').values('code').order().limit(10)",
            "g.V().has('code','LHR').repeat(out('route')).times(2).dedup().count()",
            "g.V().hasLabel('airport').order().by(out('route').count(), desc).by('code').limit(5).values('code')",
        ],
    },
    "grateful-dead": {
        "paths": ["tinkerpop/grateful-dead.json.gz"],
        "counts": {"total": (808, 8049)},
        "queries": [
            "g.V().repeat(out()).times(8).count()",
            "g.V().hasLabel('song').groupCount().by('songType')",
        ],
    },
    "ego-twitter": {
        "paths": ["graphs/ego-twitter.csv.zst"], "mapping": "edge-list.toml",
        "counts": {"total": (81306, 1768135)},
        "queries": [
            "g.V().order().by(__.in().count(), desc).by(id).limit(5).id()",
            "g.V(0).out().out().dedup().count()",
        ],
    },
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process on a data directory."""

    def __init__(self, ficus, directory, log):
        self.port = free_port()
        self.started = time.monotonic()
        arguments = [ficus, "serve", "--data-dir", str(directory), "--listen", f"127.0.0.1:{self.port}",
                     "--set", "server.timeouts.evaluation_ms=600000", "--set", "server.timeouts.evaluation_cap_ms=600000"]
        self.process = subprocess.Popen(arguments, stdout=log, stderr=log)
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode} while starting")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=5):
                    break
            except OSError:
                time.sleep(0.01)
        self.ready_seconds = time.monotonic() - self.started

    def ask(self, gremlin):
        body = json.dumps({"gremlin": gremlin, "evaluationTimeout": 600000}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/gremlin", body,
                                         {"Content-Type": "application/json",
                                          "Accept": "application/vnd.gremlin-v3.0+json;types=false"})
        with urllib.request.urlopen(request, timeout=900) as response:
            return json.load(response)["result"]["data"]

    def resident_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def normal(answer):
    """Answers without order of maps, as text."""
    if isinstance(answer, dict):
        return {key: normal(answer[key]) for key in sorted(answer, key=str)}
    if isinstance(answer, list):
        return [normal(item) for item in answer]
    return answer


def check(name, plan, options):
    work = options.work / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    command = [options.ficus, "load", "--data-dir", str(work / "data"), "--graph", "g",
               "--reject-file", str(work / "rejected.jsonl")]
    if "mapping" in plan:
        command += ["--mapping", str(MAPPINGS / plan["mapping"])]
    command += [str(options.data / path) for path in plan["paths"]]
    problems = []
    started = time.monotonic()
    with open(work / "log", "wb") as log:
        loaded = subprocess.run(command, stdout=log, stderr=log)
        load_seconds = time.monotonic() - started
        if loaded.returncode != 0:
            return {"set": name, "problems": [f"load ended with status {loaded.returncode}; see {work / 'log'}"]}
        server = Server(options.ficus, work / "data", log)
        try:
            counts = plan["counts"]
            if "total" in counts:
                found = (server.ask("g.V().count()")[0], server.ask("g.E().count()")[0])
                if found != counts["total"]:
                    problems.append(f"vertices and edges: {found}, stated {counts['total']}")
            for kind, spawn in (("vertices", "V"), ("edges", "E")):
                if kind in counts:
                    found = {}
                    for entry in server.ask(f"g.{spawn}().groupCount().by(label)"):
                        found.update(entry)
                    for label, stated in counts[kind].items():
                        if found.get(label) != stated:
                            problems.append(f"{kind} [{label}]: {found.get(label)}, stated {stated}")
            before, times = [], []
            for query in plan["queries"]:
                asked = time.monotonic()
                before.append(normal(server.ask(query)))
                times.append(round((time.monotonic() - asked) * 1000, 1))
            resident = server.resident_mib()
            server.kill()
            server = Server(options.ficus, work / "data", log)
            after = [normal(server.ask(query)) for query in plan["queries"]]
            for query, old, new in zip(plan["queries"], before, after):
                if old != new:
                    problems.append(f"after the restart [{query}] gives {str(new)[:200]}, before {str(old)[:200]}")
        finally:
            server.kill()
    digest = hashlib.sha256(json.dumps(before, sort_keys=True).encode()).hexdigest()[:16]
    return {"set": name, "load_seconds": round(load_seconds, 1), "restart_seconds": round(server.ready_seconds, 2),
            "resident_mib": resident, "queries": len(before), "query_ms": times, "answers": digest, "problems": problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with the data sets")
    parser.add_argument("--ficus", required=True, help="the ficus binary")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "ficus-datasets")
    parser.add_argument("--only", action="append", choices=sorted(SETS), help="a set; all without")
    options = parser.parse_args()
    failed = False
    for name in options.only or SETS:
        result = check(name, SETS[name], options)
        print(json.dumps(result), flush=True)
        failed |= bool(result["problems"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
