"""The options --from, --until and --without, with which commands that copy records leave some out."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from datetime import timezone

import click

from kdump.command_line.filter_options import typed_expression
from kdump.command_line.params import parse_moment
from kdump.decode.record_cut import CutPoint, CutRequest
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.query import CommandOptions, many, option

KEY_BYTES = "base64:"
ABORTED = "while batches are copied; leave it out"
FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True)
class CutOptions(CommandOptions):
    """Which records are left out."""

    start: str | None = option(
        "--from", metavar="OFFSET|TIME", help="Leave out what is before this offset, or before this time."
    )
    end: str | None = option(
        "--until", metavar="OFFSET|TIME", help="Leave out what follows this offset, or is not before this time."
    )
    without: tuple[str, ...] = many(
        "--without", metavar="EXPR", help="Leave out records that match, as of kdump find; repeatable."
    )
    without_keys: str | None = option(
        "--without-keys",
        metavar="FILE",
        type=FILE,
        help="Leave out records with these keys: one per line, as text or base64:….",
    )

    @property
    def request(self) -> CutRequest | None:
        """What is left out; None if nothing is. Raises click.UsageError."""
        if self == CutOptions():
            return None
        without = tuple(typed_expression("--without", typed, ABORTED) for typed in self.without)
        decodes = any(expression.needs.decoded for expression in without)
        return CutRequest(
            _point("--from", self.start),
            _point("--until", self.end),
            without,
            frozenset() if self.without_keys is None else _keys(self.without_keys),
            RecordDecoder(DecodeOptions()) if decodes else None,
        )


def _point(option_name: str, typed: str | None) -> CutPoint | None:
    """Parse an offset or a time; up to 12 digits are an offset, 13 or more epoch ms. Raises click.UsageError."""
    if typed is None:
        return None
    if re.fullmatch(r"[0-9]{1,12}", typed):
        return CutPoint(offset=int(typed))
    try:
        return CutPoint(time=parse_moment(typed, timezone.utc, end=False))
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"{option_name}: {error}, or an offset") from None


def _keys(path: str) -> frozenset[bytes]:
    """Return the keys in a file. Raises click.UsageError."""
    keys = set()
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            key = line.rstrip(b"\r\n")
            if key.startswith(KEY_BYTES.encode()):
                try:
                    key = b64decode(key[len(KEY_BYTES) :], validate=True)
                except ValueError as error:
                    raise click.UsageError(f"--without-keys: {path}, line {number}: {error}") from None
            keys.add(key)
    return frozenset(keys)
