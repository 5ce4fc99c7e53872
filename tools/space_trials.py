"""python -m tools.space_trials JARS [--only NAME,…] [--out docs/space-trials.json] [--compare]

Fills the disk of a real broker to 100 % in eleven ways, tries to start the broker, takes the steps of `kdump space`
that are needed, in their order, and no others, starts the broker, and reads every acknowledged record: all must be
served, but for those below the log start offsets that a step that costs records has stated. Of a compacted topic whose
keys are written again, the last acknowledged record of each key must be served; of a topic whose segments become due,
what retention keeps. If the first start has emptied the metadata log (IO_ERROR_EMPTIES), `kdump space` is run again
with the controller's disk.

JARS is a directory with the jars listed in tools/kafka-jars.xml. Each disk is a file system of its own, of 2.5 GiB;
where none can be mounted (which takes root), nothing is tried, and the status is 0. --compare writes nothing, and exits
with 1 if a trial does not end as in OUT. Needs Java 17, 10 GiB and an hour."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tools.trials.cluster import config_command
from tools.trials.full_disk import FULL, FullDisk, NoMount, SmallFileSystem
from tools.trials.recorded_results import trial_options

SIZE = 2560 << 20
DAY = 86_400_000
MB = 1_000_000
RECORD = 50_000
Result = dict[str, Any]
REST = "rest.of.the.disk"
"""File next to the log directory that takes what a dying broker has left free."""
KEYS = 4000
"""Number of keys of a topic that is compacted."""
EXTRA_SECONDS = 25
"""Seconds to wait in addition to what a step states."""


class Filling(NamedTuple):
    """A way to fill the disk. `fill` leaves it full, with the broker down; `topic`: written to until then; `brokers`:
    how many there are; `keys`: number of different keys, 0 for none; `seconds`: how much longer the broker takes until
    it has deleted everything; `with_bundle`: the other broker's disk is given as a bundle; `compacted`: the topic whose
    keys are written again, and how many there are."""

    what: str
    fill: Callable[[FullDisk, Path], None]
    topic: str
    brokers: int = 1
    configs: str = ""
    keys: int = 0
    seconds: int = 0
    with_bundle: bool = False
    compacted: tuple[str, int] = ("", 0)


def write(cluster: FullDisk, acked: Path, *topics: str) -> None:
    """Write to the topics, and fail if the disk is full before that is done."""
    if cluster.fill(acked, *topics) != "done":
        raise RuntimeError(f"{topics}: not all records were acknowledged")


def to_the_end(cluster: FullDisk, acked: Path, topic: str) -> None:
    """Write to the topic until the disk is full and the broker is down."""
    for _ in range(8):
        if cluster.ended(FULL) or cluster.fill(acked, f"{topic}:0:{RECORD}:0") == "full":
            break
    until = time.monotonic() + 60
    while not cluster.ended(FULL) and time.monotonic() < until:
        time.sleep(0.5)
    if not cluster.ended(FULL):
        cluster.kill(FULL)


def long_retention(cluster: FullDisk, acked: Path) -> None:
    cluster.create("clicks", 3, configs={"retention.ms": str(30 * DAY)})
    ages = (20, 9, 4)
    for age in ages:
        write(cluster, acked, f"clicks:{600 * MB}:{RECORD}:0:{age * DAY}")
    to_the_end(cluster, acked, "clicks")


def deleted(cluster: FullDisk, acked: Path) -> None:
    cluster.create("old", 2)
    cluster.create("short", 1)
    cluster.create("events", 2)
    write(
        cluster, acked.with_name("of-deleted"), f"old:{900 * MB}:{RECORD}:0", f"short:{300 * MB}:{RECORD}:0:{3 * DAY}"
    )
    write(cluster, acked, f"events:{200 * MB}:{RECORD}:0")
    cluster.configure_topic("short", f"retention.ms={DAY}")
    cluster.delete("old")
    until = time.monotonic() + 60
    while not any(cluster.root.glob("short-0/*.deleted")) and time.monotonic() < until:
        time.sleep(1)
    to_the_end(cluster, acked, "events")


def stray(cluster: FullDisk, acked: Path) -> None:
    cluster.create("old", 2, on="1")
    cluster.create("users", 1, on="1", configs={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"})
    cluster.create("events", 1, on="1")
    write(cluster, acked.with_name("of-deleted"), f"old:{800 * MB}:{RECORD}:0")
    write(cluster, acked, f"users:{300 * MB}:{RECORD}:2000000")
    cluster.stop(FULL)
    cluster.delete("old")
    cluster.start(FULL)
    cluster.wait(FULL)
    to_the_end(cluster, acked, "events")


def replicas(cluster: FullDisk, acked: Path) -> None:
    cluster.create("ledger", 2, on="1:2,2:1")
    cluster.create("local", 1, on="1")
    write(cluster, acked, f"ledger:{1600 * MB}:{RECORD}:0")
    to_the_end(cluster, acked, "local")
    time.sleep(12)  # until the controller has fenced the broker, and the ISR has shrunk


def small_topics(cluster: FullDisk, acked: Path) -> None:
    for number in range(20):
        cluster.create(f"small-{number}", 4)
    cluster.create("events", 1)
    write(cluster, acked, *(f"small-{number}:{4 * MB}:2000:0" for number in range(20)))
    with (cluster.root / "java_pid4711.hprof").open("wb") as file:
        for _ in range(900):
            file.write(bytes(1 << 20))
    to_the_end(cluster, acked, "events")


def cleaner(cluster: FullDisk, acked: Path) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
    cluster.create("users", 1, configs=configs)
    write(cluster, acked, f"users:{700 * MB}:{RECORD}:2000000")
    cluster.disk.fill("kafka/core.4711", leave=30 << 20)
    cluster.configure_topic("users", "min.cleanable.dirty.ratio=0.01")
    until = time.monotonic() + 120
    while not cluster.ended(FULL) and time.monotonic() < until:
        time.sleep(0.5)
    if not cluster.ended(FULL):
        cluster.kill(FULL)


def due_while_down(cluster: FullDisk, acked: Path) -> None:
    """Fill the disk with records that become due only once the broker is down, and with others, and wait until then."""
    cluster.create("clicks", 3, configs={"retention.ms": str(DAY)})
    seconds = 170
    until = time.monotonic() + seconds
    due = f"clicks:{1200 * MB}:{RECORD}:0:{DAY - seconds * 1000}"
    write(cluster, acked.with_name("of-due"), due)
    to_the_end(cluster, acked, "clicks")
    if any(cluster.root.glob("*/*.deleted")):
        raise RuntimeError("segments were deleted before the disk was full")
    time.sleep(max(0, until - time.monotonic()) + 10)


def retention_bytes(cluster: FullDisk, acked: Path) -> None:
    """Fill the disk with records that are all new: a lower retention.ms would free nothing."""
    cluster.create("clicks", 3, configs={"retention.ms": "-1"})
    to_the_end(cluster, acked, "clicks")


def compaction(cluster: FullDisk, acked: Path) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
    cluster.create("users", 2, configs=configs)
    cluster.create("events", 1)
    for size in (RECORD, RECORD // 2):
        write(cluster, acked, f"users:{600 * MB}:{size}:{KEYS}")
    cluster.disk.fill("kafka/core.4711", leave=cluster.disk.free - (200 << 20))
    to_the_end(cluster, acked, "events")


def first_cleaning(cluster: FullDisk, acked: Path) -> None:
    """Fill most of the disk with a topic that the cleaner has to clean once the broker is up, and frees nothing of."""
    seconds = 150
    until = time.monotonic() + seconds
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    cluster.create("users", 2, configs={**configs, "min.compaction.lag.ms": str(seconds * 1000)})
    cluster.create("events", 1)
    write(cluster, acked, f"users:{1500 * MB}:{RECORD}:2000000")
    cluster.disk.fill("kafka/core.4711", leave=cluster.disk.free - (200 << 20))
    to_the_end(cluster, acked, "events")
    if time.monotonic() > until:
        raise RuntimeError("the cleaner may have begun before the disk was full")
    time.sleep(until - time.monotonic() + 60)  # until all of it may be cleaned


FILLINGS = {
    "long-retention": Filling("one topic with too long retention; nothing else on the disk", long_retention, "clicks"),
    "deleted": Filling(
        "a deleted topic's -delete directories and .deleted segments, left by the broker's end",
        deleted,
        "events",
        configs="log.segment.delete.delay.ms=600000\n",
    ),
    "stray": Filling(
        "the -stray directories of a topic deleted while the broker was down, and a compacted topic", stray, "events", 2
    ),
    "replicas": Filling(
        "replicas that are complete on broker 2, and a topic without any other replica", replicas, "local", 2
    ),
    "small-topics": Filling(
        "80 partitions of small topics, and a heap dump in the log directory", small_topics, "events"
    ),
    "cleaner": Filling(
        "a core dump, and a compacted topic whose cleaning failed because of the full disk",
        cleaner,
        "users",
        keys=2_000_000,
        seconds=90,
    ),
    "first-cleaning": Filling(
        "a core dump, and a compacted topic that takes the rest of the disk once it is cleaned",
        first_cleaning,
        "events",
        seconds=120,
    ),
    "due": Filling("one topic, half of which became due while the broker was down", due_while_down, "clicks"),
    "retention-bytes": Filling(
        "one topic of new records, on which only retention.bytes has an effect", retention_bytes, "clicks"
    ),
    "bundle": Filling(
        "replicas that are complete on broker 2, of which there is a bundle only; a topic without any other replica",
        replicas,
        "local",
        2,
        with_bundle=True,
    ),
    "compaction": Filling(
        "a compacted topic that was never cleaned, and a core dump",
        compaction,
        "events",
        seconds=120,
        compacted=("users", KEYS),
    ),
}


def kdump(*arguments: str) -> tuple[list[Result], int]:
    done = subprocess.run(
        [sys.executable, "-m", "kdump", "space", "--json", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def run_command(cluster: FullDisk, command: str, away: Path) -> None:
    """Run the lines of a step's command; Kafka's scripts by their classes, and the placeholders filled in."""
    for line in command.splitlines():
        text = line.replace("/ANOTHER/DISK/", f"{away}/")
        tool = re.match(r"(kafka-[a-z-]+\.sh) ", text)
        if tool is None:
            subprocess.run(["bash", "-c", text], check=True, cwd=away)
            continue
        name = {
            "kafka-configs.sh": config_command(cluster.jars),
            "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        }[tool[1]]
        words = text.split()[1:]
        alive = [role for role in cluster.ports if role != "controller" and not cluster.ended(role)]
        at = words.index("--bootstrap-server")
        if alive:
            words[at + 1] = f"127.0.0.1:{cluster.ports[alive[0]]}"
        else:
            words[at : at + 2] = ["--bootstrap-controller", f"127.0.0.1:{cluster.ports['controller']}"]
        words = [str(away / "reassign.json") if word == "reassign.json" else word for word in words]
        cluster.java_run(name, *words)


def bundle(disk: Path, out: Path) -> Path:
    """Write a bundle of the disk of a broker that is up."""
    command = [sys.executable, "-m", "kdump", "bundle", str(disk), "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return out


def keep_last(acked: Path, topic: str, keys: int) -> None:
    """Of the topic's acknowledged records, keep the last of each key."""
    last: dict[tuple[str, int], tuple[int, str]] = {}
    others = []
    for line in acked.read_text().splitlines():
        name, partition, offset, number = line.split()
        if name != topic:
            others.append(line)
        else:
            key = (partition, int(number) % keys)
            last[key] = max(last.get(key, (-1, "")), (int(offset), line))
    acked.write_text("\n".join([*others, *(line for _, line in last.values())]) + "\n")


def first_error(lines: list[str]) -> str:
    found = next((line for line in lines if "ERROR" in line or "No space left" in line), "")
    return re.sub(r"\S*/small/", "…/", found)[:200]


def trial(jars: Path, work: Path, name: str) -> Result:
    filling = FILLINGS[name]
    acked, away = work / "acked", work / "away"
    away.mkdir()
    with SmallFileSystem(work / "small", SIZE) as disk:
        configs = filling.configs
        with FullDisk(jars, work, disk, brokers=filling.brokers, configs=configs) as cluster:
            filling.fill(cluster, acked)
            disk.fill(REST)
            before = disk.free
            cluster.start(FULL)
            started = cluster.is_up(FULL, 60)
            survives = started and cluster.fill(acked, f"{filling.topic}:{5 * MB}:{RECORD}:{filling.keys}") == "done"
            time.sleep(5 if started else 0)
            error = first_error(cluster.log(FULL))
            if not cluster.ended(FULL):
                cluster.kill(FULL)
            disk.fill(REST)
            before = disk.free
            other = work / "other-disk"
            if filling.with_bundle:
                other = bundle(other, work / "broker-2.bundle")
            others = ["--with", str(other)] if filling.brokers > 1 else []
            properties = ("--properties", str(cluster.properties(FULL)))
            rows, status = kdump(str(cluster.root), *others, *properties)
            has_configs = not rows[-1]["unknownTopics"]
            if not has_configs:  # then kdump asks for the disk of a controller
                others += ["--with", str(cluster.dirs["controller"][0])]
                rows, status = kdump(str(cluster.root), *others, *properties)
            steps = [row for row in rows if row["type"] == "spaceStep" and row["isNeeded"]]
            (summary,) = (row for row in rows if row["type"] == "space")
            room = before
            for step in steps:
                if step["command"]:
                    run_command(cluster, step["command"], away)
                step["freedAtOnce"] = disk.free - room
                room = disk.free
            cluster.start(FULL)
            up = cluster.is_up(FULL, 120)
            wait = max([step["freesAfter"] for step in steps], default=0)
            wait = min(wait, 90_000) / 1000 + EXTRA_SECONDS + filling.seconds  # the interval of the check is 10 s here
            time.sleep(wait)
            up = up and not cluster.ended(FULL)
            after = disk.free
            if filling.compacted[0]:
                keep_last(acked, *filling.compacted)
            served = cluster.check(acked) if up else {}
            writes = up and cluster.fill(work / "more", f"{filling.topic}:{MB}:{RECORD}:{filling.keys}") == "done"
    # What counts as said: a step that costs records states the log start offset of each partition.
    said = {
        f"{row['topic']}-{each['partition']}": each["logStartOffset"]
        for row in steps
        for each in row["logStartOffsets"]
    }
    lost = {
        partition: counts
        for partition, counts in served.items()
        if counts["wrong"]
        or counts["missing"]
        or (counts["logStart"] != said[partition] if partition in said else counts["served"] < counts["acknowledged"])
    }
    freed = after - before
    is_back = bool(up and writes and served and not lost and freed > 0)
    if not is_back:
        print(json.dumps(rows), *cluster.log(FULL)[-30:], sep="\n", file=sys.stderr)
    return {
        "name": name,
        "what": filling.what,
        "fileSystem": disk.kind,
        "freeBefore": before,
        "startsAsItIs": started,
        "takesRecordsAsItIs": survives,
        "error": error,
        "neededToStart": summary["neededToStart"],
        "hasConfigs": has_configs,
        "status": status,
        "steps": [
            {key: step[key] for key in ("step", "how", "cost", "frees", "files", "freedAtOnce")} for step in steps
        ],
        "said": sum(step["frees"] for step in steps),
        "roomToStart": room - before,
        "freed": freed,
        "startsAfter": up,
        "takesRecords": writes,
        "acknowledged": sum(each["acknowledged"] for each in served.values()),
        "served": sum(each["served"] for each in served.values()),
        "belowSaidLogStart": sum(
            each["acknowledged"] - each["served"] for name, each in served.items() if name in said and name not in lost
        ),
        "lost": lost,
        "isBack": is_back,
    }


TELLING = ("name", "startsAfter", "takesRecords", "isBack", "lost")
"""Facts that are compared: sizes differ from run to run."""


def main() -> None:
    parser = trial_options(__doc__, "docs/space-trials.json")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    chosen = [name for name in options.only.split(",") if name] or list(FILLINGS)
    results = []
    for name in chosen:
        work = Path(tempfile.mkdtemp(prefix="space-trial-"))
        try:
            results.append(trial(options.jars.resolve(), work, name))
        except NoMount as error:
            print(f"skipped: no file system can be mounted here ({error})", file=sys.stderr)
            return
        finally:
            shutil.rmtree(work, ignore_errors=True)
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(f"{sum(each['isBack'] for each in results)} of {len(results)} are back", file=sys.stderr)
    known = json.loads(options.out.read_text()) if options.out.exists() else []
    if options.compare:
        before = {each["name"]: each for each in known}
        differs = [
            each["name"] for each in results if any(each[f] != before.get(each["name"], {}).get(f) for f in TELLING)
        ]
        print("\n".join(f"{each}: differs from OUT" for each in differs))
        sys.exit(bool(differs))
    merged = {each["name"]: each for each in (*known, *results)}
    rows = [merged[name] for name in FILLINGS if name in merged]
    options.out.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
