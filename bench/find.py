"""Measures `kdump find` against `kdump inspect --records --json | jq` with the same rows, and against --value-regex.
Run as python -m bench.find. docs/performance.md quotes the result.

Each pair runs by turns, into a pipe; jq runs in parallel with inspect. Wall-clock times are compared.
"""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import fastavro

from bench.avro import ORDER, VALUE
from tests import craft

RECORDS, IN_BATCH, TURNS = 400_000, 200, 3
KDUMP = f"{sys.executable} -m kdump"
PAIRS = (
    ("an Avro field, of a number", "avro", "value.id == 123457", ".valueDecoded.data.id == 123457"),
    ("an Avro field, of text", "avro", "value.sku == 'sku-77777'", '.valueDecoded.data.sku == "sku-77777"'),
    ("an Avro field, in a range", "avro", "value.id < 3", ".valueDecoded.data.id < 3"),
    ("a key", "avro", "key == 'user-77777'", '.key == "user-77777"'),
    ("a key, text", "json", "key == 'user-77777'", '.key == "user-77777"'),
    ("text in any", "json", "'sku-77777' in any", '(tojson | contains("sku-77777"))'),
    ("a JSON field, of a number", "json", "value.id == 123457", "--value-regex '\"id\": 123457\\b'"),
    ("a JSON field, by a pattern", "json", "value.sku ~ '^sku-7777.$'", '--value-regex \'"sku": "sku-7777."\''),
    ("a JSON field, in a range", "json", "value.id < 3", "--value-regex '\"id\": [0-2]\\b'"),
)
"""What, the topic, the expression, and what it is compared with: a condition of jq, or options of inspect."""


def make(root: Path) -> None:
    """Write a log directory with a registry, and the same records as Avro and as JSON."""
    parsed = fastavro.parse_schema(ORDER)
    key = json.dumps({"keytype": "SCHEMA", "subject": "avro-value", "version": 1, "magic": 1}).encode()
    schema = {"subject": "avro-value", "version": 1, "id": 7, "schema": json.dumps(ORDER), "deleted": False}
    craft.write_file(root / "meta.properties", b"version=1\nbroker.id=1\ncluster.id=c\n")
    log = craft.batch([craft.record(0, key, json.dumps(schema).encode())])
    craft.write_file(root / "_schemas-0" / f"{0:020}.log", log)
    for name in ("avro", "json"):
        craft.write_file(root / f"{name}-0" / f"{0:020}.log", b"".join(_batches(name, parsed)))


def _batches(name: str, parsed: Any) -> Iterator[bytes]:
    for first in range(0, RECORDS, IN_BATCH):
        batch = []
        for number in range(first, first + IN_BATCH):
            value: dict[str, Any] = VALUE | {"id": number, "sku": f"sku-{number}"}
            data = json.dumps(value).encode()
            if name == "avro":
                stream = io.BytesIO(b"\0\0\0\0\7")
                stream.seek(5)
                fastavro.schemaless_writer(stream, parsed, value)
                data = stream.getvalue()
            batch.append(craft.record(number - first, b"user-%d" % number, data))
        yield craft.batch(batch, "lz4", offset=first)


def seconds(command: str) -> tuple[float, int]:
    """Return how long a command takes, and how many lines it writes."""
    begun = time.perf_counter()
    out = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return time.perf_counter() - begun, out.count(b"\n")


def main() -> None:
    """Print a line for each pair."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
        for what, topic, expression, other in PAIRS:
            place = f"{name}/{topic}-0"
            mine = f"{KDUMP} find {shlex.quote(expression)} {place} --json"
            theirs = f"{KDUMP} inspect {place} --records --json"
            theirs += f" {other}" if other.startswith("--") else f" | jq -c {shlex.quote(f'select({other})')}"
            found, compared = [], []
            for _ in range(TURNS):
                found.append(seconds(mine))
                compared.append(seconds(theirs))
            assert found[0][1] - 1 == compared[0][1], (what, found, compared)
            ours, other_time = (median(time for time, _ in times) for times in (found, compared))
            print(f"{what:30} {ours:6.2f} s  {other_time:6.2f} s  {other_time / ours:5.1f} times as fast")


if __name__ == "__main__":
    main()
