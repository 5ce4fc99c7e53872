"""The encoder of Kafka's versioned messages: it writes what the decoder reads, and what Kafka itself wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kdump.format.coordinator_record import KEY, VALUE
from kdump.format.message_writer import encode
from kdump.format.metadata_record import read_frame
from kdump.format.schema import MessageSchema, SchemaField, SchemaStruct, by_api_key, load_folder
from kdump.format.versioned_messages import decode
from kdump.log.batch_records import records
from kdump.log.live_files import open_window
from kdump.log.paths import target
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from tests.conftest import DISKS
from tests.each_case import each_case

FOLDERS = ("group-coordinator", "transaction-coordinator", "share-coordinator", "metadata", "storage", "control")
MESSAGES = [(folder, name) for folder in FOLDERS for name in load_folder(folder)]
TOPICS = {
    "__consumer_offsets": "group-coordinator",
    "__transaction_state": "transaction-coordinator",
    "__share_group_state": "share-coordinator",
    "__cluster_metadata": "metadata",
    "__remote_log_metadata": "storage",
}


def filled(node: SchemaField, number: int) -> Any:
    """Return a value of a field that is not its default."""
    if node.inner is not None:
        return filled_struct(node.inner, number + 1)
    if node.element is not None:
        return [filled(node.element, number + each) for each in range(number % 3)]
    if node.kind == "uuid":
        return "AAAAAAAAAAAAAAAAAAAAAQ"
    if node.kind == "bool":
        return number % 2 == 0
    if node.kind in ("bytes", "records"):
        return b"b" * number
    return "ä" * number * 20 if node.kind == "string" else number


def filled_struct(fields: SchemaStruct, number: int) -> dict[str, Any]:
    return {node.name: filled(node, number + at) for at, node in enumerate(fields.fields)}


@each_case("folder, name", MESSAGES)
def test_what_is_written_is_read(folder: str, name: str) -> None:
    schema = load_folder(folder)[name]
    for version in range(schema.valid.lowest, min(schema.valid.highest, 20) + 1):
        fields = schema.struct(version)
        for value in (fields.default(), filled_struct(fields, 1), filled_struct(fields, 2)):
            data = encode(schema, version, value)
            found = decode(schema, version, data)
            assert (found.value, found.rest, found.unknown_tags) == (value, b"", frozenset())


def messages() -> Iterator[tuple[MessageSchema, int, bytes]]:
    """Yield all messages of Kafka's own topics in the corpus."""
    for path in sorted(DISKS.rglob("__*/*.log")):
        folder = TOPICS[path.parent.name.rpartition("-")[0]]
        for region in regions(open_window(target(str(path))), name_offset=None):
            assert isinstance(region, Batch)
            for record in records(region) if not region.isControlBatch else ():
                if folder in ("metadata", "storage"):
                    assert record.value is not None
                    frame = read_frame(record.value)
                    yield by_api_key(folder)[frame.apiKey], frame.version, record.value[frame.position :]
                    continue
                assert record.key is not None
                number = KEY.read(record.key).type
                key = by_api_key(folder, "coordinator-key")[number]
                yield key, key.valid.lowest, record.key[KEY.size :]
                if record.value is not None:
                    value = by_api_key(folder, "coordinator-value")[number]
                    yield value, VALUE.read(record.value).version, record.value[VALUE.size :]


def test_messages_that_kafka_wrote() -> None:
    found = set()
    for schema, version, data in messages():
        assert encode(schema, version, decode(schema, version, data).value) == data, schema.name
        found.add(schema.name)
    assert len(found) > 30


def test_what_a_field_cannot_have() -> None:
    schema = load_folder("metadata")["TopicRecord"]
    for name in (None, "a" * 40_000):
        with pytest.raises(ValueError, match="name"):
            encode(schema, 0, {"name": name, "topicId": "A" * 22})
    with pytest.raises(ValueError, match="FenceBrokerRecord"):
        encode(load_folder("metadata")["FenceBrokerRecord"], 0, {"id": 1 << 40, "epoch": 0})
