"""The option --properties: a node's server.properties, for what no log directory states."""

from __future__ import annotations

from typing import Any

import click

from kdump.commands.params import Param
from kdump.commands.typed_options import option
from kdump.kafka.server_properties import ServerProperties, read_properties
from kdump.log.errors import SourceError


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


def properties_option() -> Any:
    """Return the field of --properties."""
    text = (
        "Take the node's roles, directories and defaults, which no log directory states, from this server.properties."
    )
    return option("--properties", metavar="FILE", type=ServerPropertiesParam(), help=text)
