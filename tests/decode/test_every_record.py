"""Decodes every version of every record of Kafka's own topics, and compares with the output of Kafka's own JSON
converters: those of 4.3.1, and for messages that changed since, of the release that changed them. EveryRecord.java and
tools/adopt wrote every_record.tsv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from kdump.decode.id_names import IdNames
from kdump.decode.kafka_topic_decoders import kafka_decoder
from kdump.decode.kafka_topics import KAFKA
from kdump.format.schema import load_folder
from kdump.format.varint import Bytes
from kdump.format.versioned_messages import decode, kafka_json
from kdump.log.paths import target
from kdump.state.secrets import HIDDEN, secrets_of
from tests.decode.test_kafka_topic_decoders import check, made, tiled
from tests.each_case import each_case


class Line(NamedTuple):
    """One message, with its JSON from Kafka."""

    folder: str
    name: str
    version: int
    data: bytes
    json: Any


def read() -> list[Line]:
    found = []
    for line in (Path(__file__).parent / "every_record.tsv").read_text().splitlines():
        folder, name, version, data, said = line.split("\t")
        found.append(Line(folder, name, int(version), bytes.fromhex(data), json.loads(said)))
    return found


LINES = read()
DECODERS = {said.folder: name for name, said in KAFKA.items()}


def test_there_is_every_version_of_every_message() -> None:
    there = {(line.folder, line.name, line.version) for line in LINES}
    for folder in DECODERS:
        for name, schema in load_folder(folder).items():
            for version in range(schema.valid.lowest, schema.valid.highest + 1):
                assert (folder, name, version) in there


@each_case("folder", DECODERS)
def test_every_record(folder: str) -> None:
    decoder = kafka_decoder(DECODERS[folder], IdNames(None))
    schemas = load_folder(folder)
    keys = {schemas[line.name].apiKey: line for line in LINES if line.folder == folder and "Key" in line.name}
    for line in LINES:
        if line.folder != folder:
            continue
        schema = schemas[line.name]
        decoded = decode(schema, line.version, line.data)
        assert decoded.rest == b""
        assert kafka_json(schema, decoded) == line.json
        number = (schema.apiKey or 0).to_bytes(2, "big")
        key: Bytes | None = None
        if schema.type == "coordinator-key":
            key, value, part = number + line.data, None, "key"
            told = {"name": line.name, "type": schema.apiKey, "data": line.json}
        elif schema.type == "coordinator-value":
            key = number + keys[schema.apiKey].data
            value, part = line.version.to_bytes(2, "big") + line.data, "value"
            told = {"name": line.name, "version": line.version, "data": line.json}
        elif schema.type == "metadata":
            value, part = bytes([1, schema.apiKey or 0, line.version]) + line.data, "value"
            shown = line.json | dict.fromkeys(secrets_of(line.name, line.json), HIDDEN)
            told = {"name": line.name, "type": schema.apiKey, "version": line.version, "data": shown}
        else:
            continue
        record = made(key, value)
        reading = decoder.read(target("-"), record)
        said = getattr(reading, part)
        assert (said.value, said.problem, said.note) == (told, "", "")
        check(reading, key, value)
        tiled(decoder.spans(record), key, value)
