"""`kdump.decoded`: records with their keys and values as `kdump inspect` decodes them. See docs/api.md."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.api.open_log import open as open_log
from kdump.check.options import Options
from kdump.decode.decoder_interface import NOTHING, DecodedRecord
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.io.mounted_paths import mount_paths
from kdump.log.record import Record

__all__ = ["decoded"]

UNDECODED = DecodedRecord(NOTHING, NOTHING)


def decoded(
    path: str | os.PathLike[str],
    options: Options | None = None,
    *,
    schemas: str | os.PathLike[str] | None = None,
    decoder: str | None = None,
    key_format: str | None = None,
    value_format: str | None = None,
    key_schema: str | None = None,
    value_schema: str | None = None,
    damaged: bool = False,
) -> Iterator[tuple[Record, DecodedRecord]]:
    """Yield the records of a segment or a partition directory, as kdump.open has them, each with its key and value as
    decoded: by the name of its topic, or by the schemas of the registry in the same log directory.

    `schemas`: where the schemas are, if not there, as for `kdump inspect --schemas`; `decoder`, `key_format`,
    `value_format`, `key_schema` and `value_schema` are the options of that name (`--schema` is `value_schema`). A
    record can be used only until you request the next one; what is decoded of it can be kept. `options` and `damaged`
    as in kdump.open. Raises SourceError, and DecoderError for an unknown format or schemas that cannot be read."""
    log = open_log(path, options)
    if schemas is not None:
        schemas = os.fspath(schemas)
        mount_paths([schemas])
    decoding = RecordDecoder(
        DecodeOptions(
            decoder=decoder,
            key_format=key_format,
            value_format=value_format,
            key_schema=key_schema,
            value_schema=value_schema,
            schemas=schemas,
        )
    )
    for segment in log.segments:
        (target,) = segment.files
        for record in segment.records(damaged=damaged):
            yield record, decoding.read(target, record) or UNDECODED
