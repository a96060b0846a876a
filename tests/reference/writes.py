"""Draws statements that change a graph of a few vertices: new elements, properties of all cardinalities, removals and upserts."""

import re

# What a graph holds, without the ids that servers give.
STATE = ["g.V().project('label', 'properties').by(T.label).by(__.properties().project('key', 'value', 'meta').by(T.key).by(T.value).by(__.valueMap()).fold())",
         "g.E().project('label', 'out', 'in', 'properties').by(T.label).by(__.outV().valueMap('k')).by(__.inV().valueMap('k')).by(__.valueMap())"]
# What all statements begin with: vertices 1 to 4, each with its id as `k`.
BEGIN = ["g.V().drop()",
         "g.addV('person').property(T.id, 1).property('k', 1).property('a', 1).addV('person').property(T.id, 2).property('k', 2)"
         ".property(list, 'a', 1, 'm', 'x').property(list, 'a', 2, 'm', 'y').addV('thing').property(T.id, 3).property('k', 3).property('b', 'x')"
         ".addV('thing').property(T.id, 4).property('k', 4)",
         "g.V(1).as('v').V(2).addE('e').from('v').property(T.id, 100).property('w', 1).V(3).as('v').V(4).addE('e').from('v').property(T.id, 101)"
         ".V(1).as('v').V(1).addE('f').from('v').property(T.id, 102).property('w', 2)"]
KEYS = ["a", "b", "c"]
VALUES = ["1", "2", "3L", "1.5", "'x'", "'y'", "true", "''", "[1, 2]", "null"]
CARDINALITIES = ["single, ", "list, ", "set, "]
LABELS = ["person", "thing", "new"]
EDGE_LABELS = ["e", "f", "g"]
# What is written under them, and what they refuse.
STRATEGIES = ["new PartitionStrategy(partitionKey: 'p', writePartition: 'x', readPartitions: {'x'})", "new PartitionStrategy(partitionKey: 'p', writePartition: 'y', readPartitions: ['x', 'y'])",
              "new SubgraphStrategy(edges: __.hasLabel('e'))", "ReadOnlyStrategy",
              "ProductiveByStrategy"]
# Traversals from a vertex to a value; some yield nothing.
OF_VERTEX = ["__.values('k')", "__.values('a')", "__.out().values('k').min()", "__.out('e').count()", "__.label()", "__.constant(7)", "__.values('absent')",
             "__.V(3).values('k')"]


class Writes:
    """The first vertices have the ids 1 to 4; new ones are given ids far from these and each other, so that no server gives one of them, or none."""

    def __init__(self, source):
        self.random = source
        self.begin()

    def begin(self):
        """The graph is made anew."""
        self.next_id = 1000

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def statement(self):
        """A text whose answer holds no ids that servers give."""
        strategy = f"withStrategies({self.pick(STRATEGIES)})." if self.chance(0.12) else ""
        while True:
            statement = self.pick([self.new_vertex, self.set_properties, self.set_properties, self.new_edge, self.removal, self.merge_vertex, self.merge_vertex,
                                   self.merge_edge, self.merge_edge, self.upsert, self.of_many])()
            # Two equal maps may be brought together there, and are one then.
            if not re.search(r"inject\((\[[^\]]*\]), \1\)", statement):
                return f"g.{strategy}{statement}"

    def new_id(self):
        self.next_id += 1000
        return self.next_id

    def known_id(self):
        return self.pick([1, 1, 2, 2, 3, 4, self.next_id, -1])

    def vertices(self):
        return self.pick([f"V({self.known_id()})", f"V({self.known_id()})", f"V({self.known_id()}, {self.known_id()})", f"V().has('k', {self.known_id()})",
                          f"V().hasLabel('{self.pick(LABELS)}')", "V()", "V(1).out('e')"])

    def edges(self):
        return self.pick(["E()", "E(100)", f"E().hasLabel('{self.pick(EDGE_LABELS)}')", f"V({self.known_id()}).outE()", f"V({self.known_id()}).bothE('e')", "E().has('w', 1)"])

    def value(self):
        return self.pick(VALUES)

    def end(self):
        return self.pick([".valueMap()", ".valueMap()", ".label()", ".count()", ".properties().value()", ".values('a')", ".properties().key()", ".elementMap('a', 'k').select(Column.values).unfold().count()"])

    def set_property(self, of_vertex=True):
        key, value = self.pick(KEYS), self.value()
        if self.chance(0.2):
            value = self.pick(OF_VERTEX)
        if self.chance(0.1):
            entries = ", ".join(f"'{key}': {self.value()}" for key in self.random.sample(KEYS, self.random.randint(0, 2))) or ":"
            return f".property({self.pick(CARDINALITIES) if of_vertex and self.chance(0.4) else ''}[{entries}])"
        metas = f", '{self.pick(['m', 'n'])}', {self.value()}" if of_vertex and self.chance(0.25) else ""
        if metas and self.chance(0.2):
            metas += f", '{self.pick(['m', 'n'])}', {self.value()}"
        if self.chance(0.01):
            key = self.pick(["~a", "id", "label"])
        return f".property({self.pick(CARDINALITIES if of_vertex else CARDINALITIES[:1]) if self.chance(0.6 if of_vertex else 0.2) else ''}'{key}', {value}{metas})"

    def set_some(self, most=2, of_vertex=True):
        if self.chance(0.1):
            key = self.pick(KEYS)
            return f".property('{key}', {self.value()}).property({self.pick(CARDINALITIES) if of_vertex and self.chance(0.4) else ''}'{key}', null)"
        return "".join(self.set_property(of_vertex) for _ in range(self.random.randint(0, most)))

    def new_vertex(self):
        key = self.new_id() if self.chance(0.9) else 1
        label = self.pick([f"'{self.pick(LABELS)}'", f"'{self.pick(LABELS)}'", "", "__.constant('made')", "__.V(1).label()"])
        return f"addV({label}).property(T.id, {key}).property('k', {key}){self.set_some()}{self.end()}"

    def set_properties(self):
        if self.chance(0.25):
            return f"{self.edges()}{self.set_property(False)}{self.set_some(1, False)}{self.end()}"
        if self.chance(0.15):
            return f"{self.vertices()}.properties('{self.pick(KEYS)}').property('{self.pick(['m', 'n'])}', {self.value()}).valueMap()"
        return f"{self.vertices()}{self.set_property()}{self.set_some()}{self.end()}"

    def new_edge(self):
        label = f"'{self.pick(EDGE_LABELS)}'"
        ends = self.pick([f"V({self.known_id()}).addE({label}).to(__.V({self.known_id()}))", f"V({self.known_id()}).addE({label}).from(__.V({self.known_id()}))",
                          f"V({self.known_id()}).as('x').V({self.known_id()}).addE({label}).from('x')", f"{self.vertices()}.as('x').addE({label}).to('x')",
                          f"addE({label}).from(__.V({self.known_id()})).to(__.V({self.known_id()}))", f"V({self.known_id()}).addE({label})",
                          f"{self.vertices()}.addE({label}).to(__.out('e').order().by(T.id).limit(1))", f"V(1).addE(__.constant('made')).to(__.V().has('k', {self.known_id()}))",
                          f"V({self.known_id()}).addE({label}).to(__.V().order().by(T.id).limit(1))", f"inject({self.known_id()}).addE({label}).to(__.V({self.known_id()}))",
                          f"{self.vertices()}.id().addE({label}).from(__.V({self.known_id()}))", f"inject({self.known_id()}).as('x').V({self.known_id()}).addE({label}).to('x')"])
        return f"{ends}{self.set_some(1, False)}{self.end()}"

    def removal(self):
        key = self.pick(KEYS)
        return self.pick([f"{self.vertices()}.drop()", f"{self.vertices()}.properties('{key}').drop()", f"{self.edges()}.drop()", f"{self.edges()}.properties('w').drop()",
                          f"{self.vertices()}.properties('{key}').properties('m').drop()", f"{self.vertices()}.sideEffect(__.properties('{key}').drop()){self.end()}",
                          f"{self.vertices()}.properties('{key}').has('m').drop()", f"{self.vertices()}.properties('{key}').hasValue({self.pick(['1', '2', chr(39) + 'x' + chr(39)])}).drop()",
                          f"{self.vertices()}.sideEffect(__.outE().drop()).out().count()", f"{self.vertices()}.hasId(4, [1, 2]).drop()", f"{self.vertices()}.properties('{key}').properties().drop()",
                          f"{self.vertices()}.properties('{key}').has('m', P.neq('x')).properties('m').drop()", f"{self.vertices()}.properties('{key}').hasNot('m').drop()", f"{self.vertices()}.as('x').outE('e').drop().select('x')"])

    def entries(self, with_label=0.5, cardinalities=False):
        """Entries of a map of a vertex."""
        found = [f"'k': {self.known_id()}"] if self.chance(0.7) else []
        if self.chance(with_label):
            found.append(f"(T.label): '{self.pick(LABELS)}'")
        if self.chance(0.3):
            value = self.pick(VALUES[:8])
            if cardinalities and self.chance(0.5):
                value = f"Cardinality.{self.pick(['single', 'list', 'set'])}({value})"
            found.append(f"'{self.pick(KEYS)}': {value}")
        return found

    def map_of(self, entries):
        return f"[{', '.join(entries)}]" if entries else "[:]"

    def values_to_set(self, cardinalities=True):
        keys = self.random.sample(KEYS, self.random.randint(0, 2))
        return self.map_of([f"'{key}': " + (f"Cardinality.{self.pick(['single', 'list', 'set'])}({self.pick(VALUES[:8])})" if cardinalities and self.chance(0.3)
                                           else self.pick(VALUES[:8])) for key in keys])

    def merge_vertex(self):
        wanted = self.entries()
        if self.chance(0.3):
            wanted.append(f"(T.id): {self.pick([1, 2, 3, self.new_id()])}")
        options = ""
        if self.chance(0.5):
            made = self.entries(0.3, cardinalities=True) if self.chance(0.4) else wanted + [f"'c': {self.pick(VALUES[:8])}"]
            options += f".option(Merge.onCreate, {self.pick([self.map_of(made), self.map_of(made), '__.constant(' + self.map_of(made) + ')'])})"
        if self.chance(0.5):
            changed = self.values_to_set()
            options += f".option(Merge.onMatch, {self.pick([changed, changed, '__.constant(' + changed + ')', '__.sideEffect(__.property(' + chr(39) + 'b' + chr(39) + ', 5)).constant([:])'])}" \
                       f"{self.pick(['', '', ', Cardinality.list'])})"
        start = self.pick([f"mergeV({self.map_of(wanted)})"] * 3 + [f"inject({self.map_of(wanted)}, {self.map_of(self.entries())}).mergeV()",
                                                                  f"inject({self.map_of(wanted)}).mergeV(__.identity())", f"V({self.known_id()}).mergeV({self.map_of(wanted)})",
                                                                  f"inject({self.map_of(wanted)}).as('m').mergeV(__.select('m'))"])
        return f"{start}{options}{self.set_some(1) if self.chance(0.2) else ''}{self.end()}"

    def merge_edge(self):
        out, into = self.known_id(), self.known_id()
        wanted = []
        if self.chance(0.8):
            wanted.append(f"(Direction.{self.pick(['OUT', 'from']) if self.chance(0.2) else 'OUT'}): {out}")
        if self.chance(0.8):
            wanted.append(f"(Direction.IN): {into}")
        if self.chance(0.8):
            wanted.append(f"(T.label): '{self.pick(EDGE_LABELS)}'")
        if self.chance(0.3):
            wanted.append(f"'w': {self.pick(['1', '2', '3'])}")
        if self.chance(0.1):
            wanted.append(f"(T.id): {self.pick([100, 101, self.new_id()])}")
        options = ""
        if self.chance(0.4):
            made = wanted + [f"'c': {self.pick(VALUES[:8])}"] if self.chance(0.7) else [f"'w': 5"]
            options += f".option(Merge.onCreate, {self.map_of(made)})"
        if self.chance(0.4):
            options += f".option(Merge.onMatch, {self.values_to_set(False)})"
        if self.chance(0.15):
            options += f".option(Merge.outV, [(T.id): {out}])"
        if self.chance(0.1):
            options += f".option(Merge.inV, [(T.id): {into}])"
        merge = f"mergeE({self.map_of(wanted)})"
        start = self.pick([merge, merge, f"V({self.known_id()}).{merge}", f"inject({self.map_of(wanted)}).mergeE()",
                           f"V({out}).as('x').V({into}).as('y').mergeE([(Direction.OUT): Merge.outV, (Direction.IN): Merge.inV, (T.label): 'e'])"
                           ".option(Merge.outV, __.select('x')).option(Merge.inV, __.select('y'))"])
        return f"{start}{options}{self.end()}"

    def upsert(self):
        key = self.pick([1, 2, self.new_id(), self.next_id])
        return self.pick([f"V().has('k', {key}).fold().coalesce(__.unfold(), __.addV('{self.pick(LABELS)}').property('k', {key})){self.set_some()}{self.end()}",
                          f"V({self.known_id()}).as('x').V({self.known_id()}).coalesce(__.inE('e').where(__.outV().as('x')), __.addE('e').from('x')){self.set_some(1, False)}{self.end()}",
                          f"V().has('k', {key}).fold().coalesce(__.unfold().property('a', 9), __.addV().property('k', {key}).property('b', 9)){self.end()}",
                          f"inject({key}).coalesce(__.V().has('k', {key}), __.addV('new').property('k', __.constant({key}))){self.end()}"])

    def of_many(self):
        return self.pick([f"V().hasLabel('person').property('c', {self.pick(OF_VERTEX)}).values('c')", "V().as('x').addE('g').to('x').count()",
                          "inject(20, 21).addV('new').property('k', __.identity()).count()", "inject(22, 23).as('n').addV('new').property('k', __.select('n')).values('k')",
                          f"V().hasLabel('thing').addV('copy').property('k', {self.new_id()}){self.end()}", "V().property(single, 'b', __.both().count()).values('b')",
                          "V().hasLabel('person').as('x').V().hasLabel('thing').addE('g').from('x').count()", "E().property('w', __.outV().values('k')).values('w')",
                          f"V().where(__.out()).property(list, 'a', {self.value()}).values('a').fold()", "V().union(__.property('c', 1), __.property('c', 2)).values('c')",
                          "V(1).repeat(__.addV('new').property('k', 50)).times(2).label()", "V().hasLabel('person').sideEffect(__.addE('g').to(__.V(3))).outE('g').count()",
                          "V().properties('a').property('n', __.value()).value()", f"V(1).property('c', 1).property('c', 2).property(list, 'c', {self.value()}).values('c')"])
