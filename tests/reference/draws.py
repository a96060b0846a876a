"""Draws traversals that draw random numbers from a seed. What they draw depends on the order of elements and on which rows are brought together, so
that both have to be TinkerGraph's. Their graph has enough edges at a vertex for hash sets to grow, and ids that share buckets.

Left out is what is known to draw otherwise: filters behind `order()`, `dedup()`, `where()` and `not()`, which TinkerPop tests in front of these, steps in front of a barrier in
`group().by().by()`, which draw when a row comes there, paths of what sub-queries draw, loops that draw, or that `RepeatUnrollStrategy` does not
replace, and tests that draw behind more than one hop, or several rows at once."""

VERTICES = 40
EDGES = 260
LABELS = ["knows", "created", "follows", "likes"]
FILTERS = ("has(", "hasLabel(", "is(", "where(", "not(", "coin(", "dedup()")


class Draws:
    """What flows is a `vertex`, an `edge`, a `text`, a `number` or `any`."""

    def __init__(self, source):
        self.random = source

    def pick(self, choices):
        return self.random.choice(choices)

    def graph(self):
        """Statements that make a graph: numbers that are shuffled, far apart, and for a hub of which half are the same modulo 64."""
        yield "g.V().drop()"
        ids = self.random.sample(range(1, 20 * VERTICES), VERTICES)
        for key in ids:
            yield f"g.addV('{self.pick(['person', 'thing'])}').property(T.id, {key}).property('name', 'n{key}').property('age', {self.random.randint(20, 40)})"
        hub = ids[0]
        for key in self.random.sample(range(1000, 1000 + 40 * EDGES), EDGES):
            out, into = (hub, self.pick(ids)) if self.random.random() < 0.15 else (self.pick(ids), self.pick(ids))
            yield f"g.V({out}).as('v').V({into}).addE('{self.pick(LABELS)}').from('v').property(T.id, {key}).property('weight', {self.random.randint(1, 9)})"

    def traversal(self):
        source = f"g.withStrategies(SeedStrategy(seed: {self.random.randint(-9, 10 ** 9)}))"
        if self.random.random() < 0.1:
            source += f".withoutStrategies({self.pick(['LazyBarrierStrategy', 'PathRetractionStrategy'])})"
        self.labels = 0
        start, kind = self.pick([("V()", "vertex")] * 4 + [("E()", "edge"), ("V().hasLabel('person')", "vertex"), ("V().has('age', P.gt(30))", "vertex")])
        steps, drawn = [], False
        for _ in range(self.random.randint(2, 6)):
            step, kind, draws = self.step(kind, 0)
            while steps and steps[-1].startswith(("order()", "dedup()", "where(", "not(")) and step.startswith(FILTERS):
                step, kind, draws = self.step(kind, 0)
            steps.append(step)
            drawn |= draws
        if not drawn:
            steps.append(self.draw(kind))
        if self.random.random() < 0.2:
            steps.append("limit(7)")
        return ".".join([source, start, *steps])

    def draw(self, kind):
        chance = self.pick(["0.5", "0.3", "0.8", "0.1"])
        choices = [f"coin({chance})"] * 3 + [f"sample({self.random.randint(1, 6)})"] * 2 + ["order().by(Order.shuffle)"] * 2
        if kind == "edge":
            choices.append(f"sample({self.random.randint(1, 4)}).by('weight')")
        return self.pick(choices)

    def edge_labels(self):
        return self.pick(["", "", "'knows'", "'created', 'knows'", "'likes', 'created'", "'follows'"])

    def child(self, kind, depth):
        """A sub-query that draws."""
        steps, kind = [], "vertex" if kind == "vertex" else kind
        if kind == "vertex":
            steps = [self.pick(["both()", "bothE().inV()", "out()", "in()"])]
        for _ in range(self.random.randint(0, 1)):
            step, kind, _ = self.step(kind, depth + 1)
            steps.append(step)
        return "__." + ".".join(steps + [self.draw(kind)]), kind

    def test(self, kind):
        """A question that draws."""
        hop = self.pick(["both().", "out().", "in()."]) if kind == "vertex" else ""
        return f"__.{hop}coin({self.pick(['0.5', '0.3', '0.8'])})"

    def step(self, kind, depth):
        """A step, the kind of what comes out, and whether it draws."""
        if self.random.random() < 0.25:
            return self.draw(kind), kind, True
        choices = [("dedup()", kind, False), ("barrier()", kind, False)]
        if kind == "vertex":
            labels = self.edge_labels()
            hops = [(f"{hop}({labels})", "edge" if hop.endswith("E") else "vertex", False) for hop in ("out", "in", "both", "outE", "inE", "bothE")]
            choices += hops * 2 + [("values('name')", "text", False), ("values('age')", "number", False), ("has('age', P.lt(35))", kind, False), ("hasLabel('person')", kind, False),
                                   ("order().by('age')", kind, False), (f"repeat(__.{self.pick(['out()', 'both()', 'in()'])}).times({self.pick([1, 2])})", kind, False)]
        if kind == "edge":
            choices += [("inV()", "vertex", False), ("outV()", "vertex", False), ("bothV()", "vertex", False), ("values('weight')", "number", False), ("has('weight', P.gt(3))", kind, False)] * 2
        if kind == "text":
            choices += [("length()", "number", False), ("order()", kind, False), ("fold().unfold()", kind, False)]
        if kind == "number":
            choices += [("math('_ * 2')", kind, False), ("order()", kind, False), ("is(P.gt(4))", kind, False)]
        if depth < 1 and kind in ("vertex", "edge"):
            child, end = self.child(kind, depth)
            test = self.test(kind)
            choices += [(f"local({child})", end, True), (f"flatMap({child})", end, True), (f"where({test})", kind, True), (f"not({test})", kind, True),
                        (f"map({child})", end, True), (f"group().by(T.label).by(__.sample({self.random.randint(1, 4)}).fold()).unfold()", "any", True)]
        return self.pick(choices)
