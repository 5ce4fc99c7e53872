"""Recipes for brokers with several directories (metadata.log.dir, directories that are missing or not directories), for
disks from the time of ZooKeeper, and for file names that Kafka parses as numbers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.damages import META, RECOVERY, START, ZERO, Log
from tests.questions.restart_plan.restart_damages import ID, break_value
from tests.questions.restart_plan.restart_recipe import OWN_ID, SECOND_ID, Node, edit, metadata_apart, recipe, second

MARK = ".kafka_cleanshutdown"
METADATA = "__cluster_metadata-0"
SECOND = ("orders-lz4-0", "orders-zstd-0")


def three(root: Path) -> Node:
    """Return a node with two log directories, and metadata.log.dir in a third."""
    return Node((root, second(root, *SECOND)), metadata_apart(root))


@recipe("clean-1", "two log directories, and the metadata in a third")
def metadata_dir(root: Path) -> Node:
    return three(root)


@recipe("crash-1", "two log directories, and the metadata in a third, after kill -9")
def metadata_dir_crash(root: Path) -> Node:
    return three(root)


@recipe("clean-1", "one log directory, and the metadata in another")
def metadata_dir_of_two(root: Path) -> Node:
    return Node((root,), metadata_apart(root))


@recipe("clean-1", "the metadata in a third directory, whose meta.properties is gone")
def metadata_dir_unformatted(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    (node.metadata / META).unlink()
    return node


@recipe("clean-1", "the metadata in a third directory, whose meta.properties has no number for node.id")
def metadata_dir_garbled(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    edit(node.metadata / META, lambda data: data.replace(b"node.id=1", b"node.id=x"))
    return node


@recipe("clean-1", "metadata.log.dir is a file")
def metadata_dir_file(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    shutil.rmtree(node.metadata)
    node.metadata.touch()
    return node


@recipe("clean-1", "metadata.log.dir is missing")
def metadata_dir_missing(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    shutil.rmtree(node.metadata)
    return node


@recipe("clean-1", "the metadata log is lost, metadata.log.dir is formatted again, and the controller is another node")
def metadata_lost(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    shutil.rmtree(node.metadata / METADATA)
    return node


@recipe("clean-1", "the metadata log is lost, and the node is its own controller")
def metadata_lost_combined(root: Path) -> Node:
    return metadata_lost(root)._replace(combined=True)


@recipe("clean-1", "the metadata log of the only log directory is lost")
def metadata_log_lost(root: Path) -> None:
    shutil.rmtree(root / METADATA)


@recipe("clean-1", "a metadata log in two directories")
def metadata_twice(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    shutil.copytree(node.metadata / METADATA, root / METADATA)
    return node


@recipe("clean-1", "the metadata log is in the second of two log directories, and metadata.log.dir is not set")
def metadata_second(root: Path) -> Node:
    other = second(root, *SECOND)
    (root / METADATA).rename(other / METADATA)
    return Node((root, other))


@recipe("clean-1", "one of three log directories is missing")
def one_missing(root: Path) -> Node:
    return Node((root, second(root, *SECOND), root.with_name(root.name + "-third")))


@recipe("clean-1", "one of two log directories is a file")
def one_is_a_file(root: Path) -> Node:
    other = second(root, *SECOND)
    shutil.rmtree(other)
    other.write_text("not mounted\n")
    return Node((root, other))


@recipe("crash-1", "one of two log directories is a file, after kill -9")
def one_is_a_file_crash(root: Path) -> Node:
    return one_is_a_file(root)


@recipe("clean-1", "one of two log directories is empty, like a mount point without its disk")
def one_not_mounted(root: Path) -> Node:
    other = second(root, *SECOND)
    shutil.rmtree(other)
    other.mkdir()
    return Node((root, other))


@recipe("clean-1", "the second log directory is a link to the first")
def linked_twice(root: Path) -> Node:
    other = root.with_name(root.name + "-second")
    other.symlink_to(root)
    return Node((root, other))


@recipe("clean-1", "meta.properties is a directory")
def meta_directory(root: Path) -> None:
    (root / META).unlink()
    (root / META).mkdir()


@recipe("clean-1", "two log directories with one directory.id")
def directory_id_twice(root: Path) -> None:
    edit(second(root, *SECOND) / META, lambda data: data.replace(SECOND_ID, OWN_ID))


@recipe("clean-1", "the second of two log directories has no directory.id")
def directory_id_lost(root: Path) -> None:
    edit(second(root, *SECOND) / META, lambda data: data.replace(b"directory.id=" + SECOND_ID, b""))


@recipe("clean-1", ".kafka_cleanshutdown is an empty directory")
def clean_shutdown_directory(root: Path) -> None:
    (root / MARK).unlink()
    (root / MARK).mkdir()


@recipe("clean-1", ".kafka_cleanshutdown is a directory with a file in it")
def clean_shutdown_full_directory(root: Path) -> None:
    clean_shutdown_directory(root)
    (root / MARK / "file").touch()


@recipe("clean-1", "two log directories, in one .kafka_cleanshutdown is a directory with a file in it")
def clean_shutdown_full_of_two(root: Path) -> None:
    clean_shutdown_full_directory(second(root, *SECOND))


@recipe("clean-1", ".kafka_cleanshutdown is a link to nothing")
def clean_shutdown_dangling(root: Path) -> None:
    (root / MARK).unlink()
    (root / MARK).symlink_to("nothing")


@recipe("clean-1", "a segment named 5.log, without zeros")
def segment_name_short(root: Path) -> None:
    shutil.copy(root / f"orders-none-0/{ZERO}.log", root / "orders-none-0/5.log")


@recipe("clean-1", "the only segment is named 0.log")
def segment_name_zero(root: Path) -> None:
    (root / f"orders-none-0/{ZERO}.log").rename(root / "orders-none-0/0.log")


@recipe("clean-1", "a segment named -5.log")
def segment_name_negative(root: Path) -> None:
    shutil.copy(root / f"orders-none-0/{ZERO}.log", root / "orders-none-0/-5.log")


@recipe("crash-1", "a segment named 5.log, after kill -9")
def segment_name_short_crash(root: Path) -> None:
    segment_name_short(root)


@recipe("clean-1", "an index named 5.index, without zeros")
def index_name_short(root: Path) -> None:
    shutil.copy(root / f"orders-none-0/{ZERO}.index", root / "orders-none-0/5.index")


@recipe("clean-1", "a segment whose name has a second dot")
def segment_name_dots(root: Path) -> None:
    shutil.copy(root / f"orders-none-0/{ZERO}.log", root / f"orders-none-0/{ZERO}.copy.log")


@recipe("clean-1", "a segment named above 2^63")
def segment_name_huge(root: Path) -> None:
    (root / "orders-none-0/99999999999999999999.log").touch()


@recipe("clean-1", "a .snapshot whose name is not a number")
def snapshot_name(root: Path) -> None:
    (root / "orders-none-0/producers.snapshot").touch()


@recipe("clean-1", "a .snapshot without a name")
def snapshot_no_name(root: Path) -> None:
    (root / "orders-none-0/.snapshot").touch()


@recipe("clean-1", "a .snapshot with a short name")
def snapshot_name_short(root: Path) -> None:
    shutil.copy(next((root / "payments-0").glob("*.snapshot")), root / "payments-0/7.snapshot")


@recipe("clean-1", "a .snapshot is a directory")
def snapshot_directory(root: Path) -> None:
    path = next((root / "payments-0").glob("*.snapshot"))
    path.unlink()
    path.mkdir()


@recipe("clean-1", "a .cleaned file whose name is not a number")
def cleaned_name(root: Path) -> None:
    (root / "orders-none-0/x.log.cleaned").touch()


def damaged_swap(root: Path, *others: str) -> None:
    """Create a .log.swap with a damaged batch in the middle, and undamaged .swap files with the suffixes `others`."""
    folder = root / "clicks-0"
    data = bytearray((folder / f"{ZERO}.log").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / f"{ZERO}.log.swap").write_bytes(data)
    for suffix in others:
        shutil.copy(folder / f"{ZERO}{suffix}", folder / f"{ZERO}{suffix}.swap")


@recipe("clean-1", "a damaged .log.swap without its .index.swap")
def swap_damaged_alone(root: Path) -> None:
    damaged_swap(root)


@recipe("clean-1", "a damaged .log.swap with its .index.swap")
def swap_damaged(root: Path) -> None:
    damaged_swap(root, ".index", ".timeindex")


@recipe("crash-1", "a damaged .log.swap without its .index.swap, after kill -9, and the recovery point is gone")
def swap_damaged_crash(root: Path) -> None:
    damaged_swap(root)
    (root / "recovery-point-offset-checkpoint").unlink()


@recipe("clean-1", "a .log.swap of the last segment without its .index.swap")
def swap_last_alone(root: Path) -> None:
    folder = root / "orders-none-0"
    shutil.copy(folder / f"{ZERO}.log", folder / f"{ZERO}.log.swap")


@recipe("clean-1", "only an .index.swap")
def swap_index_alone(root: Path) -> None:
    shutil.copy(root / f"orders-none-0/{ZERO}.index", root / f"orders-none-0/{ZERO}.index.swap")


def future(root: Path, cut: int = 0) -> Node:
    """Create a -future copy in a second log directory, without its last `cut` bytes."""
    other = second(root)
    copy = other / f"orders-zstd-0.{ID}-future"
    shutil.copytree(root / "orders-zstd-0", copy)
    if cut:
        edit(copy / f"{ZERO}.log", lambda data: data[:-cut])
    return Node((root, other))


@recipe("clean-1", "a complete -future copy in a second log directory, next to the live one in the first")
def future_complete(root: Path) -> Node:
    return future(root)


@recipe("crash-1", "a -future copy without its end in a second log directory, next to the live one in the first")
def future_behind(root: Path) -> Node:
    node = future(root, 400)
    (node.dirs[1] / MARK).unlink(missing_ok=True)
    return node


@recipe(
    "clean-1", "a live partition in a second log directory, a -future copy in the one that the cluster has assigned"
)
def future_assigned(root: Path) -> Node:
    other = second(root, "orders-zstd-0")
    shutil.copytree(other / "orders-zstd-0", root / f"orders-zstd-0.{ID}-future")
    return Node((root, other))


@recipe("clean-1", "a -future copy without partition.metadata, alone")
def future_no_topic_id(root: Path) -> None:
    (root / "orders-zstd-0").rename(root / f"orders-zstd-0.{ID}-future")
    (root / f"orders-zstd-0.{ID}-future/partition.metadata").unlink()


@recipe("legacy", "a log directory from a broker with ZooKeeper, started with 4.3.1")
def zookeeper_era(root: Path) -> None:
    edit(root / META, lambda data: data.replace(b"HkYyt9CIRQ62s6Jy8r-a_g", b"FN96DRb6S3GeSIQS03itlw"))


@recipe("crash-1", "the log start offset is above a segment that is truncated: the rest of that segment is deleted too")
def cut_below_start(root: Path) -> None:
    (root / RECOVERY).unlink()
    edit(root / START, lambda _: b"0\n1\nclicks 0 300000\n")
    break_value(root, "clicks-0", 11263, 3)


@recipe("clean-1", "the last batch of a log is incomplete, and the log start offset is in the segment before")
def tail_cut_start_within(root: Path) -> None:
    edit(root / START, lambda _: b"0\n1\nclicks 0 27900\n")
    edit(root / f"clicks-0/{11263:020}.log", lambda data: data[:-20])


def metas(name: str, what: str, change: Callable[[bytes], bytes]) -> None:
    """Add recipes with this change to meta.properties: of a second log directory, or of metadata.log.dir."""

    def in_second(root: Path) -> Node:
        other = second(root, *SECOND)
        edit(other / META, change)
        return Node((root, other))

    def in_metadata(root: Path) -> Node:
        node = three(root)
        assert node.metadata is not None
        edit(node.metadata / META, change)
        return node

    in_second.__name__, in_metadata.__name__ = f"meta_{name}_of_two", f"meta_{name}_metadata_dir"
    recipe("clean-1", f"two log directories; in the second, meta.properties {what}")(in_second)
    recipe("clean-1", f"the metadata in a third directory, whose meta.properties {what}")(in_metadata)


metas("emptied", "is empty", lambda data: b"")
metas("zeroed", "has only zeros", lambda data: bytes(len(data)))
metas("torn", "has lost its last third", lambda data: data[: len(data) * 2 // 3])
metas("version_lost", "has lost version=1", lambda data: data.replace(b"version=1\n", b""))
metas("no_cluster", "has version 0 and no cluster.id", lambda data: b"version=0\nbroker.id=1\n")
metas("escape", "has an invalid escape", lambda data: data + b"x=\\u00\n")


@recipe("clean-1", "meta.properties has lost version=1")
def meta_version_lost(root: Path) -> None:
    edit(root / META, lambda data: data.replace(b"version=1\n", b""))


@recipe("clean-1", "a space after node.id in meta.properties")
def meta_space_after(root: Path) -> None:
    edit(root / META, lambda data: data.replace(b"node.id=1", b"node.id=1 "))


@recipe("clean-1", "meta.properties with escapes, continued lines, other separators and digits")
def meta_as_java_reads_it(root: Path) -> None:
    edit(
        root / META,
        lambda data: data.replace(b"node.id=1", b"no\\de.\\\n  id : \\u0661").replace(b"version=1", b"version +01 "),
    )


@recipe("clean-1", "lost+found in a separate metadata.log.dir")
def metadata_dir_lost_and_found(root: Path) -> Node:
    node = three(root)
    assert node.metadata is not None
    (node.metadata / "lost+found").mkdir()
    return node


def without_topics(root: Path) -> None:
    """Truncate the metadata log before its first topic, and remove its snapshots and indexes."""
    log = Log(root, METADATA)
    known = next(number for number, data in enumerate(log.batches) if b"orders" in data or b"payments" in data)
    first = next((number for number, data in enumerate(log.batches) if b"clicks" in data), known)
    log.batches = log.batches[: min(first, known)]
    log.write()
    for path in (root / METADATA).iterdir():
        if path.suffix in (".checkpoint", ".snapshot", ".index", ".timeindex"):
            path.unlink()


@recipe("clean-1", "the metadata log ends before its first topic, and the controller is another node")
def metadata_without_topics(root: Path) -> Node:
    without_topics(root)
    return Node((root,))


@recipe("clean-1", "the metadata log ends before its first topic, and the node is its own controller")
def metadata_without_topics_combined(root: Path) -> Node:
    without_topics(root)
    edit(root / METADATA / "quorum-state", lambda data: data.replace(b'"voterId":0', b'"voterId":1'))
    edit(root / METADATA / "quorum-state", lambda data: data.replace(b'"leaderId":0', b'"leaderId":1'))
    return Node((root,), combined=True)


@recipe("clean-1", "the newest metadata snapshot has a newer epoch than the log, and ends below the log end")
def snapshot_epoch_newer(root: Path) -> None:
    name = f"{327:020}-{1:010}.checkpoint"
    (root / METADATA / name).rename(root / METADATA / name.replace(f"{1:010}", f"{2:010}"))


@recipe("clean-1", "a metadata snapshot above the log end has an older epoch than the log")
def snapshot_epoch_older(root: Path) -> None:
    source = root / METADATA / f"{327:020}-{1:010}.checkpoint"
    source.rename(root / METADATA / f"{9999:020}-{0:010}.checkpoint")


@recipe("clean-1", "quorum-state has the largest epoch, and the controller is another node")
def quorum_epoch_largest(root: Path) -> None:
    edit(root / METADATA / "quorum-state", lambda data: data.replace(b'"leaderEpoch":1', b'"leaderEpoch":2147483647'))


@recipe("clean-1", "quorum-state has the largest epoch, and the node is its own controller")
def quorum_epoch_largest_combined(root: Path) -> Node:
    quorum_epoch_largest(root)
    edit(root / METADATA / "quorum-state", lambda data: data.replace(b'"voterId":0', b'"voterId":1'))
    edit(root / METADATA / "quorum-state", lambda data: data.replace(b'"leaderId":0', b'"leaderId":1'))
    return Node((root,), combined=True)


@recipe("clean-1", "a position in the .index of the only segment is negative")
def index_position_negative(root: Path) -> None:
    edit(root / f"orders-none-0/{ZERO}.index", lambda data: data[:-4] + b"\xa0\xac\x43\xa0")


def overflowed(root: Path) -> None:
    """Give a log one segment, named 0, of two batches whose offsets are too far from its name, without indexes."""
    log = Log(root, "ledger-0")
    first = log.batches[0]
    log.batches = [offset.to_bytes(8, "big") + first[8:] for offset in ((1 << 31) + 1, (1 << 31) + 1000)]
    log.write()
    for suffix in (".index", ".timeindex"):
        (root / f"ledger-0/{ZERO}{suffix}").unlink()
    for path in (root / "ledger-0").glob("*.snapshot"):
        path.unlink()


@recipe("clean-1", "all offsets of a segment are too far from its name, and its indexes are gone")
def overflow_missing_index(root: Path) -> None:
    overflowed(root)


@recipe("crash-1", "all offsets of a segment are too far from its name, after kill -9")
def overflow_missing_index_crash(root: Path) -> None:
    overflowed(root)


def as_magic_0(root: Path, attributes: int, magic: int = 0) -> None:
    """Make the batch before an open transaction one of another magic, whose attributes are the first byte of its
    checksum."""
    log = Log(root, "payments-0")
    place = next(number for number, data in enumerate(log.batches) if data[7] == 112)
    data = bytearray(log.batches[place])
    data[16:18] = bytes((magic, attributes))
    log.batches[place] = bytes(data)
    log.write()


@recipe("clean-1", "the magic of a batch before an open transaction is 0: a compressed message without a value")
def magic_0_gzip(root: Path) -> None:
    as_magic_0(root, 1)


@recipe("clean-1", "the magic of a batch before an open transaction is 0: a message of magic 0 compressed with zstd")
def magic_0_zstd(root: Path) -> None:
    as_magic_0(root, 4)


@recipe("clean-1", "the magic of a batch before an open transaction is 0: an unknown codec")
def magic_0_codec(root: Path) -> None:
    as_magic_0(root, 5)


@recipe(
    "crash-1", ".swap files of both segments, the first damaged, after kill -9: a snapshot between them is replaced"
)
def swaps_damaged_crash(root: Path) -> None:
    folder = root / "users-0"
    first, last = sorted(folder.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / f"{first.name}.swap").write_bytes(data)
    shutil.copy(last, folder / f"{last.name}.swap")


@recipe("clean-1", "the last bytes are a batch of magic 2 that is shorter than a header")
def short_batch(root: Path) -> None:
    path = max((root / "orders-none-0").glob("*.log"))
    header = int.to_bytes(300, 8, "big") + int.to_bytes(14, 4, "big") + bytes(4) + b"\x02"
    edit(path, lambda data: data + header.ljust(26, b"\0"))


@recipe("clean-1", "the magic of a batch before an open transaction is -126: an unknown codec")
def magic_negative_codec(root: Path) -> None:
    as_magic_0(root, 6, magic=130)


@recipe("clean-1", "the magic of a batch before an open transaction is -126: a compressed message")
def magic_negative_gzip(root: Path) -> None:
    as_magic_0(root, 1, magic=130)


@recipe("clean-1", "one of two log directories is a file, and the first in log.dirs; metadata.log.dir is set")
def first_is_a_file(root: Path) -> Node:
    metadata = metadata_apart(root)
    return Node((one_is_a_file(root).dirs[1], root), metadata)
