"""docs/spark.md: its tables are generated from the declarations, its Python and SQL run, and its outputs are compared.
KDUMP_REWRITE=1 writes the outputs again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from tests.conftest import FIXTURES, ROOT
from tools.spark_reference import page

PAGE = ROOT / "docs" / "spark.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```$(\n\n```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)
SCAN = re.compile(r"^\$ kdump scan (clean-1 .*)$", re.MULTILINE)
SHOWN = re.compile(r"(<!-- scan -->\n).*?(<!-- end of scan -->)", re.DOTALL)
CHANGED = re.compile(r"last changed [0-9TZ:.-]+")
"""The file times differ in a copy of the repository."""


def test_the_tables_are_the_declarations() -> None:
    text = PAGE.read_text()
    assert page(text) == text


@pytest.mark.every_disk
def test_its_python_runs(spark: Any, tmp_path: Path, capsys: Any) -> None:
    names: dict[str, Any] = {"spark": spark, "scratch": str(tmp_path / "state")}
    blocks = PYTHON.findall(PAGE.read_text())
    for block in blocks:
        exec(re.sub('"(clean|registry)-', rf'"{FIXTURES}/\1-', block), names)  # the workers stay in the first directory
    assert len(blocks) >= 3
    assert names["payments"].count() == 7
    assert "baseOffset" in capsys.readouterr().out


def kdump(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.every_disk
def test_its_scan_and_its_sql(spark: Any, tmp_path: Path) -> None:
    text = PAGE.read_text()
    match = SCAN.search(text)
    assert match is not None
    out = str(tmp_path / "fleet")
    here = re.sub(r"(^| )(clean|diverged)-", rf"\1{FIXTURES}/\2-", match[1])
    said = kdump("scan", *here.replace("--out fleet", f"--out {out}").split(), status=1)
    said = CHANGED.sub("last changed 2026-11-21T08:00:12Z", said)
    said = said.replace(f"{FIXTURES}/", "").replace(out, "fleet")
    first, replicas = (
        said.partition("\n\n")[0],
        said.partition("\nreplicas that differ\n")[2].partition("\ntopics (")[0],
    )
    said = f"{first}\n…\nreplicas that differ\n{replicas}…\n"
    made = SHOWN.sub(lambda shown: f"{shown[1]}\n```text\n{said}```\n\n{shown[2]}", text)

    def answered(block: re.Match[str]) -> str:
        rows = kdump("query", out, block[1])
        assert len(rows.splitlines()) > 1, block[1]
        return f"```sql\n{block[1]}```" + (f"\n\n```text\n{rows}```" if block[2] else "")

    before, title, queries = made.partition("## Query the tables")
    queries, count = SQL.subn(answered, queries)
    made = before + title + queries
    assert count >= 13
    if os.environ.get("KDUMP_REWRITE"):
        PAGE.write_text(made)
    else:
        assert made == text
