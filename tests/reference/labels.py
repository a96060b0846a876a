"""Draws traversals whose answers depend on where rows lose labels: what steps inside others ask for in the next iteration of a `repeat()`.

TinkerPop keeps a label as long as a step of the same line names it, and for what steps inside others name up to these; see `crates/ficus-query/src/strategies`.
"""

POPS = ["first, ", "last, ", "all, ", "mixed, ", ""]


class Labels:
    """Vertices flow, under labels of which each may be given several times."""

    def __init__(self, source):
        self.random = source

    def pick(self, choices):
        return self.random.choice(choices)

    def traversal(self):
        # Two others move labels to other steps.
        without = ["FilterRankingStrategy", "LazyBarrierStrategy"] + (["PathRetractionStrategy"] if self.random.random() < 0.1 else [])
        source = f"g.withoutStrategies({', '.join(without)})"
        # Most labels are there from the begin on: asked for one that is not, some steps fail.
        steps = ["V().as('v', 'w', 'x')" if self.random.random() < 0.85 else f"V(){self.named(0.7)}"]
        steps += [self.step(0) for _ in range(self.random.randint(0, 2))]
        steps.append(self.loop(0))
        steps += [self.step(0) for _ in range(self.random.randint(0, 2))]
        steps.append(self.pick([self.asked(), f"local({self.asked()}.fold())", "count()", f"select({self.label()}).count()", "cap('s')", "cap('g')"]))
        steps[1:1] = ["aggregate('s').by(__.constant(-1))", "group('g').by(__.constant(-1)).by(__.count())"]
        return ".".join([source, *steps]), False

    def label(self):
        return self.pick(["'v'", "'v'", "'w'", "'x'"])

    def named(self, chance):
        return f".as({self.label()})" if self.random.random() < chance else ""

    def asked(self):
        """What rows have under labels, as a step."""
        return self.pick([
            f"project('a', 'b').by(__.coalesce(__.select(first, {self.label()}), __.constant(0))).by(__.coalesce(__.select(all, {self.label()}).count(Scope.local), __.constant(-1)))",
            f"coalesce(__.select({self.pick(POPS)}{self.label()}), __.constant('none'))", f"select({self.pick(POPS)}'v', 'w')"])

    def test(self, depth):
        """A filter by what rows have under labels."""
        choices = [f"__.select({self.pick(POPS)}{self.label()})", f"__.select(all, {self.label()}).count(Scope.local).is(P.{self.pick(['lt(3)', 'gt(1)', 'lte(2)', 'neq(2)'])})",
                   f"__.where(P.{self.pick(['eq', 'neq'])}({self.label()}))", f"__.out().where(P.{self.pick(['eq', 'neq'])}({self.label()}))", "__.out()",
                   f"__.coalesce(__.select(last, {self.label()}), __.identity()).out()"]
        return self.pick(choices)

    def step(self, depth):
        choices = [f"{self.pick(['out', 'in', 'both'])}(){self.named(0.5)}"] * 4 + [
            f"filter({self.test(depth)})", f"not({self.test(depth)})", f"filter({self.test(depth)}){self.named(1)}", f"where(P.{self.pick(['eq', 'neq', 'neq'])}({self.label()})){self.named(0.2)}", "barrier()", "identity()",
            f"group('g').by(__.coalesce(__.select({self.label()}), __.constant(0))).by(__.count())", f"aggregate('s').by(__.coalesce(__.select(all, {self.label()}).count(Scope.local), __.constant(0)))",
            f"and({self.test(depth)}, {self.test(depth)})", f"or({self.test(depth)}, {self.test(depth)})", f"coalesce(__.select({self.pick(['first, ', 'last, ', ''])}{self.label()}), __.identity()){self.named(0.3)}.hasLabel('person', 'software')",
            f"optional(__.select({self.pick(['first, ', 'last, ', ''])}{self.label()})){self.named(0.3)}", f"union(__.out(){self.named(0.5)}, __.in(){self.named(0.5)})", f"local(__.out(){self.named(0.5)}.filter({self.test(depth)}))"]
        if depth == 1 and self.random.random() < 0.1:
            return self.loop(depth + 1)
        return self.pick(choices)

    def loop(self, depth):
        if self.random.random() < 0.6:
            # Without a condition it ends when no row is left, as on these edges; only then the next iteration is not looked at.
            steps = [f"out('knows', 'created'){self.named(0.7)}"] + [self.test_in_loop() for _ in range(self.random.randint(2, 5))]
            return f"repeat(__.{'.'.join(steps)})"
        body = ".".join([f"{self.pick(['out', 'both', 'both', 'in'])}(){self.named(0.6)}"] + [self.step(depth + 1) for _ in range(self.random.randint(1, 3))])
        times = self.random.randint(1, 3 if depth == 0 and "repeat" not in body else 1)
        return self.pick([f"repeat(__.{body}).times({times})", f"repeat(__.{body}).times({times})", f"repeat(__.{body}).emit().times({times})",
                          f"repeat(__.{body}).until(__.or(__.loops().is(P.gte({times})), {self.test(depth)}))", f"emit({self.test(depth)}).repeat(__.{body}).times({times})"]) + self.named(0.2)

    def test_in_loop(self):
        """A step of a loop after which its rows are where they were."""
        here = self.pick(["'v'", "'w'", "'x'"])
        count = f"__.coalesce(__.select({self.pick(['all, ', 'all, ', 'mixed, '])}{self.label()}).count(Scope.local), __.constant(0))"
        return self.pick([f"aggregate('s').by({count})", f"aggregate('s').by({count})", f"filter({self.test(1)})", f"where(P.neq({self.label()}))", f"as({here}).select({here})", f"as({here}).select(last, {here})",
                          f"as({here}).dedup({here})", f"as({here}).filter(__.select({here}))", f"group('g').by({count}).by(__.count())", f"local(__.as({here}).select({here}))", f"optional(__.as({here}).select({here}))",
                          "project('here', 'count').by().by(" + count + ").as('x').select('x').select('here')"])
