"""Which log directories are one node's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.disks import Disks
from tests.each_case import each_case
from tests.questions.restart_plan.restart_recipe import edit

META = "version=1\ncluster.id={}\nnode.id={}\n"


def directory(at: Path, *partitions: str, node: int | None = 1, own: str = "", cluster: str = "c") -> Path:
    """Create a log directory with empty partitions."""
    for name in partitions:
        (at / name).mkdir(parents=True)
        (at / name / f"{0:020}.log").touch()
    at.mkdir(exist_ok=True)
    (at / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    if node is not None:
        (at / "meta.properties").write_text(META.format(cluster, node) + (f"directory.id={own}\n" if own else ""))
    return at


def nodes(*paths: Path) -> list[tuple[int | None, bool, str]]:
    """Return each node's ID, whether it is a copy, and the names of its log directories; the same in any order."""
    found, turned = ([*Disks.at(map(str, given)).nodes] for given in (paths, paths[::-1]))
    names = [
        [(node.node_id, node.is_copy, " ".join(Path(each.path).name for each in node.directories)) for node in each]
        for each in (found, turned)
    ]
    assert names[0] == names[1]
    return names[0]


def test_of_one_node(tmp_path: Path) -> None:
    one = directory(tmp_path / "a", "t-0", own="A")
    two = directory(tmp_path / "b", "t-1", own="B")
    other = directory(tmp_path / "c", "t-0", node=2, own="C")
    foreign = directory(tmp_path / "d", "t-2", own="D", cluster="e")
    assert nodes(one, two, other) == [(1, False, "a b"), (2, False, "c")]
    assert nodes(two, foreign) == [(1, False, "b"), (1, False, "d")]


def test_a_copy_is_no_other_log_directory(tmp_path: Path) -> None:
    """It has the same ID, and a partition of the other one: of the two, the first by its real path counts. Without one,
    it is another directory, into which somebody copied the file."""
    one, two = (directory(tmp_path / name, "t-0", f"t-{name}-0", own="A") for name in "ab")
    other = directory(tmp_path / "c", "u-0", own="C")
    assert nodes(one, two, other) == [(1, False, "a c"), (1, True, "b")]
    (tmp_path / "z").symlink_to(one)
    assert nodes(tmp_path / "z", two) == [(1, False, "z"), (1, True, "b")]
    assert nodes(one, directory(tmp_path / "e", "t-1", own="A")) == [(1, False, "a e")]


@each_case(
    "first, second, together",
    [
        (["t-0"], ["t-1"], True),
        (["t-0"], ["t-0", "u-0"], False),
        # What is left behind when metadata.log.dir is changed.
        (["t-0", "__cluster_metadata-0"], ["u-0", "__cluster_metadata-0"], True),
        (["__cluster_metadata-0"], ["u-0", "__cluster_metadata-0"], False),
    ],
)
def test_before_directories_had_ids(
    first: list[str], second: list[str], together: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("disk")
    found = nodes(directory(root / "a", *first), directory(root / "b", *second))
    assert found == ([(1, False, "a b")] if together else [(1, False, "a"), (1, True, "b")])


def test_without_meta_properties(tmp_path: Path) -> None:
    """A log directory that lost it is that of the only node, unless a partition would be there twice. Partitions that
    somebody copied are not."""
    one = directory(tmp_path / "a", "t-0", own="A")
    lost = directory(tmp_path / "b", "t-1", node=None)
    twice = directory(tmp_path / "c", "t-0", node=None)
    copied = directory(tmp_path / "d", "t-2", node=None)
    (copied / "recovery-point-offset-checkpoint").unlink()
    assert nodes(one, lost) == [(1, False, "a b")]
    assert nodes(one, twice) == [(1, False, "a"), (None, False, "c")]
    assert nodes(one, lost, copied) == [(1, False, "a b"), (None, False, "d")]


def test_a_directory_that_was_offline_when_the_others_got_ids(tmp_path: Path) -> None:
    """Kafka 3.7 writes a directory.id into those that it can use: the one without is a copy only if it has a partition
    of another one, too."""
    one = directory(tmp_path / "a", "t-0", own="A")
    offline, backup = directory(tmp_path / "b", "t-1"), directory(tmp_path / "c", "t-0")
    assert nodes(one, offline) == [(1, False, "a b")]
    assert nodes(one, backup) == [(1, False, "a"), (1, True, "c")]


def test_parts_of_one_directory_are_copies(tmp_path: Path) -> None:
    """Copies of some of its partitions each, by the checkpoints in both; otherwise, two directories have its ID."""
    one, other = directory(tmp_path / "a", "t-0", own="A"), directory(tmp_path / "b", "t-1", own="A")
    assert nodes(one, other) == [(1, False, "a b")]
    for path in (one, other):
        assert nodes(one, other) == [(1, False, "a b")]
        (path / "recovery-point-offset-checkpoint").write_text("0\n2\nt 0 0\nt 1 0\n")
    assert nodes(one, other) == [(1, False, "a"), (1, True, "b")]


def test_a_partition_of_a_copy_alone_is_counted(tmp_path: Path) -> None:
    one, backup = directory(tmp_path / "a", "t-0", own="A"), directory(tmp_path / "b", "t-0", "t-1", own="A")
    disks = Disks.at([str(one), str(backup)])
    counted = [log.path for place in disks.directories for log in place.partitions if not disks.counts_twice(log.path)]
    assert sorted(counted) == [str(one / "t-0"), str(backup / "t-1")]


def test_a_node_before_kraft(tmp_path: Path) -> None:
    one, two = directory(tmp_path / "a", "t-0"), directory(tmp_path / "b", "t-1")
    for path in (one, two):
        edit(path / "meta.properties", lambda data: data.replace(b"node.id", b"broker.id"))
    assert nodes(one, two) == [(1, False, "a b")]


def test_all_log_directories_share_one_look_at_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the looks at n log directories of a cluster grow with the square of n."""
    paths = [str(directory(tmp_path / str(number), "t-0", node=number, own=f"D{number}")) for number in range(9)]
    disks = Disks.at(paths)
    monkeypatch.setattr("kdump.cluster.disks.LOOK_AGAIN", 60.0)
    one = disks.watched_metadata(paths[0])[0]
    assert all(disks.watched_metadata(path)[0] is one for path in paths)
    monkeypatch.setattr("kdump.cluster.disks.LOOK_AGAIN", -1.0)
    assert disks.watched_metadata(paths[0])[0] is not disks.watched_metadata(paths[0])[0]


def test_whose_cluster_a_directory_without_meta_properties_is(tmp_path: Path) -> None:
    """That of its topics, by their IDs, and nothing else joins two clusters; in any order of paths."""

    def disk(name: str, *topics: str, **stated: Any) -> str:
        path = directory(tmp_path / name, *(f"{each[0]}-{name}" for each in topics), **stated)
        for each in topics:
            (path / f"{each[0]}-{name}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {each[1] * 21}A\n")
        return str(path)

    one, other = disk("1", "tK", "uK", cluster="A"), disk("2", "tL", node=2, cluster="B")
    of_one, of_both, of_none = disk("3", "tK", node=None), disk("4", "tK", "uM", node=None), disk("5", "vK", node=None)
    foreign = disk("6", "tM", node=None)

    def clusters(*paths: str) -> dict[str, str]:
        found = [Disks.at(given).clusters for given in (paths, paths[::-1])]
        named = [
            {Path(cluster).name: "".join(Path(each.path).name for each in mine) for cluster, mine in each.items()}
            for each in found
        ]
        assert named[0] == named[1]
        return named[0]

    assert clusters(one, other, of_one, of_both) == {"A": "134", "B": "2"}
    assert clusters(one, of_none) == {"A": "15"}
    assert clusters(one, other, of_none) == {"A": "1", "B": "2", "5": "5"}
    assert clusters(one, foreign) == {"A": "1", "6": "6"}
    assert clusters(of_one, foreign, of_both) == {"3": "34", "6": "6"}
    assert nodes(Path(other), Path(of_one)) == [(2, False, "2"), (None, False, "3")]
    disks = Disks.at([one, other, of_one])
    assert disks.of_cluster(of_one) == [one, of_one] == disks.of_cluster(one)
