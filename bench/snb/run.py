#!/usr/bin/env python3
"""Asks a server the queries of queries.toml, checks the answers against SQL and prints their times.

    run.py --data FOLDER (--ficus BINARY --store DIRECTORY | --url URL) [--only NAME]... [--sets N] [--seed N] [--rounds N]

FOLDER holds the CSV files of an SNB graph, which DIRECTORY holds as the graph `g` (docs/examples/mappings/snb.toml). Needs duckdb.
"""

import argparse
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import time
import urllib.parse

from answers import Answers, QUERIES, difference, fill


class Client:
    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=900)

    def ask(self, gremlin):
        """Rows, and seconds until the last byte of the answer."""
        body = json.dumps({"gremlin": gremlin, "evaluationTimeout": 20000})
        begun = time.perf_counter()
        self.connection.request("POST", "/gremlin", body, {"Content-Type": "application/json",
                                                           "Accept": "application/vnd.gremlin-v3.0+json;types=false"})
        response = self.connection.getresponse()
        text = response.read()
        seconds = time.perf_counter() - begun
        answer = json.loads(text)
        if response.status != 200:
            raise RuntimeError(answer.get("message") or answer)
        return [list(row.values()) if isinstance(row, dict) else [row] for row in answer["result"]["data"]], seconds


def start(ficus, store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([ficus, "serve", "--data-dir", store, "--listen", f"127.0.0.1:{port}",
                               "--set", "server.timeouts.evaluation_cap_ms=120000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while True:
        if server.poll() is not None:
            sys.exit("the server did not start")
        try:
            with socket.create_connection(("127.0.0.1", port)):
                return server, url
        except OSError:
            time.sleep(0.01)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--ficus")
    arguments.add_argument("--store")
    arguments.add_argument("--url")
    arguments.add_argument("--only", action="append", default=[])
    arguments.add_argument("--sets", type=int, default=5)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    answers = Answers(options.data)
    sets = answers.parameters(options.sets, options.seed)
    print(f"seed {options.seed}, {options.sets} parameter sets, {options.rounds} rounds; times in ms")
    server, url = (None, options.url) if options.url else start(options.ficus, options.store)
    wrong = 0
    try:
        client = Client(url)
        for query in QUERIES:
            name = query["name"]
            if options.only and name not in options.only:
                continue
            times, rows_of, problem = [], [], None
            for parameters in sets:
                text = fill(query["gremlin"], parameters)
                best = None
                try:
                    for _ in range(options.rounds):
                        rows, seconds = client.ask(text)
                        best = min(best or seconds, seconds)
                except RuntimeError as error:
                    problem = str(error)
                    client = Client(url)
                    break
                times.append(best * 1000)
                rows_of.append(len(rows))
                problem = problem or difference(query, rows, answers.ask(query, parameters))
            if times:
                print(f"{name:5} median {statistics.median(times):9.2f}  max {max(times):9.2f}  rows {statistics.mean(rows_of):6.1f}"
                      f"  {'WRONG: ' + problem if problem else 'equal'}", flush=True)
            else:
                print(f"{name:5} FAILED: {problem}", flush=True)
            wrong += problem is not None
    finally:
        if server:
            server.kill()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
