"""Constants of the compiled core are those of its Python files."""

from __future__ import annotations

from types import ModuleType

from tests.each_case import each_case
from tools.core_columns import MODULES, path, pxd


@each_case("module", MODULES, ids=lambda module: module.__name__)
def test_the_pxd_is_up_to_date(module: ModuleType) -> None:
    assert path(module).read_text(encoding="utf-8") == pxd(module), "run: python -m tools.core_columns"
