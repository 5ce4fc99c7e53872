"""Packages that only some features need, by the extra in pyproject.toml that installs them, and how to install them."""

from __future__ import annotations

import sys

REQUIREMENTS = {
    "remote": ("fsspec",),
    "restore": ("confluent-kafka",),
    "avro": ("fastavro",),
    "protobuf": ("protobuf", "grpcio-tools"),
    "browse": ("textual",),
    "report": ("jinja2",),
    "sign": ("cryptography",),
    "charts": ("vl-convert-python",),
    "arrow": ("pyarrow",),
    "spark": ("pyspark", "pyarrow", "fsspec", "deltalake", "duckdb", "sqlglot"),
}
"""Names in the package registry. Messages list these instead of the extra, because the extra works only if kdump itself
can be installed by name."""


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra or, for the single file, which cannot be extended, what
    to do instead."""
    if "_carry" in sys.builtin_module_names:
        return "the single file cannot be extended; install kdump with pip on a machine with Python"
    import shlex

    return f"pip install {shlex.join(REQUIREMENTS[extra])}"
