#!/usr/bin/env python3
"""Loads Parquet files that pyarrow writes, in every packing and both versions of pages, and compares what came in with what was written.

    python3 tests/datasets/parquet.py --ficus BINARY        # needs pyarrow (pip install pyarrow)
"""

import argparse
import datetime
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5_000
UTC = datetime.timezone.utc
MAPPING = """
[[vertices]]
files = ["people.parquet"]
label = "person"
id = "id"
id_type = "long"

[[edges]]
files = ["knows.parquet"]
label = "knows"
from = "src"
from_type = "long"
to = "dst"
to_type = "long"
"""


def people():
    """Every type, with nulls in all columns but the id."""
    def some(value):
        return [None if row % 7 == 0 else value(row) for row in range(ROWS)]

    return {
        "id": (pa.int64(), list(range(ROWS))),
        "flag": (pa.bool_(), some(lambda row: row % 2 == 0)),
        "tiny": (pa.int8(), some(lambda row: row % 100 - 50)),
        "small": (pa.int16(), some(lambda row: row - 2500)),
        "number": (pa.int32(), some(lambda row: row * 1000)),
        "unsigned": (pa.uint32(), some(lambda row: 4_000_000_000 + row)),
        "large": (pa.int64(), some(lambda row: row << 40)),
        "score": (pa.float64(), some(lambda row: row / 8)),
        "single": (pa.float32(), some(lambda row: row / 4)),
        "name": (pa.string(), some(lambda row: f"näme {row % 50}")),
        "raw": (pa.binary(), some(lambda row: bytes([row % 256, 1]))),
        "price": (pa.decimal128(20, 3), some(lambda row: decimal.Decimal(row * 12345) / 1000)),
        "day": (pa.date32(), some(lambda row: datetime.date(1960, 1, 1) + datetime.timedelta(days=row))),
        "moment": (pa.timestamp("us", "UTC"), some(lambda row: datetime.datetime(1969, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=row * 86399, microseconds=row))),
        "tags": (pa.list_(pa.string()), some(lambda row: [f"t{n}" for n in range(row % 4)])),
        "marks": (pa.list_(pa.int32()), some(lambda row: list(range(row % 3)))),
    }


def plain(value):
    """A value of GraphSON 3 as Python has it."""
    if not isinstance(value, dict):
        return value
    kind, inner = value["@type"], value["@value"]
    if kind in ("g:List", "g:Set"):
        return [plain(item) for item in inner]
    if kind == "gx:BigDecimal":
        return decimal.Decimal(str(inner))
    if kind == "gx:OffsetDateTime":
        return datetime.datetime.fromisoformat(inner.replace("Z", "+00:00"))
    return inner


def wanted(value):
    """What a written value has to come back as."""
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


def same(found, value):
    if isinstance(value, bytes):
        return found is not None
    if isinstance(value, datetime.datetime):
        return abs((found - value).total_seconds()) < 1e-9
    return found == value


def check(ficus, folder, how):
    columns = people()
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, folder / "people.parquet", row_group_size=700, **how)
    ends = [(row, row * 7919 % ROWS) for row in range(ROWS)]
    knows = pa.table({"src": [src for src, _ in ends], "dst": [dst for _, dst in ends], "weight": [src / 2 for src, _ in ends]})
    pq.write_table(knows, folder / "knows.parquet", row_group_size=1000, **how)
    (folder / "mapping.toml").write_text(MAPPING)
    run = [ficus, "--format", "json"]
    files = [str(folder / "people.parquet"), str(folder / "knows.parquet")]
    data = str(folder / "data")
    subprocess.run([*run, "load", "--quiet", "--data-dir", data, "--mapping", str(folder / "mapping.toml"), *files], check=True, stdout=subprocess.DEVNULL)
    graph = subprocess.run([*run, "export", "--data-dir", data, "--to", "graphson", "-"], check=True, capture_output=True, text=True).stdout
    vertices = [json.loads(line) for line in graph.splitlines()]
    assert len(vertices) == ROWS, len(vertices)
    edges = 0
    for vertex in vertices:
        row = plain(vertex["id"])
        properties = {key: plain(values[0]["value"]) for key, values in vertex.get("properties", {}).items()}
        for name, (_, values) in columns.items():
            value = wanted(values[row])
            if name == "id":
                continue
            if value is None:
                assert name not in properties, (row, name, properties[name])
            else:
                assert same(properties[name], value), (row, name, properties[name], value)
        for edge in vertex.get("outE", {}).get("knows", []):
            assert plain(edge["inV"]) == ends[row][1] and plain(edge["properties"]["weight"]) == row / 2, edge
            edges += 1
    assert edges == ROWS, edges


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ficus", required=True, help="the binary")
    ficus = str(pathlib.Path(parser.parse_args().ficus).resolve())
    ways = [{"compression": packing} for packing in ("none", "snappy", "gzip", "lz4", "zstd")]
    ways += [{"data_page_version": "2.0"}, {"use_dictionary": False}, {"use_deprecated_int96_timestamps": True}, {"version": "1.0"}]
    for how in ways:
        with tempfile.TemporaryDirectory() as folder:
            check(ficus, pathlib.Path(folder), how)
        print(f"{how}: {ROWS} vertices and {ROWS} edges as written")


if __name__ == "__main__":
    sys.exit(main())
