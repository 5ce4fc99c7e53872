"""The options --remote and --remote-layout: the remote storage of a cluster's tiered topics (KIP-405)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdump.command_line.command_run import print_error, report_unreadable
from kdump.command_line.params import Param
from kdump.io.errors import SourceError
from kdump.io.low_impact_reads import limit_requests
from kdump.io.run import QUIET_RUN, Run
from kdump.log.partition_directory import PartitionDirectory
from kdump.query import CommandOptions, group, many, option
from kdump.render.escape import path_text
from kdump.render.progress import Progress

if TYPE_CHECKING:
    from kdump.check.log_dir_context import Surroundings
    from kdump.log.remote_objects import RemoteStorage

URL_HELP = "Also read remote storage: the bucket (s3://, gs://, az://) or directory in which a plugin writes segments."
LAYOUT_HELP = (
    "With --remote: how the plugin names the objects of segments below URL, such as "
    "'{topicId}/{partition}/{segmentId}.log'.  [LocalTieredStorage's and Aiven's names]"
)


class LayoutParam(Param):
    """A pattern of the names of segments' objects."""

    name = "PATTERN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        if isinstance(value, re.Pattern):
            return value
        from kdump.log.remote_objects import layout_pattern

        try:
            return layout_pattern(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


KEY_HELP = "RSA private key (PEM) that unwraps the data keys of segments that Aiven's plugin has encrypted; repeatable."


@dataclass(frozen=True)
class KeyOption(CommandOptions):
    """The option --remote-key, of commands that read objects."""

    remote_key: tuple[str, ...] = many("--remote-key", metavar="FILE", help=KEY_HELP)

    def use(self) -> None:
        """Decrypt with these keys, in this run."""
        if self.remote_key:
            from kdump.io.aiven import use_keys  # most runs have none

            use_keys(self.remote_key)
            click.get_current_context().call_on_close(partial(use_keys, ()))


@dataclass(frozen=True)
class RemoteOptions(CommandOptions):
    """The options as they are given."""

    remote_url: str | None = option("--remote", metavar="URL", help=URL_HELP)
    remote_layout: re.Pattern[str] | None = option(
        "--remote-layout", metavar="PATTERN", type=LayoutParam(), help=LAYOUT_HELP
    )
    keys: KeyOption = group(KeyOption)

    def storage(self, *, quick: bool = False) -> RemoteStorage | None:
        """Return what is to be read; None for nothing. Raises UsageError for an option that needs --remote."""
        self.keys.use()
        limit_requests(None)
        if self.remote_url is not None:
            from kdump.log.remote_objects import RemoteStorage

            return RemoteStorage(self.remote_url, self.remote_layout, quick)
        if self.remote_layout is not None or quick:
            raise click.UsageError(f"{'--quick' if quick else '--remote-layout'} needs --remote URL")
        return None

    def mount(self, paths: Sequence[str], unreadable: Callable[[SourceError], object] = report_unreadable) -> None:
        """Read the segments in remote storage as a part of the partitions at these paths. Raises SourceError."""
        storage = self.storage()
        if storage is not None:
            from kdump.cluster.remote_mount import mount_remote  # most runs have no --remote

            with Progress("list remote storage") as progress:
                mount_remote(paths, storage, Run(unreadable=unreadable, show=progress.show))


class NotRead:
    """Notes on stderr which offsets of tiered partitions are only in remote storage, and therefore not read."""

    def __init__(self) -> None:
        self._surroundings: Surroundings | None = None

    def note(self, place: object) -> None:
        """Note that of a partition directory; nothing of anything else."""
        if not isinstance(place, PartitionDirectory) or not place.segments or not place.segments[0].offset:
            return
        from kdump.check.log_dir_context import Surroundings  # most partitions begin at offset 0, or are not tiered
        from kdump.check.options import Options

        self._surroundings = self._surroundings or Surroundings(Options.of(QUIET_RUN))
        offsets = self._surroundings.only_remote(place)
        if offsets is not None:
            which = f"offsets {offsets[0]}..{offsets[1] - 1}"
            print_error(
                f"{path_text(place.path)}: {which} are in remote storage, and not read: --remote URL reads them"
            )
