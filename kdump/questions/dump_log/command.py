"""`kdump dump-log`: same options and output as kafka-dump-log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import click

from kdump.command_line.help_page import HelpPage
from kdump.command_line.low_impact_options import low_impact_options
from kdump.command_line.params import LimitOptions, SizeParam
from kdump.command_line.release_option import ReleaseParam
from kdump.command_line.typed_options import CommandOptions, add_options, added, argument, flag, many, option, takes
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.errors import SourceError
from kdump.io.run import DEFAULT_MAX_DECOMPRESSED
from kdump.questions.dump_log.batch import Contents
from kdump.questions.dump_log.decoders import DECODER_CLASSES, DECODERS, DEFAULT_CLASS, ClassDecoder
from kdump.questions.dump_log.log import DumpOptions
from kdump.questions.dump_log.out import DumpOutput
from kdump.questions.dump_log.show import Dump
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.stdout import Output
from kdump.version import __version__

EXAMPLES = """
\b
Examples:
  kdump dump-log --files 00000000000000000000.log --print-data-log
  kdump dump-log --files 00000000000000000000.index,00000000000000000000.timeindex --verify-index-only
  kdump dump-log --files __consumer_offsets-0/00000000000000000000.log --offsets-decoder

\b
Exit status, as in Kafka's tool: 0 also with findings; 1 for a usage error, a file that cannot be read, a failed sanity
check, or damage at which Kafka's tool stops (kdump continues).
"""
F = TypeVar("F", bound=Callable[..., Any])
INT = (1 << 31) - 1
OLDEST = (4, 3)
"""First release whose tool's output is known."""
JAVA_INT = click.IntRange(-INT - 1, INT)


class KafkaCommand(HelpPage):
    """Parses options like Kafka's tools: they start with one or two dashes, usage errors exit with 1, and arguments
    that are not options are ignored, with a message."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names = {name[2:] for param in self.params for name in param.opts if name.startswith("--")}
        whole = [f"-{arg}" if arg.startswith("-") and arg[1:].partition("=")[0] in names else arg for arg in args]
        try:
            if not args and not ctx.resilient_parsing:
                raise click.UsageError("Missing option '--files'.", ctx)
            return super().parse_args(ctx, whole)
        except click.UsageError as error:
            raise _as_kafka(error) from None


def _class(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None or value in DECODER_CLASSES:
        return value
    before_4 = value.replace("kafka.serializer.", "org.apache.kafka.tools.api.")
    if before_4 in DECODER_CLASSES:
        return before_4
    classes = ", ".join(DECODER_CLASSES)
    raise click.BadParameter(f"{value!r} is a Java class, which only Kafka's tool can load; use {classes}")


def _class_option(name: str, option_help: str) -> Any:
    help_text = f"Decode {option_help} with this class; CLASS may be omitted.  [{DEFAULT_CLASS}]"
    return option(name, metavar="[CLASS]", is_flag=False, flag_value=DEFAULT_CLASS, callback=_class, help=help_text)


def _release(ctx: click.Context, param: click.Parameter, value: KafkaRelease | None) -> KafkaRelease | None:
    if value is not None and value.line < OLDEST:
        raise click.BadParameter(
            f"prints as kafka-dump-log of {OLDEST[0]}.{OLDEST[1]} and later, not of {value.number}"
        )
    return value


def _reading(command: F) -> F:
    return add_options(
        command,
        low_impact_options,
        click.option("--max-decompressed-size", type=SizeParam(), default=DEFAULT_MAX_DECOMPRESSED, hidden=True),
    )


@dataclass(frozen=True)
class DumpLogOptions(CommandOptions):
    """The options of the command. `ignored`: arguments that are not options."""

    files: tuple[str, ...] = many(
        "--files", required=True, metavar="FILE,…", help="Read these files, separated by commas."
    )
    print_data_log: bool = flag("--print-data-log", help="Print keys and payloads; implied by every decoder.")
    deep_iteration: bool = flag("--deep-iteration", help="Print records; implied by --print-data-log.")
    skip_record_metadata: bool = flag("--skip-record-metadata", help="Omit the metadata before key and payload.")
    offsets_decoder: bool = flag("--offsets-decoder", help="Decode the records of __consumer_offsets.")
    transaction_log_decoder: bool = flag("--transaction-log-decoder", help="Decode the records of __transaction_state.")
    cluster_metadata_decoder: bool = flag(
        "--cluster-metadata-decoder", help="Decode the records of __cluster_metadata and its snapshots."
    )
    remote_log_metadata_decoder: bool = flag(
        "--remote-log-metadata-decoder", help="Decode the records of __remote_log_metadata."
    )
    share_group_state_decoder: bool = flag(
        "--share-group-state-decoder", help="Decode the records of __share_group_state."
    )
    value_decoder_class: str | None = _class_option("--value-decoder-class", "payloads")
    key_decoder_class: str | None = _class_option("--key-decoder-class", "keys")
    max_bytes: int = option(
        "--max-bytes",
        type=click.IntRange(0, INT),
        default=INT,
        metavar="BYTES",
        help="Read at most this much of each .log.  [all]",
    )
    max_message_size: int | None = option(
        "--max-message-size",
        type=JAVA_INT,
        metavar="BYTES",
        help="Accepted, but ignored: batches of any size are read.",
    )
    """Accepted, but ignored."""
    verify_index_only: bool = flag("--verify-index-only", help="Check indexes without printing their entries.")
    index_sanity_check: bool = flag(
        "--index-sanity-check", help="Run only Kafka's sanity check of each .index and .timeindex."
    )
    kafka_version: KafkaRelease | None = option(
        "--kafka-version",
        type=ReleaseParam(),
        callback=_release,
        help=f"Print what this release's tool prints: 4.3 or later.  [{NEWEST.number}]",
    )
    reading: LimitOptions = added(_reading)
    window: int = option("--window", type=SizeParam(), default=1 << 20, hidden=True)
    ignored: tuple[str, ...] = argument(nargs=-1, metavar="")


@click.command(cls=KafkaCommand, epilog=EXAMPLES)
@takes(DumpLogOptions)
@click.version_option(__version__, prog_name="kdump")
def command(options: DumpLogOptions) -> None:
    """Print segments, KRaft snapshots, indexes and producer snapshots byte for byte as kafka-dump-log does, so that
    scripts can switch to kdump. It has none of that tool's false findings and crashes, and does not create a file next
    to its input."""
    for name in options.ignored:
        _complain(f"kdump: {name} is ignored; separate the files of --files with commas")
    try:
        out = DumpOutput(Output(), _complain)
        with Progress("dump-log", counts_reads=True):
            Dump(_options(options), out).run([name for names in options.files for name in _split(names)])
    except KeyboardInterrupt:
        sys.exit(130)
    except SourceError as error:  # standard output is gone
        _complain(f"kdump: {error}")
        sys.exit(1)
    sys.exit(out.status)


def _complain(line: str) -> None:
    click.echo(printable(path_text(line)), err=True)


def _as_kafka(error: click.UsageError) -> click.UsageError:
    setattr(error, "exit_code", 1)  # noqa: B010  (typed as the class's own)
    return error


def _split(names: str) -> list[str]:
    """Split like Java's String.split: without empty strings at the end."""
    parts = names.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if names.strip(",") or not names else []


def _options(options: DumpLogOptions) -> DumpOptions:
    contents = _contents(options)
    return DumpOptions(
        contents=contents,
        deep=contents is not None or options.deep_iteration,
        skip_record_metadata=options.skip_record_metadata,
        max_bytes=None if options.max_bytes == INT else options.max_bytes,
        verify_index_only=options.verify_index_only,
        index_sanity_check=options.index_sanity_check,
        release=options.kafka_version or NEWEST,
        limits=options.reading.limits,
        window=options.window,
    )


def _contents(options: DumpLogOptions) -> Contents | None:
    for name, decoder in DECODERS.items():
        if getattr(options, name.replace("-", "_")):
            return partial(decoder, options.kafka_version or NEWEST)
    key_class, value_class = options.key_decoder_class, options.value_decoder_class
    if key_class is None and value_class is None and not options.print_data_log:
        return None
    return ClassDecoder(key_class or DEFAULT_CLASS, value_class or DEFAULT_CLASS)
