#!/usr/bin/env python3
"""Asks FicusDB and its peers the queries of queries.toml in turn, checks all answers against SQL and prints times and ratios.

    run.py --data FOLDER (--ficus BINARY --store DIRECTORY | --url URL) [--ladybug DIRECTORY] [--tinkergraph DIRECTORY | URL]
           [--only NAME]... [--sets N] [--seed N] [--rounds N] [--timeout SECONDS] [--json FILE]

FOLDER holds the CSV files of an SNB graph, which the store holds as the graph `g` (docs/examples/mappings/snb.toml). The peers fill their
directories themselves where these are empty (bench/peers/README.md). Needs duckdb; --ladybug needs ladybug; --tinkergraph needs Maven and Java.
"""

import argparse
import json
import pathlib
import statistics
import sys

import summary
from answers import Answers, QUERIES, difference
from gremlin import Gremlin, start_ficus

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "peers"))


def start(options, found):
    """Puts name and engine into `found`, FicusDB first. An engine has `ask(query, parameters)`: rows and the seconds that a client waits; and `close()`."""
    if options.url:
        found["FicusDB"] = Gremlin(options.url, options.timeout)
    else:
        found["FicusDB"] = start_ficus(options.ficus, options.store, options.timeout)
    if options.ladybug:
        from snb_ladybug import Ladybug
        found["LadybugDB"] = Ladybug(options.ladybug, options.data, options.timeout)
    if options.tinkergraph:
        from snb_tinkergraph import tinkergraph
        found["TinkerGraph"] = tinkergraph(options.tinkergraph, options.data, options.timeout, options.heap)


def measure(query, sets, answers, found, rounds, timeout_s):
    """Per engine: its best time of `rounds` for each set in ms, how many rows on average, and what was wrong with an answer.

    The engines are asked in turn, so that all see the same machine. A query that does not end in time counts as the time it had and is not
    repeated; one for which that happened with most of the sets is not asked with the rest, which could not change its median any more.
    """
    results = {name: {"ms": [], "rows": [], "timeouts": 0, "problem": None} for name in found}
    for parameters in sets:
        best, expected = {}, answers.ask(query, parameters)
        asked = [name for name in found
                 if name not in query.get("not_in", {}) and 2 * results[name]["timeouts"] <= len(sets)]
        for turn in range(rounds):
            for name in list(asked):
                result = results[name]
                try:
                    rows, seconds = found[name].ask(query, parameters)
                except TimeoutError:
                    best[name] = timeout_s
                    result["timeouts"] += 1
                    asked.remove(name)
                    continue
                except RuntimeError as error:
                    result["problem"] = str(error)
                    asked.remove(name)
                    continue
                best[name] = min(best.get(name, seconds), seconds)
                if turn == 0:
                    result["rows"].append(len(rows))
                result["problem"] = result["problem"] or difference(query, rows, expected)
        for name, seconds in best.items():
            results[name]["ms"].append(seconds * 1000)
    for result in results.values():
        ended = 2 * result["timeouts"] <= len(sets)
        result["median_ms"] = (statistics.median(result["ms"]) if ended else timeout_s * 1000) if result["ms"] else None
    return results


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", required=True, type=pathlib.Path, help="folder of CSV files")
    arguments.add_argument("--ficus", help="the program, which is started for this run")
    arguments.add_argument("--store", help="its data directory")
    arguments.add_argument("--url", help="a server that runs already, instead of --ficus and --store")
    arguments.add_argument("--ladybug", metavar="DIRECTORY", help="also ask LadybugDB, whose database lies here")
    arguments.add_argument("--tinkergraph", metavar="DIRECTORY|URL", help="also ask TinkerGraph: a folder for its programs, or where one serves")
    arguments.add_argument("--heap", default="13g", help="memory of the TinkerGraph that is started (13g)")
    arguments.add_argument("--only", action="append", default=[], help="a query's name; may be repeated")
    arguments.add_argument("--sets", type=int, default=5, help="sets of parameters (5)")
    arguments.add_argument("--rounds", type=int, default=3, help="times that each set is asked; the best counts (3)")
    arguments.add_argument("--seed", type=int, default=1, help="draws the parameters (1)")
    arguments.add_argument("--timeout", type=float, default=20, help="seconds that a query has (20)")
    arguments.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures here")
    options = arguments.parse_args()
    if not options.url and not (options.ficus and options.store):
        arguments.error("say --ficus and --store, or --url")
    unknown = set(options.only) - {query["name"] for query in QUERIES}
    if unknown:
        arguments.error(f"no query is named {', '.join(sorted(unknown))}")
    answers = Answers(options.data)
    sets = answers.parameters(options.sets, options.seed)
    print(f"seed {options.seed}, {options.sets} parameter sets, best of {options.rounds} rounds each; medians in ms, "
          f"in brackets the ratio to FicusDB; a query has {options.timeout:g} s")
    found, results = {}, {}
    try:
        start(options, found)
        print(summary.heading(found))
        for query in QUERIES:
            if not options.only or query["name"] in options.only:
                results[query["name"]] = measure(query, sets, answers, found, options.rounds, options.timeout)
                print(summary.line(query["name"], results[query["name"]]), flush=True)
    finally:
        for engine in found.values():
            engine.close()
    print("\n".join(summary.conclusions(results)))
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "sets": options.sets, "rounds": options.rounds, "timeout_s": options.timeout,
                                            "queries": results, "conclusions": summary.conclusions(results)}, indent=1))
    sys.exit(1 if any(result["problem"] for query in results.values() for result in query.values()) else 0)


if __name__ == "__main__":
    main()
