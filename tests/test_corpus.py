"""The packed disks are unpacked without changes, and protected."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest
from tests.conftest import CORPUS, DISKS, ORACLE, ORACLE_DISKS, oracle_files, sample, seeded
from tools import corpus


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one disk, packed and unpacked again. The end of each run of pytest compares the whole one."""
    disk = shutil.copytree(DISKS / "kafka-4.3" / "clean-2", tmp_path / "disks" / "kafka-4.3" / "clean-2")
    (tmp_path / "packed").mkdir()
    monkeypatch.setattr(corpus, "PACKED", tmp_path / "packed")
    monkeypatch.setattr(corpus, "PARTS", ("disks", "logs"))
    corpus.pack("disks", tmp_path / "disks")
    corpus.pack("logs", disk)
    return corpus.unpack(tmp_path / "corpus")


def test_unpacked_is_what_is_packed(fresh: Path) -> None:
    assert corpus.changes(fresh) == []
    there, here = DISKS / "kafka-4.3/clean-2", fresh / "disks/kafka-4.3/clean-2"
    files = sorted(path.relative_to(there) for path in there.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file())
    assert all((there / path).read_bytes() == (here / path).read_bytes() for path in files)
    assert sum(path.is_file() for path in DISKS.rglob("*")) > 1000
    assert corpus.unpack(fresh) == fresh, "a second time nothing is done"


def test_preallocated_files_have_holes() -> None:
    index = DISKS / "kafka-4.3/live-1/__cluster_metadata-0" / f"{0:020}.index"
    assert index.stat().st_size == 10 << 20
    assert index.stat().st_blocks * 512 < 1 << 20


def test_each_change_is_named(fresh: Path) -> None:
    place = fresh / "disks/kafka-4.3/clean-2"
    text = (place / "meta.properties").read_bytes()
    (place / "meta.properties").write_bytes(text[:-1] + b"\r")
    (place / ".kafka_cleanshutdown").unlink()
    (place / "new").mkdir()
    assert corpus.changes(fresh) == [
        "disks/kafka-4.3/clean-2/.kafka_cleanshutdown: gone",
        "disks/kafka-4.3/clean-2/meta.properties: changed",
        "disks/kafka-4.3/clean-2/new: new",
    ]
    (fresh / corpus.DIGEST).unlink()
    assert corpus.changes(corpus.unpack(fresh)) == [], "unpacked again"


def test_every_printed_file_is_on_a_disk() -> None:
    files = list(oracle_files())
    assert len(files) > 300
    assert all(path.is_file() for _, _, path in files)
    assert {path.name for path in ORACLE.iterdir()} == set(ORACLE_DISKS)
    assert DISKS.parent == CORPUS


def test_packing_is_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PACKED", tmp_path)
    source = DISKS / "kafka-4.3" / "clean-2"
    packed = []
    for _ in range(2):
        corpus.pack("disks", source)
        packed.append(corpus.archive("disks").read_bytes())
    assert packed[0] == packed[1]


def test_a_session_that_changed_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next session unpacks it again."""
    place = tmp_path / "corpus"
    place.mkdir()
    session = SimpleNamespace(config=SimpleNamespace(), exitstatus=pytest.ExitCode.OK)
    monkeypatch.setattr(conftest, "CORPUS", place)
    monkeypatch.setattr(conftest, "changes", list)
    conftest.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == pytest.ExitCode.OK
    monkeypatch.setattr(conftest, "changes", lambda: ["disks/x: changed"])
    conftest.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED
    assert not place.exists()


def test_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are the same each time and evenly spread, with different starts for different names; KDUMP_SEED
    selects all."""
    monkeypatch.setattr(conftest, "SEED", "")
    drawn = {tuple(sample(range(12), 4, name)) for name in "abcdefgh"}
    assert drawn == {tuple(sample(range(12), 4, name)) for name in "abcdefgh"}
    assert len(drawn) > 2
    assert all(len(each) == 3 for each in drawn)
    number = seeded("x").random()
    monkeypatch.setattr(conftest, "SEED", "2026-11-22")
    assert sample(range(12), 4) == list(range(12))
    assert seeded("x").random() != number
