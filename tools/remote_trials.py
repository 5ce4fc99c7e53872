"""python -m tools.remote_trials JARS DISKS [--only NAME,…] [--out docs/remote-trials.json]

Changes what a bucket has of a tiered topic while its broker is stopped, starts the real broker with it, and reads the
topic with the Java consumer from the log start on: the first offset that it does not get is the one that `kdump verify
--remote` names. Then does what the first action says for what can be put back, or another one that the change names,
without a restart, and reads again.

JARS has the jars of tools/kafka-test-jars.xml (LocalTieredStorage is in the tests of kafka-storage), DISKS the disk
kafka-4.3-tiered. Needs Java 17, 1 GB of memory and ten minutes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kdump.check.engine.remote_check import remote_check
from kdump.check.engine.units import units_of
from kdump.check.finding import ERROR
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.log.remote_objects import RemoteStorage
from tools.trials.cluster import LOCAL_TIER, Cluster
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

RESULTS = Path(__file__).parent.parent / "docs" / "remote-trials.json"
DISK, TOPIC = "kafka-4.3-tiered", "tiered"
FIRST, SECOND, LOCAL, END = 110377, 162793, 215209, 260000
"""Base offsets of its two segments in remote storage and of the local one, and the log end."""
SECONDS = 25
"""How long the consumer waits for a record."""


class Bucket(NamedTuple):
    """The directory of the partition in the bucket."""

    path: Path

    def of(self, first: int, suffix: str) -> Path:
        (path,) = self.path.glob(f"{first:020}-*.{suffix}")
        return path


class Change(NamedTuple):
    """A change of the bucket; `objects`: what is put back afterwards, by its base offset and suffix; `act`: what is
    done in place of that, and `after`: the offset from which it is read then."""

    name: str
    do: Callable[[Bucket], None]
    objects: tuple[tuple[int, str], ...]
    act: Callable[[Cluster, Bucket, dict[tuple[int, str], Path]], str] | None = None
    after: int = FIRST


def delete(first: int, *suffixes: str) -> Change:
    def do(bucket: Bucket) -> None:
        for suffix in suffixes:
            bucket.of(first, suffix).unlink()

    return Change(f"deleted-{first}-{'-'.join(suffixes)}", do, tuple((first, suffix) for suffix in suffixes))


def rewrite(name: str, first: int, suffix: str, new: Callable[[bytes], bytes]) -> Change:
    def do(bucket: Bucket) -> None:
        path = bucket.of(first, suffix)
        path.write_bytes(new(path.read_bytes()))

    return Change(f"{name}-{first}-{suffix}", do, ((first, suffix),))


def flipped(data: bytes) -> bytes:
    """One bit in the records of the batch in the middle."""
    changed = bytearray(data)
    changed[len(data) // 2 + 1000] ^= 4
    return bytes(changed)


def swapped(bucket: Bucket) -> None:
    one, two = bucket.of(FIRST, "log"), bucket.of(SECOND, "log")
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def delete_records(cluster: Cluster, bucket: Bucket, gone: dict[tuple[int, str], Path]) -> str:
    """Raise the log start offset beyond the segment."""
    file = cluster.work / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": TOPIC, "partition": 0, "offset": SECOND}], "version": 1}))
    out, _ = cluster.tool("DeleteRecordsCommand", "--offset-json-file", str(file))
    (low,) = re.findall(r"low_watermark: (\d+)", out)
    return f"kafka-delete-records.sh with offset {SECOND}: the log start offset is {low}"


def reindex(cluster: Cluster, bucket: Bucket, gone: dict[tuple[int, str], Path]) -> str:
    """Write the indexes again from a copy of the segment's object, and put them in place."""
    copy, out = cluster.work / "copy" / f"{TOPIC}-0", cluster.work / "indexes"
    copy.mkdir(parents=True)
    shutil.copy(bucket.of(SECOND, "log"), copy / f"{SECOND:020}.log")
    words = ("reindex", str(copy), "--out", str(out))
    subprocess.run([sys.executable, "-m", "kdump", *words], check=False, capture_output=True)
    for (first, suffix), path in gone.items():
        (made,) = out.rglob(f"{first:020}.{suffix}")
        shutil.copy(made, path)
    return (
        f"kdump reindex of a copy of the object, whose .{' and .'.join(suffix for _, suffix in gone)} is put in place"
    )


CHANGES = [
    Change("unchanged", lambda bucket: None, ()),
    delete(FIRST, "log"),
    delete(SECOND, "log"),
    delete(SECOND, "index"),
    delete(FIRST, "timeindex"),
    delete(SECOND, "snapshot", "leader_epoch_checkpoint"),
    rewrite("emptied", FIRST, "log", lambda data: b""),
    rewrite("truncated", FIRST, "log", lambda data: data[: len(data) // 2]),
    rewrite("truncated", SECOND, "log", lambda data: data[:-20]),
    rewrite("flipped", FIRST, "log", flipped),
    rewrite("flipped", SECOND, "log", flipped),
    Change("swapped", swapped, ((FIRST, "log"), (SECOND, "log"))),
    rewrite("older", SECOND, "log", lambda data: data[: len(data) // 3] + bytes(len(data) - len(data) // 3)),
    delete(FIRST, "log")._replace(name="skipped", act=delete_records, after=SECOND),
    delete(SECOND, "index")._replace(name="reindexed", act=reindex),
]


def predicted(disk: Path, tier: Path) -> tuple[int, list[str]]:
    """Return the first offset that an error is about (END for none), and the codes of errors and warnings."""
    options = Options(remote=RemoteStorage(str(tier)), now=4_000_000_000_000)
    disks, totals = options.disks_at([str(disk)]), CheckTotals()
    check = remote_check(disks, options, [*units_of(disks, options)], totals)
    assert check is not None
    found = [each for place, topic in check.places() for each in check.findings(place, topic, totals)]
    first = min((each.offset for each in found if each.severity == ERROR and each.offset is not None), default=END)
    return first, sorted({f"{each.code}: {each.severity}" for each in found if each.severity != "info"})


def read(cluster: Cluster, first: int = FIRST) -> tuple[int, str]:
    """Return the first offset from there on that the consumer does not get, and what it says."""
    command = cluster.java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", f"127.0.0.1:{cluster.ports['broker']}", "--topic", TOPIC, "--partition", "0"),
        *("--offset", str(first), "--max-messages", str(END - first), "--timeout-ms", str(SECONDS * 1000)),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.value=false"),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    offsets = [int(line.rpartition(":")[2]) for line in done.stdout.splitlines() if line.startswith("Offset:")]
    expected = first
    for offset in offsets:
        if offset != expected:
            break
        expected += 1
    errors = re.findall(r"(\w+(?:Exception|Error)\b|Unknown server error)", done.stderr)
    return expected, " ".join(sorted(set(errors) - {"TimeoutException"}))


def tried(change: Change, jars: Path, disks: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(disks / DISK, work / "node")
        disk, tier = work / "node" / "disk", work / "node" / "tier"
        (partition,) = tier.glob("*/tiered-0-*")
        bucket = Bucket(partition)
        whole = {each: bucket.of(*each).read_bytes() for each in change.objects}
        paths = {each: bucket.of(*each) for each in change.objects}
        change.do(bucket)
        first, codes = predicted(disk, tier)
        (work / "controller").mkdir()
        with Cluster(
            jars, work, work / "controller", [disk], combined=True, configs=LOCAL_TIER.format(tier=tier)
        ) as cluster:
            assert cluster.started(), cluster.log("broker")[-20:]
            got, consumer = read(cluster)
            broker = re.findall(r"\b(\w+Exception)\b", "\n".join(cluster.log("broker")))
            again, did = None, {}
            if got < END:
                if change.act is not None:
                    did = {"did": change.act(cluster, bucket, paths)}
                else:
                    for each, data in whole.items():
                        paths[each].write_bytes(data)
                again, _ = read(cluster, change.after)
        return did | {
            "name": change.name,
            "codes": codes,
            "predicted": first,
            "firstNotRead": got,
            "consumer": consumer,
            "broker": " ".join(sorted({each for each in broker if "Remote" in each or "Corrupt" in each})),
            "afterPuttingItBack": again,
        }


def main() -> None:
    parser = trial_options(__doc__, str(RESULTS))
    parser.add_argument("disks", type=Path)
    options = parser.parse_args()
    results = RecordedResults(options.out, CHANGES)
    for change in chosen(CHANGES, options.only):
        result = tried(change, options.jars, options.disks)
        print(json.dumps(result), file=sys.stderr, flush=True)
        results.keep(change.name, [result])


if __name__ == "__main__":
    main()
