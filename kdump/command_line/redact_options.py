"""The options --redact, --redact-names and --hash-key: output that can be passed on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kdump.command_line.command_run import replace_names
from kdump.io.hash_key import read_hash_key
from kdump.query import CommandOptions, F, add_options

if TYPE_CHECKING:
    from kdump.render.redaction import Redaction


@dataclass(frozen=True)
class RedactOptions(CommandOptions):
    """What to replace. `hash_key`: path of the key's file."""

    redact: bool = False
    redact_names: bool = False
    hash_key: str | None = None

    def redaction(self) -> Redaction | None:
        """Return the replacements, under a key of this run unless one is given; None if nothing is replaced. Raises
        SourceError if the key cannot be read."""
        if not self.redact and not self.redact_names:
            if self.hash_key is not None:
                raise click.UsageError("--hash-key applies only to --redact and --redact-names")
            return None
        from kdump.render.redaction import Redaction

        key = os.urandom(32) if self.hash_key is None else read_hash_key(self.hash_key).key
        redaction = Redaction(key, has_names=self.redact_names)
        if redaction.names is not None:
            replace_names(redaction.names)
        return redaction


def redact_options(only: str = "") -> Callable[[F], F]:
    """Return the decorator that adds the options; `only`: which output they apply to, for the help text."""

    def decorate(command: F) -> F:
        return add_options(
            command,
            click.option(
                "--redact", is_flag=True, help=f"{only}Replace keys, values and header values by hashes; sizes stay."
            ),
            click.option(
                "--redact-names",
                is_flag=True,
                help="The same, and also replace the names of topics, directories, groups and transactional IDs.",
            ),
            click.option(
                "--hash-key",
                metavar="FILE",
                help="Hash under this key (16 bytes or more): the same keys and names have the same hashes in several "
                "outputs.  [a random key]",
            ),
        )

    return decorate
