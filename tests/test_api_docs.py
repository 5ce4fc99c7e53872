"""The examples of docs/api.md run as they stand, in fixtures/."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_examples_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "fixtures")
    found = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False, encoding="utf-8")
    assert found.failed == 0
    assert found.attempted >= 5
