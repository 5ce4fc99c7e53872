"""python -m tools.start_trials RELEASE_JARS [--only NAME,…] [--again] [--jobs 3] [--out docs/start-trials.json]

Starts a real node on copies of a broker's disk, as its own only controller, waits for its first checks, and compares
what it does to each partition, and what consumers of both kinds see before and after, with the course that restart-plan
predicts. log.initial.task.delay.ms is 3 s, except in the cases of the default. --again predicts anew, and compares with
what the brokers did when they ran. The disks are those of tests/corpus, which brokers of the same release have written.

RELEASE_JARS has the jars of tools/kafka-jars.xml for each of RELEASES; ../test-jars/4.3.1 those of
tools/kafka-test-jars.xml, for tiered topics. Needs Java 17, 2 GB of memory and an hour."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from kdump.format.known_releases import known
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.log_directory import META
from tools.corpus import unpack
from tools.metadata_trials import Entry, value_of
from tools.trials.cluster import LOCAL_TIER
from tools.trials.course import CourseNode, differing, happened, numbers, plan_of, predicted, run, spans
from tools.trials.disk import files
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

DISKS = unpack()
DAMAGES: Any = importlib.import_module("tests.questions.restart_plan.release_damages")
STEPS: Any = importlib.import_module("tests.questions.restart_plan.restart_recipe")
CRAFT: Any = importlib.import_module("tests.craft")
COPIES: Any = importlib.import_module("tests.damages")
Step = Callable[[Path], Any]
RELEASES = ("3.9.1", "4.3.1", "4.4.0")
TIERED = "kafka-4.3-tiered/disk"
DELAY = 3_000
"""log.initial.task.delay.ms of most cases."""
STEADY = {
    "log.retention.check.interval.ms": "600000",
    "log.initial.task.delay.ms": "600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "600000",
    "offsets.retention.check.interval.ms": "600000",
}
"""Configs with which a broker at work changes nothing of its own accord: what its clients saw before."""
KEEP = {"log.retention.ms": "-1"}
SECOND_ID = "SECONDpABlNgsHloSKd7mg"


class Course(NamedTuple):
    """A start. `steps`: what is done to the disk before; `configs`: of the node, None for one that is missing; `disk`:
    clean or crash, of the release, or a path below the corpus' disks; `of`: the release of the disk."""

    kind: str
    release: str
    disk: str = "clean"
    steps: tuple[Step, ...] = ()
    configs: Mapping[str, str | None] = {}
    delay: int = DELAY
    of: str = ""
    explained: str = ""

    @property
    def name(self) -> str:
        return f"{self.release}-{self.kind}"

    @property
    def is_tiered(self) -> bool:
        return self.disk == TIERED

    @property
    def source(self) -> Path:
        return DISKS / "disks" / self.disk if self.is_tiered else DISKS / "releases" / f"{self.of}-kraft" / self.disk


# --- Recipes ----------------------------------------------------------------------------------------------------------


def recipe(name: str) -> tuple[Step, ...]:
    """Return the steps of a recipe for the disks of every release."""
    (found,) = (each for each in DAMAGES.RECIPES if each.name == name)
    return tuple(found.steps)


def own_controller(root: Path) -> None:
    """The node has led the metadata log, as the only voter."""
    path = root / "__cluster_metadata-0" / "quorum-state"
    text = path.read_text()
    path.write_text(text.replace('"leaderId":0', '"leaderId":1').replace('"voterId":0', '"voterId":1'))


def stamped(name: str, change: Callable[[int], int]) -> Step:
    """Return a step that changes the timestamps of a segment's batches, and those in its time index."""

    def step(root: Path) -> None:
        (path,) = STEPS.files(root, name)
        header = DAMAGES.BATCH_HEADER
        batches = []
        for each in CRAFT.split(path.read_bytes()):
            known = header.read(each)
            times = {key: change(getattr(known, key)) for key in ("baseTimestamp", "maxTimestamp")}
            batches.append(CRAFT.patch(each, **times))
        path.write_bytes(b"".join(batches))
        index = path.with_suffix(".timeindex")
        entries = [(change(time), offset) for time, offset in TIME_ENTRY.iter_unpack(index.read_bytes()) if time]
        index.write_bytes(b"".join(TIME_ENTRY.pack(*each) for each in entries))

    return step


def second(*partitions: str) -> Step:
    """Return a step that moves partitions to a second log directory of the node."""

    def step(root: Path) -> None:
        other = COPIES.second_directory(root)
        other.mkdir()
        for name in partitions:
            (root / name).rename(other / name)
        text = (root / META).read_text()
        (other / META).write_text(re.sub(r"(?m)^directory\.id=.*$", f"directory.id={SECOND_ID}", text))
        for path in (*root.glob("*-offset-checkpoint"), *root.glob(".kafka_cleanshutdown")):
            shutil.copy(path, other / path.name)
            if path.suffix or path.name.startswith("."):
                continue
            for place in (root, other):
                lines = (place / path.name).read_text().splitlines()[2:]
                kept = [line for line in lines if (place / line.rpartition(" ")[0].replace(" ", "-")).is_dir()]
                (place / path.name).write_text("\n".join(("0", str(len(kept)), *kept, "")))

    return step


def future(root: Path) -> None:
    """A partition was being moved to the second directory: all but its last segment is there, as -future."""
    own, other = root / "plain-0", COPIES.second_directory(root)
    target = other / f"plain-0.{DAMAGES.ID}-future"
    shutil.copytree(own, target)
    last = max(target.glob("*.log"))
    for path in target.glob(f"{last.stem}.*"):
        path.unlink()


def without_second(root: Path) -> None:
    shutil.rmtree(COPIES.second_directory(root))


def checkpoint(name: str, change: Callable[[str, int], int]) -> Step:
    """Return a step that changes the offsets in a checkpoint file."""

    def step(root: Path) -> None:
        rows = [line.rpartition(" ") for line in (root / name).read_text().splitlines()[2:]]
        lines = [f"{partition} {change(partition, int(offset))}" for partition, _, offset in rows]
        (root / name).write_text("\n".join(("0", str(len(lines)), *lines, "")))

    return step


def configured(topic: str, **configs: str) -> Step:
    """Return a step that sets configs of a topic in the metadata log."""

    def step(root: Path) -> None:
        path = max((root / "__cluster_metadata-0").glob("*.log"))
        for name, value in configs.items():
            values = {"resourceType": 2, "resourceName": topic, "name": name.replace("_", "."), "value": value}
            data = value_of(Entry("ConfigRecord", values), known((3, 9)))
            path.write_bytes(CRAFT.with_metadata_record(path.read_bytes(), data))

    return step


def half(name: str) -> Step:
    """Return a step that leaves the first half of a log's batches."""

    def step(root: Path) -> None:
        (path,) = STEPS.files(root, name)
        batches = CRAFT.split(path.read_bytes())
        path.write_bytes(b"".join(batches[: len(batches) // 2]))

    return step


def _without_remote_metadata(disk: Path) -> None:
    """Nothing is left of its only partition, not even in the checkpoints."""
    shutil.rmtree(disk / f"{REMOTE_METADATA_TOPIC}-0")
    for path in disk.glob("*-offset-checkpoint"):
        lines = path.read_text().splitlines()
        kept = [line for line in lines[2:] if not line.startswith(REMOTE_METADATA_TOPIC)]
        path.write_text("\n".join((*lines[:1], str(len(kept)), *kept, "")) if lines else "")


RUNNING = "the broker was at work with it before: what clients see of an undamaged disk"
DAMAGE_STAYS = (
    "the start loses nothing: what is missing was missing before, in what no start reads; the first line says that "
    "damage stays there, and names verify, which finds it"
)
IN_MEMORY = "the coordinator read the offsets before that, and has them until it loads its log again"
NO_OFFSETS = "the torn batch has the state of a group, and no offset: the plan does not decode what is cut there"
OFFSETS = "__consumer_offsets-0"
TIME_ENTRY = struct.Struct(">qi")
YEARS = str(10 * 365 * 86_400_000)
FAR = 4_102_444_800_000
"""Epoch ms of the year 2100."""


def _kinds(release: str) -> list[Course]:
    """Return the courses of a release: what is said in the name is done to the disk."""
    gone = STEPS.gone

    def course(kind: str, disk: str, *steps: Step, explained: str = "", delay: int = DELAY, **configs: Any) -> Course:
        given = {name.replace("_", "."): value for name, value in configs.items()}
        return Course(kind, release, disk, steps, given, delay, release, explained)

    def kept(kind: str, disk: str, *steps: Step, **more: Any) -> Course:
        return course(kind, disk, *steps, **{"log_retention_ms": "-1", **more})

    steady = {name.replace(".", "_"): value for name, value in STEADY.items()}
    deleted_offsets = configured(OFFSETS[:-2], cleanup_policy="delete", retention_ms="1")
    two = second("pair-0", "codecs-0")
    return [
        kept("running-clean", "clean", **steady, delay=600_000),
        kept("running-crash", "crash", **steady, delay=600_000),
        kept("healthy", "clean"),
        kept("killed", "crash"),
        course("old-records", "clean"),
        course("old-records-killed", "crash"),
        course("retention-by-size", "clean", log_retention_ms="-1", log_retention_bytes="3000"),
        course("retention-by-time-and-size", "crash", log_retention_ms=YEARS, log_retention_bytes="0"),
        kept("log-start-in-the-third-segment", "crash", *recipe("start-within")),
        course("timestamps-in-seconds", "clean", stamped("plain-0/@0.log", lambda ms: ms // 1000),
               log_retention_ms=YEARS),
        course("timestamps-in-the-future", "clean", stamped("plain-0/@1.log", lambda ms: FAR)),
        course("compacted-and-deleted", "clean", configured("plain", cleanup_policy="compact,delete")),
        kept("own-retention", "clean", configured("plain", retention_ms="1000"), configured("users", retention_ms="1")),
        kept("offsets-deleted", "clean", deleted_offsets, explained=IN_MEMORY),
        kept("torn-tails", "crash", *recipe("torn-crash")),
        kept("torn-tail-clean", "clean", *recipe("torn-clean")),
        kept("zeros-at-the-end", "crash", *recipe("zeros-tail")),
        kept("bit-below-the-recovery-point", "crash", *recipe("value-bit-below"), explained=DAMAGE_STAYS),
        kept("bit-above-the-recovery-point", "crash", *recipe("value-bit-above")),
        kept("bit-after-a-clean-shutdown", "clean", *recipe("value-bit-clean"), explained=DAMAGE_STAYS),
        kept("bit-and-recovery-points-gone", "crash", *recipe("value-bit-recovery-lost")),
        kept("index-gone-and-bit", "clean", *recipe("index-lost-clean")),
        kept("segment-gone", "clean", *recipe("segment-lost"), explained=DAMAGE_STAYS),
        kept("snapshots-gone", "clean", *recipe("snapshots-lost")),
        kept("snapshots-gone-killed", "crash", *recipe("snapshots-lost-crash")),
        kept("transaction-index-gone", "clean", *recipe("txn-index-lost"), explained=DAMAGE_STAYS),
        kept("transaction-index-gone-killed", "crash", gone("payments-0/*.txnindex"), explained=DAMAGE_STAYS),
        kept("coordinator-log-gone", "clean", gone("__transaction_state-0")),
        kept("checkpoints-gone", "clean", gone("*-offset-checkpoint")),
        kept("checkpoints-gone-killed", "crash", gone("*-offset-checkpoint")),
        kept("high-watermarks-zero", "crash", checkpoint(DAMAGES.REPLICATION, lambda name, at: 0)),
        kept("cleaner-checkpoint-zero", "clean", checkpoint(DAMAGES.CLEANER, lambda name, at: 0)),
        kept("epochs-gone", "crash", *recipe("epochs-lost")),
        kept("epochs-beyond-the-end", "crash", *recipe("epochs-beyond")),
        kept("empty-partition-gone", "clean", gone("empty-0")),
        kept("partition-gone", "clean", gone("plain-0")),
        kept("partition-gone-from-checkpoints", "clean", gone("plain-0", "*-offset-checkpoint")),
        kept("topic-id-of-another", "clean", *recipe("topic-id-other")),
        kept("partition-unknown", "clean", *recipe("partition-unknown")),
        kept("metadata-gone", "clean", *recipe("metadata-lost")),
        kept("metadata-truncated", "clean", half("__cluster_metadata-0/@-1.log")),
        kept("metadata-bit", "clean", *recipe("metadata-bit")),
        kept("node-id-of-another", "clean", *recipe("meta-node")),
        kept("no-voters", "clean", controller_quorum_voters=None),
        kept("mark-left", "crash", *recipe("mark-left")),
        kept("two-directories", "clean", two),
        kept("two-directories-one-killed", "clean", two, gone("second/.kafka_cleanshutdown")),
        kept("two-directories-one-unformatted", "clean", two, gone(f"second/{META}")),
        kept("two-directories-one-missing", "clean", two, without_second),
        kept("two-directories-two-clusters", "clean", two,
             STEPS.changed(f"second/{META}", lambda data: data.replace(b"cluster.id=", b"cluster.id=A"))),
        kept("two-directories-future", "clean", second("pair-0"), future),
        kept("future-alone", "clean", *recipe("future-alone")),
        kept("future-beside", "clean", *recipe("future-beside")),
        kept("delete-directory", "clean", *recipe("delete-directory")),
        kept("stray-directory", "clean", *recipe("stray-directory")),
        kept("swap-of-two", "clean", *recipe("swap-of-two")),
        kept("cleaned-left", "clean", *recipe("cleaned")),
        kept("offsets-expire", "clean", offsets_retention_minutes="1440"),
        kept("offsets-expired-before", "clean", offsets_retention_minutes="1"),
        kept("offsets-torn", "crash", STEPS.changed(f"{OFFSETS}/@-1.log", COPIES.cut(20)), explained=NO_OFFSETS),
        kept("offsets-half-gone", "clean", half(f"{OFFSETS}/@-1.log")),
        kept("offsets-gone", "clean", gone(OFFSETS)),
        kept("lost-and-found", "clean", *recipe("lost-and-found")),
    ]  # fmt: skip


COURSES = (
    *(each for release in RELEASES for each in _kinds(release)),
    Course("old-records-default-delay", "4.4.0", delay=30_000, of="4.4.0"),
    *(
        Course(f"of-{of}-{disk}", by, disk, configs=KEEP, of=of)
        for by, of in (("4.3.1", "3.9.1"), ("4.4.0", "3.9.1"), ("4.4.0", "4.3.1"), ("3.9.1", "4.3.1"))
        for disk in ("clean", "crash")
    ),
    Course("tiered", "4.3.1", TIERED, (), KEEP, 40_000),
    Course("remote-metadata-lost", "4.3.1", TIERED, (_without_remote_metadata,), KEEP, 40_000),
)


def prepared(course: Course, work: Path) -> list[Path]:
    """Return the log directories of a course, made below `work`."""
    root = COPIES.copy_disk(course.source, work / "disk")
    if course.is_tiered:
        COPIES.copy_disk(course.source.parent / "tier", work / "tier")
    else:
        own_controller(root)
    is_double = False
    for step in course.steps:
        step(root)
        is_double |= COPIES.second_directory(root).exists()
    return [root, COPIES.second_directory(root)] if is_double else [root]


def configs_of(course: Course, work: Path) -> dict[str, str | None]:
    tiered = dict(line.split("=", 1) for line in LOCAL_TIER.format(tier=work / "tier").split())
    return {
        "log.initial.task.delay.ms": str(course.delay),
        "log.retention.check.interval.ms": "300000",
        "offsets.retention.check.interval.ms": "2000",
        **(tiered if course.is_tiered else {}),
        **course.configs,
    }


def reference_of(course: Course, dirs: list[Path], results: RecordedResults) -> dict[str, Any] | None:
    """Return what clients saw of the running broker, and once its transactions had ended; without what is below the log
    start offsets in the checkpoints, which were raised on purpose."""
    before = results.by_name.get(f"{course.of}-running-{course.disk}")
    ended = results.by_name.get(f"{course.of}-{'healthy' if course.disk == 'clean' else 'killed'}")
    if course.is_tiered or before is None or course.kind.startswith("running"):
        return None
    reads: dict[str, Any] = before[0]["seen"]
    after = ended[0]["seen"]["reads"] if ended else {}
    paths = [each / COPIES.START for each in dirs]
    rows = (line.split() for path in paths if path.is_file() for line in path.read_text().splitlines()[2:])
    starts = {f"{topic}-{number}": int(offset) for topic, number, offset in rows}
    kept = {
        name: {kind: spans(at for at in numbers(text) if at >= starts.get(name, 0)) for kind, text in found.items()}
        for name, found in reads["reads"].items()
    }
    return reads | {"reads": kept, "ended": {name: found.get("committed", "") for name, found in after.items()}}


def trial(jars: Path, course: Course, results: RecordedResults) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        work = Path(name)
        dirs = prepared(course, work)
        before = {path.name: files(path) if path.is_dir() else {} for path in dirs}
        used = jars.parent / "test-jars" / course.release if course.is_tiered else jars / course.release
        node = CourseNode(used, work, dirs, configs_of(course, work))
        now = round(time.time() * 1000)
        reference = reference_of(course, dirs, results)
        is_steady = course.kind.startswith("running")
        window = 1_000 if is_steady else course.delay
        said = said_of(course, dirs, node.values, now, before, reference, window)
        ran = run(node, dirs, before, window)
        keeps = {"seen": {key: ran[key] for key in ("reads", "groups", "last", "open")}} if is_steady else {}
        if course.kind in ("healthy", "killed"):
            keeps = {"seen": {"reads": ran["reads"]}}
            reference = reference and {
                **reference,
                "ended": {k: v.get("committed", "") for k, v in ran["reads"].items()},
            }
        did = happened(ran, before, reference)
        return judged(course, now, said, did) | keeps


def said_of(
    course: Course, dirs: list[Path], values: dict[str, str], now: int, before: Any, reference: Any, window: int
) -> dict[str, Any]:
    crossing = course.release if course.of and course.of != course.release else ""
    plan = plan_of(dirs, values, now, crossing)
    reads = {} if reference is None else reference["reads"]
    said = predicted(plan, before, reads, window, is_steady=course.kind.startswith("running"))
    text = json.dumps(said)
    for path in dirs:
        text = text.replace(str(path), f"…/{path.name}")
    return json.loads(text)  # type: ignore[no-any-return]


def judged(course: Course, now: int, said: dict[str, Any], did: dict[str, Any]) -> dict[str, Any]:
    differs = differing(said, did)
    explained = {"explained": course.explained} if differs and course.explained else {}
    result = {"name": course.name, "release": course.release, "now": now, "predicted": said, "happened": did}
    return result | {"differences": differs} | explained


def predicted_again(course: Course, results: RecordedResults) -> dict[str, Any]:
    """Return the record of a course that was tried, with what is predicted now."""
    (record,) = results.by_name[course.name]
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        work = Path(name)
        dirs = prepared(course, work)
        before = {path.name: files(path) if path.is_dir() else {} for path in dirs}
        node = CourseNode(work, work, dirs, configs_of(course, work))
        window = 1_000 if course.kind.startswith("running") else course.delay
        said = said_of(course, dirs, node.values, record["now"], before, reference_of(course, dirs, results), window)
        keeps = {"seen": record["seen"]} if "seen" in record else {}
        return judged(course, record["now"], said, record["happened"]) | keeps


def main() -> None:
    parser = trial_options(__doc__, "docs/start-trials.json")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    results = RecordedResults(options.out, COURSES)
    lock = threading.Lock()

    def one(course: Course) -> None:
        if options.again and course.name not in results.by_name:
            return
        try:
            jars = options.jars.resolve()
            result = predicted_again(course, results) if options.again else trial(jars, course, results)
        except (subprocess.SubprocessError, OSError) as error:  # which says nothing about the course
            print(f"{course.name}: left out: {error}", flush=True)
            return
        with lock:
            results.keep(course.name, [result])
            differs = result["differences"]
            print(course.name, f"DIFFERS: {differs}" if differs else "as predicted", flush=True)

    every = list(chosen(COURSES, options.only))
    for group in ("running", "healthy", "killed", ""):  # the others are compared with these
        here = [each for each in every if each.kind.startswith(group)]
        every = [each for each in every if each not in here]
        with ThreadPoolExecutor(1 if options.again else options.jobs) as pool:
            list(pool.map(one, here))


if __name__ == "__main__":
    main()
