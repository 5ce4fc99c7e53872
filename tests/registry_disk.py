"""Writes disks with the topic of a schema registry, as Confluent's registry and Karapace write its records, and topics
whose records carry schema IDs. `python -m tests.registry_disk` writes fixtures/registry-1 again."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.craft import batch, record

FIXTURES = Path(__file__).parent.parent / "fixtures"
LOG = "00000000000000000000.log"
STEP = 1000
"""Milliseconds between two records."""
BEGIN = 1_795_000_000_000
LATER = 60_000
"""Milliseconds from the first record of a registry to the first that carries an ID."""
ORDER_1 = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"to","type":["null","Address"],"default":null}]}'
)
ADDRESS = '{"type":"record","name":"Address","fields":[{"name":"street","type":"string"}]}'
PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Refund {\n  string reason = 1;\n  int64 cents = 2;\n}\n'
USER = '{"type":"object","properties":{"name":{"type":"string"}}}'
Part = bytes | None


class Step(NamedTuple):
    """A record, or a gap that compaction has left if there is neither key nor value."""

    key: Any
    value: Any
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def encoded(part: Any) -> Part:
    return part if isinstance(part, bytes) or part is None else json.dumps(part, separators=(",", ":")).encode()


def log(steps: Iterable[Step | None], begin: int = BEGIN) -> bytes:
    """Return a segment with a batch for each record; None is an offset that is not there any more."""
    out = b""
    for offset, step in enumerate(steps):
        if step is not None:
            time = begin + offset * STEP
            body = record(key=encoded(step.key), value=encoded(step.value), headers=step.headers)
            out += batch([body], offset=offset, baseTimestamp=time, maxTimestamp=time)
    return out


def schema(subject: str, version: int, schema_id: int, text: str, **more: Any) -> Step:
    kind = more.pop("schemaType", None)
    value = {"subject": subject, "version": version, "id": schema_id} | ({"schemaType": kind} if kind else {})
    return Step(schema_key(subject, version), value | more | {"schema": text, "deleted": more.get("deleted", False)})


def schema_key(subject: str, version: int) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def key(kind: str, subject: str | None = None, **more: Any) -> dict[str, Any]:
    return {"keytype": kind} | ({} if subject is None else {"subject": subject}) | more | {"magic": 0}


def delete_subject(subject: str, version: int) -> Step:
    return Step(key("DELETE_SUBJECT", subject), {"subject": subject, "version": version})


def reference(subject: str, version: int, name: str | None = None) -> dict[str, Any]:
    return {"name": name or subject, "subject": subject, "version": version}


def framed(schema_id: int, data: bytes = b"") -> bytes:
    return b"\0" + struct.pack(">I", schema_id) + data


def guid_header(guid: str, part: str = "value") -> tuple[bytes, bytes]:
    return f"__{part}_schema_id".encode(), b"\1" + uuid.UUID(guid).bytes


def write(root: Path, topics: dict[str, list[Step | None]], cluster: str = "registry-fixture-clust") -> Path:
    """Write a log directory with these partitions, by the names of their directories."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")
    for name, steps in topics.items():
        (root / name).mkdir()
        later = 0 if name.startswith("_schemas") else LATER
        (root / name / LOG).write_bytes(log(steps, BEGIN + later))
    return root


SCHEMAS: list[Step | None] = [
    Step(key("NOOP"), None),
    Step({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
    schema("orders-value", 1, 1, ORDER_1),
    schema("address", 1, 2, ADDRESS, schemaType="AVRO"),
    schema("orders-value", 2, 3, ORDER_2, references=[reference("address", 1, "Address")]),
    schema("refunds-value", 1, 4, PROTO, schemaType="PROTOBUF"),
    schema("users-value", 1, 5, USER, schemaType="JSON"),
    Step(key("CONFIG", "users-value"), {"subject": "users-value", "compatibilityLevel": "NONE"}),
    Step(key("CONTEXT", tenant="default", context=".emea"), {"tenant": "default", "context": ".emea"}),
    schema(":.emea:orders-value", 1, 1, ADDRESS),
    schema("trial-value", 1, 6, '"string"'),
    delete_subject("trial-value", 1),
    Step(schema_key("trial-value", 1), None),
    delete_subject("users-value", 1),
    schema("late-value", 1, 4, '"double"'),
    Step(key("CONFIG"), {"compatibilityLevel": "BACKWARD"}),
    Step(key("MODE", ":.emea:"), {"subject": ":.emea:", "mode": "READONLY"}),
]
"""Records of a registry: two compaction keys of the global setting, a reference, a context in which an ID stands for
another schema, soft and hard deletion, and an ID that is given twice."""
USER_GUID = "c51f76a8-4e24-113b-db25-6d8bab180156"
TOPICS: dict[str, list[Step | None]] = {
    "_schemas-0": SCHEMAS,
    "orders-0": [
        *[Step(b"k%d" % number, framed(1, bytes([2 * number]))) for number in range(4)],
        *[Step(b"k%d" % number, framed(3, bytes([2 * number, 0]))) for number in range(3)],
        Step(b"k9", framed(77, b"\2")),
    ],
    "refunds-0": [Step(None, framed(4, b"\0\n\4late\x10\xd2\t"))],
    "users-0": [Step(b"a", b'{"name":"ann"}', (guid_header(USER_GUID),))],
    "trial-0": [Step(b"a", framed(6, b"\2x"))],
    "totals-0": [Step(b"a", struct.pack(">q", number)) for number in (5, 17, 1_795_000_000_000)],
}


def main() -> None:
    import shutil

    root = FIXTURES / "registry-1"
    shutil.rmtree(root, ignore_errors=True)
    write(root, TOPICS)


if __name__ == "__main__":
    main()
