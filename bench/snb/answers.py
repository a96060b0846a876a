"""The SNB files in DuckDB: parameters for the queries, and their answers by SQL."""

import datetime
import pathlib
import random
import tomllib

import duckdb

QUERIES = tomllib.loads((pathlib.Path(__file__).parent / "queries.toml").read_text())["query"]


def lines(db, folder, file):
    """SQL for the lines of one CSV file: columns c0, c1, … of texts, in the file's order."""
    path = next(pathlib.Path(folder).glob(file + "_0_0.csv*"))
    form = "delim='|', quote='', escape='', header=false, max_line_size=10000000"
    header = db.execute(f"select * from read_csv('{path}', {form}, all_varchar=true) limit 1").fetchone()
    names = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(len(header)))
    return f"read_csv('{path}', {form}, skip=1, columns={{{names}}}, null_padding=true)"


class Answers:
    """An in-memory database of the tables that the SQL of queries.toml names."""

    def __init__(self, folder):
        self.db = duckdb.connect()

        def table(name, columns, *sources):
            """`columns` is a select list over the columns of `lines`."""
            self.db.execute(f"create table {name} as " + " union all ".join(
                f"select {columns} from {lines(self.db, folder, file)}" for file in sources))

        table("person", "c0::bigint id, c1 firstName, c2 lastName, c3 gender, c4::bigint birthday, c5::bigint creationDate, "
                        "c6 locationIP, c7 browserUsed, c8::bigint place", "person")
        table("knows", "c0::bigint a, c1::bigint b, c2::bigint creationDate", "person_knows_person")
        table("hasInterest", "c0::bigint a, c1::bigint b", "person_hasInterest_tag")
        table("workAt", "c0::bigint a, c1::bigint b, c2::int workFrom", "person_workAt_organisation")
        table("studyAt", "c0::bigint a, c1::bigint b", "person_studyAt_organisation")
        table("forum", "c0::bigint id, c1 title, c2::bigint creationDate, c3::bigint moderator", "forum")
        table("hasMember", "c0::bigint a, c1::bigint b, c2::bigint joinDate", "forum_hasMember_person")
        table("post", "c0::bigint id, coalesce(nullif(c6, ''), c1) text, c2::bigint creationDate, c8::bigint creator, c9::bigint forum, "
                      "c10::bigint place", "post")
        table("comment", "c0::bigint id, c4 text, c1::bigint creationDate, c6::bigint creator, c7::bigint place, "
                         "coalesce(nullif(c8, ''), c9)::bigint replyOf", "comment")
        table("messageTag", "c0::bigint a, c1::bigint b", "post_hasTag_tag", "comment_hasTag_tag")
        table("likes", "c0::bigint a, c1::bigint b, c2::bigint creationDate", "person_likes_post", "person_likes_comment")
        table("organisation", "c0::bigint id, c1 type, c2 name, c4::bigint place", "organisation")
        table("place", "c0::bigint id, c1 name, c3 type, nullif(c4, '')::bigint isPartOf", "place")
        table("tag", "c0::bigint id, c1 name, c3::bigint hasType", "tag")
        table("tagclass", "c0::bigint id, c1 name, nullif(c3, '')::bigint isSubclassOf", "tagclass")
        self.db.execute("""
            create table message as
                select id, text, creationDate, creator, forum, place, null::bigint replyOf, true is_post from post
                union all select id, text, creationDate, creator, null, place, replyOf, false from comment;
            create table knows2 as select a, b, creationDate from knows union all select b, a, creationDate from knows;
            create table on_countries as select distinct m.creator b from message m join messageTag t on t.a = m.id
                join tag g on g.id = t.b join tagclass c on c.id = g.hasType where c.name = 'Country'""")

    def parameters(self, count, seed):
        """`count` sets of parameters. Persons have 20 friends or more, dates lie in the busy part, names and tags are frequent ones."""
        draw = random.Random(seed)

        def some(sql):
            return [row[0] for row in self.db.execute(sql).fetchall()]

        persons = some("select a from knows2 join workAt w using (a) group by a having count(distinct knows2.b) >= 20 order by a")
        names = some("select firstName from person group by 1 order by count(*) desc, 1 limit 20")
        countries = some("""select l.name from message m join place l on l.id = m.place group by 1 order by count(*) desc, 1 limit 20""")
        tags = some("select t.name from messageTag m join tag t on t.id = m.b group by 1 order by count(*) desc, 1 limit 100")
        classes = some("""select c.name from messageTag m join tag t on t.id = m.b join tagclass c on c.id = t.hasType
                          group by 1 order by count(*) desc, 1 limit 20""")
        messages = some("select replyOf from comment group by 1 order by count(*) desc, 1 limit 5000")
        dates = self.db.execute("select quantile_cont(creationDate, [0.3, 0.9]) from message").fetchone()[0]
        sets = []
        for _ in range(count):
            date = int(draw.uniform(*dates)) // 86_400_000 * 86_400_000
            country, other_country = draw.sample(countries, 2)
            person, other_person = draw.sample(persons, 2)
            month = draw.randrange(1, 12)
            sets.append({
                "person": person, "other_person": other_person, "first_name": draw.choice(names), "country": country,
                "other_country": other_country, "tag": draw.choice(tags), "tag_class": draw.choice(classes),
                "message": draw.choice(messages), "year": draw.randrange(2004, 2012), "month": f"{month:02}",
                "next_month": f"{month + 1:02}", "date": Moment(date), "until": Moment(date + 30 * 86_400_000),
            })
        return sets

    def ask(self, query, parameters):
        """The rows of the query's SQL as lists."""
        person = parameters["person"]
        self.db.execute(f"""
            create or replace temp view near2 as select distinct {person} a, b from (
                select b from knows2 where a = {person}
                union select k.b from knows2 j join knows2 k on k.a = j.b where j.a = {person}) where b <> {person}""")
        if query["name"].startswith("CQ"):
            self._walks(person)
        return [list(row) for row in self.db.execute(fill(query["sql"], parameters)).fetchall()]

    def _walks(self, person):
        self.db.execute(f"create or replace temp table colleagues as "
                        f"select distinct x.a from workAt x join workAt y using (b) where y.a = {person}")

        def walk(name, start, steps, where="true"):
            self.db.execute(f"create or replace temp table step0 as {start}")
            for step in range(1, steps + 1):
                self.db.execute(f"create or replace temp table step{step} as "
                                f"select distinct k.b from step{step - 1} s join knows2 k on k.a = s.b where {where}")
            return [f"select b from step{step}" for step in range(1, steps + 1)]

        for name, where in (("walk5_on_countries", "k.b in (select b from on_countries)"), ("walk5", "true")):
            levels = walk(name, f"select {person}::bigint b", 5, where)
            self.db.execute(f"create or replace temp table {name} as {levels[-1]}")
        self.db.execute(f"create or replace temp table within5 as {' union '.join(levels)}")
        levels = walk("near", "select a b from colleagues", 4)
        self.db.execute(f"create or replace temp table near_colleagues as {' union '.join(levels)}")


class Moment(int):
    """Milliseconds since 1970, which a query's text shows as ISO 8601, or as the number where it says `:millis`."""

    def __format__(self, form):
        if form == "millis":
            return str(int(self))
        return datetime.datetime.fromtimestamp(self / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def fill(text, parameters):
    return text.strip().format(**parameters)


def normal(value):
    """A value of either engine in one form: instants as milliseconds, numbers as floats."""
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str) and len(value) >= 17 and value[4:5] == "-" and value[10:11] == "T":
        return float(round(datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1000))
    return value


def difference(query, rows, expected):
    """None if `rows`, lists of values, answer the query; otherwise what is wrong."""
    rows, expected = normal(rows), normal(expected)
    if query.get("match") == "some":
        values = [row[0] for row in rows]
        wanted = min(query["limit"], len(expected))
        if len(set(values)) != len(values) or len(values) != wanted:
            return f"{len(values)} rows, {len(set(values))} different, instead of {wanted}"
        strange = set(values) - {row[0] for row in expected}
        return f"{sorted(strange)[:3]} are no answers" if strange else None
    if rows == expected:
        return None
    for n, (have, want) in enumerate(zip(rows, expected)):
        if have != want:
            return f"row {n}: {have} instead of {want}"
    return f"{len(rows)} rows instead of {len(expected)}"
