"""Runs kdump commands in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kdump.cli import cli


def run(command: str, *arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run a command, and check that no exception escapes, whatever the exit status."""
    result = CliRunner().invoke(cli, [command, *map(str, arguments)], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def refused(command: str, *arguments: str | Path, stdin: bytes | None = None) -> str:
    """Return what a command that ends with status 2 prints to standard error."""
    result = run(command, *arguments, stdin=stdin)
    assert result.exit_code == 2, result.output
    return result.stderr


def objects(
    command: str,
    *arguments: str | Path,
    status: int = 0,
    stdin: bytes | None = None,
    types: Mapping[str, Sequence[Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return the objects that --json prints. With `types`, each object must have the keys declared for its type, in
    that order, but for optional ones."""
    result = run(command, *arguments, "--json", stdin=stdin)
    assert result.exit_code == status, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    for each in found if types is not None else ():
        keys = [key.name for key in types[each["type"]] if not key.optional or key.name in each]
        assert list(each) == ["type", *keys]
    return found


def unmatched(stderr: str) -> list[str]:
    """Return the options whose values match nothing, such as --topic paymnts, in order."""
    return re.findall(r"^kdump: (--[a-z-]+ \S+): ", stderr, re.M)
