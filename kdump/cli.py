"""The command line: a group whose commands are imported only when they run."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from kdump import __version__
from kdump.__main__ import INTERRUPTED
from kdump.engine import check
from kdump.log.named import look_at
from kdump.signals import run_until_terminated
from kdump.streams import ReaderGone, end_with_reader, settle

COMMANDS = {
    "ls": "Show log directories at a glance: whose they are, what each partition holds.",
    "inspect": "Show batches, records or annotated bytes of segments.",
    "browse": "Look around in a terminal: a tree, a table and annotated bytes that follow each other.",
    "schema": "Show the fields of any layout or message: type, position, bits, meaning, versions.",
    "verify": "Tell sound from broken: segments, indexes, snapshots, checkpoints.",
    "stats": "Show partitions in numbers: batch fill, compression, keys, values, rates, top keys.",
    "diff": "Compare replicas or copies of a partition: where they part, and in which leader epochs.",
    "groups": "Show groups, their members and committed offsets, and how far they are behind.",
    "cluster": "Show brokers, topics, configs, ACLs … out of the KRaft metadata log.",
    "transactions": "Show transactions: committed, aborted, open, hanging; what holds the last stable offset back.",
    "producers": "Show producers: epochs, sequences, gaps; what a broker that starts would know of them.",
    "retention": "Say why a segment is not deleted, not compacted; what holds it, and when it goes.",
    "restart-plan": "Foretell a broker's next start: does it start, what is recovered, cut, lost, deleted.",
    "salvage": "Write what is sound of damaged partitions anew, with a ledger of what was lost.",
    "reindex": "Rebuild the indexes of segments as a broker does; say what is wrong with the old ones.",
    "carve": "Find batches in anything: an image of a disk, a core dump, a truncated backup, freed blocks.",
    "report": "Write a page for the post-mortem: verdict, maps, charts, findings with their bytes; one HTML file.",
    "scan": "Read a fleet of disks with Spark: tables, and where replicas differ.",
    "query": "Ask the tables of a scan by SQL.",
    "dump-log": "Print what kafka-dump-log prints, without its crashes and false findings.",
    "completion": "Print the script by which bash, zsh or fish complete kdump's words.",
}
"""Commands and their help in `kdump --help`. Each is the function `command` in kdump.commands.<name, - as _>."""
TO_THE_END = frozenset(("verify", "diff", "retention", "restart-plan", "salvage", "reindex", "carve", "report", "scan"))
"""Commands that continue when the reader of their output has gone (`| head`), because their exit status or the files
that they write are results, too. The other commands then end with status 0."""


class Lazy(click.Group):
    """A group that imports a command only when it is called; `kdump --help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"kdump.commands.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        look_at(word for arg in args[1:] for word in (arg, arg.partition("=")[2]))
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
            error.show()
            status = error.exit_code
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemoryError:
            text = "not enough memory: --max-decompressed-size bounds what a batch may take"
            click.echo(f"kdump: {text}", err=True)
            sys.exit(2)
        except ReaderGone:
            sys.exit(0)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        finally:
            end_with_reader(False)  # remaining buffered output is written at exit

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


VERSION_HELP = "Show the version, and whether the core is compiled, and exit."


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kdump.engine import running

        click.echo(f"kdump, version {__version__}, {running()} core")
        ctx.exit()


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help=VERSION_HELP)
def cli() -> None:
    """kdump reads Kafka's files straight from a broker's disk, with no broker running, and writes nothing there."""


def main() -> None:
    """Run the command line."""
    # Imported objects are never freed and later cycles are rare, so frequent garbage collection would only add a tenth
    # to the startup time.
    gc.set_threshold(50_000, 20, 20)
    # By default, glibc returns the memory of a freed window to the kernel, which has to clear the pages of the next
    # one. Once a larger block has been freed, glibc keeps freed blocks for reuse. (These bytes are never touched, so
    # they use no memory.)
    bytes(24 << 20)
    settle()
    run_until_terminated(_run)


def _run() -> None:
    try:
        check()
    except ImportError as error:
        click.echo(f"kdump: {error}", err=True)
        sys.exit(2)
    if os.environ.get("_KDUMP_COMPLETE"):  # Tab was pressed: see kdump/shells
        from kdump.commands.completing import answer

        answer(cli, COMMANDS, os.environ["_KDUMP_COMPLETE"], sys.argv[1:])
        return
    cli.main(prog_name="kdump")


if __name__ == "__main__":
    main()
