"""Selects decoders by topic name or by the user's options, and decodes records with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kdump.decode.decoder_interface import (
    NOTHING,
    DecodedPart,
    DecodedRecord,
    Decoder,
    DecoderError,
    FormatError,
    PartDecoder,
    RecordContext,
    Spans,
    context_of,
    decoder_fault,
)
from kdump.decode.kafka_topics import ECOSYSTEM, KAFKA, METADATA, STREAMS, TOPICS
from kdump.format.layout import Span
from kdump.io import file_system
from kdump.io.directory_listing import parent
from kdump.log.file_kinds import KRAFT_SNAPSHOT
from kdump.log.internal_topics import SCHEMAS_TOPIC, system_topic
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch

if TYPE_CHECKING:
    from kdump.decode.confluent import Payload
    from kdump.decode.id_names import IdNames
    from kdump.decode.registry_decoder import RegistryDecoder, SchemaSource

AUTO, AVRO, PROTOBUF = "auto", "avro", "protobuf"
FRAMED = (AVRO, PROTOBUF)
NULL = DecodedPart(None)
SCHEMAS_LOG = f"{SCHEMAS_TOPIC}-0"
"""Directory of a schema registry's topic."""


@dataclass(frozen=True)
class DecodeOptions:
    """The user's options. `decoder`: one decoder for all files; `by_topic`: decode Kafka's own topics by their names;
    `key_format` and `value_format`: None if not set; `key_schema` and `value_schema`: files with the schemas of these
    formats. `schemas`: a path with the schemas of a registry, by which keys and values without a format are decoded;
    without it, those on the same disk as the records or in `paths` are used (not if `by_topic` is false)."""

    decoder: str | None = None
    by_topic: bool = True
    key_format: str | None = None
    value_format: str | None = None
    key_schema: str | None = None
    value_schema: str | None = None
    schemas: str | None = None
    paths: tuple[str, ...] = ()


class KeyValueDecoder:
    """Decodes keys and values by their own formats. A part without a format is left to the decoder `other`, if set."""

    is_keyless = False
    is_wide = False

    def __init__(self, name: str, key: PartDecoder | None, value: PartDecoder | None, other: Decoder | None) -> None:
        self.name, self.key, self.value, self.other = name, key, value, other
        self.schemas: SchemaSource | None = None
        """The schemas, if it decodes nothing but keys and values with schema IDs."""

    def read(self, target: Target, record: Record) -> DecodedRecord:
        decoded = self.other.read(target, record) if self.other else DecodedRecord(NOTHING, NOTHING)
        if self.key:
            decoded = decoded._replace(key=_part(self.key, "key", record.key, target, record))
        if self.value:
            decoded = decoded._replace(value=_part(self.value, "value", record.value, target, record))
        return decoded

    def spans(self, record: Record) -> Spans:
        keys, values = self.other.spans(record) if self.other else ([], [])
        return (
            _part_spans(self.key, record.key) if self.key else keys,
            _part_spans(self.value, record.value) if self.value else values,
        )


def schemas_of(decoder: Decoder | None) -> SchemaSource | None:
    """Return the schemas of a decoder by schema IDs, if it is one."""
    return decoder.schemas if isinstance(decoder, KeyValueDecoder) else None


def _part(decode: PartDecoder, part: str, data: bytes | None, target: Target, record: Record) -> DecodedPart:
    skips: Callable[[bytes | None, Record], bool] | None = getattr(decode, "skips", None)
    if skips is not None and skips(data, record):
        return NOTHING
    if data is None:
        return NOTHING if decode is _raw else NULL
    try:
        return decode(data, partial(context_of, part, target, record))
    except FormatError as error:
        return decoder_fault(error)


def _part_spans(decode: PartDecoder, data: bytes | None) -> list[Span]:
    """Return the fields of the framing, if the decoder has one."""
    spans: Callable[[bytes], list[Span]] | None = getattr(decode, "spans", None)
    return spans(data) if spans is not None and data is not None else []


def _raw(data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
    """Format auto: leave the bytes undecoded."""
    return NOTHING


class RecordDecoder:
    """The decoders of one run. The constructor raises DecoderError if the options are invalid."""

    def __init__(self, options: DecodeOptions) -> None:
        self.options = options
        self.key = self._part_decoder(options.key_format, options.key_schema)
        self.value = self._part_decoder(options.value_format, options.value_schema)
        self.by_registry: RegistryDecoder | None = None
        if options.schemas is not None:
            from kdump.decode.registry_decoder import RegistryDecoder, named_source

            self.by_registry = RegistryDecoder(named_source(options.schemas))
        self._registries: dict[str, RegistryDecoder | None] = {}
        self.whole: PartDecoder | None = None
        if options.decoder is not None and options.decoder not in (*KAFKA, *ECOSYSTEM):
            from kdump.decode.plugins import plugin

            self.whole = plugin(options.decoder)
            if self.whole is None:
                raise DecoderError(
                    f"there is no decoder {options.decoder!r}; use one of {_listed((*KAFKA, *ECOSYSTEM))}"
                )
        self._names: dict[str | None, IdNames] = {}
        self._target: Target | None = None
        self._decoder: Decoder | None = None
        self._record: Record | None = None
        self._reading: DecodedRecord | None = None

    def decoder(self, target: Target) -> Decoder | None:
        """Return the decoder of a file; None if nothing is to be decoded."""
        if self._target is None or target != self._target:
            self._target = target
            self._decoder = self._choose(target)
            self._record = None
        return self._decoder

    def read(self, target: Target, record: Record) -> DecodedRecord | None:
        """Decode a record; returns None if nothing is to be decoded, or for a control record."""
        if record is self._record:  # called for its row, for its lines and for its JSON object
            return self._reading
        decoder = self.decoder(target)
        if decoder is None:
            return None
        self._reading = None if record.is_control else decoder.read(target, record)
        self._record = record
        return self._reading

    def is_aborted(self, target: Target, batch: Batch) -> None:
        """Return None, for expressions: decoders do not know which transactions were aborted."""
        return None

    def _choose(self, target: Target) -> Decoder | None:
        name = self.options.decoder
        if name is None and self.options.by_topic:
            name = METADATA if target.kind is KRAFT_SNAPSHOT else TOPICS.get(target.topic or "")
        if self.whole is not None and name is not None:
            return KeyValueDecoder(name, self.key or self.whole, self.value or self.whole, None)
        decoder: Decoder | None = None
        if name is not None and name in KAFKA:
            from kdump.decode.kafka_topic_decoders import kafka_decoder

            decoder = kafka_decoder(name, self._names_near(target))
            return decoder if self._has_no_format() else KeyValueDecoder(name, self.key, self.value, decoder)
        registry = self.by_registry
        if name is None and registry is None and (self.key is None or self.value is None):
            registry = self._registry_near(target)
        key, value = self.key or registry, self.value or registry
        if key or value:
            found = KeyValueDecoder("registry" if registry else name or "", key, value, None)
            found.schemas = registry.source if registry is not None and self._has_no_format() else None
            decoder = found
        system = system_topic(target.topic) if name is None and self.options.by_topic else None
        name = name or (system.decoder if system else "")
        if not name:
            return decoder
        from kdump.decode.ecosystem_decoders import ecosystem_decoder

        chosen = ecosystem_decoder(name, key, value, decoder, is_sure=system is None or system.is_sure)
        if name in STREAMS or self._has_no_format():
            return chosen
        return KeyValueDecoder(name, self.key, self.value, chosen)

    def _has_no_format(self) -> bool:
        return self.key is None and self.value is None

    def _registry_near(self, target: Target) -> RegistryDecoder | None:
        """Return the decoder by the registry whose topic is in the log directory that contains the file, or in one of
        the paths that were given; None if there is none."""
        path = target.path
        if not self.options.by_topic or target.topic is None or path == "-" or "://" in path:
            return None
        near = parent(parent(path))
        if near not in self._registries:
            places = [near]
            for given in self.options.paths:
                places += [given, parent(given)]
            source = source_near(near, places)
            if source is not None:
                from kdump.decode.registry_decoder import RegistryDecoder
            self._registries[near] = None if source is None else RegistryDecoder(source)
        return self._registries[near]

    def _names_near(self, target: Target) -> IdNames:
        """Return the known names of IDs in the log directory that contains the file."""
        path = target.path
        near = None if path == "-" or "://" in path else parent(parent(path))
        if target.kind is KRAFT_SNAPSHOT and target.topic is None and near is not None:
            near = parent(path)  # bootstrap.checkpoint is in the log directory itself
        if near not in self._names:
            from kdump.decode.id_names import IdNames

            self._names[near] = IdNames(near)
        return self._names[near]

    def _part_decoder(self, name: str | None, schema: str | None) -> PartDecoder | None:
        if name is None:
            return None
        if name == AUTO:
            return _raw
        # Imported here, to keep startup fast: most runs use no formats.
        from kdump.decode.formats import FORMATS, format_decoder

        if name in FORMATS:
            return format_decoder(name)
        if name in FRAMED:
            from kdump.decode.confluent import ConfluentDecoder

            return ConfluentDecoder(indexed=name == PROTOBUF, payload=_payload(name, schema) if schema else None)
        from kdump.decode.plugins import plugin

        decoder = plugin(name)
        if decoder is None:
            raise DecoderError(f"there is no format {name!r}; use one of {_listed((AUTO, *FORMATS, *FRAMED))}")
        return decoder


def source_near(near: str, places: Iterable[str]) -> SchemaSource | None:
    """Return the schemas of the registry of a log directory's cluster, whose topic is in one of the places; None if
    it is in none."""
    logs = [os.path.join(place, SCHEMAS_LOG) for place in dict.fromkeys(places)]
    there = list(filter(file_system.isdir, logs))
    if not there:
        return None
    from kdump.decode.registry_decoder import SchemaSource
    from kdump.decode.registry_sources import schemas_beside

    read = partial(schemas_beside, near, list(map(os.path.dirname, there)))
    return SchemaSource(there[0], read, is_named=False)


def _payload(name: str, schema: str) -> Payload:
    if name == AVRO:
        from kdump.decode.avro import avro_payload

        return avro_payload(schema)
    from kdump.decode.protobuf import protobuf_payload

    return protobuf_payload(schema)


def _listed(names: tuple[str, ...]) -> str:
    """Return the names and those of the installed decoders, separated by commas."""
    from kdump.decode.plugins import plugin_names

    return ", ".join([*names, *plugin_names()])
