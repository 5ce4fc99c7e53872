"""How long a recovery takes: what is to be done, the model of its threads, and the speed of the disk."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from kdump.io.low_impact_reads import limited_to
from kdump.questions.restart_plan.recovery import read_speed
from kdump.questions.restart_plan.recovery.read_speed import ASSUMED, ASSUMED_SPEED, MEASURED, SAMPLE_BYTES, measure
from kdump.questions.restart_plan.recovery.recovery_time import (
    DEFAULT,
    PER_FLUSH,
    PER_LOG,
    PER_SEGMENT,
    WARM_UP,
    Rates,
    RecoveryQuery,
    extremes,
    mean_batch_size,
    recovery_time,
    simulate,
)
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork, directory_work, recovery_works
from tests.conftest import FIXTURES
from tests.craft import one
from tests.damages import copy_disk

TRIALS = FIXTURES.parent / "docs" / "recovery-trials.json"


def segment(
    directory: Path, base: int, size: int, endings: tuple[str, ...] = ("index", "timeindex", "snapshot")
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{base:020}.log").open("wb") as file:
        file.truncate(size)
    for ending in endings:
        (directory / f"{base:020}.{ending}").touch()


def disk(root: Path, points: dict[str, int]) -> Path:
    rows = [f"{name} 0 {offset}" for name, offset in points.items()]
    root.mkdir(exist_ok=True)
    (root / "recovery-point-offset-checkpoint").write_text("\n".join(["0", str(len(rows)), *rows, ""]))
    return root


def only_log(root: Path) -> LogWork:
    (log,) = directory_work(str(root)).logs
    return log


def test_recovery_begins_with_the_segment_of_the_recovery_point(tmp_path: Path) -> None:
    root = disk(tmp_path, {"t": 250})
    for base in (0, 100, 200, 300):
        segment(root / "t-0", base, 1000 + base)
    log = only_log(root)
    assert (list(log.bases), list(log.sizes), log.segments) == ([200, 300], [1200, 1300], 4)
    assert (log.bytes, log.againBytes, log.producerBytes) == (2500, 0, 0)
    (root / ".kafka_cleanshutdown").touch()
    assert not only_log(root).bases


def test_a_log_that_is_not_in_the_checkpoint_is_read_from_its_start(tmp_path: Path) -> None:
    root = disk(tmp_path, {"other": 250})
    for base in (0, 100):
        segment(root / "t-0", base, 1000)
    assert list(only_log(root).bases) == [0, 100]


def test_a_segment_without_an_index_is_read_twice_after_an_unclean_shutdown(tmp_path: Path) -> None:
    """LogLoader.loadSegmentFiles recovers it, and then recoverLog, because it is above the recovery point."""
    root = disk(tmp_path, {"t": 200})
    segment(root / "t-0", 0, 1000, ("timeindex", "snapshot"))
    segment(root / "t-0", 100, 1000)
    segment(root / "t-0", 200, 1000, ("timeindex", "snapshot"))
    log = only_log(root)
    assert (list(log.bases), log.againBytes) == ([0, 200], 1000)
    (root / ".kafka_cleanshutdown").touch()
    log = only_log(root)
    assert (list(log.bases), log.againBytes) == ([0, 200], 0)


def test_without_snapshots_the_headers_before_the_first_segment_are_read(tmp_path: Path) -> None:
    root = disk(tmp_path, {"t": 250})
    for base in (0, 100, 200):
        segment(root / "t-0", base, 1000, ("index", "timeindex"))
    assert (only_log(root).bytes, only_log(root).producerBytes) == (1000, 2000)
    (root / "t-0" / f"{100:020}.snapshot").touch()
    assert only_log(root).producerBytes == 1000


def test_what_cannot_be_read_is_stated(tmp_path: Path) -> None:
    root = disk(tmp_path, {"t": 250})
    segment(root / "t-0", 0, 1000)
    segment(root / "t-0", 200, 1000)
    (root / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 many\n")
    work = directory_work(str(root))
    assert list(work.logs[0].bases) == [0, 200]
    assert len(work.unread) == 1
    assert "everything counts as unflushed" in work.unread[0]


def test_names_that_a_broker_ignores_are_no_segments(tmp_path: Path) -> None:
    root = disk(tmp_path, {})
    segment(root / "t-0", 0, 1000)
    for name in (f"{1:020}.log.deleted", f"{'9' * 25}.log", "x.log", "٣.log", "leader-epoch-checkpoint"):
        (root / "t-0" / name).write_bytes(bytes(7))
    (root / "__cluster_metadata-0").mkdir()
    (root / "remote-log-index-cache").mkdir()
    assert list(only_log(root).bases) == [0]


def test_a_log_that_is_deleted_is_loaded_and_not_recovered(tmp_path: Path) -> None:
    root = disk(tmp_path, {})
    segment(root / f"t-0.{'a' * 32}-delete", 0, 1000)
    assert list(only_log(root).bases) == []
    assert only_log(root).segments == 1


def test_hostile_directories(tmp_path: Path) -> None:
    root = disk(tmp_path, {})
    segment(root / "t-0", 5, 1000)
    (root / "t-0" / f"{1:020}.log").mkdir()
    (root / "t-0" / f"{2:020}.log").symlink_to("gone")
    (root / "t-0" / f"{3:020}.index").mkdir()
    (root / "t-0" / f"{'9' * 19}.log").touch()
    (root / "t-1").symlink_to("gone")
    (root / "not a partition").mkdir()
    (root / "t-2").write_bytes(b"a file")
    log = only_log(root)
    assert (list(log.bases), list(log.sizes)) == ([5], [1000])
    whole, _ = recovery_time([str(root)])
    assert (whole.logs, whole.bytes) == (1, 1000)


def test_the_order_is_that_of_the_file_system(tmp_path: Path) -> None:
    root = disk(tmp_path, {})
    for number in range(40):
        segment(root / f"t-{number}", 0, 10)
    listed = [entry.name for entry in os.scandir(root) if entry.is_dir()]
    assert [log.name for log in directory_work(str(root)).logs] == listed
    _, logs = recovery_time([str(FIXTURES / "clean-2")])
    assert [log.number for log in logs] == list(range(1, len(logs) + 1))


# --- the model ---


def logs_of(*sizes: int, segments: int = 1) -> list[LogWork]:
    return [
        LogWork(
            "t",
            number,
            f"/none/t-{number}",
            "/none",
            number + 1,
            segments,
            array("q", range(segments)),
            array("q", [size // segments] * segments),
        )
        for number, size in enumerate(sizes)
    ]


def seconds(works: list[DirectoryWork], threads: int, rates: Rates) -> float:
    return simulate(works, threads, rates)[0]


SLOW = Rates(10_000_000, 16384, 1.0, 2)
"""With this disk, everything else takes no time."""


def test_a_slow_disk_decides_whatever_the_threads() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[250_000_000] * 4))]
    for threads in (1, 2, 4, 16):
        assert seconds(works, threads, SLOW) == pytest.approx(100, rel=0.07)


def test_one_large_log_is_read_by_one_thread() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(2_000_000_000, *[1000] * 50))]
    rates = Rates(10**12, 1024, 1.0, 64)
    alone = seconds(works, 1, rates)
    assert seconds(works, 8, rates) == pytest.approx(alone, rel=0.15)
    halves = [DirectoryWork("/none/a", clean=False, logs=logs_of(1_000_000_000, 1_000_000_000))]
    assert seconds(halves, 2, rates) == pytest.approx(alone / 2, rel=0.2)


def test_threads_beyond_the_processors_do_not_help() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[500_000_000] * 16))]
    times = [seconds(works, threads, Rates(10**12, 1024, 1.0, 4)) for threads in (1, 2, 4, 8, 16)]
    assert times[1] < 0.6 * times[0]
    assert times[4] == pytest.approx(times[3], rel=0.05)
    unknown = seconds(works, 16, Rates(10**12, 1024, 1.0, None))
    assert unknown < times[4] / 2


def test_what_is_in_the_page_cache_is_not_waited_for() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(1_000_000_000))]
    assert seconds(works, 1, SLOW._replace(uncached=0.0)) < 0.1 * seconds(works, 1, SLOW)


def test_two_directories_share_a_device(tmp_path: Path) -> None:
    """Both are on one device: the disk delivers as much as for one, and their threads do not help."""
    for name in "ab":
        (tmp_path / name).mkdir()
    both = [DirectoryWork(str(tmp_path / name), clean=False, logs=logs_of(*[250_000_000] * 2)) for name in "ab"]
    one_device = seconds(both, 1, SLOW)
    apart = [DirectoryWork(f"/none/{name}", clean=False, logs=logs_of(*[250_000_000] * 2)) for name in "ab"]
    assert one_device == pytest.approx(100, rel=0.07)
    assert seconds(apart, 1, SLOW) == pytest.approx(50, rel=0.07)


def test_many_empty_logs_take_their_own_time() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[0] * 3000))]
    expected = WARM_UP + 3000 * (PER_LOG + PER_SEGMENT + PER_FLUSH)
    assert seconds(works, 1, SLOW) == pytest.approx(expected, rel=0.01)
    assert seconds([DirectoryWork("/none/a", clean=True)], 1, SLOW) == 0


def test_flushes_of_several_threads_wait_for_each_other() -> None:
    """So two threads gain little for many small logs; one directory's single log has only one thread."""
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[10] * 1000))]
    rates = SLOW._replace(processors=64)
    assert 0.75 < seconds(works, 2, rates) / seconds(works, 1, rates) < 1
    assert seconds(works, 8, rates) < 0.3 * seconds(works, 1, rates)
    single = [DirectoryWork("/none/a", clean=False, logs=logs_of(10))]
    assert seconds(single, 8, rates) == seconds(single, 1, rates)


def test_logs_are_loaded_in_order_and_the_last_one_ends_it() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[(number % 7) * 10_000_000 for number in range(60)]))]
    span, (times,) = simulate(works, 3, SLOW)
    starts = [start for start, _ in times]
    assert starts == sorted(starts)
    assert max(end for _, end in times) == pytest.approx(span)


def test_the_range_contains_the_estimate_and_is_wider_if_the_speed_is_assumed() -> None:
    works = [DirectoryWork("/none/a", clean=False, logs=logs_of(*[500_000_000] * 4))]
    rates = Rates(ASSUMED_SPEED, 16384, 1.0, 2)
    ends = {}
    for is_known in (True, False):
        least, most = (seconds(works, 2, each) for each in extremes(rates, is_known=is_known))
        assert least < seconds(works, 2, rates) < most
        ends[is_known] = most / least
    assert ends[False] > 2 * ends[True]


# --- samples ---


def test_the_size_of_batches(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    batches = [one(b"value", offset) for offset in range(5)]
    path.write_bytes(b"".join(batches) + bytes(100))
    assert mean_batch_size([str(path)]) == len(batches[0])
    path.write_bytes(b"\xff" * 1000)
    assert mean_batch_size([str(path), str(tmp_path / "gone.log")]) == DEFAULT


def test_the_speed_is_measured_on_files_that_are_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for number in range(3):
        paths.append(str(tmp_path / f"{number}.log"))
        with open(paths[-1], "wb") as file:
            file.truncate(SAMPLE_BYTES)
    monkeypatch.setattr(read_speed, "cached_pages", lambda fd, start, stop: 0)
    found = measure(paths, 2)
    assert (found.source, found.sampled) == (MEASURED, 3 * SAMPLE_BYTES)
    assert found.perSecond > 0
    with limited_to(10**12):
        assert measure(paths) == (ASSUMED_SPEED, ASSUMED, 0)
    monkeypatch.setattr(read_speed, "cached_pages", lambda fd, start, stop: 4)
    assert measure(paths).sampled == 3 * (SAMPLE_BYTES - 4 * 4096)


def unavailable(*_arguments: object) -> int:
    raise OSError(38, "Function not implemented")


@pytest.mark.parametrize("cached", [unavailable, lambda fd, start, stop: (stop - start) // 4096])
def test_the_disk_is_measured_past_the_page_cache(
    cached: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Linux before 6.5, which does not tell what is cached, and for segments that are cached."""
    paths = [str(tmp_path / f"{number}.log") for number in range(3)]
    for path in paths:
        Path(path).write_bytes(bytes(SAMPLE_BYTES + 5000))
    monkeypatch.setattr(read_speed, "cached_pages", cached)
    try:
        os.close(os.open(paths[0], os.O_RDONLY | read_speed.DIRECT))
    except OSError:
        assert measure(paths) == (ASSUMED_SPEED, ASSUMED, 0)
    else:
        # With three files, a sample is a third of what is read in all, so that each is read completely.
        assert measure([*paths, str(tmp_path / "gone")], 2)[1:] == (MEASURED, 3 * (SAMPLE_BYTES + 5000))
    monkeypatch.setattr(read_speed.fcntl, "fcntl", unavailable)  # a file system without it, such as some of FUSE
    assert measure(paths) == (ASSUMED_SPEED, ASSUMED, 0)


# --- the whole ---


def test_threads_by_default(tmp_path: Path) -> None:
    root = copy_disk(FIXTURES / "clean-2", tmp_path / "disk")
    (root / ".kafka_cleanshutdown").unlink()
    whole, _ = recovery_time([str(root)])
    assert (whole.threads, whole.threadsFrom) == (2, "default")
    assert recovery_time([str(root)], kafka_version="3.9.1")[0].threads == 1
    assert recovery_time([str(root)], kafka_version="4.0")[0].threads == 2
    assert recovery_time([str(root)], RecoveryQuery(threads=7))[0][8:10] == (7, "option")
    with pytest.raises(ValueError):
        recovery_time([str(root)], kafka_version="1.0")


def test_nothing_is_recovered_after_a_clean_shutdown() -> None:
    whole, logs = recovery_time([str(FIXTURES / "clean-2")])
    assert (whole.segments, whole.bytes, whole.recoveredLogs) == (0, 0, 0)
    assert whole.logs == len(logs) > 0
    assert not any(work.recovered for work in recovery_works([str(FIXTURES / "clean-2")]))


@pytest.mark.skipif(not TRIALS.exists(), reason="no trials")
def test_real_recoveries_took_as_long_as_estimated() -> None:
    """docs/recovery-trials.json (tools/recovery_trials.py): the model, with what was on those disks."""
    from tools.recovery_trials import CASES, modelled

    results = json.loads(TRIALS.read_text())
    assert len(results) >= 30
    assert {each["name"] for each in results} == {case.name for case in CASES}
    for each in results:
        assert modelled(each) == pytest.approx(each["actual"], rel=0.3), each["name"]
        assert each["estimatedLeast"] <= each["actual"] <= each["estimatedMost"], each["name"]
        assert 1e9 <= each["bytes"] <= 5.5e9, each["name"]
        for passed, shown in each["shown"]:
            assert abs(passed - shown) < 0.3, each["name"]
