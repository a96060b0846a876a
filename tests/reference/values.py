"""Draws traversals over values that begin with `inject()`: numbers of all types, texts, dates, collections, maps and null."""

import re

# Without NaN, also as the sum of two infinities: it vanishes there beside an integer and stays NaN here.
NUMBERS = ["0", "1", "2", "5", "-3", "7b", "127b", "-128b", "3s", "32767s", "4L", "2147483647", "-2147483648", "9223372036854775807L", "2n",
           "12345678901234567890n", "1.5", "0.1", "-2.5", "1.5f", "0.1f", "1.25m", "3m", "Infinity"]
TEXTS = ["'abc'", "''", "' padded\\t'", "'a,b,c'", "'josh'", "'12'", "'1.5'", "'true'", "'2023-08-02T00:00:00Z'", "'Äöü'", "'b'", "'aXbXc'", "'a\\nb\\n'"]
# Expressions in Java's syntax: ASCII and Unicode classes, ends of lines, quotes, groups with flags, and what is refused on both.
REGEXES = [r"'^\\p{Lower}+$'", r"'\\p{Alnum}{3}'", r"'[^\\p{Alpha}]'", r"'\\P{Punct}'", r"'\\w\\W'", r"'^\\s'", r"'\\h'", r"'\\p{L}{3}'", r"'c$'", r"'^.b'", r"'(?s)a.b'", r"'(?m)^b$'", r"'^a\\Z'",
           r"'\\Q,b\\E'", r"'(?i)JOSH'", r"'(a|X)+?b'", r"'[a-c&&[^b]]{2}'", r"'\\0141'", r"'\\x61'", r"'\\bjosh\\b'", r"'a{1,2}'", r"'\\p{Digit}\\.'", r"'\\R'", r"'^$'", r"'a**'", r"'(a'", r"'[z-a]'"]
DATES = ["datetime('2023-08-02T12:30:00Z')", "datetime('2023-08-02T14:30:00+02:00')", "datetime('1969-12-31T23:59:59Z')", "datetime('2024-02-29T00:00:00Z')"]
OTHERS = ["true", "false", "null", "UUID('41d2e28a-20a4-4ab0-b379-d810dede3786')"]
TYPES = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIGINT", "BIGDECIMAL"]
ALL_TYPES = TYPES + ["NUMBER", "STRING", "BOOLEAN", "DATETIME", "LIST", "SET", "MAP", "NULL", "UUID", "VERTEX"]
OPERATORS = ["sum", "minus", "mult", "div", "min", "max", "assign", "and", "or", "addAll", "sumLong"]
# What makes a set, or a map or list of rows in no order.
SETS = r"\{['\dtnfdU\[\{I-]|\{\}|merge\(|intersect|disjunct|difference|dedup\(Scope|group|branch"
# Steps whose answer hangs on an order that nothing determines: of the members of a set, or of rows that may be brought together.
# fold() with a seed and an operator sees equal rows once there, where a step before has brought them together.
LOOKS_AT_ORDER = (r"(limit|range|tail|skip)\(|reverse|conjoin|index|asString|product|tree\(|Operator\.|fold\(\)\.(is|gr|de|ch|wh|fi)"
                  r"|(eq|within|without|option|neq|not)\(\[|order\(\)\.by\(__|dedup\(\)\.by|aggregate|format|\.by\(__\.tail")
# optional() yields there, before anything has come, what such a step makes of nothing.
SEEDED = r"count\(\)|fold\(|group|tree\(|cap\("
# A label that nothing has is an error there, and in where() no row here.
LABEL = r"as\('"


class Values:
    """What flows is a `number`, a `text`, a `date`, a `list` (or set), a `map` or `any`."""

    def __init__(self, source):
        self.random = source
        self.named = 0

    def pick(self, choices):
        return self.random.choice(choices)

    def traversal(self):
        """A text, and whether rows and lists in them have an order: that of sets and of several equal rows is nowhere said."""
        while True:
            text, count = self.draw()
            makes_sets = re.search(SETS, text)
            # Other versions of Java write a float with other digits.
            has_floats = "FLOAT" in text or re.search(r"\df\b", text)
            writes_floats = has_floats and "214748364" in text
            # Sums of floats and doubles hang on their order, and that of sets is nowhere said.
            sums_of_sets = has_floats and makes_sets and re.search(r"(sum|mean)\(", text)
            # A filter that fails on what is no text is made before one that would not let it through there.
            moves_failure = "'many'" in text and "TextP" in text
            # Labels behind two such steps are lost there when they are made one.
            loses_labels = re.search(r"(limit|range|skip)\(\d[^.]*\)\.(limit|range|skip)\(\d[^.]*\)\.as\(", text)
            # Which group is the first hangs on the hashes of keys.
            takes_group = "group()" in text and "map(__.unfold()" in text
            # A bag that is gathered into itself is never answered there, and a count that is compared may end early.
            if not writes_floats and not takes_group and not sums_of_sets and not moves_failure and not loses_labels and text.count("cap('x')") < 2 and not re.search(r"count\(\).*\bis\(", text) and not (re.search(LOOKS_AT_ORDER, text) and (makes_sets or count > 1)):
                return text, count == 1 and not makes_sets

    def draw(self):
        kind = self.pick(["number", "number", "text", "date", "list", "list", "list", "map", "any"])
        count = self.pick([1, 1, 1, 2, 3])
        sack, steps = "", []
        if self.random.random() < 0.06:
            start = f"g.withSack({self.value(self.pick(['number', 'list', 'text', 'any']))})"
            sack = f".sack(Operator.{self.pick(OPERATORS)}){self.pick(['', '.by(__.identity())', f'.by(__.constant({self.value(kind)}))'])}.sack()"
            text, kind = f"{start}.inject({self.values(kind, count)}){sack}", "any"
        else:
            text = f"g.inject({self.values(kind, count)})"
            if self.random.random() < 0.06:
                text = f"g.withSideEffect('many', [{self.many()}]).inject({self.values(kind, count)})"
                steps.append(self.pick(["where(P.within('many'))", "where(P.without('many'))", "where(P.without('many').or(P.within('many')))", "where(P.within('many')).by().by()"]))
        for _ in range(self.random.randint(1, 4)):
            step, kind = self.step(kind)
            steps.append(step)
        return ".".join([text] + steps), count

    def values(self, kind, count):
        return ", ".join(self.value(kind) for _ in range(count))

    def value(self, kind, depth=0):
        if self.random.random() < 0.04:
            return "null"
        if kind == "number":
            return self.pick(NUMBERS)
        if kind == "text":
            return self.pick(TEXTS)
        if kind == "date":
            return self.pick(DATES)
        if kind == "list":
            of, count = self.pick(["number", "number", "text", "date", "any"]), self.random.randint(0, 4)
            opening, closing = self.pick(["[]", "[]", "[]", "{}"])
            return f"{opening}{self.values(of, count)}{closing}"
        if kind == "map":
            keys = self.random.sample(["a", "b", "c", "d"], self.random.randint(0, 3))
            return "[" + (", ".join(f"'{key}': {self.value(self.pick(['number', 'text', 'list', 'any']) if depth < 2 else 'number', depth + 1)}" for key in keys) or ":") + "]"
        return self.value(self.pick(["number", "text", "date", "list", "map"]), depth) if depth < 2 and self.random.random() < 0.7 else self.pick(OTHERS)

    def child(self, kind, depth=0, without=None):
        while True:
            text = "__." + ".".join(self.step(kind, depth + 1)[0] for _ in range(self.random.randint(1, 2)))
            if not (without and re.search(without, text)):
                return text

    def step(self, kind, depth=0):
        """A step and the kind of what comes out; now and then one that is made for another kind."""
        meant = kind if self.random.random() < 0.93 else self.pick(["number", "text", "date", "list", "map", "any"])
        own = {"number": self.of_number, "text": self.of_text, "date": self.of_date, "list": self.of_list, "map": self.of_map, "any": lambda _: []}[meant](depth)
        choices = own if own and self.random.random() < 0.7 else self.of_any(kind, depth)
        step, comes_out = self.pick(choices)
        step = step() if callable(step) else step
        # The smallest of what cannot be compared, such as two lists, is never answered there.
        return self.step(kind, depth) if meant != kind and step in ("min()", "max()") else (step, comes_out)

    def many(self):
        """A dozen values or more, of all types."""
        pools = (NUMBERS, NUMBERS, TEXTS, DATES, OTHERS, ["[1, 2]", "[1L, 2.0]", "[2, 1]", "[]", "[a: 1]", "[[1], 'b']"])
        return ", ".join(self.pick(self.pick(pools)) for _ in range(self.random.randint(12, 30)))

    def predicate(self, kind, depth=0):
        compared = self.pick(["eq", "neq", "gt", "gte", "lt", "lte"])
        choices = [f"P.{compared}({self.value(kind)})", f"P.{compared}({self.value(kind)})", f"P.within({self.values(kind, 2)})", f"P.without({self.values(kind, 2)})",
                   f"P.between({self.values(kind, 2)})", f"P.inside({self.values(kind, 2)})", f"P.outside({self.values(kind, 2)})",
                   f"P.typeOf(GType.{self.pick(ALL_TYPES)})", f"P.within([{self.values(kind, 2)}])", "P.within()", "P.without()", "P.eq(null)", "P.neq(null)"]
        if kind in ("text", "any"):
            about = self.pick(["startingWith", "endingWith", "containing", "regex", "notStartingWith", "notEndingWith", "notContaining", "notRegex"])
            choices += [f"TextP.{about}({self.pick(REGEXES if 'egex' in about and self.random.random() < 0.7 else TEXTS)})"] * 4
        # So many that they are not held against each.
        choices += [f"P.within({self.many()})", f"P.without({self.many()})"]
        text = self.pick(choices)
        if depth < 2:
            drawn = self.random.random()
            if drawn < 0.1:
                return f"P.not({self.predicate(kind, depth + 1)})"
            if drawn < 0.25:
                return f"{text}.{self.pick(['and', 'or'])}({self.predicate(kind, depth + 1)})"
            if drawn < 0.3:
                return f"{text}.negate()"
        return text

    def test(self, kind):
        """A predicate for option(): those on texts fail there on what is no text, also where an option before has been taken."""
        while "TextP" in (text := self.predicate(kind)):
            pass
        return text

    def formula(self):
        return self.pick(["_ + 1", "_ * 2", "_ / 4", "_ - 0.5", "_ ^ 2", "sqrt _", "abs(_)", "_ % 3", "sin(_) + cos(_)", "ceil(_)", "floor(_)", "-_", "log(_)", "signum(_)", "_ / 0",
                          "exp(_)", "_ + _", "2 * (_ + 3)", "log2(_)", "log10(_)", "cbrt(_)", "tan(_)"])

    def of_number(self, depth):
        return [(lambda: f"is({self.predicate('number')})", "number"), (f"math('{self.formula()}')", "number"), ("asString()", "text"), ("sum()", "number"), ("max()", "number"),
                ("min()", "number"), ("mean()", "number"), ("asNumber()", "number"), (f"asNumber(GType.{self.pick(TYPES)})", "number"), ("asBool()", "any"), ("asDate()", "date"),
                ("order()", "number"), ("order().by(Order.desc)", "number"), ("dedup()", "number"), (f"fold({self.value('number')}, Operator.{self.pick(OPERATORS)})", "number"),
                (f"asNumber(GType.{self.pick(TYPES)})", "number")]

    def of_text(self, depth):
        local = self.pick(["", "Scope.local"])
        number = lambda: self.random.randint(-5, 5)
        text = lambda: self.pick(TEXTS + ["null"])
        return [(f"toUpper({local})", "text"), (f"toLower({local})", "text"), (f"trim({local})", "text"), (f"lTrim({local})", "text"), (f"rTrim({local})", "text"),
                (f"length({local})", "number"), (f"substring({local}{', ' if local else ''}{number()})", "text"), (f"substring({number()}, {number()})", "text"),
                (f"concat({text()})", "text"), (f"concat({text()}, {text()})", "text"), (f"concat(__.constant({text()}))", "text"), ("concat()", "text"),
                (f"split({self.pick([text(), 'null'])})", "list"), (f"split({self.pick(TEXTS)})", "list"), (f"replace({text()}, {text()})", "text"),
                ("replace('a', 'b')", "text"), ("reverse()", "text"), ("format('x%{_}y')", "text"), ("format('%{_} %{_}').by(__.length()).by(__.reverse())", "text"),
                ("asNumber()", "number"), (f"asNumber(GType.{self.pick(TYPES)})", "number"), ("asBool()", "any"), ("asDate()", "date"), ("max()", "text"), ("min()", "text"),
                (lambda: f"is({self.predicate('text')})", "text"), ("order()", "text"), (f"concat(__.constant({text()}).trim())", "text"), (f"split(Scope.local, {self.pick(TEXTS)})", "any"),
                (f"replace(Scope.local, {text()}, {text()})", "any"), (f"substring(Scope.local, {number()}, {number()})", "any")]

    def of_date(self, depth):
        token = self.pick(["second", "minute", "hour", "day"])
        return [(f"dateAdd(DT.{token}, {self.random.randint(-100, 100)})", "date"), (f"dateAdd(DT.{token}, {self.pick([0, 2147483647])})", "date"),
                (f"dateDiff({self.pick(DATES)})", "number"), (f"dateDiff(__.constant({self.pick(DATES + ['null'])}))", "number"), ("asString()", "text"), ("asDate()", "date"),
                ("asNumber()", "number"), (lambda: f"is({self.predicate('date')})", "date"), ("order()", "date"), ("max()", "date"), ("min()", "date")]

    def of_list(self, depth):
        number = lambda: self.random.randint(0, 4)
        other = self.pick([self.value("list"), self.value("list"), self.value("list"), f"__.constant({self.value('list')})", self.value("any"), "__.identity()", "__.unfold().fold()"])
        function = self.pick(["combine", "difference", "disjunct", "intersect", "merge", "product"])
        quantifier = self.pick(["all", "any", "none"])
        return [(f"{function}({other})", "list"), (f"{function}({other})", "list"), (f"{function}({other})", "list"), (f"conjoin({self.pick(TEXTS)})", "text"), ("reverse()", "list"),
                (lambda: f"{quantifier}({self.predicate(self.pick(['number', 'text', 'any']))})", "list"), ("unfold()", "any"), ("count(Scope.local)", "number"),
                ("sum(Scope.local)", "number"), ("mean(Scope.local)", "number"),
                (f"limit(Scope.local, {number()})", "list"), (f"range(Scope.local, {number()}, {self.pick([number(), -1])})", "list"), (f"tail(Scope.local, {number()})", "list"),
                ("tail(Scope.local)", "list"), (f"skip(Scope.local, {number()})", "list"), ("dedup(Scope.local)", "list"), ("order(Scope.local)", "list"),
                ("order(Scope.local).by(Order.desc)", "list"), ("index()", "list"),
                ("index().with(WithOptions.indexer, WithOptions.map)", "map"), ("asString(Scope.local)", "list"), ("toUpper(Scope.local)", "list"), ("length(Scope.local)", "list"),
                ("trim(Scope.local)", "list"), ("reverse()", "list"), ("asString()", "any"), ("order(Scope.local).by(Order.asc)", "list"),
                ("unfold().groupCount()", "map"), ("unfold().fold()", "list"), ("concat('x')", "any"), ("is(P.typeOf(GType.LIST))", "list")]

    def of_map(self, depth):
        key = self.pick(["'a'", "'b'", "'c'", "'z'"])
        return [(f"select({key})", "any"), (f"select({key}, 'b')", "map"), ("select(Column.keys)", "list"), ("select(Column.values)", "list"), ("unfold()", "any"),
                ("count(Scope.local)", "number"), ("order(Scope.local).by(Column.keys)", "map"), ("order(Scope.local).by(Column.keys, Order.desc)", "map"),
                ("order(Scope.local).by(Column.values)", "map"), ("order(Scope.local).by(Column.values, Order.desc)", "map"), ("limit(Scope.local, 1)", "map"), ("tail(Scope.local, 1)", "map"),
                ("range(Scope.local, 1, 2)", "map"), ("unfold().select(Column.keys)", "any"), ("unfold().select(Column.values)", "any"), ("select(Column.values).sum(Scope.local)", "number"),
                ("project('x', 'y').by(__.select('a')).by(__.select('b'))", "map"), ("project('x').by('a')", "map"), ("math('a + b')", "number"), ("format('%{a}-%{b}')", "text"),
                ("dedup(Scope.local)", "any"), ("unfold().group().by(Column.keys).by(Column.values)", "map"), (f"where(__.select({key}))", "map"),
                ("local(__.unfold().fold())", "list"), ("order().by('a')", "map"), ("group().by('a')", "map"), ("dedup().by('a')", "map"),
                ("merge(['z': 1])", "map"), ("index()", "any")]

    def of_any(self, kind, depth):
        # Said twice a label may mean the first or the last.
        self.named += 1
        a, b = f"a{self.named}", f"b{self.named}"
        choices = [("fold()", "list"), ("count()", "number"), ("dedup()", kind), ("order()", kind), ("order().by(Order.desc)", kind), ("asString()", "text"), ("unfold()", "any"),
                   ("groupCount()", "map"), ("group().by().by(__.count())", "map"), ("identity()", kind), ("sum()", "number"), ("mean()", "number"),
                   ("count(Scope.local)", "number"), (f"constant({self.value(kind)})", kind), ("limit(1)", kind), ("tail(1)", kind), ("tail(2)", kind),
                   ("range(1, 2)", kind), ("skip(1)", kind), (lambda: f"is({self.predicate(kind)})", kind), (lambda: f"is({self.value(kind)})", kind),
                   (f"as('{a}').select('{a}')", kind), ("project('a', 'b').by().by(__.constant(1))", "map"), ("path()", "list"), ("fold().order(Scope.local)", "list"),
                   ("groupCount().by(__.constant(null))", "map"), ("fold().index()", "list"), ("asBool()", "any"), ("tree()", "any"), ("asDate()", "date"), ("asNumber()", "number"),
                   ("group()", "map"), ("fold().unfold()", kind)]
        if depth < 2:
            child = lambda: self.child(kind, depth)
            choices += [(lambda: f"map({child()})", "any"), (lambda: f"flatMap({child()})", "any"), (lambda: f"filter({child()})", kind), (lambda: f"not({child()})", kind),
                        (lambda: f"coalesce({child()}, {child()})", "any"), (lambda: f"optional({self.child(kind, depth, without=SEEDED)})", "any"), (lambda: f"union({child()}, {child()})", "any"),
                        (lambda: f"choose({child()}, {child()}, {child()})", "any"), (lambda: f"choose({self.predicate(kind)}, {child()}, {child()})", "any"),
                        (lambda: f"choose({child()}).option({self.value(kind)}, {child()}).option({self.test(kind)}, {child()}).option(Pick.none, {child()})", "any"),
                        (lambda: f"choose(__.identity()).option({self.value(kind)}, {child()}).option({self.test(kind)}, {child()})", "any"),
                        (lambda: f"choose(__.identity()).option(Pick.unproductive, {child()}).option({self.test(kind)}, {child()})", "any"),
                        # In which order both picks yield hangs on their hashes there.
                        (lambda: f"branch(__.identity()).option({self.value(kind)}, {child()}).option(Pick.{self.pick(['any', 'none'])}, {child()})", "any"),
                        (lambda: f"group().by({child()}).by(__.fold())", "map"), (lambda: f"group().by({child()}).by({child()})", "map"), (lambda: f"groupCount().by({child()})", "map"),
                        (lambda: f"project('a', 'b').by({child()}).by({child()})", "map"), (lambda: f"order().by({child()})", kind), (lambda: f"dedup().by({child()})", kind),
                        (lambda: f"local({child()})", "any"), (lambda: f"where({self.child(kind, depth, without=LABEL)})", kind), (lambda: f"as('{a}').map({child()}).as('{b}').select('{a}', '{b}')", "map"),
                        (lambda: f"as('{a}').map({child()}).where(P.{self.pick(['eq', 'neq', 'gt', 'lte'])}('{a}'))", "any"), (lambda: f"repeat({child()}).times(2)", "any"),
                        (lambda: f"repeat({child()}).emit().times(2)", "any"), (lambda: f"sideEffect({child()})", kind)]
        if depth == 0:
            # Inside, inject() is carried out there for the first that comes, here for each.
            choices += [(f"inject({self.value(kind)})", kind), (f"inject({self.value(kind)}).as('{a}').select('{a}')", kind)]
            # What is gathered inside is what rows before have had time to add.
            choices += [("aggregate('x').cap('x')", "list"), ("local(__.aggregate('y')).cap('y')", "list"), (lambda: f"aggregate('z').by({self.child(kind, depth)}).cap('z')", "list")]
        return choices
