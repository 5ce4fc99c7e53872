"""Checks --metrics: the values, the text format, the number of series, and that the file is written whole or not."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from kdump.render.metrics import MAX_SERIES, METRICS, OTHERS, Metrics, bounded
from tests.command import run
from tests.conftest import FIXTURES, ROOT
from tests.craft import flip

SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (-?[0-9]+(?:\.[0-9]+)?|\+Inf)')


def series(path: Path) -> dict[str, str]:
    """Return the values in a file by metric and labels, after a check of its format."""
    values: dict[str, str] = {}
    names: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            word, name, text = line[2:].split(" ", 2)
            assert text == (METRICS[name].help if word == "HELP" else "gauge")
            names += [name] * (word == "TYPE")
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] == names[-1]
        assert f"{match[1]}{{{match[2]}}}" not in values
        values[f"{match[1]}{{{match[2]}}}"] = match[3]
    assert len(names) == len(set(names))
    return values


def test_a_flipped_bit_in_a_closed_segment_is_in_the_metrics_once_it_is_due_and_stays(tmp_path: Path) -> None:
    root, metrics = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"), tmp_path / "kdump.prom"
    arguments = (root, "--state", tmp_path / "state", "--ignore", "index-missing,timestamp-in-future")
    damaged = 'kdump_findings{command="verify",code="crc-mismatch",severity="error"}'

    def scrub(*more: str) -> tuple[int, dict[str, str]]:
        status = run("verify", *arguments, "--metrics", metrics, *more).exit_code
        values = series(metrics)
        assert values['kdump_run_exit_status{command="verify"}'] == str(status)
        return status, values

    status, values = scrub()
    assert status == 0
    assert damaged not in values
    assert values['kdump_never_checked_bytes{command="verify"}'] == "0"
    largest = max(root.glob("*/*.log"), key=lambda log: (log.parent.name[:2] != "__", log.stat().st_size))
    seen = largest.stat()
    with largest.open("r+b") as file:
        data = flip(largest.read_bytes(), 8 * 200)
        file.write(data)
    os.utime(largest, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    status, values = scrub()
    assert status == 0  # it is not due
    assert damaged not in values
    for more in (("--cadence", "1ms"), (), ()):
        status, values = scrub(*more)
        assert status == 1
        assert values[damaged] == "1"
    name = largest.parent.name.rpartition("-")[0]
    assert int(values[f'kdump_topic_bytes{{command="verify",topic="{name}"}}']) >= len(data)
    largest.write_bytes(flip(data, 8 * 200))
    status, values = scrub()
    assert status == 0  # the file has changed
    assert damaged not in values


@pytest.mark.parametrize("command", ["ls", "doctor", "space", "groups"])
def test_other_commands_write_metrics(command: str, tmp_path: Path) -> None:
    path = tmp_path / "kdump.prom"
    result = run(command, FIXTURES / "clean-1", "--metrics", path)
    values = series(path)
    assert values[f'kdump_run_exit_status{{command="{command}"}}'] == str(result.exit_code)
    expected = {"ls": "kdump_topic_bytes", "doctor": "kdump_findings", "groups": "kdump_group_lag"}
    assert any(name.startswith(expected.get(command, "kdump_run")) for name in values)
    assert [each.name for each in tmp_path.iterdir()] == ["kdump.prom"]


def test_metrics_that_cannot_be_written_are_one_line_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "directory.prom").mkdir()
    for path in ("missing/kdump.prom", "directory.prom", "kdump.txt"):
        result = run("ls", FIXTURES / "clean-1", "--metrics", tmp_path / path)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1, result.stderr
    result = run("ls", FIXTURES / "clean-1", "--metrics", FIXTURES / "clean-1" / "kdump.prom")
    assert result.exit_code == 2
    assert not (FIXTURES / "clean-1" / "kdump.prom").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["directory.prom"]


def test_series_are_bounded_and_labels_escaped(tmp_path: Path) -> None:
    for name, expected in (("kdump_topic_bytes", 5000), ("kdump_topic_last_stable_offset_lag", 5)):
        many = {(f"topic-{number}",): 10.0 if number < 500 else 5.0 for number in range(MAX_SERIES - 1 + 1000)}
        few = bounded(METRICS[name], many)
        assert len(few) == MAX_SERIES
        assert few[(OTHERS,)] == expected
        assert few[("topic-0",)] == 10
    metrics = Metrics(str(tmp_path / "kdump.prom"), "ls", ())
    metrics.add("kdump_topic_bytes", 7, 'a"\\\n\udce9')
    metrics.write(0)
    assert 'topic="a\\"\\\\\\n\\udce9"} 7\n' in (tmp_path / "kdump.prom").read_text()


def test_the_page_lists_every_metric() -> None:
    page = (ROOT / "docs" / "scrub.md").read_text()
    assert [name for name in METRICS if f"`{name}`" not in page] == []
