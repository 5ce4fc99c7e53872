"""The packed disks: unpacked as they were packed, and guarded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import CORPUS, DISKS, ORACLE, ORACLE_DISKS, oracle_files
from tools import corpus


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.unpack(tmp_path_factory.mktemp("corpus") / "corpus")


def test_unpacked_is_what_is_packed(fresh: Path) -> None:
    assert corpus.changes(fresh) == []
    assert sum(path.is_file() for path in (fresh / "disks").rglob("*")) > 1000
    assert corpus.unpack(fresh) == fresh, "a second time nothing is done"


def test_preallocated_files_have_holes(fresh: Path) -> None:
    index = fresh / "disks/kafka-4.3/live-1/__cluster_metadata-0" / f"{0:020}.index"
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
