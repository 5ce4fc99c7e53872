"""The packages that only some features need, by the extra of pyproject.toml that brings them, and how to get them."""

from __future__ import annotations

import sys

REQUIREMENTS = {
    "remote": ("fsspec",),
    "avro": ("fastavro",),
    "protobuf": ("protobuf",),
    "browse": ("textual",),
    "report": ("vl-convert-python", "jinja2"),
    "spark": ("pyspark", "pyarrow", "fsspec"),
    "delta": ("deltalake",),
    "iceberg": ("pyiceberg[sql-sqlite]",),
}
"""Names as the package registry has them. Messages name these and not the extra, which works only where kdump itself
can be installed by name."""


def how_to_install(extra: str) -> str:
    """Return the command that installs what the extra needs; in the single file, which takes no packages, what to do
    instead."""
    if "_carry" in sys.builtin_module_names:
        return "the single file cannot be extended; install kdump with pip on a machine with Python"
    import shlex

    return f"pip install {shlex.join(REQUIREMENTS[extra])}"
