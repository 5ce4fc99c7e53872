"""Requests to a broker other than reading a partition from its start: reads from the middle, offsets by timestamp,
retention, the next batch of a producer, and one more batch at the end."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.trials.cluster import Cluster
from tools.trials.produce import produce
from tools.trials.wording import once

Result = dict[str, Any]
PRODUCERS = ("sequence-", "producer-", "snapshot-")
"""Prefixes of the codes that concern what a producer may write next."""
TIMES = ("time-index-lost", "time-index-zeros-clean")
"""Recipes that damage a time index but have a code with another prefix."""


class Probes:
    """Runs probes. `recipes`: the module tests.damages; `disks`: directory of the undamaged disks."""

    def __init__(self, disks: Path, recipes: Any) -> None:
        self.disks, self.recipes = disks, recipes

    def of(self, trial: tuple[Any, Any, str], root: Path, cluster: Cluster, end: int, sound: bool) -> Result:
        """Return the results of the probes for a trial. `trial`: recipe, expected finding, and the partition served;
        `root`: the damaged log directory; `end`: the log end offset; `sound`: whether everything has been read so
        far."""
        damage, expected, partition = trial
        found: Result = {}
        file = Path(expected.file)
        if damage.code.startswith(("index-", "segment-overlap")) and file.suffix in (".index", ".log"):
            found |= self.seek(damage, expected, partition, cluster)
        if damage.code.startswith(("time-index-", "timestamp-mismatch")) or damage.name in TIMES:
            found |= self.search(damage, expected, partition, cluster)
        if damage.code == "timestamp-in-future":
            found |= self.retain(partition, cluster)
        if damage.code.startswith(PRODUCERS):
            found |= self.next_of_producer(root, partition, cluster)
            end += found["producer"]["answer"] == "NONE"
        if sound and damage.code != "timestamp-in-future":
            found |= self.append(root, partition, cluster, end)
        return found

    def sound_path(self, damage: Any, file: Path) -> Path:
        return Path(self.disks / self.recipes.DISK_PATHS[damage.disk] / file)

    def sound_entries(self, path: Path, size: int) -> list[bytes]:
        data = path.read_bytes().rstrip(b"\0")
        return [data[i : i + size].ljust(size, b"\0") for i in range(0, len(data), size)]

    def seek(self, damage: Any, expected: Any, partition: str, cluster: Cluster) -> Result:
        """Read from offsets in the middle, and check that the first record has the requested offset."""
        base = int(Path(expected.file).name.split(".")[0])
        index = self.sound_path(damage, Path(expected.file).with_suffix(".index"))
        targets = {base, base + 7} if base else set()
        if index.exists():
            entries = self.sound_entries(index, 8)
            around = expected.position // 8
            for entry in entries[max(0, around - 2) : around + 4]:
                offset = base + int.from_bytes(entry[:4], "big")
                targets |= {max(0, offset - 60), offset - 20, offset}
        with ThreadPoolExecutor(2) as pool:
            firsts = list(
                pool.map(lambda target: (target, cluster.consume(partition, str(target), limit=1)), sorted(targets))
            )
        wrong = [{"from": target, "first": min(got.offsets, default=None)} for target, got in firsts]
        wrong = [read for read in wrong if read["from"] != read["first"]]
        found: Result = {"reads": {"tried": len(firsts), "wrong": wrong}}
        if wrong:
            nothing = any(read["first"] is None for read in wrong)
            found["consumer"] = "stops" if nothing else "reads from a wrong offset"
            found["consumerLog"] = once([line for _, got in firsts for line in got.lines])
        return found

    def search(self, damage: Any, expected: Any, partition: str, cluster: Cluster) -> Result:
        """Look up offsets by timestamp, which uses the time index, and compare them with the undamaged records."""
        path = self.sound_path(damage, Path(expected.file).with_suffix(".timeindex"))
        times = {int.from_bytes(entry[:8], "big") for entry in self.sound_entries(path, 12)}
        records = self.records(path.with_suffix(".log"))
        topic = partition.rpartition("-")[0]
        wrong = []
        moments = sorted({moment + step for moment in times | {time for _, time in records[::37]} for step in (-1, 0)})
        for moment in moments:
            right = next((offset for offset, timestamp in records if timestamp >= moment), None)
            answer = cluster.ends(str(moment), topic).get(partition)
            if answer != right:
                wrong.append({"time": moment, "offset": answer, "expected": right})
        found: Result = {"offsetsByTime": {"tried": len(moments), "wrong": wrong}}
        return found | ({"consumer": "gets wrong offsets by time"} if wrong else {})

    @staticmethod
    def records(segment: Path) -> list[tuple[int, int]]:
        """Return the offset and timestamp (epoch ms) of each record in an undamaged segment."""
        command = [sys.executable, "-m", "kdump", "inspect", "--records", "--json", str(segment)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return [(record["offset"], record["timestamp"] or -1) for record in map(json.loads, lines)]

    def retain(self, partition: str, cluster: Cluster) -> Result:
        """Set retention.ms to one second, and check whether the segment is deleted like an undamaged one of that
        age."""
        topic = partition.rpartition("-")[0]
        other = "orders-zstd"
        for entity in (topic, other):
            with contextlib.suppress(RuntimeError):  # the log start offsets show it
                cluster.configure_topic(entity, "retention.ms=1000")
        time.sleep(6)
        starts = cluster.ends("earliest")
        return {"retention": {"logStart": starts.get(partition), "logStartOfASoundTopic": starts.get(f"{other}-0")}}

    def next_of_producer(self, root: Path, partition: str, cluster: Cluster) -> Result:
        """Send the batch that the last producer in the log would send next."""
        last = max((root / partition).glob("0*.log"))
        header = self.recipes.BATCH_HEADER.read(self.recipes.split(last.read_bytes())[-1])
        sequence = header.baseSequence + header.recordCount
        producer = {"producerId": header.producerId, "producerEpoch": header.producerEpoch, "baseSequence": sequence}
        answer = self.send(partition, cluster, **producer)
        return {"producer": producer | {"answer": answer}} | self.refused(answer)

    def append(self, root: Path, partition: str, cluster: Cluster, end: int) -> Result:
        """Append one batch, and check whether the broker accepts it and a consumer can read it.

        The batch has the timestamp of the log's first batch, because a later one might roll the segment."""
        first = self.recipes.split(max((root / partition).glob("0*.log")).read_bytes())[:1]
        time_ms = self.recipes.BATCH_HEADER.read(first[0]).baseTimestamp if first and first[0][16] == 2 else 0
        times = {"baseTimestamp": time_ms, "maxTimestamp": time_ms} if time_ms > 0 else {}
        answer = self.send(partition, cluster, **times)
        if answer != "NONE":
            return {"append": {"answer": answer}} | self.refused(answer)
        reading = cluster.consume(partition, str(end))
        if len(reading.offsets) == 1:
            return {"append": {"answer": answer, "read": True}}
        log = {"consumerLog": once(reading.lines)} if reading.lines else {}
        word = "reads old records for what is appended" if reading.offsets else "does not get what is appended"
        return {"append": {"answer": answer, "read": False}, "consumer": word} | log

    @staticmethod
    def refused(answer: str) -> Result:
        return {"refused": f"rejects what is appended: {answer}"} if answer != "NONE" else {}

    def send(self, partition: str, cluster: Cluster, **fields: int) -> str:
        now = int(time.time() * 1000)
        fields = {"baseTimestamp": now, "maxTimestamp": now} | fields
        make: Callable[..., bytes] = self.recipes.batch
        record = self.recipes.record(key=b"probe", value=b"appended by the trial")
        try:
            return produce(cluster.ports["broker"], partition, make([record], **fields))[0]
        except OSError as error:
            return str(error)
