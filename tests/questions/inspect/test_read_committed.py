"""Compares `inspect --read-committed` with a naive implementation, on real disks and on a real partition split into
segments."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kdump.cli import cli
from tests import naive
from tests.conftest import DISKS, FIXTURES, covering, numbers_in, sample
from tests.craft import flip
from tests.disks import PAYMENTS, cut, data, marker, partition, txn_index
from tests.each_case import each_case


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["inspect", "--read-committed", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def offsets(*args: str | Path) -> list[tuple[int, int]]:
    """Return baseOffset and lastOffset of the batches that are shown."""
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    first = [each["lastOffset"] if each["baseOffset"] is None else each["baseOffset"] for each in found]
    return [(base, each["lastOffset"]) for base, each in zip(first, found)]


def folders(root: Path) -> list[Path]:
    """Yield partitions with v2 batches."""
    found = []
    for folder in sorted({path.parent for path in root.rglob("*.log")}):
        logs = sorted(folder.glob("*.log"))
        if re.fullmatch(r"[\w.-]+-\d+", folder.name) and all(len(path.name) == 24 for path in logs):
            sound = all(path.read_bytes()[16:17] in (b"\2", b"") for path in logs)
            found += [folder] if sound and "upgraded" not in folder.name else []
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("disk", ["clean-1", "clean-2", "crash-1", "live-1", "diverged-1", "diverged-2"])
def test_every_disk_as_the_naive_twin_has_it(disk: str) -> None:
    hidden = 0
    for folder in covering(folders(DISKS / "kafka-4.3" / disk), 8, lambda path: [path.name.partition("-")[0]]):
        if folder.name.startswith("clicks"):
            continue  # a long log without transactions
        log = naive.batches(*sorted(folder.glob("*.log")))
        path = folder.parent / "log-start-offset-checkpoint"
        starts = path.read_text() if path.exists() else ""
        start = re.search(rf"^{folder.name.replace('-', ' ')} (\d+)$", starts, re.MULTILINE)
        expected = [each for each in naive.visible(log) if each.last >= (int(start[1]) if start else 0)]
        hidden += len(log) - len(expected)
        assert offsets(folder) == [(each.base, each.last) for each in expected], folder
    assert hidden > 0 or disk in ("clean-2", "diverged-1", "diverged-2")


@pytest.mark.parametrize("records", [[], ["--records"]])
@pytest.mark.parametrize("jobs", ["1", "4"])
def test_records_are_those_of_the_batches(records: list[str], jobs: str) -> None:
    for folder in (FIXTURES / "clean-1" / "payments-0", FIXTURES / "clean-1" / "__consumer_offsets-0"):
        logs = sorted(folder.glob("*.log"))
        # The second one's .txnindex was not copied.
        result = run(folder, "--json", "--jobs", jobs, "--no-decode", "--by-markers", *records)
        found = [json.loads(line) for line in result.stdout.splitlines()]
        batches = naive.visible(naive.batches(*logs))
        if records:
            assert len(found) == sum(each.records for each in batches)
            assert all(any(each.base <= one["offset"] <= each.last for each in batches) for one in found)
            assert not any("control" in one for one in found)
        else:
            assert len(found) == len(batches)


@pytest.mark.sampled
@each_case("at", sample(range(1, 76, 3), 16, "segments"))
@each_case("snapshots", [True, False])
def test_a_segment_of_several(tmp_path: Path, at: int, snapshots: bool) -> None:
    """A single segment shows the same as in the whole log, with the snapshot in the same directory and without it."""
    folder = partition(tmp_path, *cut(at), snapshots=snapshots)
    expected = [(each.base, each.last) for each in naive.visible(naive.batches(PAYMENTS))]
    assert offsets(folder) == expected
    first, second = sorted(folder.glob("*.log"))
    edge = int(second.stem)
    assert offsets(first) == [each for each in expected if each[0] < edge]
    assert offsets(second) == [each for each in expected if each[0] >= edge]
    said = run(second).stderr
    assert ("1 segment," in said) == snapshots
    assert (".snapshot" in said) == snapshots
    # In any order, if both are given.
    assert sorted(offsets(second, first)) == expected


def test_three_segments_and_a_damaged_snapshot(tmp_path: Path) -> None:
    folder = partition(tmp_path, *cut(20, 40))
    third = sorted(folder.glob("*.log"))[2]
    at = third.with_suffix(".snapshot")
    at.write_bytes(flip(at.read_bytes(), 90))
    expected = [(each.base, each.last) for each in naive.visible(naive.batches(PAYMENTS))]
    assert offsets(third) == [each for each in expected if each[0] >= int(third.stem)]
    assert "2 segments" in run(third).stderr  # from the previous snapshot, and the segment in between


def test_what_was_left_out_is_told() -> None:
    result = run(PAYMENTS, "--records", "--json")
    stable, left_out = result.stderr.splitlines()
    assert numbers_in(stable)[:2] == [114, 11]  # the last stable offset, and the producer that holds it
    assert numbers_in(left_out) == [17, 30, 5, 6]  # control batches, records of aborted transactions, unstable records
    log = naive.batches(PAYMENTS)
    shown = len(result.stdout.splitlines())
    assert shown + 30 + 6 == sum(each.records for each in log if not each.control)
    assert numbers_in(run(FIXTURES / "clean-1" / "orders-none-0").stderr.splitlines()[-1]) == []


def test_a_stream_knows_only_itself(tmp_path: Path) -> None:
    command = f"cat {PAYMENTS} | {sys.executable} -m kdump inspect - --read-committed --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == len(naive.visible(naive.batches(PAYMENTS)))
    assert "only this file" in done.stderr
    assert "transactions that start or end in other segments are unknown" in done.stderr
    copy = tmp_path / "found.bin"
    shutil.copy(PAYMENTS, copy)
    assert offsets(copy) == [(each.base, each.last) for each in naive.visible(naive.batches(PAYMENTS))]


def test_without_later_segments_nothing_is_taken_for_committed(tmp_path: Path) -> None:
    first, *_ = cut(7)
    alone = tmp_path / "alone" / "payments-0" / PAYMENTS.name
    alone.parent.mkdir(parents=True)
    alone.write_bytes(first)  # two transactions, without their markers
    assert offsets(alone) == []


def test_an_index_of_a_segment_that_is_gone(tmp_path: Path) -> None:
    """The .txnindex of the next segment shows that the transaction was aborted: what follows it is stable."""
    log = data(0, 1) + data(1, 2) + marker(2, 2)
    folder = partition(tmp_path, log)
    assert offsets(folder) == []
    (folder / f"{3:020}.txnindex").write_bytes(txn_index((1, 0, 5, 6)))
    assert offsets(folder) == [(1, 1)]
    assert "1 aborted transaction known only from a .txnindex" in run(folder).stderr


def test_a_damaged_marker_is_made_good_by_the_index(tmp_path: Path) -> None:
    log = [data(0, 1), marker(1, 1, commit=False), data(2, 1, baseSequence=1), marker(3, 1)]
    folder = partition(tmp_path, b"".join(log))
    (folder / PAYMENTS.name).write_bytes(log[0] + flip(flip(log[1], 8 * 70), 8 * 70 + 3) + log[2] + log[3])
    assert offsets(folder) == [(2, 2)]
    said = run(folder).stderr
    assert "1 damaged byte range" in said
    (folder / PAYMENTS.with_suffix(".txnindex").name).unlink()
    assert "how transactions ended there is unknown" in run(folder).stderr


def test_filters_and_forms_go_with_it() -> None:
    assert offsets(PAYMENTS, "--offset", "12..20") == [(15, 15), (18, 20)]
    assert offsets(PAYMENTS, "--producer-id", "9", "--offset", "0..30") == [
        (0, 0),
        (2, 3),
        (7, 8),
        (9, 9),
        (28, 28),
        (30, 31),
    ]
    assert run(PAYMENTS, "--records", "--last", "1", "--json").stdout.count("\n") == 1
    assert json.loads(run(PAYMENTS, "--records", "--last", "1", "--json").stdout)["offset"] == 112
    assert run(PAYMENTS, "--hex", "--offset", "14").stdout == ""
    assert run(PAYMENTS, "-f", "%o ").stdout.split()[-1] == "112"
    assert run(PAYMENTS, "--follow").exit_code == run(PAYMENTS, "--control").exit_code == 2


def test_only_segments(tmp_path: Path) -> None:
    result = run(PAYMENTS.with_suffix(".txnindex"))
    assert result.stdout == ""
    assert "to which --read-committed applies" in result.stderr
    assert result.exit_code == 2


def test_too_many_to_remember(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("kdump.state.read_committed_view", "kdump.questions.read_committed"):
        monkeypatch.setattr(f"{module}.MAX_ABORTED_TRANSACTIONS", 3)
    result = run(PAYMENTS)
    assert result.exit_code == 2
    assert 3 in numbers_in(result.stderr)


def test_consumers_receive_what_the_index_does_not_list(tmp_path: Path) -> None:
    """Brokers tell consumers what is aborted from the .txnindex files alone; a segment that lacks its .index too is
    recovered, with a new .txnindex."""
    log = [data(0, 1), marker(1, 1, commit=False), data(2, 1), marker(3, 1)]
    folder = partition(tmp_path, b"".join(log))
    index = folder / f"{0:020}.txnindex"
    for content in (None, b"", txn_index((1, 9, 9, 10))):
        index.unlink(missing_ok=True)
        if content is not None:
            index.write_bytes(content)
        assert offsets(folder) == [(0, 0), (2, 2)]
        assert "consumers receive their records: 1 aborted transaction with a marker" in run(folder).stderr
        assert offsets(folder, "--by-markers") == [(2, 2)]
        assert "not what consumers receive now: 1 aborted transaction" in run(folder, "--by-markers").stderr
    index.write_bytes(txn_index((1, 2, 3, 4)))  # of a transaction that was committed
    assert offsets(folder) == [(0, 0)]
    assert offsets(folder, "--by-markers") == [(2, 2)]
    index.unlink()
    index.with_suffix(".index").unlink()
    assert offsets(folder) == [(2, 2)]


def test_nothing_below_the_log_start_is_received(tmp_path: Path) -> None:
    log = [data(0, 1, transactional=False), data(1, 1), marker(2, 1), data(3, 1, transactional=False)]
    folder = partition(tmp_path, b"".join(log))
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 3\n")
    assert offsets(folder) == [(3, 3)]
    assert "2 records below the log start offset" in run(folder).stderr
