"""Kafka's unit tests as a source of log directories: docs/unit-test-trials.json. No test of Kafka runs here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from kdump.format.kafka_release import parse_release
from tests.conftest import FIXTURES
from tools import unit_test_trials
from tools.unit_test_trials import Difference, explained, loads, thin

RECORDS: dict[str, Any] = json.loads((FIXTURES.parent / unit_test_trials.RESULTS).read_text())
NEWEST = parse_release("4.3.1")


def test_every_difference_has_a_reason() -> None:
    assert set(RECORDS) >= set(unit_test_trials.TRIED)
    for version in unit_test_trials.TRIED:
        record = RECORDS[version]
        assert record["compared"]["loads"] > 1000, version
        assert record["compared"]["dumps"] > 500, version
        assert all(each["reason"] for each in record["differences"]), version
        assert [explained(Difference(**{**each, "reason": ""}))._asdict() for each in record["differences"]] == record[
            "differences"
        ]


def caught(path: Path, thrown: str | None = None, **changed: Any) -> dict[str, Any]:
    """Return what the catcher writes of a directory that LogLoader loads after a clean shutdown; `changed`: what it
    answers otherwise."""
    given = {"clean": True, "logStart": 0, "recoveryPoint": 0, "remote": False, "interval": 4096, "largest": 10 << 20}
    answer = {"logStart": 0, "recoveryPoint": 300, "logEnd": 300, "epochs": [], "snapshots": [f"{300:020}.snapshot"]}
    answer["segments"] = {"0": (path / f"{0:020}.log").stat().st_size}
    made = {"what": "load", "test": "t", "path": str(path), "thrown": thrown}
    return {**made, **given, "answer": None if thrown else {**answer, **changed}}


def test_a_wrong_answer_is_found(tmp_path: Path) -> None:
    path = shutil.copytree(FIXTURES / "clean-1" / "orders-none-0", tmp_path / "orders-none-0")
    assert list(loads([caught(path)], NEWEST)) == []
    for name, value in (("logEnd", 299), ("epochs", [[0, 0]]), ("snapshots", []), ("segments", {"0": 1})):
        assert [each.kafka for each in loads([caught(path, **{name: value})], NEWEST)] == [str({name: value})]
    assert [each.kafka for each in loads([caught(path, "KafkaException: no")], NEWEST)] == ["KafkaException: no"]


def test_equal_segments_are_dumped_once(tmp_path: Path) -> None:
    for number, name in enumerate(("a-0", "a-0", "a-0", "b-0")):
        shutil.copytree(FIXTURES / "clean-1" / "orders-none-0", tmp_path / str(number) / name)
    (tmp_path / "2" / "a-0" / f"{0:020}.index").write_bytes(b"")
    thin(tmp_path)
    left = [str(path.relative_to(tmp_path).parent) for path in sorted(tmp_path.rglob("*.log"))]
    assert left == ["0/a-0", "2/a-0", "3/b-0"]
