"""Print what kafka-dump-log prints, without its crashes and false findings.

Standard output is identical wherever Kafka's tool completes. Where that throws, kdump reports the problem on standard
error and continues. Like Kafka's tool, it prints its findings at the end. docs/dump-log.md lists the differences.

Source: org.apache.kafka.tools.DumpLogSegments (main, dumpLog)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from kdump.command_line.help_page import HelpPage
from kdump.command_line.params import SizeParam
from kdump.command_line.reading_options import low_impact_options
from kdump.command_line.release_option import ReleaseParam
from kdump.command_line.typed_options import takes
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.numbers import parse_long
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.run import DEFAULT_MAX_DECOMPRESSED, Run
from kdump.io.source import open_source
from kdump.io.window import Window
from kdump.kafka.file_log_input_stream import batch_at
from kdump.kafka.index_judge import Fault
from kdump.log.entries import Entry
from kdump.log.file_kinds import INDEX, KRAFT_SNAPSHOT, TIME_INDEX, FileKind
from kdump.log.paths import Target, target
from kdump.query import CommandOptions, F, LimitOptions, add_options, added, argument, flag, many, option
from kdump.questions.dump_log import index as index_text
from kdump.questions.dump_log.batch import Contents
from kdump.questions.dump_log.decoders import DECODER_CLASSES, DECODERS, DEFAULT_CLASS, ClassDecoder
from kdump.questions.dump_log.index import wrong_entries
from kdump.questions.dump_log.java import file_text
from kdump.questions.dump_log.log import DumpOptions, DumpOutput, Findings, LogDump
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.stdout import Output
from kdump.version import __version__

BOOTSTRAP = "bootstrap.checkpoint"
LOOK = 4096
"""Bytes read to examine the header of one batch."""
INDEX_KINDS = {".index": INDEX, ".timeindex": TIME_INDEX}


class Dump:
    """One run of the command; afterwards, `out.status` is the exit status."""

    def __init__(self, options: DumpOptions, out: DumpOutput) -> None:
        self.options, self.out = options, out
        self._findings = Findings()

    def run(self, names: Iterable[str]) -> None:
        """Dump the files one after the other, then print what was found in them."""
        for name in names:
            path = file_text(name)
            self.out.lines([f"Dumping {path}"])
            try:
                self._file(path)
            except SourceError as error:
                self.out.fail(str(error))
            except index_text.RejectedFile as error:
                self.out.error_line(f"{path}: {error}")
            except index_text.CorruptFile as error:
                self.out.fail(f"{path}: {error}")
        self.out.output.flush()
        for line in self._findings.lines():
            self.out.complain(line)

    def _file(self, path: str) -> None:
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        file = target(path)
        if suffix in (".log", ".checkpoint"):
            self._batches(path, file)
        elif suffix in INDEX_KINDS:
            self._index(path, file, INDEX_KINDS[suffix])
        elif suffix == ".txnindex":
            self._rows(path, partial(index_text.txn_index_lines, release=self.options.release))
        elif suffix == ".snapshot":
            self._rows(path, index_text.snapshot_lines)
        else:
            self.out.output.flush()
            self.out.complain(f"Ignoring unknown file {path}")

    def _rows(self, path: str, lines_of: Callable[[Window], Iterator[str]]) -> None:
        window = self._open(path)
        try:
            self.out.each(lines_of(window))
        finally:
            window.source.close()

    def _open(self, path: str) -> Window:
        return Window(open_source(path), self.options.window)

    def _batches(self, path: str, target: Target) -> None:
        offset = _offset(path)
        name = os.path.basename(path)
        if path.endswith(".log"):
            offset = target.name_offset if offset is None else offset
            if offset is None:
                self.out.error_line(f"{path}: no offset in its name")
            else:
                self.out.lines([f"Log starting offset: {offset}"])
        elif name == BOOTSTRAP:
            self.out.lines(["KRaft bootstrap snapshot"])
        elif target.kind is KRAFT_SNAPSHOT:
            end_offset, _, epoch = name.partition(".")[0].partition("-")
            self.out.lines([f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"])
        else:
            self.out.error_line(f"{path}: no offset and epoch in its name")
        window = self._open(path)
        try:
            LogDump(self.options, self.out, path, window, offset, self._findings.gaps(os.path.abspath(path))).run()
            if window.source.error:
                self.out.fail(window.source.error)
        finally:
            window.source.close()

    def _index(self, path: str, target: Target, kind: FileKind) -> None:
        options = self.options
        base = _offset(path)
        if base is None and (base := target.name_offset) is None:
            base = 0
            self.out.error_line(f"{path}: no base offset in its name: offsets are relative")
        window = self._open(path)
        try:
            entry = INDEX_ENTRY if kind is INDEX else TIME_INDEX_ENTRY
            if kind is INDEX and not window.reaches(entry.size):
                self.out.lines([f"{path} is empty."])
                if not file_system.exists(_log_of(path)):  # Kafka's tool opens it first
                    self.out.fail(f"{_log_of(path)}: No such file or directory")
                return
            if options.index_sanity_check:
                index_text.check_sanity(window, entry, base)
                self.out.lines([f"{path} passed sanity check."])
                return
            if not options.verify_index_only:
                lines_of = index_text.index_lines if kind is INDEX else index_text.time_index_lines
                self.out.each(lines_of(window, base))
            self._compare(path, target._replace(name_offset=base), kind, window)
        finally:
            window.source.close()

    def _compare(self, path: str, index: Target, kind: FileKind, window: Window) -> None:
        """Compare an index with its segment, and collect its wrong entries."""
        log = target(_log_of(path))._replace(name_offset=index.name_offset)
        try:
            log_window = self._open(log.path)
        except SourceError as error:
            self.out.fail(f"{error}: the entries of {path} cannot be checked")
            return
        look = Window(log_window.source, LOOK)
        try:
            with Progress(log.path) as progress:
                run = Run(self.options.limits, at=progress.at)
                for wrong in wrong_entries(index, kind, window, log, log_window, run):
                    self._wrong(path, kind, wrong, look)
            if kind is TIME_INDEX and index_text.log_throws(log.path, index.name_offset or 0, window, log_window):
                self.out.status = 1
        finally:
            log_window.source.close()

    def _wrong(self, path: str, kind: FileKind, wrong: Fault, log: Window) -> None:
        if kind is TIME_INDEX and wrong.expected is not None and wrong.expected == wrong.actual:
            return  # the timestamp is that of its batch, which is all that Kafka's tool compares
        offset = None
        if kind is INDEX and isinstance(wrong.entry, Entry):
            batch = batch_at(log, wrong.entry.values["position"])
            if batch is None:  # Kafka's tool fails at such an entry
                self.out.status = 1
            else:
                offset = batch.lastOffset
        self._findings.wrong(os.path.abspath(path), kind, wrong, offset)


def _log_of(path: str) -> str:
    """Return the path of the segment of an index."""
    return os.path.join(os.path.dirname(path), os.path.basename(path).partition(".")[0] + ".log")


def _offset(path: str) -> int | None:
    """Return the offset in a file's name: the part before the first period. None if that is not a number."""
    stem = os.path.basename(path).partition(".")[0]
    return parse_long(stem)


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


@click.command(cls=KafkaCommand, epilog=EXAMPLES, listed=("scripts", 1), mounts=False)
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
