"""The command line: a group whose commands are imported only when they run."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from kdump.engine import check_choice
from kdump.index import COMMANDS, PLACES
from kdump.signals import INTERRUPTED, run_until_terminated
from kdump.streams import ReaderGone, end_with_reader, settle
from kdump.version import __version__

if TYPE_CHECKING:
    from kdump.command_line.completion import Completion
    from kdump.command_line.help_page import HelpPage

USUAL_THRESHOLD = gc.get_threshold()
WHILE_IMPORTING = (50_000, 20, 20)
"""Thresholds of garbage collection until a command begins: imported objects are never freed, so frequent collections
would only add a tenth to the startup time."""


def _mount(command: str, words: list[str]) -> None:
    """Read what these words of the command line name like disks. Raises UsageError."""
    if command == "bundle":  # which says itself why it does not
        return
    if not command_of(command).mounts:
        from kdump.io.mounted_paths import mount_point, why_not_taken

        inside = next(filter(mount_point, words), None)
        if inside is not None:
            raise click.UsageError(f"kdump {command} {why_not_taken(inside)}")
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


def command_of(name: str) -> HelpPage:
    """Import a command."""
    command: HelpPage = importlib.import_module(PLACES[name][0]).command
    return command


def sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each question of `kdump --help` with its commands and their help."""
    for title, names in groupby(COMMANDS, lambda name: PLACES[name][1]):
        yield title, [(name, COMMANDS[name]) for name in names]


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
    raise unknown_command(path)


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
        end_with_reader(not command_of(args[0]).to_the_end)
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
        if args[:1] == ["help"]:
            from kdump.command_line.find_command import as_help_option, help_topic

            topic = help_topic(args[1:])
            if topic:
                click.echo(topic)
                ctx.exit()
            args = as_help_option(args[1:])
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, rows in sections():
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
