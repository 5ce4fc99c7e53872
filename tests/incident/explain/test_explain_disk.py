"""What `kdump explain --disk` finds on the damaged disks of real brokers, for each line that they logged above INFO."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kdump.cluster.disks import Disks
from kdump.incident.explain.answer import Explanation
from kdump.incident.explain.disk_evidence import DiskEvidence
from kdump.incident.explain.disk_places import DiskPlaces
from kdump.incident.explain.log_entries import SEVERE
from kdump.incident.explain.run import explain_log, explain_text
from tests.conftest import DISKS, few
from tests.damages import DAMAGES, DISK_PATHS, DOUBTS, Expected, aged, copy_disk, leave_out_alike, second_directory
from tests.incident.explain.explaining import LOGS
from tools.broker_logs import LOGS as RECIPES

QUICK = (
    *("record-size-0", "length-negative", "recovery", "checkpoint-of-cleaner", "checkpoint-of-epochs"),
    *("small-files", "meta-node-id", "partition-metadata", "data-outside-transaction", "kraft-snapshot-cut"),
)
"""Ten of the logs; `make test-all` tries the others, too."""
LATER = [name for name in RECIPES if name not in (*QUICK, "cleaner")]
KNOWN = {damage.name: damage for damage in [*DAMAGES, *DOUBTS]}


class Case(NamedTuple):
    """Log directories of a broker, its log, and what the recipes changed."""

    paths: tuple[str, ...]
    log: Path
    expected: list[Expected]


def damaged(name: str, tmp_path: Path) -> Case:
    """Return the disk that the broker of a log started with."""
    damages = [KNOWN[recipe] for recipe in RECIPES[name]]
    nodes = {damage.disk for damage in damages}
    node = next((each for each in ("clean-0", "crash-1") if each in nodes), "clean-1")
    root = copy_disk(DISKS / DISK_PATHS[node], tmp_path / f"disk-{node[-1]}")
    expected = [damage.apply(root) for damage in damages]
    leave_out_alike(root, DISKS / DISK_PATHS[node])
    aged(root)
    log = "kraft-snapshot-bit-of-controller" if node == "clean-0" else name
    paths = [root, *(path for path in [second_directory(root)] if path.exists())]
    return Case(tuple(map(str, paths)), LOGS / "brokers" / f"{log}.log", expected)


@pytest.mark.parametrize(
    "name", [*few(QUICK, 3), *(pytest.param(name, marks=pytest.mark.every_disk) for name in LATER)]
)
def test_every_severe_line_has_evidence(name: str, tmp_path: Path) -> None:
    case = damaged(name, tmp_path)
    found = [
        each
        for each in explain_log(str(case.log), DiskEvidence(case.paths))
        if isinstance(each, Explanation) and each.level in SEVERE
    ]
    assert all(each.message for each in found)
    assert all(each.evidence for each in found), [each.message for each in found if not each.evidence]
    paths = {evidence.path for each in found for evidence in each.evidence}
    texts = [command for each in found for command in each.commands]
    assert not any("LOGDIR" in text for text in texts), "the disk is known"
    if name in SILENT:
        return
    for expected in case.expected:
        if expected.file.split("/")[0] not in NOT_LOGGED:
            whole = f"{case.paths[0]}/{expected.file}"
            assert whole in paths or any(path.startswith(whole.rpartition("/")[0] + "/") for path in paths), whole


SILENT = ("snapshot-sequence", "name-above-first-offset", "quorum-lost", "producer-epoch")
"""Logs in which the broker says nothing of the damage itself."""
NOT_LOGGED = ("aiokafka-gzip-0", "orders-lz4-0", "kafkapython-zstd-0", "franz-lz4-0")
"""Partitions of whose damage the broker of a log with others says nothing."""


def evidence_for(text: str, *paths: str) -> dict[str, list[str]]:
    found, _ = explain_text(text, DiskEvidence(paths))
    assert isinstance(found, Explanation)
    kinds: dict[str, list[str]] = {}
    for each in found.evidence:
        kinds.setdefault(each.kind, []).append(each.text)
    return kinds


CLEAN = str(DISKS / "kafka-4.3" / "clean-1")


def test_a_transaction() -> None:
    text = "Aborting incomplete transaction of transactionalId=tx-hang"
    found = evidence_for(f"[Producer transactionalId=tx-hang] {text}: ProducerFencedException", CLEAN)
    assert "producer 11 epoch 0, Ongoing, partitions payments-0" in found["transaction"][0]


def test_a_group() -> None:
    line = "[Consumer clientId=c, groupId=NAME] Offset commit failed: CommitFailedException"
    assert "not in 1 partition of __consumer_offsets" in evidence_for(line, CLEAN)["group"][0]
    known = evidence_for(line.replace("NAME", "group-consumer"), CLEAN)["group"][0]
    assert known.startswith("group group-consumer: consumer, Empty, 0 members, 2 committed offsets")


def test_a_producer_that_is_gone() -> None:
    text = "Out of order sequence number for producer 4711 at offset 10 in partition orders-none-0: 7 (incoming seq. "
    found = evidence_for(text + "number), 3 (current end sequence number)", CLEAN)
    assert "no batch in this log" in found["producer"][0]
    assert "offset 10: a batch with offsets 0..59" in found["batch"][0]


def test_a_partition() -> None:
    line = "Error processing fetch with max size 1 from consumer on partition orders-none-0: x"
    found = evidence_for(line, CLEAN)
    assert "log end offset 300" in found["partition"][0]


def test_an_offset_that_was_deleted() -> None:
    """The log start offset is the one in the checkpoint; the records below it are still in the segment."""
    found = evidence_for("Fetch position FetchPosition{offset=5, x} is out of range for partition trimmed-0", CLEAN)
    assert "log start offset 17" in found["partition"][0]
    assert found["batch"][0].startswith("offset 5: below the log start offset 17; on the disk a batch with offsets")


def test_an_offset_that_is_in_remote_storage() -> None:
    """By the log start offset; the broker's message names what to check."""
    tiered = str(DISKS / "kafka-4.3-tiered" / "disk")
    begins = "Received request for offset 120000 for leader epoch 0 and partition tiered-0"
    line = f"org.apache.kafka.common.errors.OffsetOutOfRangeException: {begins} which does not exist in remote tier."
    found, _ = explain_text(line, DiskEvidence((tiered,)))
    assert isinstance(found, Explanation)
    assert "kdump verify with --remote URL" in found.action
    assert "should have it, from log start offset 110377 on" in evidence_for(line, tiered)["batch"][0]


def test_a_partition_of_another_disk() -> None:
    found = evidence_for(
        "Deleted log for partition nowhere-7 in /d/nowhere-7.0123456789abcdef0123456789abcdef-delete", CLEAN
    )
    assert found["partition"] == ["nowhere-7: no directory on this disk"]


def test_a_large_disk_is_not_read_for_a_message_without_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.incident.explain.disk_evidence.SMALL", 1000)
    found = evidence_for("No readable meta.properties files found.", CLEAN)
    assert "the message names no partition" in found["finding"][-1]
    assert "examined: 0 topics" in found["startup"][0]


def test_the_number_of_checked_partitions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.incident.explain.disk_evidence.MOST_PARTITIONS", 0)
    found = evidence_for(
        "Found record size 0 smaller than minimum record overhead (14) in file /x/orders-none-0/0.log.", CLEAN
    )
    assert found["finding"][0].startswith("not checked: more than 0 partitions")


def test_paths_of_the_broker_are_found_here() -> None:
    places = DiskPlaces((CLEAN,), Disks.at([CLEAN]))
    segment = f"{CLEAN}/orders-none-0/{0:020}.log"
    assert places.file(f"/var/lib/kafka/orders-none-0/{0:020}.log") == (segment, True)
    assert places.file("/other/meta.properties") == (f"{CLEAN}/meta.properties", True)
    assert places.file("/disk-1/orders-none-0/gone.index") == (f"{CLEAN}/orders-none-0/gone.index", False)
    assert places.file(f"/d/nowhere-0/{0:020}.log") == (f"{CLEAN}/nowhere-0/{0:020}.log", False)
    assert places.file("/etc/passwd") is None
