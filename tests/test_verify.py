"""`kdump verify`: sound disks are sound, and each way of damage is named, with its file and byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.check.catalogue import CATALOGUE, families
from kdump.cli import cli
from kdump.log.region import Batch
from tests.conftest import FIXTURES, SHARED, read_regions
from tests.damages import DAMAGES, DISKS, Damage, Expected, second_directory

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the disks are not there")
KAFKA = SHARED / "disks" / "kafka-4.3"
HEALTHY = [
    *(KAFKA / name for name in ("clean-0", "clean-1", "clean-2", "live-1", "crash-1", "diverged-1", "diverged-2")),
    SHARED / "disks" / "kafka-2.8-legacy",
    SHARED / "disks" / "kafka-4.3-tiered",
]
TRUE_WARNINGS = {("timestamp-in-future", "future"), ("directory-stray", "gone")}


def verify(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["verify", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: str | Path) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """The exit status, the findings and the summary."""
    code, out, _ = verify("--json", *arguments)
    objects = [json.loads(line) for line in out.splitlines()]
    assert [row["type"] for row in objects] == ["finding"] * (len(objects) - 1) + ["summary"]
    return code, objects[:-1], objects[-1]


def batch_sizes(path: Path) -> dict[int, int]:
    """Bytes of the batches in a segment, by position, as far as their lengths can be believed."""
    if not path.is_file():
        return {}
    regions = [region for region in read_regions(path) if isinstance(region, Batch)]
    return {region.position: region.size for region in regions}


def is_at(expected: Expected, disk: Path, row: dict[str, Any], sizes: dict[int, int]) -> bool:
    """Whether a finding is the expected one; in a batch it may name the very bytes that are wrong."""
    same = (expected.code, expected.severity, str(disk / expected.file)) == (row["code"], row["severity"], row["file"])
    reach = sizes.get(expected.position, 1)
    if expected.code == "snapshot-invalid":
        reach = 10  # the header
    elif expected.code.startswith("kraft-snapshot") or (
        expected.code == "checkpoint-invalid" and "count" in row["message"]
    ):
        return same  # at the end, where something is missing
    elif expected.code == "partition-metadata-invalid":
        reach = 100  # the line
    return same and expected.position <= row["position"] < expected.position + reach


def copy_disk(name: str, to: Path) -> Path:
    target = to / name
    subprocess.run(["cp", "-r", "--sparse=always", str(SHARED / "disks" / DISKS[name]), str(target)], check=True)
    subprocess.run(["chmod", "-R", "u+w", str(target)], check=True)
    return target


@pytest.mark.parametrize("disk", HEALTHY, ids=lambda disk: disk.name)
def test_a_healthy_disk(disk: Path) -> None:
    code, findings, summary = rows(disk)
    assert code == 0
    loud = {(row["code"], row["topic"]) for row in findings if row["severity"] != "info"}
    assert loud <= TRUE_WARNINGS
    assert not summary["unread"]
    assert summary["batches"] > 1


@pytest.mark.parametrize(
    "only", ["bytes", "records", "log", "files", "indexes", "snapshots", "checkpoints", "producers"]
)
def test_each_family_alone(only: str) -> None:
    code, findings, _ = rows("--only", only, KAFKA / "crash-1")
    assert code == 0
    wanted = {"bytes", *families(only)}
    assert {CATALOGUE[row["code"]].family for row in findings} <= wanted


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A pristine copy of each disk, which the damaged ones are copied from."""
    root = tmp_path_factory.mktemp("disks")
    for name in {damage.disk for damage in DAMAGES}:
        copy_disk(name, root)
    yield root
    shutil.rmtree(root)


UNSEEN = {"index-zeros-deleted"}
"""verify does not look into files that are being deleted."""


@pytest.mark.parametrize(
    "damage",
    [damage for damage in DAMAGES if damage.name not in UNSEEN],
    ids=lambda damage: f"{damage.code}-{damage.name}",
)
def test_each_damage(damage: Damage, copies: Path, tmp_path: Path) -> None:
    disk = tmp_path / damage.disk
    subprocess.run(["cp", "-r", "--sparse=always", str(copies / damage.disk), str(disk)], check=True)
    try:
        expected = damage.apply(disk)
        others = [second_directory(disk)] if damage.code == "partition-duplicate" else []
        path = disk / expected.file
        sizes = {} if path.suffix != ".log" else batch_sizes(path)
        limit = ["--max-message-bytes", "1048588"] if damage.code == "size-over-limit" else []
        code, findings, _ = rows(disk, *others, *limit)
    finally:
        shutil.rmtree(disk)
    findings = [row for row in findings if Path(row["file"]).is_relative_to(disk)]
    loud = [(row["code"], row["severity"], row["file"], row["position"], row["message"]) for row in findings]
    loud = [row for row in loud if row[0] == expected.code or row[1] == "error"]
    assert any(is_at(expected, disk, row, sizes) for row in findings), (expected, loud)
    errors = {row["code"] for row in findings if row["severity"] == "error"}
    assert errors <= {expected.code, *damage.also}
    assert code == (1 if errors else 0)


def test_every_code_is_provoked() -> None:
    assert set(CATALOGUE) - {"unreadable-bytes"} == {damage.code for damage in DAMAGES}


def test_fixtures_are_sound() -> None:
    code, findings, _ = rows(FIXTURES)
    assert code == 0, findings
