"""The options of commands that decode keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kdump.command_line.completion import one_of
from kdump.decode.record_decoder import FRAMED, DecodeOptions
from kdump.query import CommandOptions, flag, option

DECODER_HELP = (
    "Decode records as offsets, transaction-log, share-group-state, cluster-metadata, remote-log-metadata, or with an "
    "installed decoder.  [by topic name]"
)
FORMAT_HELP = (
    "Decode keys as auto (text, else hex), utf-8, json, hex, base64, int8 to int64, uint8 to uint64, float32, float64, "
    "uuid, boolean, avro or protobuf (in the framing of Confluent's clients), or with an installed decoder."
)
NO_DECODE_HELP = "Decode neither the records of Kafka's own topics nor, without --schemas, by a registry."
SCHEMAS_HELP = (
    "Decode keys and values with a schema ID by the registry whose topic _schemas is here, or by an export of it.  "
    "[the registry on the same disk]"
)
SCHEMA_HELP = (
    "Use this schema (.avsc, or a descriptor set) for values in avro or protobuf, or for keys if only they need one."
)
FILE = click.Path(exists=True, dir_okay=False)


def _decoders() -> list[str]:
    from kdump.decode.kafka_topics import ECOSYSTEM, KAFKA
    from kdump.decode.plugins import plugin_names

    return [*KAFKA, *ECOSYSTEM, *plugin_names()]


def _formats() -> list[str]:
    from kdump.decode.formats import FORMATS
    from kdump.decode.plugins import plugin_names

    return ["auto", *FORMATS, *FRAMED, *plugin_names()]


@dataclass(frozen=True)
class DecodingOptions(CommandOptions):
    """How keys and values are decoded."""

    decoder: str | None = option(
        "--decoder", metavar="NAME", shell_complete=one_of(_decoders), help=DECODER_HELP, section="Decode"
    )
    no_decode: bool = flag("--no-decode", help=NO_DECODE_HELP)
    key_format: str | None = option("--key-format", metavar="FORMAT", shell_complete=one_of(_formats), help=FORMAT_HELP)
    value_format: str | None = option(
        "--value-format",
        metavar="FORMAT",
        shell_complete=one_of(_formats),
        help="Decode values; takes the same formats as --key-format.",
    )
    schemas: str | None = option("--schemas", metavar="PATH", help=SCHEMAS_HELP)
    schema: str | None = option("--schema", metavar="FILE", type=FILE, help=SCHEMA_HELP)
    key_schema: str | None = option(
        "--key-schema", metavar="FILE", type=FILE, help="Use this schema for keys, if values need another one."
    )

    def given(self) -> list[str]:
        """Return those of the options that were given that ask for decoded records, as they are typed."""
        names = ("decoder", "key_format", "value_format", "schemas")
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]

    def refuse_contradictions(self) -> None:
        """Raise UsageError for options that exclude each other, and for schemas that are not used."""
        if self.decoder and self.no_decode:
            raise click.UsageError("choose one of --decoder and --no-decode")
        if self.schema and self.key_format not in FRAMED and self.value_format not in FRAMED:
            raise click.UsageError("--schema applies only to --key-format or --value-format avro or protobuf")
        if self.key_schema and self.key_format not in FRAMED:
            raise click.UsageError("--key-schema applies only to --key-format avro or protobuf")

    def decode(self, paths: tuple[str, ...]) -> DecodeOptions:
        """Return them for records in `paths`, in which there may be schemas."""
        value_has_schema = self.value_format in FRAMED
        return DecodeOptions(
            decoder=self.decoder,
            by_topic=not self.no_decode,
            key_format=self.key_format,
            value_format=self.value_format,
            key_schema=self.key_schema or (None if value_has_schema else self.schema),
            value_schema=self.schema if value_has_schema else None,
            schemas=self.schemas,
            paths=paths,
        )
