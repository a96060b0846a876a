#!/usr/bin/env python3
"""Asks FicusDB and TinkerGraph, behind the real Gremlin Server, the same random traversals; their answers have to be equal.

    compare.py --ficus BINARY --programs FOLDER [--seed N] [--count N] [--writes N] [--draws N]

FOLDER holds the libraries of Gremlin Server (tests/fetch.sh reference). Both servers begin empty and are sent the same small graph. Traversals are
of grammars whose answers TinkerPop determines: some walk over the graph (`Grammar`), where rows are cut only behind an order that leaves no
ties, some are about values (values.py), some keep something on their way, as labels or side effects (walks.py), or lose it (labels.py). Behind them come statements that change a graph (writes.py), after each of which the graphs have to be
equal too, and traversals that draw random numbers from a seed (draws.py), of a graph of their own in servers of their own. Answers are compared with the types of their numbers; as lists where the traversal orders its rows, else
as bags. A traversal that fails has to fail on both, but for what fails there by accident (`ACCIDENTS`). Ends with a line `ok`, or with status 1 and a
line `not ok` and the first differences.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from draws import Draws
from labels import Labels
from values import Values
from walks import Walks
from writes import BEGIN, STATE, Writes

PERSONS = [(1, "marko", 29), (2, "vadas", 27), (4, "josh", 32), (6, "peter", 35)]
SOFTWARE = [(3, "lop"), (5, "ripple")]
EDGES = [(7, "knows", 1, 2, 0.5), (8, "knows", 1, 4, 1.0), (9, "created", 1, 3, 0.4), (10, "created", 4, 5, 1.0), (11, "created", 4, 3, 0.4),
         (12, "created", 6, 3, 0.2)]
# A loop, two edges between the same vertices, one that nobody knows and one with several values that have properties: what the well-known graph lacks.
MORE = ["g.addV('person').property(T.id, 13).property('name', 'lonely')", "g.V(5).as('v').addE('uses').from('v').to('v').property(T.id, 14)",
        "g.V(6).as('v').V(3).addE('created').from('v').property(T.id, 15).property('weight', 0.7)",
        "g.addV('person').property(T.id, 20).property('name', 'multi').property(list, 'loc', 'sd', 'since', 1997, 'until', 2001).property(list, 'loc', 'sf', 'since', 2001)"
        ".property(list, 'loc', 'br', 'since', 2005, 'until', 2005)"]
DIFFERENCES_SHOWN = 5
ANSWER_SECONDS_MAX = 20
# Statements until the graph that they change is made anew.
STATEMENTS_MAX = 12
NO_ANSWER = 0
# What messages hold of TinkerGraph's failures that no rule of Gremlin asks for. FicusDB may answer.
ACCIDENTS = [
    # All values have an order, but order(local) and max() cast to Comparable first.
    "cannot be cast to class java.lang.Comparable",
    # substring() with a negative index divides by the length of an empty text.
    "/ by zero",
    # An infinity beside a BigDecimal becomes a text that is no number, also where the two are only compared.
    "Character I is neither a decimal digit number",
    # unfold() asks null for its class before it gives it back.
    'Cannot invoke "Object.getClass()" because "s" is null',
    # skip(local) beyond the end of a map.
    "Illegal initial capacity: -",
    # Two skip() in a row are made one range, which is refused where it is empty.
    "Not a legal range",
]
NAMES = "identity().as('"


def graph():
    """Statements that make the graph."""
    yield from (f"g.addV('person').property(T.id, {key}).property('name', '{name}').property('age', {age})" for key, name, age in PERSONS)
    yield from (f"g.addV('software').property(T.id, {key}).property('name', '{name}').property('lang', 'java')" for key, name in SOFTWARE)
    yield from (f"g.V({out}).as('v').V({into}).addE('{label}').from('v').property(T.id, {key}).property('weight', {weight})"
                for key, label, out, into, weight in EDGES)
    yield from MORE


class Grammar:
    """Draws traversals. What flows is a vertex, an edge, a number, a count (`tally`), a text, a list, a map or something of any kind (`any`)."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.named = 0
        self.is_deduplicated = False

    def traversal(self):
        """A text, and whether it says how its rows are ordered."""
        self.is_deduplicated = False
        start, kind = self.pick([("g.V()", "vertex"), ("g.V()", "vertex"), ("g.E()", "edge"), ("g.V(1, 4)", "vertex"),
                                 ("g.V().hasLabel('person')", "vertex"), ("g.V().has('name', 'josh')", "vertex")])
        steps, _, ordered = self.steps(kind, 0, self.random.randint(1, 6))
        return ".".join([start] + steps), ordered

    def pick(self, choices):
        return self.random.choice(choices)

    def steps(self, kind, depth, count):
        labels, taken, ordered = [], [], False
        for _ in range(count):
            step, kind, keeps_order = self.step(kind, depth, labels)
            ordered = keeps_order == "makes" or (ordered and keeps_order == "keeps")
            taken.append(step)
        return taken, kind, ordered

    def child(self, kind, depth, ends_in_value=False):
        taken, end, _ = self.steps(kind, depth + 1, self.random.randint(1, 3))
        if ends_in_value and end in ("vertex", "edge"):
            taken.append(self.pick(["count()", "id()", "label()"]))
        return "__." + ".".join(taken)

    def step(self, kind, depth, labels):
        """A step, the kind of what comes out, and what it does with an order: `makes`, `keeps` or `loses` it."""
        choices = {"vertex": self.of_vertex, "edge": self.of_edge, "number": self.of_number, "tally": self.of_tally, "text": self.of_text, "list": self.of_list,
                   "map": self.of_map, "any": self.of_any}[kind](depth)
        if kind in ("vertex", "edge"):
            choices += self.of_element(kind, depth) + self.of_labels(kind, labels)
        while True:
            step, comes_out, order = self.pick(choices)
            step = step() if callable(step) else step
            # Which of several rows is left, with its path and labels, is nowhere said.
            if not (self.is_deduplicated and "ath()" in step):
                break
        if step.startswith(NAMES):
            labels.append((step[len(NAMES):-2], kind))
        if step.startswith("dedup()"):
            self.is_deduplicated = True
            labels.clear()
        return step, comes_out, order

    def edge_labels(self):
        return self.pick(["", "'knows'", "'created'", "'knows', 'created'", "'uses'", "'nobody'"])

    def about_numbers(self):
        return self.pick(["gt(29)", "lt(32)", "gte(32)", "eq(35)", "neq(29)", "between(27, 33)", "inside(27, 35)", "outside(28, 34)", "within(27, 29, 1)",
                          "without(29)", "gt(0.4)", "between(1, 30).or(gt(32))", "gt(1).and(lt(33))", "not(gt(30))"])

    def about_texts(self):
        return self.pick(["eq('josh')", "neq('marko')", "startingWith('m')", "endingWith('o')", "containing('a')", "within('marko', 'lop')", "gt('j')",
                          "notContaining('e')", "regex('^[a-m]')", "lt('m')", "without('josh', 'vadas')"])

    def total_order(self, kind):
        if kind == "edge":
            return self.pick([".by(T.id)", ".by(T.id, Order.desc)", ".by(T.label).by(T.id)"])
        return self.pick([".by('name')", ".by('name', Order.desc)", ".by(T.id)", ".by(__.out().count()).by('name')",
                          ".by(__.in().values('name').count(), Order.desc).by(T.id)", ".by(T.label).by('name')",
                          ".by(__.coalesce(__.values('age'), __.constant(0))).by('name')"])

    def by(self, kind):
        if kind == "edge":
            return self.pick([".by('weight')", ".by(T.label)", ".by(__.inV().values('name'))", ".by(T.id)"])
        return self.pick([".by('name')", ".by(T.label)", ".by(T.id)", ".by(__.out().count())", f".by(__.in({self.edge_labels()}).count())",
                          ".by(__.values('name'))", ".by(__.outE().count())", ".by(__.coalesce(__.values('age'), __.constant(-1)))"])

    def of_vertex(self, depth):
        hops = [(f"{hop}({self.edge_labels()})", "edge" if hop.endswith("E") else "vertex", "loses") for hop in ("out", "in", "both", "outE", "inE", "bothE")]
        tests = [f"has('age', {self.about_numbers()})", f"has('name', {self.about_texts()})", "hasLabel('person')", "has('lang', 'java')", "hasNot('age')",
                 f"has('person', 'name', {self.about_texts()})", "has('age')", "hasId(1, 5, 13)", "has(T.label, P.neq('person'))"]
        choices = hops + hops[:3] + [(test, "vertex", "keeps") for test in tests] + [
            ("values('name')", "text", "keeps"), ("values('age')", "number", "keeps"), ("values()", "any", "loses"), ("elementMap()", "map", "keeps"),
            ("valueMap()", "map", "keeps"), ("valueMap('name', 'age')", "map", "keeps"), ("properties('name').value()", "text", "keeps"),
            ("out().in().simplePath()", "vertex", "loses")]
        # Said twice a label may mean the first or the last.
        self.named += 1
        name = f"n{self.named}"
        if depth == 0:
            # What is gathered inside is what rows before have had time to add.
            choices += [(f"as('{name}').out().in().where(P.neq('{name}'))", "vertex", "loses"),
                        (f"out().aggregate('{name}').in().where(P.without('{name}'))", "vertex", "loses")]
        if depth < 2:
            likely = self.pick(["out()", "in()", "out().out()", "both().has('age')"])
            body = self.pick(["out()", "both()", "in()", "both().simplePath()", "both('knows')", "out('created').in('created')"])
            times = self.random.randint(0, 3)
            choices += [(f"repeat(__.{body}).times({times})", "vertex", "loses"), (f"repeat(__.{body}).emit().times({max(times, 1)})", "vertex", "loses"),
                        (lambda: f"emit({self.child('vertex', depth)}).repeat(__.{body}).times(2)", "vertex", "loses"),
                        ("repeat(__.both().simplePath()).until(__.has('name', 'ripple'))", "vertex", "loses"),
                        ("until(__.out('created', 'knows').count().is(0)).repeat(__.out('created', 'knows'))", "vertex", "loses"),
                        (f"optional(__.{likely})", "vertex", "loses"),
                        ("match(__.as('p').out('created').as('q'), __.as('q').in('created').as('r')).select('p', 'r').by('name')", "map", "loses"),
                        (f"group(){self.by('vertex')}.by(__.values('age').{self.pick(['sum()', 'max()', 'min()', 'mean()', 'count()'])})", "map", "loses"),
                        (f"group(){self.by('vertex')}.by(__.{likely}.count())", "map", "loses"),
                        ("groupCount().by(T.id)", "map", "loses"), ("order().by(__.both().count()).by('name').values('name')", "text", "makes"),
                        (f"as('{name}').out().both().where(eq('{name}'))", "vertex", "loses"),
                        (f"as('{name}').both().both().where(eq('{name}')).count()", "tally", "loses")]
        return choices

    def of_edge(self, depth):
        tests = ["has('weight', gt(0.4))", "has('weight', lte(0.5))", "hasLabel('knows')", "has('weight')", "hasNot('weight')", "hasId(7, 14)"]
        return [(test, "edge", "keeps") for test in tests] + [
            # What several rows have in common, TinkerGraph may bring together behind such a step.
            ("inV()", "vertex", "loses"), ("outV()", "vertex", "loses"), ("bothV()", "vertex", "loses"), ("values('weight')", "number", "loses")]

    def of_element(self, kind, depth):
        order = self.total_order(kind)
        choices = [
            ("dedup()", kind, "keeps"), ("id()", "number", "keeps"), ("label()", "text", "keeps"), ("count()", "tally", "loses"), ("fold()", "list", "loses"),
            ("simplePath()", kind, "keeps"), ("cyclicPath()", kind, "keeps"), ("barrier()", kind, "loses"), ("fold().unfold()", kind, "loses"),
            ("barrier().aggregate('x')", kind, "loses"), (f"groupCount(){self.by(kind)}", "map", "loses"), (f"group(){self.by(kind)}.by(__.count())", "map", "loses"),
            # A traversal would yield what it makes of the first of a group.
            (f"group(){self.by(kind)}.by({self.pick(['T.id', 'T.label'])})", "map", "loses"), (f"project('a', 'b'){self.by(kind)}{self.by(kind)}", "map", "keeps"),
            ("path().count(Scope.local)", "tally", "keeps"), ("constant('c')", "text", "keeps")]
        # Behind two of the same element there is no order without ties.
        choices += [(f"dedup().order(){order}", kind, "makes"), (f"dedup().order(){order}.limit({self.random.randint(1, 4)})", kind, "makes"),
                    (f"dedup().order(){order}.range(1, 3)", kind, "makes"), (f"dedup().order(){order}.tail(2)", kind, "makes")]
        if depth < 2:
            child, value = lambda: self.child(kind, depth), lambda: self.child(kind, depth, ends_in_value=True)
            # Drawn only if they are chosen.
            choices += [
                (lambda: f"filter({child()})", kind, "keeps"), (lambda: f"not({child()})", kind, "keeps"),
                (lambda: f"and({child()}, {child()})", kind, "keeps"), (lambda: f"or({child()}, {child()})", kind, "keeps"),
                (lambda: f"union({value()}, {value()})", "any", "loses"), (lambda: f"coalesce({value()}, {value()})", "any", "loses"),
                (lambda: f"choose({child()}, {value()}, {value()})", "any", "loses"), (lambda: f"flatMap({value()})", "any", "loses"),
                (lambda: f"choose(T.label).option('person', {value()}).option(Pick.none, {value()})", "any", "loses"),
                (lambda: f"sideEffect({child()})", kind, "keeps")]
        return choices

    def of_labels(self, kind, labels):
        label = self.pick(["a", "b"])
        known = [(name, of) for name, of in labels if all(other != (name, kind) for other in labels if other[0] == name and other[1] != of)]
        choices = []
        if known:
            name, of = self.pick(known)
            choices = [(f"select('{name}')", of, "loses"), (f"where({self.pick(['P.neq', 'P.eq'])}('{name}'))", kind, "keeps")] * 2
            choices += [(f"select('{name}').by(T.id)", "number", "loses")]
        elif all(name != label for name, _ in labels):
            choices = [(f"{NAMES}{label}')", kind, "keeps")] * 4
        return choices

    def of_number(self, depth):
        return [("count()", "tally", "loses"), (f"is({self.about_numbers()})", "number", "keeps"), ("sum()", "number", "loses"), ("max()", "number", "loses"),
                ("min()", "number", "loses"), ("mean()", "number", "loses"), ("math('_ * 2 + 1')", "number", "keeps"), ("order()", "number", "makes"),
                ("order().by(Order.desc).limit(2)", "number", "makes"), ("dedup()", "number", "keeps"), ("groupCount()", "map", "loses"), ("fold()", "list", "loses")]

    def of_tally(self, depth):
        # Compared, a count would end early, and in TinkerGraph what goes on is how far it came.
        return [(step, "tally" if kind == "number" else kind, order) for step, kind, order in self.of_number(depth) if not step.startswith("is(")]

    def of_text(self, depth):
        return [("count()", "tally", "loses"), (f"is({self.about_texts()})", "text", "keeps"), ("order()", "text", "makes"), ("toUpper()", "text", "keeps"),
                ("length()", "number", "keeps"), ("substring(1, 3)", "text", "keeps"), ("concat('x')", "text", "keeps"), ("max()", "text", "loses"),
                ("dedup()", "text", "keeps"), ("groupCount()", "map", "loses"), ("fold()", "list", "loses"), ("replace('o', 'u')", "text", "keeps")]

    def of_list(self, depth):
        return [("unfold()", "any", "loses"), ("count(Scope.local)", "tally", "keeps"), ("dedup(Scope.local)", "any", "keeps")]

    def of_map(self, depth):
        return [("select(Column.keys)", "list", "keeps"), ("select(Column.values)", "list", "keeps"), ("unfold()", "any", "loses"),
                ("count(Scope.local)", "tally", "keeps"), ("count()", "tally", "loses"), ("fold()", "list", "loses")]

    def of_any(self, depth):
        return [("count()", "tally", "loses"), ("dedup()", "any", "keeps"), ("fold()", "list", "loses"), ("groupCount()", "map", "loses"),
                ("group().by().by(__.count())", "map", "loses"), ("identity()", "any", "keeps")]


class Server:
    """A process that takes Gremlin over HTTP."""

    def __init__(self, name, port, command):
        self.name, self.port, self.process = name, port, subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while True:
            if self.process.poll() is not None:
                sys.exit(f"{name} did not start: {' '.join(map(str, command))}")
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        self.connection = None

    def ask(self, text):
        """The status, and rows or a message."""
        body = json.dumps({"gremlin": text, "language": "gremlin-lang", "aliases": {"g": "g"}})
        headers = {"Content-Type": "application/json", "Accept": "application/vnd.gremlin-v3.0+json"}
        self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS_MAX)
        try:
            self.connection.request("POST", "/gremlin", body, headers)
            response = self.connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except TimeoutError:
            # Gremlin Server forgets to answer where a traversal runs out of stack.
            self.connection = None
            return NO_ANSWER, "no answer in time"
        except (ConnectionError, http.client.HTTPException):
            # Gremlin Server closes the connection behind an error.
            self.connection = None
            return self.ask(text)
        return (status, answer["result"]["data"]["@value"]) if status == 200 else (status, answer.get("message") or answer)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_reference(programs, folder):
    port, tinkerpop = free_port(), "org.apache.tinkerpop.gremlin."
    (folder / "graph.properties").write_text(f"gremlin.graph={tinkerpop}tinkergraph.structure.TinkerGraph\n"
                                             "gremlin.tinkergraph.vertexIdManager=INTEGER\ngremlin.tinkergraph.edgeIdManager=INTEGER\n")
    (folder / "init.groovy").write_text("def globals = [g: traversal().withEmbedded(graph)]\n")
    plugins = {tinkerpop + "server.jsr223.GremlinServerGremlinPlugin": {}, tinkerpop + "tinkergraph.jsr223.TinkerGraphGremlinPlugin": {},
               tinkerpop + "jsr223.ScriptFileGremlinPlugin": {"files": [str(folder / "init.groovy")]}}
    settings = {"host": "127.0.0.1", "port": port, "evaluationTimeout": 20_000, "channelizer": tinkerpop + "server.channel.HttpChannelizer",
                "graphs": {"graph": str(folder / "graph.properties")}, "serializers": [{"className": tinkerpop + "util.ser.GraphSONMessageSerializerV3"}],
                "scriptEngines": {"gremlin-lang": {}, "gremlin-groovy": {"plugins": plugins}}}
    (folder / "server.yaml").write_text(json.dumps(settings))
    return Server("Gremlin Server", port, ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", str(programs / "*"),
                                           tinkerpop + "server.GremlinServer", str(folder / "server.yaml")])


def start_ficus(binary, folder):
    port = free_port()
    return Server("FicusDB", port, [binary, "serve", "--data-dir", str(folder / "data"), "--listen", f"127.0.0.1:{port}"])


def plain(value, lists_are_bags):
    """A value that can be compared and sorted: elements by their ids, maps and sets as bags, numbers with their types."""
    if isinstance(value, list):
        members = [plain(member, lists_are_bags) for member in value]
        return ("list", *(sorted(members, key=repr) if lists_are_bags else members))
    if not isinstance(value, dict):
        return value
    if "@type" not in value:
        return ("object", *sorted((key, plain(member, lists_are_bags)) for key, member in value.items()))
    kind, content = value["@type"], value["@value"]
    if kind in ("g:Map", "g:BulkSet"):
        return (kind, *sorted(((plain(key, lists_are_bags), plain(member, lists_are_bags)) for key, member in zip(content[::2], content[1::2])), key=repr))
    if kind in ("g:Set", "g:Tree"):
        return (kind, *sorted((plain(member, lists_are_bags) for member in content), key=repr))
    if kind in ("g:Vertex", "g:Edge"):
        return (kind, plain(content["id"], lists_are_bags))
    if kind == "g:VertexProperty":
        # Its id is given by the server.
        return (kind, content["label"], plain(content["value"], lists_are_bags))
    if kind == "g:Float" and not isinstance(content, str):
        # Written with as many digits as tell it from its neighbours, or more.
        return (kind, struct.pack("f", content))
    if kind == "g:Double" and not isinstance(content, str):
        # Sums of the same numbers in another order.
        return (kind, float(f"{content:.12g}"))
    return (kind, plain(content, lists_are_bags))


def is_equal(own, reference, ordered, lists_are_bags):
    # Nothing can be said where there is nothing to compare with; too much of that fails the whole.
    if reference[0] == NO_ANSWER:
        return True
    if own[0] == NO_ANSWER:
        return False
    if reference[0] != 200:
        return own[0] != 200 or any(message in str(reference[1]) for message in ACCIDENTS)
    if own[0] != 200:
        return False
    own, reference = ([plain(row, lists_are_bags) for row in answer[1]] for answer in (own, reference))
    return own == reference if ordered else sorted(own, key=repr) == sorted(reference, key=repr)


def show_difference(servers, answers):
    """The first answers that differ: what one has and the other has not."""
    for reference, own in zip(*answers):
        if not is_equal(own, reference, ordered=False, lists_are_bags=True):
            rows = [[repr(plain(row, True)) for row in answer[1]] if answer[0] == 200 else [str(answer)] for answer in (reference, own)]
            for server, of_it, of_other in zip(servers, rows, reversed(rows)):
                only = [row for row in of_it if of_it.count(row) != of_other.count(row)]
                print(f"  {server.name:14} {str(only)[:1000]}")
            return


def compare_writes(servers, random_numbers, count):
    """Sends both servers statements that change a small graph, and compares their answers and the graph behind each. How many differ, and how many fail."""
    writes, different, failed, since_begin = Writes(random_numbers), 0, 0, []
    for _ in range(count):
        if not since_begin:
            writes.begin()
            since_begin = list(BEGIN)
            for statement in BEGIN:
                for server in servers:
                    status, answer = server.ask(statement)
                    if status != 200:
                        sys.exit(f"{server.name} refused {statement}: {answer}")
        statement = writes.statement()
        since_begin.append(statement)
        answers = [[server.ask(text) for text in [statement, *STATE]] for server in servers]
        is_same = all(is_equal(own, reference, ordered=False, lists_are_bags=True) for reference, own in zip(*answers))
        fails = answers[0][0][0] != 200
        if fails:
            # There what was changed before the failure stays, here nothing does.
            is_same = answers[1][0][0] != 200
        failed += fails
        if not is_same:
            different += 1
            if different <= DIFFERENCES_SHOWN:
                print(f"{statement} behind {since_begin[len(BEGIN):-1]}")
                show_difference(servers, answers)
        if fails or not is_same or len(since_begin) > STATEMENTS_MAX:
            since_begin = []
    return different, failed


def compare_draws(servers, random_numbers, count):
    """Sends both servers traversals that draw from a seed; how many answers differ, in their order too. Both have held nothing before: the maps of a
    TinkerGraph stay as large as they were once."""
    draws, different = Draws(random_numbers), 0
    for statement in draws.graph():
        for server in servers:
            status, answer = server.ask(statement)
            if status != 200:
                sys.exit(f"{server.name} refused {statement}: {answer}")
    for _ in range(count):
        text = draws.traversal()
        reference, own = (server.ask(text) for server in servers)
        if not is_equal(own, reference, ordered=True, lists_are_bags=False):
            different += 1
            if different <= DIFFERENCES_SHOWN:
                print(f"{text}\n  TinkerGraph {json.dumps(reference)[:1500]}\n  FicusDB     {json.dumps(own)[:1500]}")
    return different


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ficus", required=True, help="the program")
    arguments.add_argument("--programs", required=True, type=pathlib.Path, help="folder of Gremlin Server's libraries")
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("FICUS_TEST_SEED", 1)),
                           help="draws the traversals (FICUS_TEST_SEED, else 1)")
    arguments.add_argument("--count", type=int, default=2000, help="how many (2000)")
    arguments.add_argument("--writes", type=int, default=1000, help="how many statements that change the graph are sent behind them (1000)")
    arguments.add_argument("--draws", type=int, default=600, help="how many that draw from a seed (600)")
    options = arguments.parse_args()
    print(f"seed {options.seed}, {options.count} traversals", flush=True)
    walks, different, failed, empty, unanswered = Grammar(options.seed), 0, 0, 0, 0
    values, keeping, losing = Values(walks.random), Walks(walks.random), Labels(walks.random)
    with tempfile.TemporaryDirectory() as temporary:
        folder, servers = pathlib.Path(temporary), []
        try:
            servers.append(start_reference(options.programs, folder))
            servers.append(start_ficus(options.ficus, folder))
            for statement in graph():
                for server in servers:
                    status, answer = server.ask(statement)
                    if status != 200:
                        sys.exit(f"{server.name} refused {statement}: {answer}")
            for number in range(options.count):
                grammar = (walks, values, keeping, losing)[number % 4]
                text, ordered = grammar.traversal()
                reference, own = (server.ask(text) for server in servers)
                failed += reference[0] != 200
                unanswered += reference[0] == NO_ANSWER
                empty += reference[0] == 200 and not reference[1]
                if not is_equal(own, reference, ordered, lists_are_bags=grammar is not values or not ordered):
                    different += 1
                    if different <= DIFFERENCES_SHOWN:
                        print(f"{text}{' (ordered)' if ordered else ''}\n  TinkerGraph {json.dumps(reference)[:1500]}\n  FicusDB     {json.dumps(own)[:1500]}")
            differently_written, refused = compare_writes(servers, walks.random, options.writes)
        finally:
            for server in servers:
                server.end()
    with tempfile.TemporaryDirectory() as temporary:
        folder, servers = pathlib.Path(temporary), []
        try:
            servers.append(start_reference(options.programs, folder))
            servers.append(start_ficus(options.ficus, folder))
            differently_drawn = compare_draws(servers, walks.random, options.draws)
        finally:
            for server in servers:
                server.end()
    # A comparison of nothing with nothing would always succeed.
    says_little = failed + empty > options.count // 2 or unanswered > options.count // 500
    says_little = says_little or refused > options.writes // 2
    good = different == 0 and differently_written == 0 and differently_drawn == 0 and not says_little
    print(f"{'ok' if good else 'not ok'} random traversals: {different} of {options.count} differ, {failed} fail on both, {empty} yield nothing, {unanswered} without an answer there;"
          f" {differently_written} of {options.writes} changes differ, {refused} fail on both; {differently_drawn} of {options.draws} that draw from a seed differ")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
