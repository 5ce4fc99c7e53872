"""The option --properties: a node's server.properties, for what no log directory states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from kdump.cluster.disks import Disks
from kdump.command_line.command_run import print_error
from kdump.command_line.output_options import JSON, TABLE, OutputOptions
from kdump.command_line.params import Param
from kdump.io.errors import SourceError
from kdump.io.run import Limits, Run, ignore
from kdump.kafka.server_properties import ServerProperties, read_properties
from kdump.query import option
from kdump.render.escape import path_text
from kdump.render.sink import Sink
from kdump.render.stdout import Output

if TYPE_CHECKING:
    from kdump.cluster.broker_configuration import NodeConfiguration

NOT_AS_CONFIGURED = "NOT AS CONFIGURED"
HELP = "Take the node's roles, directories and defaults, which no log directory states, from this server.properties."
FOUND = "  [that of the running broker or next to the directories, if it names them; printed first; /dev/null: none]"


class ServerPropertiesParam(Param):
    """A server.properties, which is read."""

    name = "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ServerProperties:
        if isinstance(value, ServerProperties):
            return value
        try:
            return read_properties(value)
        except SourceError as error:
            self.fail(str(error), param, ctx)


def properties_option(*, found: bool = False) -> Any:
    """Return the field of --properties. `found`: without it, the command takes what NodeProperties finds."""
    about = HELP + (FOUND if found else "")
    return option("--properties", metavar="FILE", type=ServerPropertiesParam(), help=about)


class NodeProperties:
    """The server.properties of the nodes whose disks a command examines: those of --properties, else what a node's own
    disks or its running broker lead to. `server`: None if there is none, or several are found; `is_given`: it is that
    of the option; `disks`: what is looked at."""

    def __init__(self, given: ServerProperties | None, paths: tuple[str, ...]) -> None:
        from kdump.cluster.broker_configuration import configure  # not in ls and verify

        self.is_given = given is not None
        self.disks = Disks.at(paths, Run(Limits(), ignore), nested=False, server=given)
        self._configurations, unreadable = configure(self.disks, paths, given)
        print_unused(unreadable)
        self.server = given or self.disks.server

    def show(self, options: OutputOptions, output: Output, sink: Sink[Any]) -> None:
        """Say first which file it is, if it was found, and what on the disks contradicts it."""
        show_configurations(self._configurations, options, output, sink)


def print_unused(unreadable: Iterable[str]) -> None:
    """Print why files are not used."""
    for problem in unreadable:
        print_error(f"{problem}; it is not used")


def show_configurations(
    configurations: Iterable[NodeConfiguration], options: OutputOptions, output: Output, sink: Sink[Any]
) -> None:
    """Show what is known of each node's file if it was found, or if the disks contradict it."""
    lines = []
    for config in configurations if not options.quiet else ():
        if config.is_given and not config.contradictions:
            continue
        if options.format == JSON:
            sink.add(config)
            continue
        lines += [f"{NOT_AS_CONFIGURED}: {line}" for line in config.contradictions]
        lines.append(f"configuration: {path_text(config.path)}, {config.why}")
        if config.unresolved:
            lines.append(f"  not known of it, because config providers complete it: {', '.join(config.unresolved)}")
    for line in lines:
        if options.format == TABLE:
            output.text(line, *((NOT_AS_CONFIGURED, "bad") if line.startswith(NOT_AS_CONFIGURED) else ()))
        else:
            print_error(line)
    if lines and options.format == TABLE:
        output.line("")
