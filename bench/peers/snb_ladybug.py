"""A social network in LadybugDB, for bench/snb/run.py: the same CSV files, its own bulk load, Cypher in its own dialect. Needs ladybug and duckdb."""

import os
import pathlib
import re
import sys
import tempfile
import time
import tomllib

import duckdb
import ladybug

QUERIES = pathlib.Path(__file__).parent.parent / "snb"
sys.path.insert(0, str(QUERIES))
from answers import lines

CYPHER = tomllib.loads((QUERIES / "cypher.toml").read_text())

# Moments stay the numbers that the files have. A friendship is stored once, as everywhere in this benchmark.
SCHEMA = """
create node table Person(id int64 primary key, firstName string, lastName string, gender string, birthday int64, creationDate int64,
    locationIP string, browserUsed string, language string[], email string[]);
create node table Forum(id int64 primary key, title string, creationDate int64);
create node table Post(id int64 primary key, imageFile string, creationDate int64, locationIP string, browserUsed string, language string,
    content string, length int64);
create node table Comment(id int64 primary key, creationDate int64, locationIP string, browserUsed string, content string, length int64);
create node table Organisation(id int64 primary key, type string, name string, url string);
create node table Place(id int64 primary key, name string, url string, type string);
create node table Tag(id int64 primary key, name string, url string);
create node table TagClass(id int64 primary key, name string, url string);
create rel table knows(from Person to Person, creationDate int64);
create rel table hasInterest(from Person to Tag);
create rel table workAt(from Person to Organisation, workFrom int64);
create rel table studyAt(from Person to Organisation, classYear int64);
create rel table likes(from Person to Post, from Person to Comment, creationDate int64);
create rel table hasMember(from Forum to Person, joinDate int64);
create rel table hasModerator(from Forum to Person, many_one);
create rel table containerOf(from Forum to Post, one_many);
create rel table hasTag(from Forum to Tag, from Post to Tag, from Comment to Tag);
create rel table hasCreator(from Post to Person, from Comment to Person, many_one);
create rel table isLocatedIn(from Person to Place, from Post to Place, from Comment to Place, from Organisation to Place, many_one);
create rel table replyOf(from Comment to Post, from Comment to Comment, many_one);
create rel table isPartOf(from Place to Place, many_one);
create rel table hasType(from Tag to TagClass, many_one);
create rel table isSubclassOf(from TagClass to TagClass, many_one);
"""

# (table, its ends where it joins several kinds, file, columns in the order of the schema, condition)
NODES = [
    ("Person", "person", "c0::bigint, c1, c2, c3, c4::bigint, c5::bigint, c6, c7, string_split(c9, ';'), string_split(c10, ';')"),
    ("Forum", "forum", "c0::bigint, c1, c2::bigint"),
    ("Post", "post", "c0::bigint, nullif(c1, ''), c2::bigint, c3, c4, nullif(c5, ''), nullif(c6, ''), c7::bigint"),
    ("Comment", "comment", "c0::bigint, c1::bigint, c2, c3, c4, c5::bigint"),
    ("Organisation", "organisation", "c0::bigint, c1, c2, c3"),
    ("Place", "place", "c0::bigint, c1, c2, c3"),
    ("Tag", "tag", "c0::bigint, c1, c2"),
    ("TagClass", "tagclass", "c0::bigint, c1, c2"),
]
EDGES = [
    ("knows", None, "person_knows_person", "c0::bigint, c1::bigint, c2::bigint"),
    ("hasInterest", None, "person_hasInterest_tag", "c0::bigint, c1::bigint"),
    ("workAt", None, "person_workAt_organisation", "c0::bigint, c1::bigint, c2::bigint"),
    ("studyAt", None, "person_studyAt_organisation", "c0::bigint, c1::bigint, c2::bigint"),
    ("likes", "Person Post", "person_likes_post", "c0::bigint, c1::bigint, c2::bigint"),
    ("likes", "Person Comment", "person_likes_comment", "c0::bigint, c1::bigint, c2::bigint"),
    ("hasMember", None, "forum_hasMember_person", "c0::bigint, c1::bigint, c2::bigint"),
    ("hasModerator", None, "forum", "c0::bigint, c3::bigint"),
    ("containerOf", None, "post", "c9::bigint, c0::bigint"),
    ("hasTag", "Forum Tag", "forum_hasTag_tag", "c0::bigint, c1::bigint"),
    ("hasTag", "Post Tag", "post_hasTag_tag", "c0::bigint, c1::bigint"),
    ("hasTag", "Comment Tag", "comment_hasTag_tag", "c0::bigint, c1::bigint"),
    ("hasCreator", "Post Person", "post", "c0::bigint, c8::bigint"),
    ("hasCreator", "Comment Person", "comment", "c0::bigint, c6::bigint"),
    ("isLocatedIn", "Person Place", "person", "c0::bigint, c8::bigint"),
    ("isLocatedIn", "Post Place", "post", "c0::bigint, c10::bigint"),
    ("isLocatedIn", "Comment Place", "comment", "c0::bigint, c7::bigint"),
    ("isLocatedIn", "Organisation Place", "organisation", "c0::bigint, c4::bigint"),
    ("replyOf", "Comment Post", "comment", "c0::bigint, nullif(c8, '')::bigint"),
    ("replyOf", "Comment Comment", "comment", "c0::bigint, nullif(c9, '')::bigint"),
    ("isPartOf", None, "place", "c0::bigint, nullif(c4, '')::bigint"),
    ("hasType", None, "tag", "c0::bigint, c3::bigint"),
    ("isSubclassOf", None, "tagclass", "c0::bigint, nullif(c3, '')::bigint"),
]


def load(folder, database):
    """Fills a new database from the CSV files in `folder`, by way of Parquet files, which keep types and any character of a text."""
    files = duckdb.connect()
    connection = ladybug.Connection(database)
    for statement in filter(str.strip, SCHEMA.split(";")):
        connection.execute(statement)
    with tempfile.TemporaryDirectory() as parquet:
        def copy(table, ends, file, columns):
            path = pathlib.Path(parquet) / "table.parquet"
            select = f"select {columns} from {lines(files, folder, file)}"
            if ends != "node":
                select = f"select * from ({select}) as edge(a, b) where b is not null"
            files.execute(f"copy ({select}) to '{path}' (format parquet)")
            pair = "(from='{}', to='{}')".format(*ends.split()) if ends and ends != "node" else ""
            connection.execute(f"copy {table} from '{path}' {pair}")

        for table, file, columns in NODES:
            copy(table, "node", file, columns)
        for edge in EDGES:
            copy(*edge)
    connection.execute("checkpoint")


class Ladybug:
    """A database in `directory`, filled first where it holds none, in this process: no socket and no encoding lie between.

    Statements are prepared once and kept by the connection. It uses all cores, and as much of the memory as it may.
    """

    def __init__(self, directory, folder, timeout_s):
        path = pathlib.Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        loaded = path / "loaded"
        if not loaded.exists():
            (path / "snb.lbdb").unlink(missing_ok=True)
        self.database = ladybug.Database(path / "snb.lbdb", max_num_threads=os.cpu_count())
        if not loaded.exists():
            load(folder, self.database)
            loaded.touch()
        self.connection = ladybug.Connection(self.database)
        self.connection.set_query_timeout(int(timeout_s * 1000))

    def ask(self, query, parameters):
        """Rows, and seconds until the last of them is a list in Python."""
        cypher = CYPHER[query["name"]]
        named = {name: int(value) if isinstance(value, int) else value for name, value in parameters.items()}
        named = {name: value for name, value in named.items() if re.search(rf"\${name}\b", cypher)}
        begun = time.perf_counter()
        try:
            rows = self.connection.execute(cypher, named).get_all()
        except RuntimeError as error:
            if "Interrupted" in str(error):
                raise TimeoutError from None
            raise
        return rows, time.perf_counter() - begun

    def close(self):
        self.connection.close()
        self.database.close()
