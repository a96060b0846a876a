"""Draws traversals that keep something on their way: labels, paths, side effects, sacks, loops; over properties of all cardinalities, under strategies.

What they keep is compared where TinkerPop determines it: nothing here takes the first of several rows, or depends on which rows were brought together.
"""

import re

# One by() for each kind of object: what it yields is one value, or nothing.
OF_VERTEX = ["by('name')", "by('age')", "by('lang')", "by(T.id)", "by(T.label)", "by(__.out().count())", "by(__.values('age'))", "by(__.in().values('name').fold().count(Scope.local))",
             "by(__.outE().values('weight').sum())", "by(__.properties('loc').count())", "by(__.coalesce(__.values('age'), __.constant(0)))", "by(__.label())", "by()"]
OF_EDGE = ["by('weight')", "by(T.id)", "by(T.label)", "by(__.inV().values('name'))", "by(__.values('weight').math('_ * 2'))", "by(__.outV().values('age'))", "by()"]
OF_PROPERTY = ["by(T.key)", "by(T.value)", "by(__.value())", "by(__.key())", "by('since')", "by(__.values('until'))", "by(__.element().values('name'))"]
OF_META = ["by(T.key)", "by(T.value)", "by(__.value())"]
OF_NUMBER = ["by()", "by(__.math('_ + 1'))", "by(__.is(P.gt(1)))", "by(__.constant('c'))"]
OF_TEXT = ["by()", "by(__.length())", "by(__.toUpper())", "by(__.is(P.gt('m')))"]
OF_ANY = ["by()", "by(__.constant(1))"]
BYS = {"vertex": OF_VERTEX, "edge": OF_EDGE, "property": OF_PROPERTY, "meta": OF_META, "number": OF_NUMBER, "text": OF_TEXT}
# What yields something of any object: what a side effect counts, or a group holds, has to be there.
OF_ALL = {"vertex": ["by('name')", "by(T.id)", "by(T.label)", "by(__.out().count())", "by()"], "edge": ["by(T.id)", "by(T.label)", "by(__.values('weight').fold())"], "property": ["by(T.key)", "by(T.value)"],
          "meta": ["by(T.key)", "by(T.value)"], "number": ["by()", "by(__.math('_ + 1'))"], "text": ["by()", "by(__.length())"]}
STRATEGIES = ["ReadOnlyStrategy", "ProductiveByStrategy", "new ProductiveByStrategy(productiveKeys: ['age'])", "new SubgraphStrategy(vertices: __.hasLabel('person'))",
              "new SubgraphStrategy(edges: __.has('weight', P.gt(0.4)))", "new SubgraphStrategy(vertices: __.has('age', P.lt(33)), edges: __.hasLabel('knows', 'created'))",
              "new SubgraphStrategy(vertexProperties: __.hasNot('until'))", "new SubgraphStrategy(vertices: __.hasLabel('person'), checkAdjacentVertices: false)",
              "new PartitionStrategy(partitionKey: 'name', readPartitions: {'marko', 'josh', 'lop', 'multi'})", "new PartitionStrategy(partitionKey: 'lang', readPartitions: ['java'])",
              "new ElementIdStrategy(idPropertyKey: 'name')", "new ReservedKeysVerificationStrategy(throwException: true)",
              "new EdgeLabelVerificationStrategy(throwException: true)"]
WITHOUT = ["LazyBarrierStrategy", "PathRetractionStrategy", "RepeatUnrollStrategy", "FilterRankingStrategy", "IncidentToAdjacentStrategy", "ByModulatorOptimizationStrategy", "CountStrategy"]


class Walks:
    """What flows is a `vertex`, `edge`, `property` of a vertex, property of one of these or of an edge (`meta`), a `number`, a `text` or `any`."""

    def __init__(self, source):
        self.random = source

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def traversal(self):
        """A text, and whether it says how its rows are ordered."""
        self.labels, self.effects, self.named, self.has_sack, self.hides_path = [], [], 0, False, False
        source = "g"
        if self.chance(0.25):
            source += f".withStrategies({self.pick(STRATEGIES)})"
        if self.chance(0.1):
            source += f".withoutStrategies({self.pick(WITHOUT)})"
        if self.chance(0.15):
            source += self.pick([".withSideEffect('s', 29)", ".withSideEffect('s', [27, 29])", ".withSideEffect('s', 'josh')"])
            self.effects.append(("s", "any"))
        if self.chance(0.1):
            # More than are held against each.
            members = [self.pick(["1", "4L", "29", "32.0", "27L", "'josh'", "'lop'", "'loc'", "0.5", "0.4", "null", "[1]"]) for _ in range(self.random.randint(16, 24))]
            source += f".withSideEffect('l', [{', '.join(members)}])"
            self.effects.append(("l", "list"))
        if self.chance(0.1):
            source += f".withSideEffect('m', [{self.pick(['person: 1L', 'software: 10L, person: 5L', ':', 'knows: 2L'])}])"
            self.effects.append(("m", "counts"))
        if self.chance(0.15):
            source += self.pick([".withSack(1)", ".withSack(0.5)", ".withSack('a')", ".withSack([1])"])
            self.has_sack = True
        start, kind = self.pick([("V()", "vertex")] * 5 + [("E()", "edge"), ("V(1)", "vertex"), ("V(1, 20, 4)", "vertex"), ("V().hasLabel('person')", "vertex"), ("V(20).properties('loc')", "property"),
                                                          ("V().properties()", "property"), ("inject(1, 2, 3)", "number"), ("V(20).properties('loc').properties()", "meta"),
                                                          ("union(__.V(1), __.V(4))", "vertex"), ("union(__.V(1), __.E(7))", "any")])
        text = f"{source}.{start}"
        for _ in range(self.random.randint(2, 6)):
            step, kind = self.step(kind)
            asked = re.search(r"where\('(\w+)'", step)
            if step.startswith("not(") and asked and text.endswith(f".as('{asked[1]}')"):
                # The label may be on a filter, which goes behind this one there.
                text += ".map(__.identity())"
            text += "." + step
        return text + self.end(kind), False

    def step(self, kind, depth=0):
        choices = list(self.moves(kind)) * 2 + self.kept(kind, depth)
        step, comes_out = self.pick(choices)
        if callable(step):
            step = step()
        if step.endswith(".count()"):
            # What was under labels is gone.
            self.labels = []
        return step, comes_out

    def edge_labels(self):
        return self.pick(["", "", "'knows'", "'created'", "'knows', 'created'"])

    def moves(self, kind):
        """Steps from one object to others, and filters."""
        if kind == "vertex":
            labels = self.edge_labels()
            return [(f"out({labels})", kind), (f"in({labels})", kind), (f"both({labels})", kind), (f"outE({labels})", "edge"), (f"inE({labels})", "edge"), ("values('name')", "text"),
                    ("values('age')", "number"), ("properties()", "property"), ("properties('loc', 'name')", "property"), ("has('age', P.gt(28))", kind), ("hasLabel('person')", kind),
                    ("has('loc', P.neq('sd'))", kind), ("has('name', P.within('marko', 'josh', 'multi'))", kind), ("hasId(1, [4, 20], 3)", kind), ("hasNot('age')", kind),
                    ("has(T.label, P.within('person', 'thing'))", kind), (f"bothE({labels})", "edge"), ("valueMap()", "any"), ("elementMap('name', 'age')", "any"), ("id()", "number"),
                    ("label()", "text"), ("valueMap('loc', 'name').by(__.count(Scope.local))", "any"), ("propertyMap('age')", "any"), ("values('loc')", "text"),
                    ("valueMap('name').with(WithOptions.tokens)", "any"), ("valueMap('age', 'name').by(__.unfold())", "any"), ("to(Direction.OUT, 'knows')", kind), ("toE(Direction.BOTH)", "edge")]
        if kind == "edge":
            return [("inV()", "vertex"), ("outV()", "vertex"), ("bothV()", "vertex"), ("values('weight')", "number"), ("properties()", "meta"), ("has('weight', P.gte(0.5))", kind),
                    ("hasLabel('knows')", kind), ("valueMap()", "any"), ("toV(Direction.IN)", "vertex"), ("label()", "text"), ("id()", "number"), ("hasNot('weight')", kind), ("elementMap('weight')", "any")]
        if kind == "property":
            return [("value()", "any"), ("key()", "text"), ("hasKey('loc')", kind), ("hasValue('sf', 29, 'marko')", kind), ("has('since')", kind), ("has('since', P.gt(2000))", kind), ("properties()", "meta"),
                    ("values('since')", "number"), ("valueMap()", "any"), ("element()", "vertex"), ("hasNot('until')", kind), ("hasKey(P.neq('name'))", kind), ("has(T.key, 'loc')", kind),
                    ("has(T.value, P.neq('sd'))", kind), ("label()", "text")]
        if kind == "meta":
            return [("value()", "number"), ("key()", "text"), ("hasKey('since', 'weight')", kind), ("hasValue(P.gt(1))", kind)]
        if kind == "number":
            return [("is(P.gt(1))", kind), ("math('_ + 1')", kind), ("is(P.within(1, 29, 32))", kind), ("is(P.typeOf(GType.INT))", kind)]
        if kind == "text":
            return [("length()", "number"), ("toUpper()", kind), ("is(TextP.containing('o'))", kind), ("is(P.lt('m'))", kind)]
        return [("is(P.neq('zz'))", kind)]

    def by(self, kind):
        return self.pick(BYS.get(kind, OF_ANY))

    def productive_by(self, kind):
        return self.pick(OF_ALL.get(kind, OF_ANY))

    def values_of_group(self, kind):
        """What a group makes of all its rows."""
        choices = ["by(__.count())", "by(__.fold().count(Scope.local))"]
        if kind in ("vertex", "edge", "property"):
            choices += ["by('name')", "by('age')", "by('since')", "by('weight')", "by(T.label)"]
        if kind == "vertex":
            choices += ["by(__.values('age').sum())", "by(__.values('age').max())", "by(__.out().count())", "by(__.values('name').order().fold())", "by(__.groupCount().by(T.label))"]
        return self.pick(choices)

    def bys(self, kinds):
        """As many by()s as objects, or one for all of them."""
        if len(set(kinds)) == 1 and self.chance(0.5):
            return self.pick(["", "." + self.by(kinds[0])])
        return "".join("." + self.by(kind) for kind in kinds)

    def new_name(self, names):
        self.named += 1
        return f"{names}{self.named}"

    def child(self, kind):
        """A traversal that keeps nothing."""
        known = self.labels, self.effects, self.has_sack
        self.labels, self.effects, self.has_sack = [], [], False
        steps = []
        # An identity() behind another makes a traversal without rows there.
        for _ in range(self.random.randint(1, 2)):
            if kind == "any" and steps:
                break
            step, kind = self.pick(self.moves(kind))
            steps.append(step)
        self.labels, self.effects, self.has_sack = known
        return "__." + ".".join(steps)

    def kept(self, kind, depth):
        choices = [(lambda: self.label(kind), kind)] * 4
        choices += [(lambda: f"filter({self.child(kind)})", kind), (lambda: f"not({self.child(kind)})", kind), (lambda: f"union(__.identity(), {self.child(kind)})", "any"),
                    (lambda: f"where({self.child(kind)})", kind), (lambda: f"flatMap({self.child(kind)})", "any"), (lambda: f"coalesce({self.child(kind)}, __.constant('none'))", "any"),
                    (lambda: f"map({self.child(kind)}.fold().count(Scope.local))", "number"), (lambda: f"dedup().{self.by(kind)}.count()", "any"),
                    (lambda: f"choose({self.child(kind)}, __.constant('yes'), __.identity())", "any"), (lambda: f"sideEffect({self.child(kind)})", kind),
                    (lambda: f"and({self.child(kind)}, {self.child(kind)})", kind), (lambda: f"or({self.child(kind)}, {self.child(kind)})", kind),
                    (lambda: f"project('p', 'q').{self.by(kind)}.{self.by(kind)}", "any"), ("barrier()", kind), (lambda: f"optional({self.child(kind)})", "any")]
        choices += [(lambda: self.gather(kind), kind)] * 3
        if kind == "vertex":
            choices += [(lambda: self.loop(), "vertex")] * 3
            choices += [(lambda: self.patterns(), "any"), (lambda: f"choose(T.label){self.options()}", "any"), (lambda: f"branch(__.label()){self.options(True)}", "any"),
                        (lambda: f"choose(__.values('age')){self.options()}", "any")]
        if not self.hides_path:
            choices += [("simplePath()", kind), ("cyclicPath()", kind)] if kind == "vertex" else []
        if self.has_sack:
            choices += [(f"sack(Operator.{self.pick(['sum', 'mult', 'assign', 'max', 'min', 'minus'])}).{self.by(kind)}", kind), ("sack()", "any")]
        if self.labels:
            choices += [(lambda: self.select(), "any")] * 2 + [(lambda: self.compare(kind), kind)] * 3
            label, of = self.pick(self.labels)
            choices += self.looks_back(kind)
            choices += [(f"select('{label}')", of)] * 2 + [(f"dedup('{label}').{self.by(of)}.count()", "any"), (f"map(__.select('{label}'))", of)]
        if self.effects:
            name, of = self.pick(self.effects)
            choices += [(f"where(P.within('{name}'))", kind), (f"where(P.without('{name}'))", kind)] if of == "list" else []
        return choices

    def label(self, kind):
        name = self.new_name("l")
        self.labels.append((name, kind))
        return f"as('{name}')"

    def select(self):
        if len(self.labels) == 1 or self.chance(0.4):
            name, kind = self.pick(self.labels)
            return f"select({self.pick(['', 'Pop.first, ', 'Pop.last, ', 'Pop.mixed, '])}'{name}').{self.by(kind)}"
        some = self.random.sample(self.labels, 2)
        names = ", ".join(f"'{name}'" for name, _ in some)
        if self.chance(0.2):
            return f"select(Pop.all, {names})"
        return f"select({self.pick(['', '', 'Pop.first, ', 'Pop.mixed, '])}{names}){self.bys([kind for _, kind in some])}"

    def compare(self, kind):
        compared = self.pick(["P.eq", "P.neq", "P.gt", "P.lte"])
        name, of = self.pick(self.labels)
        if len(self.labels) > 1 and self.chance(0.4):
            (one, of_one), (other, of_other) = self.random.sample(self.labels, 2)
            more = self.pick(["", "", f".or(P.eq('{other}'))", f".and(P.neq('{other}'))"])
            return f"where('{one}', {compared}('{other}'){more}){self.bys([of_one, of_other])}"
        return f"where({compared}('{name}')){self.bys([kind, of])}"

    def looks_back(self, kind):
        """Sub-queries that name what is outside, or something of their own."""
        label, of = self.pick(self.labels)
        own = self.new_name("o")
        move, comes_out = self.pick(self.moves(kind))
        choices = [(f"filter(__.{move}.where(P.{self.pick(['eq', 'neq', 'lt'])}('{label}')).{self.by(comes_out)}.{self.by(of)})", kind), (f"flatMap(__.as('{own}').{move}.select('{own}'))", kind),
                   (f"local(__.as('{own}').{move}.path().count(Scope.local))", "any"), (f"project('a', 'b').by(__.select('{label}').{self.by(of)}).{self.by(kind)}", "any"),
                   (f"group().by(__.select('{label}').{self.by(of)}).by(__.count())", "any"), (f"choose(__.where(P.eq('{label}')), __.constant('same'), __.select('{label}'))", "any"),
                   (f"union(__.select('{label}'), __.{move})", "any"), (f"coalesce(__.{move}.where(P.eq('{label}')), __.select('{label}'))", "any"), (f"not(__.{move}.as('{own}').where('{label}', P.eq('{own}')))", kind),
                   (f"groupCount().by(__.as('{own}').select('{label}', '{own}').{self.by('any')})", "any"), (f"map(__.as('{own}').select('{label}', '{own}'))", "any"),
                   (f"aggregate('{own}').by(__.select('{label}').{self.by(of)}).cap('{own}')", "any"), (f"optional(__.{move}.where(P.neq('{label}')))", "any"),
                   (f"dedup().by(__.select('{label}')).count()", "any"), (f"order().by(__.select('{label}').{self.by(of)}).count()", "any"), (f"and(__.where(P.eq('{label}')), __.{move})", kind)]
        if kind == of == "vertex":
            edges = self.edge_labels()
            choices += [(f"where(__.out({edges}).as('{label}'))", kind), (f"where(__.as('{label}').out({edges}))", kind), (f"not(__.both({edges}).as('{label}'))", kind),
                        (f"repeat(__.out({edges}).where(P.neq('{label}'))).times(2)", kind), (f"repeat(__.both()).until(__.where(P.eq('{label}')).or().loops().is(2))", kind),
                        (f"emit(__.where(P.neq('{label}'))).repeat(__.out({edges})).times(2)", kind), (f"or(__.where(P.eq('{label}')), __.out().where(P.eq('{label}')))", kind)]
        return choices

    def gather(self, kind):
        """Rows kept as a side effect, once all have come."""
        name = self.new_name("x")
        if self.chance(0.4):
            self.effects.append((name, "list"))
            return f"aggregate('{name}')" + self.pick(["", "." + self.by(kind)])
        if ("m", "counts") in self.effects and kind in ("vertex", "edge") and self.chance(0.5):
            # Goes on from what is there.
            return self.pick(["groupCount('m').by(T.label)", "group('m').by(T.label).by(__.count())"])
        self.effects.append((name, "map"))
        return self.pick([f"groupCount('{name}').{self.productive_by(kind)}", f"group('{name}').{self.by(kind)}.{self.values_of_group(kind)}"])

    def loop(self):
        hop = self.pick(["out()", "both()", "in('created')", "out('created', 'knows')", "both().simplePath()", "outE().inV()", "out().where(__.in())", "union(__.out('knows'), __.out('created'))"])
        name = self.pick(["", "", "'r', "])
        loops = f"loops({name[:-2]})"
        if self.chance(0.2):
            hop += f".as('{self.new_name('m')}')"
        times = self.random.randint(1, 2)
        # A condition that some rows never meet ends with the hops.
        until = self.pick([f"{loops}.is({times})", f"or(__.has('name', 'lop'), __.{loops}.is({times}))", f"has('lang').or().{loops}.is({times})"])
        emit = self.pick(["emit()", "emit(__.has('lang'))", f"emit(__.{loops}.is(1))", "emit(__.values('age').is(P.gt(28)))"])
        return self.pick([f"repeat({name}__.{hop}).times({times})", f"repeat({name}__.{hop}).emit().times({times})", f"repeat({name}__.{hop}).until(__.{until})", f"until(__.{until}).repeat({name}__.{hop})",
                          f"{emit}.repeat({name}__.{hop}).times({times})", f"repeat({name}__.{hop}).{emit}.until(__.{until})", f"times({times}).repeat({name}__.{hop})",
                          f"repeat('o', __.repeat('i', __.{hop}).times(1)).until(__.loops('o').is({times}))"])

    def patterns(self):
        # What lies between the patterns stands in the path there.
        self.hides_path = True
        a, b, c = (self.new_name("p") for _ in range(3))
        first = f"__.as('{a}').{self.pick(['out()', 'out(' + chr(39) + 'created' + chr(39) + ')', 'both().has(' + chr(39) + 'age' + chr(39) + ')'])}.as('{b}')"
        then = self.pick([f"__.as('{b}').in('created').as('{c}')", f"__.as('{b}').values('name').as('{c}')", f"__.as('{a}').out('knows').as('{c}')", f"__.as('{a}').values('age').as('{c}')",
                          f"__.as('{b}').out().count().as('{c}')"])
        more = self.pick(["", "", f", __.not(__.as('{a}').in('knows'))", f", __.where('{a}', P.neq('{c}'))", f", __.as('{b}').has('lang')"])
        return f"match({first}, {then}{more}).select('{a}', '{b}', '{c}')"

    def options(self, of_branch=False):
        taken = [("'person'", "__.out('knows')"), ("'software'", "__.values('lang')"), ("P.eq('person')", "__.values('age')"), ("29", "__.constant('young')"), ("P.gt(30)", "__.values('name')")]
        taken = self.random.sample(taken, 2) + [self.pick([("Pick.none", "__.label()"), ("Pick.unproductive", "__.constant('nothing')"), ("Pick.none", "__.out().count()")])]
        if of_branch:
            # In which order several picks yield hangs on their hashes there.
            taken[2] = self.pick([("Pick.any", "__.id()"), ("Pick.none", "__.constant('nothing')")])
        return "".join(f".option({token}, {traversal})" for token, traversal in taken)

    def end(self, kind):
        ends = ["", "", ".count()", ".groupCount()"]
        if not self.hides_path:
            ends += [".path()", f".path().{self.by('any')}", ".tree()"]
        if kind in BYS:
            ends += [f".groupCount().{self.by(kind)}", f".group().{self.by(kind)}.by(__.count())", f".group().{self.by(kind)}.{self.values_of_group(kind)}",
                     f".order().{self.by(kind)}.count()", f".aggregate('e').{self.by(kind)}.cap('e')"]
        if self.effects:
            ends += [f".cap('{self.pick(self.effects)[0]}')"] * 3
            if len(self.effects) > 1:
                ends += [".cap('" + "', '".join(name for name, _ in self.effects) + "')"] * 2
        if self.has_sack:
            ends += [".sack()"] * 2
        return self.pick(ends)
