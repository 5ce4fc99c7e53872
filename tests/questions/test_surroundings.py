"""A log directory around many partitions is read once in a run, and not once for each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kdump.check.log_dir_context import LogDirContext
from kdump.questions.find.run import find
from kdump.questions.stats.run import stats
from tests.conftest import FIXTURES

RUNS: dict[str, tuple[Callable[[str], Iterable[object]], int]] = {
    "find": (lambda path: find(path, "isAborted"), 2),  # once for partitions, and once for what consumers receive
    "stats": (stats, 1),
}


@pytest.mark.parametrize("name", RUNS)
def test_each_log_directory_is_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    init = LogDirContext.__init__

    def counted(self: LogDirContext, directory: Any, *others: Any) -> None:
        read.append(directory.path)
        init(self, directory, *others)

    monkeypatch.setattr(LogDirContext, "__init__", counted)
    run, times = RUNS[name]
    assert sum(1 for _ in run(str(FIXTURES / "clean-1"))) > 2
    assert read == [str(FIXTURES / "clean-1")] * times
