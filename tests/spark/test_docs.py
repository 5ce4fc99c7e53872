"""docs/spark.md: its tables are the declarations, and its Python runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES, ROOT
from tools.spark_reference import page

PAGE = ROOT / "docs" / "spark.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tables_are_the_declarations() -> None:
    text = PAGE.read_text()
    assert page(text) == text


@pytest.mark.xdist_group("spark")
def test_its_python_runs(spark: Any, tmp_path: Path, capsys: Any) -> None:
    names: dict[str, Any] = {"spark": spark, "scratch": str(tmp_path / "state")}
    blocks = PYTHON.findall(PAGE.read_text())
    for block in blocks:
        exec(block.replace('"clean-', f'"{FIXTURES}/clean-'), names)  # Spark's workers are where the session began
    assert len(blocks) >= 3
    assert names["payments"].count() == 7
    assert [row.asDict() for row in spark.table("counts").collect()] == [{"topic": "trimmed", "count": 50}]
    assert "baseOffset" in capsys.readouterr().out
