"""Schema registries that have lost schemas."""

from __future__ import annotations

from collections.abc import Sequence

from tests.registry_disk import LOG, Step, delete_subject, framed, log, schema, schema_key
from tools.incident.disk import Disk
from tools.incident.registry import incident

BEGIN = 1_795_247_000_000
"""Epoch ms of the first record of the registry."""
SALE_1 = '{"type":"record","name":"Sale","fields":[{"name":"nr","type":"long"}]}'
SALE_2 = (
    '{"type":"record","name":"Sale","fields":[{"name":"nr","type":"long"},'
    '{"name":"shop","type":["null","string"],"default":null}]}'
)
VISIT = '{"type":"record","name":"Visit","fields":[{"name":"page","type":"string"}]}'
SALES = [
    Step(b"s1", framed(1, b"\x02")),
    Step(b"s2", framed(1, b"\x04")),
    Step(b"s3", framed(2, b"\x06\x02\x08oslo")),
    Step(b"s4", framed(2, b"\x08\x00")),
]
VISITS = [Step(b"v1", framed(3, b"\x0a/home"))]


def _write(disk: Disk, partition: str, steps: Sequence[Step], begin: int) -> None:
    disk.file(partition).mkdir()
    (disk.file(partition) / LOG).write_bytes(log(steps, begin))


@incident("registry-lost-its-topic")
def registry_lost_its_topic(disk: Disk) -> None:
    """The topic _schemas of the schema registry was deleted by mistake, and the broker was stopped before the minute
    was over after which it deletes the files. The topics sales and visits have records with schema IDs."""
    schemas = [
        schema("sales-value", 1, 1, SALE_1),
        schema("sales-value", 2, 2, SALE_2),
        schema("visits-value", 1, 3, VISIT),
    ]
    _write(disk, "_schemas-0.5d0c1b2a394857667584938271605f4e-delete", schemas, BEGIN)
    _write(disk, "sales-0", SALES, BEGIN + 60_000)
    _write(disk, "visits-0", VISITS, BEGIN + 60_000)


@incident("unknown-schema-id")
def unknown_schema_id(disk: Disk) -> None:
    """A version of the subject visits-value was deleted for good in the registry, after a record with its ID 3 was
    written to visits. Another producer uses a registry of its own, and wrote ID 4711 to sales, at offset 4."""
    schemas = [
        schema("sales-value", 1, 1, SALE_1),
        schema("sales-value", 2, 2, SALE_2),
        schema("visits-value", 1, 3, VISIT),
        delete_subject("visits-value", 1),
        Step(schema_key("visits-value", 1), None),
    ]
    _write(disk, "_schemas-0", schemas, BEGIN)
    _write(disk, "sales-0", [*SALES, Step(b"s5", framed(4711, b"\x02\x06abc"))], BEGIN + 60_000)
    _write(disk, "visits-0", VISITS, BEGIN + 60_000)
