"""The command line: a group whose commands are imported only when they run."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdump.engine import check_choice
from kdump.signals import INTERRUPTED, run_until_terminated
from kdump.streams import ReaderGone, end_with_reader, settle
from kdump.version import __version__

if TYPE_CHECKING:
    from kdump.command_line.completion import Completion

COMMANDS = {
    "doctor": "Examine disks in an incident: what to do first, with evidence, and what not to do.",
    "ls": "List log directories: whose disk each is (cluster and node IDs), and what each partition has.",
    "inspect": "Show or count records, batches or annotated bytes, selected by offset, time, key, value, header …",
    "browse": "Browse partitions, batches, records and annotated bytes in the terminal.",
    "schema": "Show the fields of a layout or message: type, position, bits, meaning, versions.",
    "stats": "Count records, and what consumers receive: by partition, hour, key, producer; sizes, compression, rates.",
    "find": "Find records by what they mean, wherever they are on the disks, and report what was not searched.",
    "export": "Write records, batches, findings and other tables as Parquet or Arrow, for DuckDB, Polars or pandas.",
    "verify": "Check segments, indexes and checkpoints for damage, at once or a part each night; also remote storage.",
    "restart-plan": "Predict startups, also of an older release (downgrade): what is lost or deleted, how long "
    "recovery takes, in which order to start.",
    "explain": "Explain a message, or the log, of a broker or client: meaning, cause, what is on the disk, what to do.",
    "diff": "Compare replicas of a partition: where they diverge, and in which leader epochs.",
    "groups": "Show groups, their members, committed offsets and lag, now or at an earlier time.",
    "cluster": "Show brokers, topics, configs, ACLs … from the KRaft metadata log, and when each changed.",
    "registry": "Show a schema registry from its topic _schemas: subjects, versions, IDs, schemas, their use.",
    "connect": "Show Kafka Connect from its topics: connectors, configs, tasks, offsets; MirrorMaker's checkpoints.",
    "transactions": "Show committed, aborted, open and hanging transactions, and what blocks the last stable offset.",
    "producers": "Show producers: epochs, sequences and gaps, and the state that a broker would load at startup.",
    "retention": "Explain when segments are deleted or compacted, by which config, and why others are not.",
    "space": "Show what may be deleted on a full disk, in which order, what it frees and what it costs.",
    "salvage": "Copy partitions, damaged, deleted, or up to a time, to new directories that a broker loads.",
    "restore": "Produce the records on a disk to topics of a running cluster, exactly once; --check compares them.",
    "reindex": "Rebuild the indexes of segments as a broker does, and report what is wrong with the old ones.",
    "rescue": "Rebuild a cluster's metadata, if controllers are lost or halt at a record, from what is left.",
    "carve": "Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks.",
    "report": "Write a post-mortem report as one HTML file: verdict, maps, charts, findings with their bytes.",
    "bundle": "Write a small copy of a broker's log directories, without the records, to examine elsewhere.",
    "scan": "Read a fleet of disks into tables with Spark, and report where replicas differ.",
    "query": "Query the tables of a scan with SQL.",
    "dump-log": "Print what kafka-dump-log prints, without its crashes and false findings.",
    "completion": "Print the shell completion script for bash, zsh or fish.",
}
"""Commands and their help in `kdump --help`. The order decides under which question a command is listed there: see
kdump.command_line.find_command."""
USUAL_THRESHOLD = gc.get_threshold()
WHILE_IMPORTING = (50_000, 20, 20)
"""Thresholds of garbage collection until a command begins: imported objects are never freed, so frequent collections
would only add a tenth to the startup time."""
TO_THE_END = frozenset(
    (
        *("doctor", "verify", "diff", "retention", "restart-plan", "salvage", "reindex", "carve", "report", "bundle"),
        *("scan", "space", "rescue", "restore", "export"),
    )
)
"""Commands that continue when the reader of their output has gone (`| head`), because their exit status or the files
that they write are results, too. The other commands then end with status 0."""
TAKE_MOUNTED = COMMANDS.keys() - ("schema", "salvage", "reindex", "carve", "query", "dump-log", "completion", "bundle")
"""Commands that take what can be mounted in place of a log directory."""


def _mount(command: str, words: list[str]) -> None:
    """Read what these words of the command line name like disks. Raises UsageError."""
    if command == "bundle" or command not in COMMANDS:
        return
    if command not in TAKE_MOUNTED:
        from kdump.io.mounted_paths import DOES_NOT_TAKE, mount_point

        if any(map(mount_point, words)):
            raise click.UsageError(f"kdump {command} {DOES_NOT_TAKE}")
        return
    from kdump.io.errors import SourceError
    from kdump.io.mounted_paths import mount_paths
    from kdump.render.escape import printable

    try:
        for mounted in mount_paths(words):
            click.echo(f"kdump: {printable(mounted.note)}", err=True)
    except SourceError as error:
        raise click.UsageError(str(error)) from error


def _unmount() -> None:
    """Forget what an earlier command in this process has mounted."""
    from kdump.io.file_system import add_files
    from kdump.io.mounted_paths import unmount_paths

    unmount_paths()
    add_files({})


ELSEWHERE = {
    "doctor": "kdump.incident.doctor.command",
    "explain": "kdump.incident.explain.command",
    "report": "kdump.incident.report.command",
    "browse": "kdump.browse.command",
    "scan": "kdump.spark.scan_command",
    "query": "kdump.spark.query_command",
    "completion": "kdump.command_line.completion",
}
"""Modules of the commands that are not in a folder of kdump.questions."""


def command_of(name: str) -> click.Command:
    """Import a command: `command` in kdump.questions.<name, - as _>.command, or in ELSEWHERE."""
    module = ELSEWHERE.get(name) or f"kdump.questions.{name.replace('-', '_')}.command"
    command: click.Command = importlib.import_module(module).command
    return command


def _command_for(path: str) -> str:
    """Return the command for a path in place of one: doctor for a directory, inspect for a file. Raises UsageError if
    there is no such path."""
    from kdump.command_line.find_command import unknown_command
    from kdump.io import file_system
    from kdump.io.mounted_paths import mount_point

    if mount_point(path) or file_system.isdir(path):
        return "doctor"
    if file_system.isfile(path):
        return "inspect"
    raise unknown_command(path, COMMANDS)


class Lazy(click.Group):
    """A group that imports a command only when it is called; `kdump --help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = command_of(name)
        if ctx.resilient_parsing:  # Tab was pressed
            from kdump.command_line.completion import with_paths

            return with_paths(command)
        if gc.get_threshold() == WHILE_IMPORTING:  # not if a test calls the command
            gc.freeze()  # what was imported stays: no collection has to look at it
            gc.set_threshold(*USUAL_THRESHOLD)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Completion]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=about) for name, about in COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from kdump.io import file_system
        from kdump.io.command_line_paths import note_existing_paths
        from kdump.io.mounted_paths import may_be_mounted
        from kdump.io.unreadable_paths import begin

        if args[0] not in COMMANDS:
            args = [_command_for(args[0]), *args]
        begin()
        if file_system.is_mounted():
            _unmount()
        words = [word for arg in args[1:] for word in (arg, arg.partition("=")[2])]
        note_existing_paths(words)
        if any(map(may_be_mounted, words)):
            _mount(args[0], words)
        name, command, rest = super().resolve_command(ctx, args)
        end_with_reader(name not in TO_THE_END)
        return name, command, rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command as click does, but exit with 130, and without a message, if it is interrupted."""
        run = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        status: Any = 0
        try:
            status = run()
        except KeyboardInterrupt:
            status = INTERRUPTED
        except click.Abort as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                status = INTERRUPTED
            else:
                click.echo("Aborted!", err=True)
                status = 1
        except click.ClickException as error:
            if isinstance(error, click.NoSuchOption):
                error = _with_path(error, sys.argv[1:] if args is None else args)
            error.show()
            status = error.exit_code
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemoryError:
            message = "not enough memory: limit how much of a batch is decompressed with --max-decompressed-size"
            click.echo(f"kdump: {message}", err=True)
            sys.exit(2)
        except ReaderGone:
            sys.exit(0)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        finally:
            end_with_reader(False)  # remaining buffered output is written at exit

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from kdump.command_line.find_command import as_help_option, help_topic

        topic = help_topic(args, COMMANDS)
        if topic:
            click.echo(topic)
            ctx.exit()
        return super().parse_args(ctx, as_help_option(args))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from kdump.command_line.find_command import sections

        width = max(map(len, COMMANDS))
        for title, rows in sections(COMMANDS):
            formatter.write(f"\n{title}\n")
            with formatter.indentation():
                formatter.write_dl([(name.ljust(width), about) for name, about in rows])


def _with_path(error: click.NoSuchOption, words: Sequence[str]) -> click.NoSuchOption:
    """Return the error, with how a path that begins with a dash has to be written, if there is one: a topic may have
    such a name."""
    from kdump.io import file_system
    from kdump.render.escape import printable

    path = next((word for word in words if word.startswith(error.option_name[:2]) and file_system.exists(word)), None)
    if path is None:
        return error
    message = f"{error.message} For the path, write ./{printable(path)}, and ./* for all"
    return click.NoSuchOption(error.option_name, message, ctx=error.ctx)


HELP_TOPICS = """
\b
kdump help questions   What people ask, and what to type.
kdump help options     The options of most commands, and the environment variables that set them.
kdump help COMMAND     Its commonest uses, and its options.

Brokers in Kubernetes or in a container: docs/kubernetes.md. Without Python or a network: docs/carry.md.
"""
VERSION_HELP = "Show the version, and whether the core is compiled, and exit."


def _version(ctx: click.Context, param: click.Parameter, requested: bool) -> None:
    if requested:
        from kdump.engine import PLAIN, running

        core = running()
        click.echo(f"kdump, version {__version__}, {core} core{', which is slower' if core == PLAIN else ''}")
        ctx.exit()


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]}, epilog=HELP_TOPICS)
@click.option(
    "-v", "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help=VERSION_HELP
)
def cli() -> None:
    """kdump reads Kafka's files directly from a broker's disk. It needs no running broker, and writes nothing there.

    In an incident, run kdump DIR first (kdump doctor), on the broker's log directory: it states whether the broker will
    start and what that loses, what is damaged, what holds consumers, what fills the disk, and what to do, in order.
    kdump help questions lists what people ask, and what to type."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*WHILE_IMPORTING)
    # By default, glibc returns the memory of a freed window to the kernel, which has to clear the pages of the next
    # one. Once a larger block has been freed, glibc keeps freed blocks for reuse. (These bytes are never touched, so
    # they use no memory.)
    bytes(24 << 20)
    settle()
    run_until_terminated(_run)


def _run() -> None:
    try:
        check_choice()
    except ImportError as error:
        click.echo(f"kdump: {error}", err=True)
        sys.exit(2)
    cli.main(prog_name="kdump")


if __name__ == "__main__":
    main()
