"""python -m tools.unit_test_trials JARS [--only RELEASE,…] [--compare] [--keep DIRECTORY]

Compares kdump with Kafka's own classes on the log directories that Kafka's unit tests make: healthy and damaged ones,
interrupted compactions and splits, old formats. tools/CatchLogs.java runs the tests, keeps the directories, and writes
down what LogLoader and KafkaRaftLog (before 4.2 KafkaMetadataLog) answer. Then LogLoader loads each directory again, as
after a clean shutdown and as after an unclean one; kafka-dump-log prints the files; and LogSegment.recover rebuilds the
indexes. On the same bytes,

- restart-plan must load each log as LogLoader or KafkaRaftLog did: log start and end, segments, leader epochs, producer
  snapshots, or the exception
- dump-log must print what kafka-dump-log prints
- reindex must write the indexes that Kafka writes
- no command may end with a traceback

Writes docs/unit-test-trials.json, with each difference and its reason. --compare writes nothing. Exits with 1 if the
reason of a difference is not known. JARS has a directory for each release with the jars of tools/kafka-jars.xml, and
next to it is test-jars, with those of tools/kafka-test-jars.xml; what is missing is downloaded. If the registry has no
tests of a release, it loads and prints what the tests of another one make. --keep: where to leave the log directories.
Needs Java 17, Maven, and five minutes for a release."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from kdump.cli import cli
from kdump.format.kafka_release import KafkaRelease, parse_release
from kdump.kafka.errors import KafkaError
from kdump.log.live_files import open_window, see
from kdump.questions.restart_plan.answer import PartitionPlan, StartupFailed, StartupFailure, startup_failure
from kdump.questions.restart_plan.log_loading.log_loader import LoadParameters, load
from kdump.questions.restart_plan.log_loading.metadata_log import SNAPSHOT, load_metadata_log
from kdump.questions.restart_plan.node.access_rights import Rights
from tools import reindex_trials, release_disks
from tools.adopt import oracle
from tools.adopt.registry import MAVEN, fetch
from tools.trials.working import commands

RESULTS = Path("docs/unit-test-trials.json")
POM = Path(__file__).with_name("kafka-test-jars.xml")
PROGRAM = Path(__file__).with_name("CatchLogs.java")
LOADER = Path(__file__).with_name("LoadLogs.java")
TESTS = "4.3.1"
"""The newest release whose tests the registry has."""
TRIED = ("4.3.1", "4.4.0")
TIMEOUT = 1500
"""Seconds in which the tests of a release must have ended."""
MEMORY = "/dev/shm"
"""Where the directories are made if there is room: the tests flush files all the time."""
STORAGE = "org.apache.kafka.storage.internals.log"
CLASSES = (
    "kafka.cluster.PartitionTest",
    "kafka.log.LocalLogTest",
    "kafka.log.LogCleanerManagerTest",
    "kafka.log.LogCleanerTest",
    "kafka.log.LogConcurrencyTest",
    "kafka.log.LogLoaderTest",
    "kafka.log.LogManagerTest",
    "kafka.log.LogSegmentTest",
    "kafka.log.ProducerStateManagerTest",
    "kafka.log.UnifiedLogTest",
    "kafka.raft.KafkaMetadataLogTest",
    "kafka.server.LogRecoveryTest",
    "kafka.tools.DumpLogSegmentsTest",
    "org.apache.kafka.raft.internals.KafkaRaftLogTest",
    "org.apache.kafka.snapshot.FileRawSnapshotTest",
    f"{STORAGE}.BrokerCompressionTest",
    f"{STORAGE}.LocalLogTest",
    f"{STORAGE}.LogCleanerManagerTest",
    f"{STORAGE}.LogConcurrencyTest",
    f"{STORAGE}.LogLoaderTest",
    f"{STORAGE}.LogSegmentTest",
    f"{STORAGE}.LogSegmentsTest",
    f"{STORAGE}.ProducerStateManagerTest",
    f"{STORAGE}.UnifiedLogTest",
    "org.apache.kafka.tools.DumpLogSegmentsTest",
)
"""Tests that make many different logs in a short time. They move from one package to another; a release has about
twenty of these."""
NOT_RUN = ("scan", "verify --jobs 2", "inspect", "report")
"""Commands that start other processes, draw charts, or are compared with kafka-dump-log anyway."""
SAMPLED = 60
"""Number of directories on which every command runs."""


class Difference(NamedTuple):
    """What Kafka and kdump say of the same bytes. `what`: load, raft, dump, index, or a command's name."""

    what: str
    test: str
    kafka: str
    kdump: str
    reason: str = ""


REASONS = (
    (
        "index",
        r"LogLoaderTest/testRecoverLastSegmentWithNoSnapshots",
        "the segment before this one is left out here, because another directory has it (thin), so the log starts at "
        "19, where there is a producer snapshot with the transaction's first offset, 0. Kafka does not use it: "
        "truncateAndReload deletes snapshots at or below the log start offset, and recover writes 19 as the first "
        "offset. kdump uses it, and writes 0, as the broker did; no consumer notices, because nothing is below 19",
    ),
)
"""What is compared, a pattern for the names of tests, and why they differ."""


def test_jars(version: str, jars: Path) -> Path:
    """Return the directory with a release and its tests, or with TESTS if there are no tests of this release; downloads
    them unless they are there."""
    for tests in (version, TESTS):
        target = jars.resolve().parent / "test-jars" / tests
        copying = ("dependency:copy-dependencies", f"-Dkafka.version={tests}", f"-DoutputDirectory={target}")
        if target.is_dir() or not subprocess.run([*MAVEN, "-f", str(POM), *copying], stdout=subprocess.PIPE).returncode:
            return target
    raise FileNotFoundError(TESTS)


def existing(jars: Path) -> list[str]:
    """Return those of CLASSES that the jars contain."""
    names = {name for path in jars.glob("*-test.jar") for name in zipfile.ZipFile(path).namelist()}
    return [each for each in CLASSES if each.replace(".", "/") + ".class" in names]


def catch(jars: Path, work: Path) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Run the tests. Return how many have each result, and the lines of the directories that differ in bytes, in what
    Kafka's class was given, or in its answer; the other directories are deleted."""
    built, made = work / "classes", work / "tmp"
    made.mkdir()
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(built), str(PROGRAM)], check=True)
    options = ["-Xmx1500m", "-XX:TieredStopAtLevel=1", "-Djdk.attach.allowAttachSelf=true", f"-Djava.io.tmpdir={made}"]
    options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{built}:{jars}/*"]
    with (work / "tests.log").open("wb") as log:
        program = ["java", *options, "CatchLogs", str(work / "caught"), *existing(jars)]
        subprocess.run(program, check=True, stdout=log, stderr=log, timeout=TIMEOUT)
    results: dict[str, int] = {}
    caught: dict[str, dict[str, Any]] = {}
    for line in (work / "caught" / "caught.jsonl").read_text().splitlines():
        each = json.loads(line)
        if "tests" in each:
            results[each["tests"]] = each["count"]
        elif caught.setdefault(_digest(each), each) is not each:
            shutil.rmtree(work / "caught" / str(each["number"]))
    return results, list(caught.values())


def _digest(caught: dict[str, Any]) -> str:
    """Return a hash of a directory, what Kafka's class was given, and its answer."""
    given = {name: value for name, value in caught.items() if name not in ("number", "test", "path")}
    found = hashlib.sha256(json.dumps(given).encode().replace(Path(caught["path"]).name.encode(), b""))
    for path in sorted(Path(caught["path"]).iterdir()):
        found.update(path.name.encode() + (path.read_bytes() if path.is_file() else b"/"))
    return found.hexdigest()


def answer(caught: dict[str, Any], release: KafkaRelease) -> tuple[dict[str, Any] | None, str | None]:
    """Return what restart-plan says of a directory, in the words of the catcher: the answer, or the exception."""
    path, is_raft = caught["path"], caught["what"] == "raft"
    state = "delete" if path.endswith("-delete") else ""
    how = LoadParameters(open_window, Rights(0), False, release=release)
    if not is_raft:
        how.clean, how.log_start, how.recovery_point = caught["clean"], caught["logStart"], caught["recoveryPoint"]
        how.interval, how.largest, how.remote = caught["interval"], caught["largest"], caught["remote"]
    plan, seen = PartitionPlan("t", 0, path, os.path.dirname(path), state, how.clean), see(path)
    segments, stop = [], None
    try:
        if is_raft:
            load_metadata_log(plan, how, seen)
        else:
            segments = load(plan, how, seen)
    except StartupFailed as stopped:
        stop = stopped.stop
    except KafkaError as error:
        stop = startup_failure(error, release)
    if stop is not None and not (is_raft and _is_later(stop)):
        return None, stop.exception
    done = {os.path.basename(step.file): step.kind for step in plan.steps}
    gone = {name for name, kind in done.items() if kind in ("delete", "sweep")}
    offsets = {"logStart": plan.logStartOffset, "logEnd": plan.logEndOffset}
    if is_raft:
        matches = [match for match in map(SNAPSHOT.match, set(seen.files) - gone) if match]
        newest = max(([int(match[2]), int(match[1])] for match in matches), default=None)
        return {**offsets, "lastEpoch": plan.lastEpoch, "snapshot": newest and newest[::-1]}, None
    sizes = {str(each.base): each.size - each.first for each in segments} or {str(plan.logEndOffset): 0}
    epochs = [[each.epoch, each.startOffset] for each in plan.epochsAfter or ()]
    written = {name for name, kind in done.items() if kind == "write"}
    snapshots = sorted(name for name in {*seen.files, *written} - gone if name.endswith(".snapshot"))
    return {**offsets, "segments": sizes, "epochs": epochs, "snapshots": snapshots}, None


def _is_later(stop: StartupFailure) -> bool:
    """Return True if a node fails because of a file that KafkaRaftLog.createLog does not read."""
    return os.path.basename(stop.file).endswith((".checkpoint", "quorum-state"))


def loads(caught: list[dict[str, Any]], release: KafkaRelease) -> Iterator[Difference]:
    """Compare what restart-plan says with the answers of LogLoader and KafkaRaftLog."""
    for each in caught:
        said, thrown = answer(each, release)
        theirs, exception = each["answer"], each["thrown"]
        if theirs and "snapshots" in theirs:
            del theirs["recoveryPoint"]  # restart-plan does not state it
        if theirs and each.get("mocked"):
            said = {**(said or {}), "snapshots": theirs["snapshots"]}  # of a ProducerStateManager that does nothing
        if said != theirs or _kind(thrown) != _kind(exception):
            parts = [name for name in theirs or () if said is None or said[name] != theirs[name]]
            shown = [
                str({name: of[name] for name in parts} if of else why)
                for of, why in ((theirs, exception), (said, thrown))
            ]
            yield Difference(each["what"], each["test"], *shown)


def again(jars: Path, caught: list[dict[str, Any]], work: Path) -> list[dict[str, Any]]:
    """Have a release load each directory as after a clean shutdown, and as after an unclean one. Return the lines with
    its answers."""
    given = {"what": "load", "logStart": 0, "recoveryPoint": 0, "remote": False, "interval": 4096, "largest": 10 << 20}
    lines, paths = list[str](), list[str]()
    for each, clean in itertools.product([each for each in caught if each["what"] != "raft"], (True, False)):
        copy = work / str(len(lines)) / Path(each["path"]).name
        copy.parent.mkdir(parents=True)
        release_disks.copy(Path(each["path"]), copy)
        paths.append(each["path"])
        lines.append(json.dumps({**given, "test": each["test"], "clean": clean, "path": str(copy)}))
    command = ["java", "-Xmx1g", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command += ["-cp", f"{jars}/*", str(LOADER)]
    done = subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True, timeout=TIMEOUT)
    shutil.rmtree(work)
    return [{**json.loads(line), "path": path} for line, path in zip(done.stdout.splitlines(), paths, strict=True)]


def _kind(exception: str | None) -> str:
    return (exception or "").partition(":")[0]


def thin(caught: Path) -> None:
    """Delete files that kafka-dump-log reads as it reads others: those of a segment that is there several times."""
    seen = set()
    for directory in sorted(caught.glob("*/*/")):
        stems: dict[str, list[Path]] = {}
        for path in sorted(directory.iterdir()):
            stems.setdefault(path.name.partition(".")[0], []).append(path)
        for paths in stems.values():
            found = hashlib.sha256(re.sub(r"\d+$", "", directory.name).encode())
            for path in paths:
                found.update(path.name.encode() + (path.read_bytes() if path.is_file() else b"/"))
            if found.digest() in seen:
                for path in paths:
                    path.unlink() if path.is_file() else shutil.rmtree(path)
            seen.add(found.digest())


def dumps(jars: Path, caught: Path, out: Path, tests: dict[str, str], version: str) -> tuple[int, list[Difference]]:
    """Compare dump-log with kafka-dump-log; return the number of files, and the differences."""
    files = oracle.written(jars, caught, out)
    options = ("--kafka-version", version)
    found = [each for each in oracle.compare(caught, out, files, *options) if each.dump_log]
    return len(files), [
        Difference("dump", tests[each.file.partition("/")[0]], *_halves(each.dump_log)) for each in found
    ]


def _halves(text: str) -> tuple[str, str]:
    kafka, _, said = text.partition(", kdump ")
    return kafka, said


def tracebacks(caught: list[dict[str, Any]], work: Path) -> tuple[int, list[Difference]]:
    """Run every command on some of the directories, which KDUMP_SEED draws; return the number of runs, and those that
    end with an exception."""
    count, found = 0, []
    drawn = random.Random(os.environ.get("KDUMP_SEED"))
    for each in drawn.sample(caught, min(SAMPLED, len(caught))):
        directory = Path(each["path"]).parent
        for name, arguments in commands([directory], work):
            if name in NOT_RUN:
                continue
            result = CliRunner().invoke(cli, arguments)
            count += 1
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                found.append(Difference(name, each["test"], "", repr(result.exception)))
        for path in work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return count, found


def explained(difference: Difference) -> Difference:
    for what, pattern, why in REASONS:
        if difference.what == what and re.search(pattern, difference.test):
            return difference._replace(reason=why)
    return difference


def trial(jars: Path, version: str, work: Path) -> dict[str, Any]:
    """Return the result of a release."""
    release, tests_at = parse_release(version), test_jars(version, jars)
    jars = fetch(version, jars)
    results, caught = catch(tests_at, work)
    tests = {str(each["number"]): each["test"] for each in caught}
    answered = [each for each in caught if each["what"] != "kept" and tests_at.name == version]
    loaded = again(jars, caught, work / "again")
    (work / "out").mkdir()
    runs, differ = tracebacks(caught, work / "out")
    differ += [*loads(answered, release), *loads(loaded, release)]
    thin(work / "caught")
    segments, lines = reindex_trials.trial(jars, work / "caught", None)
    for number, _, what in (each.split(": ", 1)[1].split("/", 2) for each in lines):
        differ.append(Difference("index", tests[number], "", what))
    files, found = dumps(jars, work / "caught", work / "dumped", tests, version)
    differ += found
    kinds = Counter(each["what"] for each in (*answered, *loaded))
    return {
        "testsOf": tests_at.name,
        "tests": results,
        "compared": {"loads": kinds["load"], "raft": kinds["raft"], "indexes": segments, "dumps": files, "runs": runs},
        "differences": [explained(each)._asdict() for each in differ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--only", default=",".join(TRIED))
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free > 4 << 30:
        tempfile.tempdir = MEMORY
    unknown = 0
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for version in options.only.split(","):
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            results[version] = trial(options.jars, version, work)
            if options.keep:
                shutil.copytree(work, options.keep / version, ignore=shutil.ignore_patterns("tmp"))
        print(version, results[version]["tests"], results[version]["compared"], file=sys.stderr)
        for each in results[version]["differences"]:
            if not each["reason"]:
                unknown += 1
                print(*each.values(), sep="\n  ", file=sys.stderr)
    if not options.compare:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
