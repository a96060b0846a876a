"""The anomalies of the LDBC ACID tests, looked for through gremlinpython in a server process.

Definitions: Waudby, Steer, Karimov, Marton, Boncz, Szárnyas, "Towards Testing ACID Compliance in the LDBC Social Network
Benchmark", TPCTC 2020. An isolation case first plays the one interleaving in which the anomaly would appear, step by step, and then
lets many clients do the same at once. Each case says what a weaker server would show.

Transactions that lose a conflict (status 596) are run again, as an application would do.
"""

import random
import sys
import threading

from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Cardinality

from smoke import connection, server, tx_source

CLIENTS = 6
ROUNDS = 12
CONFLICT = 596


class Client:
    """One connection with its traversal source."""

    def __init__(self):
        self.remote = connection(tx_source)
        self.g = traversal().with_(self.remote)

    def close(self):
        self.remote.close()

    def begin(self):
        tx = self.g.tx()
        return tx, tx.begin()

    def transact(self, body):
        """Runs `body` in a transaction until it commits, and gives its result; `Rollback` ends it otherwise."""
        while True:
            tx, g = self.begin()
            try:
                result = body(g)
                tx.commit().all().result()
                return result
            except Rollback:
                tx.rollback().all().result()
                return None
            except GremlinServerError as error:
                if error.status_code != CONFLICT:
                    raise
                if tx.is_open():
                    tx.rollback()


class Rollback(Exception):
    """Ends a transaction without its writes."""


def person(g, number):
    return g.V().has("person", "number", number)


def value(g, number, key="version"):
    return person(g, number).values(key).next()


def fresh(client, people, **properties):
    """An empty graph with so many people."""
    client.g.V().drop().iterate()
    for number in range(people):
        step = client.g.add_v("person").property("number", number)
        for key, start in properties.items():
            step = step.property(key, start)
        step.iterate()


def at_once(*bodies):
    """Runs each body on a thread and a connection of its own, CLIENTS times ROUNDS in all, and gives all results."""
    results, failures = [], []

    def run(position):
        body = bodies[position % len(bodies)]
        client = Client()
        try:
            for turn in range(ROUNDS):
                results.append((position % len(bodies), body(client, position * ROUNDS + turn)))
        except Exception as error:  # shown by the case
            failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(position,)) for position in range(CLIENTS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures
    return results


def of(results, position):
    return [result for body, result in results if body == position and result is not None]


def atomicity_commit():
    """Half a transaction would show as different numbers of people, of edges to them, and of their names."""
    keeper = Client()
    fresh(keeper, 1)

    def befriend(client, turn):
        def body(g):
            person(g, 0).property(Cardinality.list_, "name", f"name {turn}").iterate()
            g.add_v("person").property("number", 1000 + turn).as_("new").V().has("person", "number", 0).add_e("knows").to("new").iterate()

        client.transact(body)
        return turn

    done = len(of(at_once(befriend), 0))
    g = keeper.g
    found = [g.V().count().next() - 1, g.E().count().next(), person(g, 0).values("name").count().next()]
    assert found == [done] * 3, (found, done)
    keeper.close()


def atomicity_rollback():
    """Writes of a transaction that was rolled back would stay."""
    keeper = Client()
    fresh(keeper, 1)

    def befriend(client, turn):
        def body(g):
            person(g, 0).property(Cardinality.list_, "name", f"name {turn}").iterate()
            g.add_v("person").property("number", 1000 + turn).as_("new").V().has("person", "number", 0).add_e("knows").to("new").iterate()
            if turn % 2:
                raise Rollback
            return turn

        return client.transact(body)

    done = len(of(at_once(befriend), 0))
    g = keeper.g
    found = [g.V().count().next() - 1, g.E().count().next(), person(g, 0).values("name").count().next()]
    assert 0 < done < CLIENTS * ROUNDS and found == [done] * 3, (found, done)
    keeper.close()


def g0():
    """Dirty write: two transactions mark two people and the edge between them; their marks would be in different orders."""
    keeper = Client()
    fresh(keeper, 2)
    person(keeper.g, 0).add_e("knows").to(__.V().has("person", "number", 1)).iterate()

    def mark(g, turn, order):
        for number in order:
            person(g, number).property(Cardinality.list_, "marks", turn).iterate()
        g.E().has_label("knows").property("mark", turn).iterate()

    def check():
        marks = [person(keeper.g, number).values("marks").to_list() for number in (0, 1)]
        last = keeper.g.E().values("mark").next()
        assert marks[0] == marks[1] and marks[0][-1] == last, (marks, last)
        return marks[0]

    (one, first), (two, second) = keeper.begin(), keeper.begin()
    person(first, 0).property(Cardinality.list_, "marks", -1).iterate()
    person(second, 1).property(Cardinality.list_, "marks", -2).iterate()
    committed = 0
    for tx, g, rest, turn in ((one, first, 1, -1), (two, second, 0, -2)):
        try:
            person(g, rest).property(Cardinality.list_, "marks", turn).iterate()
            g.E().has_label("knows").property("mark", turn).iterate()
            tx.commit().all().result()
            committed += 1
        except GremlinServerError as error:
            assert error.status_code == CONFLICT, error
    assert committed == 1 and len(check()) == 1, committed
    at_once(lambda client, turn: client.transact(lambda g: mark(g, turn, (0, 1) if turn % 2 else (1, 0))))
    assert len(check()) == 1 + CLIENTS * ROUNDS
    keeper.close()


def g1a():
    """Aborted read: a reader would see version 2, which never commits."""
    keeper = Client()
    fresh(keeper, 1, version=1)
    reader = Client()
    tx, g = keeper.begin()
    person(g, 0).property("version", 2).iterate()
    assert value(g, 0) == 2
    seen = [value(reader.g, 0)]
    tx.rollback().all().result()
    seen.append(value(reader.g, 0))
    assert seen == [1, 1], seen

    def write(client, _):
        def body(g):
            person(g, 0).property("version", 2).iterate()
            raise Rollback

        client.transact(body)

    def read(client, _):
        return client.transact(lambda g: value(g, 0))

    seen = of(at_once(write, read), 1)
    assert set(seen) == {1}, seen
    reader.close()
    keeper.close()


def g1b():
    """Intermediate read: a reader would see an even version, which its writer replaces by an odd one before it commits."""
    keeper = Client()
    fresh(keeper, 1, version=1)
    reader = Client()
    tx, g = keeper.begin()
    person(g, 0).property("version", 2).iterate()
    seen = [value(reader.g, 0)]
    person(g, 0).property("version", 3).iterate()
    seen.append(value(reader.g, 0))
    tx.commit().all().result()
    seen.append(value(reader.g, 0))
    assert seen == [1, 1, 3], seen

    def write(client, _):
        def body(g):
            version = value(g, 0)
            person(g, 0).property("version", version + 1).iterate()
            person(g, 0).property("version", version + 2).iterate()

        client.transact(body)

    def read(client, _):
        return client.transact(lambda g: value(g, 0))

    seen = of(at_once(write, read), 1)
    assert all(version % 2 == 1 for version in seen), seen
    reader.close()
    keeper.close()


def g1c():
    """Circular information flow: each of two transactions would read what the other one wrote."""
    keeper = Client()
    fresh(keeper, 2, version=-1)
    (one, first), (two, second) = keeper.begin(), keeper.begin()
    person(first, 0).property("version", 100_000).iterate()
    person(second, 1).property("version", 100_001).iterate()
    assert [value(first, 1), value(second, 0)] == [-1, -1]
    one.rollback().all().result()
    two.rollback().all().result()

    def swap(client, turn):
        def body(g):
            mine, other = random.Random(turn).sample([0, 1], 2)
            person(g, mine).property("version", turn).iterate()
            return turn, value(g, other)

        return client.transact(body)

    read_from = dict(of(at_once(swap), 0))
    for turn in read_from:
        seen = {turn}
        while (turn := read_from.get(turn, -1)) != -1:
            assert turn not in seen, f"a circle: {read_from}"
            seen.add(turn)
    keeper.close()


def imp():
    """Item-many-preceders: a transaction would read one person twice and find two versions."""
    keeper = Client()
    fresh(keeper, 1, version=1)
    tx, g = keeper.begin()
    seen = [value(g, 0)]
    keeper.transact(lambda other: person(other, 0).property("version", 2).iterate())
    seen.append(value(g, 0))
    tx.rollback().all().result()
    assert seen == [1, 1], seen

    def write(client, _):
        client.transact(lambda g: person(g, 0).property("version", value(g, 0) + 1).iterate())

    def read(client, _):
        return client.transact(lambda g: (value(g, 0), value(g, 0)))

    seen = of(at_once(write, read), 1)
    assert all(first == second for first, second in seen), seen
    keeper.close()


def pmp():
    """Predicate-many-preceders: a transaction would ask twice who likes a post and find different numbers."""
    keeper = Client()
    fresh(keeper, 1)
    keeper.g.add_v("post").iterate()

    def likes(g):
        return g.V().has_label("post").in_("likes").count().next()

    def like(g):
        g.add_v("person").add_e("likes").to(__.V().has_label("post")).iterate()

    tx, g = keeper.begin()
    seen = [likes(g)]
    keeper.transact(like)
    seen.append(likes(g))
    tx.rollback().all().result()
    assert seen == [0, 0] and likes(keeper.g) == 1, seen
    seen = of(at_once(lambda client, _: client.transact(like), lambda client, _: client.transact(lambda g: (likes(g), likes(g)))), 1)
    assert all(first == second for first, second in seen), seen
    keeper.close()


def circle(client):
    """Four people in a circle, all at version 1."""
    fresh(client, 4, version=1)
    for number in range(4):
        person(client.g, number).add_e("knows").to(__.V().has("person", "number", (number + 1) % 4)).iterate()


def versions(g):
    """One person after the other, each in a request of its own, by the way of the circle."""
    return [g.V().has("person", "number", 0).repeat(__.out("knows")).times(hops).values("version").next() for hops in range(1, 5)]


def advance(g):
    for number in range(4):
        person(g, number).property("version", value(g, number) + 1).iterate()


def otv():
    """Observed transaction vanishes: a reader would meet a new version at one person and an old one at the next."""
    keeper = Client()
    circle(keeper)
    tx, g = keeper.begin()
    seen = versions(g)[:2]
    keeper.transact(advance)
    seen += versions(g)[2:]
    tx.rollback().all().result()
    assert seen == [1] * 4 and versions(keeper.g) == [2] * 4, seen

    def read(client, _):
        return client.transact(lambda g: (versions(g), versions(g)))

    seen = of(at_once(lambda client, _: client.transact(advance), read), 1)
    assert all(max(first) <= min(second) for first, second in seen), seen
    keeper.close()


def fr():
    """Fractured read: of one transaction's four writes a reader would see some and miss others."""
    keeper = Client()
    circle(keeper)
    tx, g = keeper.begin()
    advance(g)
    reader, reads = keeper.begin()
    first = versions(reads)
    tx.commit().all().result()
    second = versions(reads)
    reader.rollback().all().result()
    assert first == second == [1] * 4, (first, second)

    def read(client, _):
        return client.transact(lambda g: (versions(g), versions(g)))

    seen = of(at_once(lambda client, _: client.transact(advance), read), 1)
    assert all(len(set(first + second)) == 1 for first, second in seen), seen
    keeper.close()


def lu():
    """Lost update: the counter of a person would be smaller than the number of transactions that counted."""
    keeper = Client()
    fresh(keeper, 1, friends=0)

    def befriend(g):
        friends = value(g, 0, "friends")
        g.add_v("friend").as_("new").V().has("person", "number", 0).add_e("knows").to("new").iterate()
        person(g, 0).property("friends", friends + 1).iterate()

    (one, first), (two, second) = keeper.begin(), keeper.begin()
    befriend(first)
    befriend(second)
    one.commit().all().result()
    try:
        two.commit().all().result()
        raise AssertionError("both commit")
    except GremlinServerError as error:
        assert error.status_code == CONFLICT, error
    done = 1 + len(at_once(lambda client, _: client.transact(befriend)))
    found = [value(keeper.g, 0, "friends"), person(keeper.g, 0).out("knows").count().next()]
    assert found == [done] * 2, (found, done)
    keeper.close()


def ws():
    """Write skew: two transactions would each find enough on two accounts, and take it from different ones."""
    keeper = Client()

    def take(g, number):
        if sum(g.V().has_label("person").values("amount").to_list()) < 100:
            raise Rollback
        person(g, number).property("amount", value(g, number, "amount") - 100).iterate()

    fresh(keeper, 2, amount=75)
    (one, first), (two, second) = keeper.begin(), keeper.begin()
    take(first, 0)
    take(second, 1)
    one.commit().all().result()
    try:
        two.commit().all().result()
        raise AssertionError(f"both commit: {keeper.g.V().values('amount').to_list()}")
    except GremlinServerError as error:
        assert error.status_code == CONFLICT, error
    fresh(keeper, 2, amount=3075)
    at_once(lambda client, turn: client.transact(lambda g: take(g, turn % 2)))
    amounts = keeper.g.V().has_label("person").values("amount").to_list()
    assert 0 < sum(amounts) < 100, amounts
    keeper.close()


def main():
    failed = 0
    for case in [atomicity_commit, atomicity_rollback, g0, g1a, g1b, g1c, imp, pmp, otv, fr, lu, ws]:
        try:
            case()
            print(f"ok {case.__name__}", flush=True)
        except Exception as error:
            failed += 1
            print(f"not ok {case.__name__}: {error!r}", flush=True)
    server.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
