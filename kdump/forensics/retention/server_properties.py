"""A broker's server.properties, parsed as far as its values matter here.

Source: java.util.Properties.load; ConfigDef.parseType, which trims values.
"""

from __future__ import annotations

from kdump.format.java_properties import properties
from kdump.log.errors import SourceError

MAX_BYTES = 1 << 20
"""Maximum size of such a file in bytes."""


def read_properties(path: str) -> dict[str, str]:
    """Return the file's names and values; of duplicate names, the last one wins. Raises SourceError if the file cannot
    be read, is too large, is binary, or has a bad escape, with which no broker starts."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    if len(data) > MAX_BYTES or b"\0" in data:
        raise SourceError(f"{path}: not a properties file: {'too large' if len(data) > MAX_BYTES else 'binary'}")
    found = {}
    for line in properties(data):
        if line.problem:
            raise SourceError(f"{path}: no properties file: byte {line.position}: {line.problem}")
        if line.values:
            found[line.values["name"]] = line.values["value"].strip()
    return found
