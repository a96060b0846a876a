#!/usr/bin/env python3
"""Is it worth while to give queries to the executor that has their data?

    placement.py FICUS STORE FOLDER

Starts two servers with one executor each, on the first two cores, over copies of STORE in FOLDER (a social network, loaded as docs/benchmarks/snb.md says;
files are mapped, so that the system holds them once), and has four clients ask for the newest messages of a person's friends. A question goes to the server
of the half that its person is in (as by tablet), or to the one that has fewer questions under way (as by load). Even and skewed questions; few persons,
whose data could stay in a core's cache, and many. Needs nothing but Python and `taskset`.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

PORTS = (18301, 18302)
CLIENTS = 4
SECONDS = 4
ROUNDS = 3
PERSONS = "g.V().hasLabel('person').where(both('knows').count().is(between(10, 80))).id().order().limit(6000)"
QUESTION = (
    "g.V('%s').both('knows').in('hasCreator').order().by('creationDate', desc).by(id).limit(20)."
    "project('p', 'm').by(out('hasCreator').id()).by(id)"
)


def ask(connection, text):
    connection.request("POST", "/gremlin", json.dumps({"gremlin": text}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise SystemExit(f"{text}: {response.status} {body[:300]}")
    return json.loads(body)


def start(ficus, store, port, core):
    environment = dict(os.environ, FICUS_ENGINE__EXECUTORS="1")
    command = ["taskset", "-c", str(core), ficus, "serve", "--data-dir", store, "--listen", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            ask(http.client.HTTPConnection("127.0.0.1", port), "g.inject(1)")
            return server
        except OSError:
            time.sleep(0.2)
    server.kill()
    raise SystemExit(f"no server on port {port}")


def run(halves, by_tablet, share, count):
    """Questions a second and their times; `share` of the questions are about the first half, of which `count` / 2 persons are asked."""
    under_way, times, lock = [0, 0], [], threading.Lock()
    end = time.time() + SECONDS

    def client(seed):
        chance = random.Random(seed)
        connections = [http.client.HTTPConnection("127.0.0.1", port) for port in PORTS]
        while time.time() < end:
            half = 0 if chance.random() < share else 1
            person = chance.choice(halves[half][: count // 2])
            with lock:
                fewer = 0 if under_way[0] < under_way[1] or under_way[0] == under_way[1] and chance.random() < 0.5 else 1
                server = half if by_tablet else fewer
                under_way[server] += 1
            began = time.time()
            ask(connections[server], QUESTION % person)
            with lock:
                times.append(time.time() - began)
                under_way[server] -= 1

    clients = [threading.Thread(target=client, args=(seed,)) for seed in range(CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    times.sort()
    return len(times) / SECONDS, times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ficus")
    parser.add_argument("store", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    servers = []
    try:
        for number, port in enumerate(PORTS):
            copy = arguments.folder / f"store-{number}"
            if not copy.exists():
                shutil.copytree(arguments.store, copy)
            servers.append(start(arguments.ficus, str(copy), port, number))
        data = ask(http.client.HTTPConnection("127.0.0.1", PORTS[0]), PERSONS)["result"]["data"]
        values = data["@value"] if isinstance(data, dict) else data
        persons = [value["@value"] if isinstance(value, dict) else value for value in values]
        random.Random(7).shuffle(persons)
        halves = [persons[::2], persons[1::2]]
        for count in (60, len(persons)):
            for share in (0.5, 0.8):
                runs = {"tablet": [], "load": []}
                for _ in range(ROUNDS):
                    for way, found in runs.items():
                        found.append(run(halves, way == "tablet", share, count))
                for way, found in runs.items():
                    rate, middle, slow = sorted(found)[len(found) // 2]
                    print(
                        f"{count} persons, {share:.0%} of the questions to one half, by {way}: "
                        f"{rate:.0f}/s, p50 {middle:.2f} ms, p99 {slow:.2f} ms",
                        flush=True,
                    )
    finally:
        for server in servers:
            server.terminate()


if __name__ == "__main__":
    main()
