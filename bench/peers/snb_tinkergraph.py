#!/usr/bin/env python3
"""A social network in TinkerGraph behind Gremlin Server, for bench/snb/run.py; run by itself, it serves until it is stopped.

    snb_tinkergraph.py --data FOLDER --programs DIRECTORY [--port N] [--heap 13g] [--timeout SECONDS]

Maven brings Gremlin Server into DIRECTORY at the first run. Needs duckdb, Maven 3 and Java 17.
"""

import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import duckdb

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "snb"))
from answers import lines
from gremlin import Gremlin, await_port, free_port

FILES = ["person", "forum", "post", "comment", "organisation", "place", "tag", "tagclass", "person_knows_person", "person_hasInterest_tag",
         "person_workAt_organisation", "person_studyAt_organisation", "person_likes_post", "person_likes_comment", "forum_hasMember_person",
         "forum_hasTag_tag", "post_hasTag_tag", "comment_hasTag_tag"]


def fetch(programs):
    """Brings the server's libraries, once."""
    pom, fetched = HERE / "tinkergraph-pom.xml", programs / "pom.xml"
    if fetched.exists() and fetched.read_bytes() == pom.read_bytes():
        return
    programs.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={programs.resolve() / 'lib'}",
                    "-DincludeScope=runtime"], check=True)
    shutil.copy(pom, fetched)


def configure(folder, port, timeout_s):
    """The server's settings, written beside the graph's in `folder`; the loading script runs when the engine for Groovy starts."""
    plugins = "org.apache.tinkerpop.gremlin."
    (folder / "graph.properties").write_text("gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph\n"
                                             "gremlin.tinkergraph.vertexIdManager=ANY\ngremlin.tinkergraph.edgeIdManager=LONG\n")
    settings = {
        "host": "127.0.0.1", "port": port, "evaluationTimeout": int(timeout_s * 1000),
        "channelizer": plugins + "server.channel.HttpChannelizer", "graphs": {"graph": str(folder / "graph.properties")},
        "serializers": [{"className": plugins + "util.ser.GraphSONUntypedMessageSerializerV3"}],
        "scriptEngines": {"gremlin-lang": {}, "gremlin-groovy": {"plugins": {
            plugins + "server.jsr223.GremlinServerGremlinPlugin": {},
            plugins + "tinkergraph.jsr223.TinkerGraphGremlinPlugin": {},
            plugins + "jsr223.ScriptFileGremlinPlugin": {"files": [str(HERE / "snb_tinkergraph.groovy")]}}}},
    }
    (folder / "server.yaml").write_text(json.dumps(settings))


def start(data, programs, port, heap, timeout_s):
    """The server's process, which listens once it is loaded. The files that it reads are plain and have no header line."""
    fetch(programs)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        configure(folder, port, timeout_s)
        for file in FILES:
            duckdb.execute(f"copy (select * from {lines(duckdb, data, file)}) to '{folder / file}' (delimiter '|', quote '', escape '', header false)")
        # It would log every query that does not end, and the loading script since that takes long to compile.
        log, quiet = "-Dorg.slf4j.simpleLogger.", "log.org.apache.tinkerpop.gremlin."
        server = subprocess.Popen(["java", f"-Xmx{heap}", f"-Dsnb={folder}", log + "defaultLogLevel=warn", log + quiet + "server.handler=error",
                                   log + quiet + "groovy.jsr223.GremlinGroovyScriptEngine=error", "-cp", str(programs / "lib" / "*"),
                                   "org.apache.tinkerpop.gremlin.server.GremlinServer", str(folder / "server.yaml")],
                                  stdout=subprocess.DEVNULL)
        await_port(port, server, "Gremlin Server")
    try:
        client(f"http://127.0.0.1:{port}", timeout_s).text("g.V().limit(1).count()")
    except RuntimeError as error:
        server.kill()
        sys.exit(f"Gremlin Server could not load the graph: {error}")
    return server


def client(url, timeout_s, server=None):
    """gremlin-lang is the server's own parser, which needs no compiler for a new text as Groovy does."""
    return Gremlin(url, timeout_s, {"language": "gremlin-lang", "aliases": {"g": "g"}}, server)


def tinkergraph(place, data, timeout_s, heap):
    """The engine for run.py: a server that runs already where `place` is a URL, else one of our own, whose programs lie there."""
    if place.startswith("http"):
        return client(place, timeout_s)
    port = free_port()
    return client(f"http://127.0.0.1:{port}", timeout_s, start(data, pathlib.Path(place), port, heap, timeout_s))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--programs", required=True, type=pathlib.Path)
    arguments.add_argument("--port", type=int, default=8184)
    arguments.add_argument("--heap", default="13g")
    arguments.add_argument("--timeout", type=float, default=20)
    options = arguments.parse_args()
    begun = time.monotonic()
    server = start(options.data, options.programs, options.port, options.heap, options.timeout)
    print(f"loaded in {time.monotonic() - begun:.0f} s, serving on http://127.0.0.1:{options.port}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        server.wait()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
