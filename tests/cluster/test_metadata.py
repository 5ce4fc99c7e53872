"""The newest copy of the metadata among those of several log directories."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.cluster import metadata_copies as metadata
from kdump.cluster import metadata_log
from kdump.cluster.metadata_copies import Age, MetadataCopies
from kdump.io.run import Limits
from kdump.log.partition_directory import partition
from kdump.state.metadata_image import MetadataImage, QuorumLeader, TopicImage
from kdump.state.metadata_problem import Kind, MetadataProblem
from tests.each_case import each_case


def copy(end_offset: int, epoch: int = 1, *, topics: int = 1, problems: int = 0) -> MetadataImage:
    return MetadataImage(
        topics={f"topic-{number}": TopicImage(f"topic-{number}", "") for number in range(topics)},
        leader=QuorumLeader(1, epoch),
        end_offset=end_offset,
        problems=[MetadataProblem(Kind.DAMAGED, "damaged")] * problems,
    )


COPIES = {
    "newest": copy(7, epoch=3),
    "longer": copy(9, epoch=2),
    "older": copy(5, epoch=3),
    "damaged": copy(7, epoch=3, problems=1),
    "formatted": copy(99, epoch=9, topics=0),
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths that are read, as they are read."""
    paths: list[str] = []

    def read_metadata(directory: str, *_: object, **_kinds: object) -> MetadataImage | None:
        paths.append(directory)
        return COPIES.get(directory)

    monkeypatch.setattr(metadata_log, "read_metadata", read_metadata)
    monkeypatch.setattr(metadata, "may_have_log", lambda directory: True)
    return paths


@each_case("order", [*itertools.permutations([*COPIES, "none"])][::7])
def test_the_epoch_counts_before_the_offset_and_topics_before_both(order: tuple[str, ...], read: list[str]) -> None:
    """A log that was longer under an earlier leader was cut by the next one. A node that was formatted again has a log
    without topics, whatever its length."""
    assert MetadataCopies().newest(order) == ("newest", COPIES["newest"])


def test_without_topics_anywhere(read: list[str]) -> None:
    copies = MetadataCopies()
    assert copies.newest(["none", "formatted"]) == ("formatted", COPIES["formatted"])
    assert copies.newest(["none"]) == ("", None)
    assert copies.ages() == {}


def test_each_copy_is_read_once(read: list[str]) -> None:
    """What is known of an older copy does not need it again."""
    copies = MetadataCopies()
    for _ in range(3):
        assert copies.newest(COPIES)[0] == "newest"
        assert copies.newer("older", 1) == {}
        quorum = copies.quorum("older")
        assert quorum is not None
        assert quorum.leader == COPIES["older"].leader
    assert sorted(read) == sorted(COPIES)
    assert copies.ages()["longer"] == Age(True, 2, 9, 0)


def test_equal_copies_are_taken_in_the_order_of_their_real_paths(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they are written, and in whatever order."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "z")
    (tmp_path / "z").mkdir()
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        monkeypatch.setitem(COPIES, path, copy(3))
    for order in (paths, paths[::-1]):
        assert MetadataCopies().newest(order)[0] == paths[1]


def test_the_limits_of_a_check_apply_to_the_metadata_above_a_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Limits | None] = []
    monkeypatch.setattr(metadata, "may_have_log", lambda directory: True)
    monkeypatch.setattr(metadata_log, "read_metadata", lambda directory, run, *_, **__: given.append(run.limits))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    limits = Limits(max_batch_size=1000)
    Surroundings(Options(limits=limits)).of_partition(partition(str(tmp_path / "orders-0")))
    assert given == [limits]
