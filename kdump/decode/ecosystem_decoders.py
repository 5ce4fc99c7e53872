"""Decoders of the topics of Kafka Connect and MirrorMaker, and of Kafka Streams (kdump.decode.streams_decoder).

Source: KafkaConfigBackingStore, KafkaStatusBackingStore, OffsetUtils (Connect); OffsetSync, Checkpoint, Heartbeat
(org.apache.kafka.connect.mirror).
"""

from __future__ import annotations

from typing import Any

from kdump.decode.decoder_interface import NOTHING, DecodedPart, DecodedRecord, Decoder, PartDecoder, Spans, problem_of
from kdump.decode.jsonable import to_json
from kdump.decode.kafka_topics import MIRROR, OFFSETS, STREAMS
from kdump.decode.streams_decoder import StreamsDecoder
from kdump.format.count_text import count_text
from kdump.format.layout import Span
from kdump.format.mirror_record import MIRROR_MESSAGES
from kdump.format.versioned_messages import kafka_json, try_decode
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.state.connect_records import connect_value, offset_key, text_key, without_secrets

NULL = DecodedPart(None)


def ecosystem_decoder(
    name: str, key: PartDecoder | None, value: PartDecoder | None, other: Decoder | None, *, is_sure: bool
) -> Decoder:
    """Return a decoder by its name. `key` and `value`: formats of what is inside the structures of Streams. `is_sure`:
    records that do not decode have a problem; otherwise they are probably those of another topic, and left to
    `other`."""
    if name in STREAMS:
        return StreamsDecoder(name, key, value)
    decoder: Decoder = MirrorDecoder(name) if name in MIRROR else ConnectDecoder(name)
    return decoder if is_sure else LooseDecoder(decoder, other)


class LooseDecoder:
    """Decodes records with a decoder as far as they fit it, others with `other`, or not at all."""

    is_keyless = False

    def __init__(self, decoder: Decoder, other: Decoder | None) -> None:
        self.decoder = decoder
        self.other = other
        self.name = decoder.name
        self.is_wide = decoder.is_wide

    def read(self, target: Target, record: Record) -> DecodedRecord:
        decoded = self.decoder.read(target, record)
        if not (decoded.key.problem or decoded.value.problem or decoded.key.note or decoded.value.note):
            return decoded
        return self.other.read(target, record) if self.other else DecodedRecord(NOTHING, NOTHING)

    def spans(self, record: Record) -> Spans:
        keys, values = self.decoder.spans(record)
        sizes = [sum(span.size for span in spans) for spans in (keys, values)]
        fits = sizes == [max(0, record.keySize), max(0, record.valueSize)]
        return (keys, values) if fits or self.other is None else self.other.spans(record)


class ConnectDecoder:
    """Decodes configs, offsets or statuses of Connect. Secrets are hidden."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, target: Target, record: Record) -> DecodedRecord:
        key, text = self._key(record.key)
        value = NULL
        if record.value is not None:
            try:
                value = _hidden(connect_value(record.value), text)
            except ValueError as error:
                value = DecodedPart(problem=str(error))
        return DecodedRecord(key, value)

    def _key(self, key: bytes | None) -> tuple[DecodedPart, str]:
        try:
            if self.name == OFFSETS:
                return _hidden(list(offset_key(key))), ""
            text_key(key, self.name)
            stated = (key or b"").decode()
            return DecodedPart(to_json(stated)), stated
        except ValueError as error:
            return DecodedPart(problem=str(error)), ""

    def spans(self, record: Record) -> Spans:
        return [], []


def _hidden(value: Any, key: str = "") -> DecodedPart:
    """Return a value of Connect without secrets. `key`: that of its record."""
    shown = without_secrets(value, key)
    return DecodedPart(to_json(shown), hides=shown != value)


class MirrorDecoder:
    """Decodes offset syncs, checkpoints or heartbeats of MirrorMaker."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.message = MIRROR[name]

    def read(self, target: Target, record: Record) -> DecodedRecord:
        return DecodedRecord(self._part("Key", record.key), self._part("Value", record.value))

    def _part(self, part: str, data: bytes | None, spans: list[Span] | None = None) -> DecodedPart:
        if data is None:
            return NULL
        schema = MIRROR_MESSAGES[self.message + part]
        decoded, error = try_decode(schema, 0, data, spans=spans)
        problem, stop = problem_of(error) if error else ("", None)
        if error and not decoded.value:
            return DecodedPart(problem=problem, stop=stop)
        notes = [f"version {decoded.value['version']}, decoded as 0"] if decoded.value.get("version") else []
        notes += [f"{count_text(len(decoded.rest), 'byte')} left over"] if decoded.rest and not error else []
        value: dict[str, Any] = {"name": schema.name, "data": kafka_json(schema, decoded)}
        title = self.message if part == "Key" else ""
        return DecodedPart(value, title, schema.name, problem, "; ".join(notes), stop)

    def spans(self, record: Record) -> Spans:
        keys: list[Span] = []
        values: list[Span] = []
        self._part("Key", record.key, keys)
        self._part("Value", record.value, values)
        return keys, values
