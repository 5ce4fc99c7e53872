"""The .pxd files of kdump.core.column_numbers and kdump.core.cells: their constants, for the compiled core.

Run: python -m tools.core_columns"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from kdump.core import cells, column_numbers

MODULES = (cells, column_numbers)


def path(module: ModuleType) -> Path:
    """Return where the .pxd file of a module is."""
    return Path(str(module.__file__)).with_suffix(".pxd")


def pxd(module: ModuleType) -> str:
    """Return the contents of the .pxd file of a module."""
    numbers = "".join(f"    {name} = {value}\n" for name, value in vars(module).items() if isinstance(value, int))
    return f"# Made from {path(module).stem}.py by tools/core_columns.py.\ncdef enum:\n{numbers}"


if __name__ == "__main__":
    for each in MODULES:
        path(each).write_text(pxd(each), encoding="utf-8")
