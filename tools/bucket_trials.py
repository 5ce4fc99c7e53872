"""python -m tools.bucket_trials JARS [--first N] [--rounds N] [--aiven] [--out docs/bucket-trials.json]

Makes a topic of 64 partitions with a real broker and LocalTieredStorage. In each round, changes the bucket of each
partition in one way, or what __remote_log_metadata states of it, while the broker is down, starts the broker with it,
and reads each partition with the Java consumer: the first offset that it does not get is the first of the errors that
`kdump verify --remote` has, except for those of time indexes, which no fetch by offset reads. With --first above 1,
adds the rounds from that one on to those recorded; their numbers are the seeds.

JARS has the jars of tools/kafka-test-jars.xml; with --aiven also those of Aiven's plugin (core, storage-filesystem and
what they need), which then writes compressed and encrypted objects. Needs Java 17, openssl for --aiven, 1 GB of memory,
and two minutes for a round.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from crc32c import crc32c

from kdump.check.engine.remote_check import remote_check
from kdump.check.engine.units import units_of
from kdump.check.finding import ERROR
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.cluster.internal_log import read_records
from kdump.format.batch_writer import new_batch
from kdump.format.kafka_uuid import uuid_text
from kdump.format.message_writer import encode
from kdump.format.metadata_record import decode_metadata_record
from kdump.format.schema import load_folder
from kdump.io.aiven import use_keys
from kdump.log.remote_objects import RemoteStorage
from tests.craft import split
from tools.trials.cluster import LOCAL_TIER, REMOTE, Cluster

RESULTS = Path(__file__).parent.parent / "docs" / "bucket-trials.json"
TOPIC, PARTITIONS = "many", 64
QUIET = 15_000
"""Milliseconds without a record after which a consumer is stuck."""
KEEP = "\nlog.retention.check.interval.ms=6000000\nlog.initial.task.delay.ms=6000000\n"
COPY = "\nremote.log.manager.task.interval.ms=1000\nlog.segment.delete.delay.ms=1000\n"
CREATE = [
    *("remote.storage.enable=true", "internal.segment.bytes=20000", "local.retention.bytes=1"),
    *("retention.bytes=100000000", "index.interval.bytes=1000"),
]
KINDS = [
    *("deleted", "index gone", "time index gone", "snapshot and epochs gone", "flipped", "flipped", "flipped", "cut"),
    *("cut", "emptied", "swapped", "renamed", "duplicated", "zeros at the end", "index flipped", "index cut"),
    *("index of another", "longer", "zeroed", "of another partition"),
]
STATED = ("metadata lost", "metadata lost", "finish lost", "all metadata lost", "older metadata", "older metadata")
ADDED = (
    *("copied twice", "copied twice, first gone", "copied twice, second gone", "copied again, shorter", "other bytes"),
    *("overlap", "overlap, first gone"),
)
"""Changes of what the metadata states: records lost, and segments more over the same offsets."""
SWAPPED = 3
"""Number of pairs of partitions of which two objects are swapped."""
AIVEN_KINDS = [
    *("deleted", "indexes gone", "manifest gone", "flipped", "flipped", "cut", "emptied", "swapped", "renamed"),
    *("duplicated", "zeros at the end", "longer", "zeroed", "of another partition", "indexes flipped", "indexes cut"),
    *("manifest of another", "manifest cut", "manifest flipped"),
]
AIVEN = f"""{REMOTE}remote.log.storage.manager.class.name=io.aiven.kafka.tieredstorage.RemoteStorageManager
rsm.config.storage.backend.class=io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage
rsm.config.storage.root={{tier}}
rsm.config.storage.overwrite.enabled=true
rsm.config.chunk.size=4096
rsm.config.compression.enabled=true
rsm.config.encryption.enabled=true
rsm.config.encryption.key.pair.id=k1
rsm.config.encryption.key.pairs=k1
rsm.config.encryption.key.pairs.k1.public.key.file={{keys}}/public.pem
rsm.config.encryption.key.pairs.k1.private.key.file={{keys}}/private.pem
"""


def make_keys(keys: Path) -> None:
    """Make the RSA key pair with which Aiven's plugin wraps its keys."""
    keys.mkdir(parents=True)
    for command in (
        ("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", keys / "private.pem"),
        ("pkey", "-in", keys / "private.pem", "-pubout", "-out", keys / "public.pem"),
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)


def make(jars: Path, base: Path, plugin: str) -> None:
    """Make the disk and the bucket. `plugin`: its configs, with a field for the bucket."""
    disk, tier = base / "disk", base / "tier"
    for each in (disk, tier, base / "controller"):
        each.mkdir(parents=True)
    configs = plugin.format(tier=tier) + COPY
    cluster = Cluster(jars, base, base / "controller", [disk], combined=True, configs=configs)
    cluster.format_disks("MkU3OEVBNTcwNTJENDM2Qk")
    with cluster:
        assert cluster.started(), cluster.log("broker")[-20:]
        options = [part for config in CREATE for part in ("--config", config)]
        cluster.tool("TopicCommand", "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS), *options)
        producer = ["batch.size=2000", "linger.ms=20", f"bootstrap.servers={cluster.alive()}"]
        cluster.java_run(
            *("org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--record-size", "80"),
            *("--num-records", str(PARTITIONS * 1100), "--throughput", "20000"),
            *(part for config in producer for part in ("--command-property", config)),
        )
        for _ in range(90):
            time.sleep(1)
            if all(len([*(disk / f"{TOPIC}-{n}").glob("*.log")]) == 1 for n in range(PARTITIONS)):
                break
        for process in cluster.processes.values():
            process.terminate()
            process.wait(60)


def other_name(path: Path) -> Path:
    """Return the name of the same object of another segment."""
    return path.with_name(f"{path.name[:21]}AAAAAAAAAAAAAAAAAAAA{path.name[41:]}")


def change(rng: random.Random, partition: Path, others: list[Path], kinds: list[str]) -> str:
    """Change what a bucket has of a partition, and return how."""
    logs = sorted(partition.glob("*.log"))
    log, kind = rng.choice(logs), rng.choice(kinds)
    other = rng.choice([each for each in logs if each != log])
    data = bytearray(log.read_bytes())
    at = rng.randrange(len(data))
    new: dict[str, bytes | bytearray] = {
        "flipped": data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
        "cut": data[: at or 1],
        "emptied": b"",
        "zeros at the end": data[: len(data) // 3] + bytes(len(data) - len(data) // 3),
        "longer": data + data[-100:],
        "zeroed": (data[:at] + bytes(4096) + data[at + 4096 :])[: len(data)],
        "swapped": other.read_bytes(),
        "of another partition": rng.choice(sorted(rng.choice(others).glob("*.log"))).read_bytes(),
    }
    if kind == "swapped":
        other.write_bytes(data)
    if kind in new:
        log.write_bytes(new[kind])
    gone = {"deleted": ["log"], "index gone": ["index"], "time index gone": ["timeindex"]}
    gone["snapshot and epochs gone"] = ["snapshot", "leader_epoch_checkpoint"]
    gone |= {"indexes gone": ["indexes"], "manifest gone": ["rsm-manifest"]}
    for suffix in gone.get(kind, []):
        log.with_suffix(f".{suffix}").unlink()
    if kind == "renamed":
        log.rename(other_name(log))
    for path in [log.with_suffix(f".{suffix}") for suffix in ("log", "index", "timeindex", "indexes", "rsm-manifest")]:
        if kind == "duplicated" and path.exists():
            shutil.copy(path, other_name(path))
    what, _, how = kind.partition(" ")
    if what in ("indexes", "manifest") and how != "gone":
        path = log.with_suffix(".indexes" if what == "indexes" else ".rsm-manifest")
        part = path.read_bytes()
        at = rng.randrange(len(part))
        flipped = part[:at] + bytes([part[at] ^ 1 << rng.randrange(8)]) + part[at + 1 :]
        part_of_other = other.with_suffix(path.suffix).read_bytes()
        path.write_bytes({"flipped": flipped, "cut": part[:at], "of another": part_of_other}[how])
        return kind
    if kind.startswith("index ") and kind != "index gone":
        suffix = rng.choice([".index", ".timeindex"])
        index = log.with_suffix(suffix).read_bytes()
        if not index:
            return "unchanged"
        at = rng.randrange(len(index))
        flipped = index[:at] + bytes([index[at] ^ 1 << rng.randrange(8)]) + index[at + 1 :]
        changed = {"index flipped": flipped, "index cut": index[:at]}
        log.with_suffix(suffix).write_bytes(changed.get(kind, other.with_suffix(suffix).read_bytes()))
        kind += f" ({suffix[1:]})"
    return kind


class Stated:
    """The records of __remote_log_metadata-0, each with its offset, as dictionaries; `write` writes them again."""

    def __init__(self, disk: Path) -> None:
        self.folder = disk / "__remote_log_metadata-0"
        self.logs = sorted(self.folder.glob("*.log"))
        self.records: list[tuple[int, bytes, dict[str, Any]]] = []
        for log in self.logs:
            for each in read_records(str(log), print):
                decoded = None if each is None else decode_metadata_record(each.value, "storage").values
                if each is not None and decoded is not None:
                    self.records.append((each.offset or 0, each.value or b"", decoded))
        self.end = self.records[-1][0] + 1

    def of(self, partition: int) -> list[tuple[int, bytes, dict[str, Any]]]:
        """Return the records of a partition, without those that no segment has."""
        every = [each for each in self.records if "remoteLogSegmentId" in each[2]]
        return [each for each in every if self._place(each)["partition"] == partition]

    @staticmethod
    def _place(each: tuple[int, bytes, dict[str, Any]]) -> dict[str, Any]:
        return dict(each[2]["remoteLogSegmentId"]["topicIdPartition"])

    def drop(self, dropped: list[tuple[int, bytes, dict[str, Any]]]) -> None:
        gone = {offset for offset, _, _ in dropped}
        self.records = [each for each in self.records if each[0] not in gone]

    def add(self, started: dict[str, Any]) -> None:
        """Add a segment whose copy has finished."""
        schemas = load_folder("storage")
        finished = started | {"remoteLogSegmentState": 1}
        for kind, name, values in ((0, "Record", started), (1, "UpdateRecord", finished)):
            value = bytes([1, kind, 0]) + encode(schemas[f"RemoteLogSegmentMetadata{name}"], 0, values)
            self.records.append((self.end, value, values))
            self.end += 1

    def write(self) -> None:
        for path in self.folder.iterdir():
            if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
                path.unlink()
        batches = [new_batch(offset, 0, 1_795_000_000_000, [(None, value)]) for offset, value, _ in self.records]
        self.logs[0].write_bytes(b"".join(batches))


def state_otherwise(rng: random.Random, number: int, partition: Path, stated: Stated) -> str:
    """Change what the metadata states of a partition, and return how."""
    kind, here = rng.choice((*STATED, *ADDED)), stated.of(number)
    starts = [each for each in here if "endOffset" in each[2]]
    if kind in STATED:
        one = rng.choice(starts)[2]["remoteLogSegmentId"]["id"]
        its = [each for each in here if each[2]["remoteLogSegmentId"]["id"] == one]
        lost = {"metadata lost": its, "finish lost": its[1:], "all metadata lost": here}
        stated.drop(lost.get(kind, here[rng.randrange(len(here)) :]))
        return kind
    row = rng.randrange(len(starts) - kind.startswith("overlap"))
    old = starts[row][2]
    new = {**old, "remoteLogSegmentId": {**old["remoteLogSegmentId"], "id": uuid_text(rng.randbytes(16))}}
    paths = {path.suffix: path for path in partition.glob(f"*-{old['remoteLogSegmentId']['id']}.*")}
    old_id, new_id = old["remoteLogSegmentId"]["id"], new["remoteLogSegmentId"]["id"]
    copies = {suffix: path.with_name(path.name.replace(old_id, new_id)) for suffix, path in paths.items()}
    for suffix, path in paths.items():
        shutil.copy(path, copies[suffix])
    log = copies[".log"]
    if kind == "other bytes":
        changed = bytearray(log.read_bytes())
        position = 0
        while position < len(changed):
            size = 12 + int.from_bytes(changed[position + 8 : position + 12], "big")
            changed[position + size - 3] ^= 1  # of the value of its last record
            changed[position + 17 : position + 21] = crc32c(bytes(changed[position + 21 : position + size])).to_bytes(
                4, "big"
            )
            position += size
        log.write_bytes(changed)
    batches = split(log.read_bytes())
    if kind == "copied again, shorter" and len(batches) == 1:  # no broker writes a record of no offsets
        kind = "copied twice"
    if kind == "copied again, shorter":
        log.write_bytes(b"".join(batches[: len(batches) // 2]))
        end = int.from_bytes(batches[len(batches) // 2][:8], "big")
        new |= {"endOffset": end - 1, "segmentSizeInBytes": log.stat().st_size}
        for suffix in (".index", ".timeindex"):
            copies[suffix].write_bytes(b"")
    if kind.startswith("overlap"):  # a second leader has rolled elsewhere
        following = starts[row + 1][2]
        (next_log,) = partition.glob(f"*-{following['remoteLogSegmentId']['id']}.log")
        half = rng.randrange(2)
        kept = batches[half * len(batches) // 2 :]
        first = int.from_bytes(kept[0][:8], "big")
        data = b"".join(kept) + next_log.read_bytes()
        new |= {"startOffset": first, "endOffset": following["endOffset"], "segmentSizeInBytes": len(data)}
        new["segmentLeaderEpochs"] = [{"leaderEpoch": 0, "offset": first}]
        for suffix, path in copies.items():
            target = path.with_name(f"{first:020}{path.name[20:]}")
            path.rename(target)
            if suffix in (".index", ".timeindex"):
                target.write_bytes(b"")
        log.with_name(f"{first:020}{log.name[20:]}").write_bytes(data)
    stated.add(new)
    if kind.endswith("first gone"):
        paths[".log"].unlink()
    if kind.endswith("second gone"):
        log.unlink()
    return kind


def swap(rng: random.Random, one: Path, other: Path) -> None:
    """Swap two objects of two partitions."""
    first, second = (rng.choice(sorted(path.glob("*.log"))) for path in (one, other))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def predicted(disk: Path, tier: Path) -> dict[int, int]:
    """Return the first offset of the errors that kdump has, by partition."""
    options = Options(remote=RemoteStorage(str(tier)), now=4_000_000_000_000)
    disks, totals = options.disks_at([str(disk)]), CheckTotals()
    check = remote_check(disks, options, [*units_of(disks, options)], totals)
    assert check is not None
    first: dict[int, int] = {}
    for place, topic in check.places():
        for finding in check.findings(place, topic, totals):
            # A consumer does not stop if a fetch by offset reads none of it, or if it reads other records there.
            reads = finding.code == "time-index-mismatch" or finding.case == "another"
            is_error = finding.severity == ERROR and not reads
            if is_error and finding.offset is not None:
                first[place[1]] = min(first.get(place[1], finding.offset), finding.offset)
    return first


def tried(number: int, jars: Path, made: Path, classes: Path, plugin: str) -> list[dict[str, Any]]:
    """Return the results of one round. `plugin`: see `make`."""
    rng = random.Random(number)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for each in ("disk", "tier"):
            shutil.copytree(made / each, work / each)
        (work / "controller").mkdir()
        disk, tier = work / "disk", work / "tier"
        parts = {int(re.findall(r"-(\d+)-", path.name)[0]): path for path in tier.glob(f"*/{TOPIC}-*")}
        parts = parts or {int(path.name): path for path in tier.glob(f"{TOPIC}-*/*")}
        chosen = {n: path for n, path in sorted(parts.items()) if len([*path.glob("*.log")]) > 1}
        is_plain = plugin == LOCAL_TIER
        pairs = rng.sample(sorted(chosen), 2 * SWAPPED)
        changes = dict.fromkeys(pairs, "swapped with another partition")
        for one, two in zip(pairs[::2], pairs[1::2]):
            swap(rng, chosen[one], chosen[two])
        stated = Stated(disk)
        for n, path in chosen.items():
            if n in changes:
                continue
            if is_plain and rng.random() < 0.5:
                changes[n] = state_otherwise(rng, n, path, stated)
            else:
                others = [p for p in chosen.values() if p != path]
                changes[n] = change(rng, path, others, KINDS if is_plain else AIVEN_KINDS)
        stated.write()
        first = predicted(disk, tier)
        configs = plugin.format(tier=tier) + KEEP
        with Cluster(jars, work, work / "controller", [disk], combined=True, configs=configs) as cluster:
            assert cluster.started(), cluster.log("broker")[-20:]
            command = ["java", "-Xmx500m", "-cp", f"{classes}:{jars}/*", "ReadAll", cluster.alive(), TOPIC]
            text = subprocess.run([*command, str(PARTITIONS), str(QUIET)], capture_output=True, text=True, check=True)
    results = []
    for partition, got, end, thrown in re.findall(r"^read (\d+) (\d+) (\d+) (.*)$", text.stdout, re.MULTILINE):
        n = int(partition)
        if n in changes:
            wanted = min(first.get(n, int(end)), int(end))
            result = {"round": number, "partition": n, "change": changes[n], "predicted": wanted, "got": int(got)}
            results.append(result | {"end": int(end), "thrown": thrown})
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--aiven", action="store_true")
    parser.add_argument("--made", type=Path, help="keep the disk and the bucket here, and take them from here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    recorded = json.loads(options.out.read_text()) if options.first > 1 and options.out.exists() else {}
    name = "aiven" if options.aiven else "kinds"
    kinds, others = Counter(recorded.get(name, {})), recorded.get("otherwise", [])
    with tempfile.TemporaryDirectory() as work:
        made, classes = options.made or Path(work) / "made", Path(work) / "classes"
        source = Path(__file__).parent / "trials" / "ReadAll.java"
        subprocess.run(["javac", "-d", classes, "-cp", f"{options.jars}/*", source], check=True)
        plugin = AIVEN.replace("{keys}", str(made / "keys")) if options.aiven else LOCAL_TIER
        if not made.exists():
            if options.aiven:
                make_keys(made / "keys")
            make(options.jars, made, plugin)
        use_keys([str(made / "keys" / "private.pem")] if options.aiven else [])
        for number in range(options.first, options.first + options.rounds):
            results = tried(number, options.jars, made, classes, plugin)
            kinds.update(result["change"] for result in results if result["change"] != "unchanged")
            others += [result for result in results if result["predicted"] != result["got"]]
            print(number, len(results), len(others), file=sys.stderr, flush=True)
            recorded |= {"otherwise": others, name: dict(sorted(kinds.items()))}
            recorded["changes"] = sum(sum(recorded.get(each, {}).values()) for each in ("kinds", "aiven"))
            options.out.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
