"""The options --remote and --remote-layout: the remote storage of a cluster's tiered topics (KIP-405)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from kdump.command_line.params import Param
from kdump.command_line.typed_options import CommandOptions, option
from kdump.log.remote_objects import RemoteStorage, layout_pattern

URL_HELP = "Also check remote storage: the bucket (s3://, gs://, az://) or directory in which a plugin writes segments."
LAYOUT_HELP = (
    "With --remote: how the plugin names the objects of segments below URL, such as "
    "'{topic}-{topicId}/{partition}/{baseOffset:020}-{segmentId}.log'.  [LocalTieredStorage's and Aiven's names]"
)


class LayoutParam(Param):
    """A pattern of the names of segments' objects."""

    name = "PATTERN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        if isinstance(value, re.Pattern):
            return value
        try:
            return layout_pattern(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


@dataclass(frozen=True)
class RemoteOptions(CommandOptions):
    """The options as they are given."""

    remote_url: str | None = option("--remote", metavar="URL", help=URL_HELP)
    remote_layout: re.Pattern[str] | None = option(
        "--remote-layout", metavar="PATTERN", type=LayoutParam(), help=LAYOUT_HELP
    )

    def storage(self, *, quick: bool = False) -> RemoteStorage | None:
        """Return what is to be checked; None for nothing. Raises UsageError for an option that needs --remote."""
        if self.remote_url is not None:
            return RemoteStorage(self.remote_url, self.remote_layout, quick)
        if self.remote_layout is not None or quick:
            raise click.UsageError(f"{'--quick' if quick else '--remote-layout'} needs --remote URL")
        return None
