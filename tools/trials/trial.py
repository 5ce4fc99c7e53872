"""Startups of a real broker on damaged disks, and what it and a consumer did, for docs/broker-trials.json."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tools.trials.cluster import KAFKA, Cluster, Reading
from tools.trials.disk import Files, actions, files, part
from tools.trials.probe import Probes, Result
from tools.trials.wording import LINES, once, ranges, shape

# The recipes are test code, which is not type-checked: tests.damages.Damage, Expected and copy_disk.
Recipe = Any

ALONE = {
    *("checkpoint-invalid", "partition-metadata-invalid", "meta-properties-invalid", "quorum-state-invalid"),
    *("kraft-snapshot-missing", "kraft-snapshot-invalid", "partition-duplicate", "directory-unknown"),
    *("directory-stray", "control-batch-invalid", "checkpoint-beyond-log", "file-unknown"),
}
"""Codes that may concern the whole directory, so that each recipe gets a startup of its own."""

TRANSACTIONS = ("transaction-", "txn-", "control-", "producer-fields-")
LEGACY_HOSTS = [
    f"{client}-{codec}-0"
    for client in ("librdkafka", "kafkapython", "aiokafka", "franz")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd")
]
"""Partitions with 120 records like the legacy ones, whose files can replace theirs: a 4.x broker reads the old formats
but cannot create such topics."""

NOISE = re.compile(
    r"TimeoutException|Processed a total|is defined in the broker role|could not be established|SLF4J"
    r"|Replayed \w+Record "
)
TELLING = re.compile(
    r"truncat|delet|recover|rebuil|corrupt|invalid|stray|renam|swap|split|skipp|found|unclean|fail|error|inconsisten|"
    r"mismatch|missing|beyond|ignor|offline|Shutdown|shutting down|Exception",
    re.IGNORECASE,
)
USUAL = re.compile(r" (INFO|DEBUG) ")
ALIKE = 56
"""Lines about many partitions are the same if their shapes begin with this many equal characters."""


class Ground(NamedTuple):
    """Undamaged disk: its files, the shapes of the lines that a broker logs on it, its log end offsets, and what is
    read from it."""

    files: Files
    shapes: set[str]
    ends: dict[str, int]
    read: dict[tuple[str, bool], Reading]


def decisive(lines: Iterable[str], usual: set[str], names: tuple[str, ...]) -> list[str]:
    """Return the relevant lines, except those of a normal startup. If `names` is not empty, only lines about these
    partitions.

    The lines of an exception follow the line that logged it."""
    found: dict[str, str] = {}
    told = False
    for line in lines:
        if NOISE.search(line):
            continue
        levelled = re.match(r"\[?\w*\]?\s*(TRACE|DEBUG|INFO|WARN|ERROR) ", line)
        if levelled:
            about = not names or any(name in line for name in names)
            telling = levelled[1] in ("WARN", "ERROR") or TELLING.search(line)
            told = bool(about and telling and shape(line) not in usual)
        elif not re.match(r"[\w.$]+(Exception|Error)\b|Caused by|Suppressed", line):
            told = told and False
        if told:
            key = shape(line) if names else shape(line)[:ALIKE]
            found.setdefault(key, line.strip()[:600])
    return list(found.values())[:LINES]


def partition_of(damage: Recipe, expected: Any) -> str | None:
    """Return the partition to consume, or None if the damage is on the controller."""
    name = expected.file.split("/")[0].split(".")[0]
    if re.search(r"-\d+$", name) and not name.startswith("__"):
        return str(name)
    by_topic = {"start": "trimmed-0", "cleaner": "users-0", "replication": "orders-lz4-0"}
    return None if damage.disk == "clean-0" else by_topic.get(damage.name.split("-")[0], "orders-none-0")


def is_about_transactions(damage: Recipe) -> bool:
    return bool(damage.code.startswith(TRANSACTIONS))


class Lab:
    """Copies disks, starts and stops Kafka, and caches the results of undamaged disks."""

    def __init__(self, jars: Path, disks: Path, recipes: Any, say: Callable[[str], None]) -> None:
        self.jars, self.disks, self.recipes, self.say = jars, disks, recipes, say
        self.grounds: dict[str, Ground] = {}
        self.probes = Probes(disks, recipes)

    # --- disks ---

    def copy(self, disk: str, target: Path) -> Path:
        return Path(self.recipes.copy_disk(self.disks / self.recipes.DISK_PATHS[disk], target))

    def graft(self, source: Path, partition: str, root: Path, host: str) -> None:
        """Replace the files of the host partition with those of a legacy partition."""
        for path in (root / host).iterdir():
            if path.name.startswith("0"):
                path.unlink()
        for path in (source / partition).glob("0*"):
            shutil.copy(path, root / host)

    def ground(self, disk: str, wanted: Iterable[tuple[str, bool]]) -> Ground:
        """Return the results of the undamaged disk; each requested (partition, read_committed) has been consumed
        once."""
        known = self.grounds.get(disk)
        missing = sorted(set(wanted) - set(known.read if known else ()))
        if known and not missing:
            return known
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            broker_disk = "clean-1" if disk in ("clean-0", "legacy") else disk
            root, controller = self.copy(broker_disk, work / "disk-1"), self.copy("clean-0", work / "disk-0")
            hosts = {partition: partition for partition, _ in missing}
            if disk == "legacy":
                legacy = self.copy("legacy", work / "legacy")
                hosts = dict(zip(hosts, LEGACY_HOSTS))
                for partition, host in hosts.items():
                    self.graft(legacy, partition, root, host)
            facts = files(controller if disk == "clean-0" else legacy if disk == "legacy" else root)
            with Cluster(self.jars, work, controller, [root]) as cluster:
                if not cluster.started():
                    raise SystemExit(f"the undamaged {disk} does not start:\n" + "\n".join(cluster.log("broker")[-30:]))
                ends = cluster.ends()
                with ThreadPoolExecutor(3) as pool:
                    read = pool.map(lambda want: cluster.consume(hosts[want[0]], committed=want[1]), missing)
                    readings = dict(zip(missing, read))
                lines = cluster.log("broker") + cluster.log("controller")
        ends |= {partition: ends[host] for partition, host in hosts.items() if host in ends}
        for want, reading in readings.items():
            if reading.lines:
                raise SystemExit(f"{disk} {want}: an undamaged partition is not read: {reading.lines}")
        old = known or Ground({}, set(), {}, {})
        self.grounds[disk] = Ground(
            facts, {shape(line) for line in lines} | old.shapes, old.ends | ends, old.read | readings
        )
        return self.grounds[disk]

    # --- one startup ---

    def groups(self, recipes: Iterable[Recipe]) -> Iterator[list[Recipe]]:
        """Yield groups of recipes that cannot affect each other: on the same disk, in different partitions."""
        open_groups: dict[str, list[tuple[set[str], list[Recipe]]]] = {}
        for damage in recipes:
            if damage.code in ALONE or damage.disk == "clean-0":
                yield [damage]
                continue
            place = self.place(damage)
            for places, group in open_groups.setdefault(damage.disk, []):
                if (damage.disk == "legacy" and len(group) < len(LEGACY_HOSTS)) or place not in places:
                    places.add(place)
                    group.append(damage)
                    break
            else:
                open_groups[damage.disk].append(({place}, [damage]))
        for found in open_groups.values():
            yield from (group for _, group in found)

    def place(self, damage: Recipe) -> str:
        """Return the directory that a recipe changes; applies it to a copy to find out."""
        with tempfile.TemporaryDirectory() as name:
            return str(damage.apply(self.copy(damage.disk, Path(name) / "disk")).file.split("/")[0].split(".")[0])

    def run(self, group: list[Recipe]) -> list[Result]:
        self.say(f"{group[0].disk}: {', '.join(damage.name for damage in group)}")
        found = self.start(group)
        if isinstance(found, list):
            return found
        culprits = [damage for damage in group if damage.name in found] or group
        rest = [damage for damage in group if damage not in culprits]
        results = [result for damage in culprits for result in self.run([damage])]
        return results + (self.run(rest) if rest else [])

    def start(self, group: list[Recipe]) -> list[Result] | set[str]:
        """Return the results, or the names of the recipes that stopped the broker for the whole group (empty if
        unknown)."""
        disk = group[0].disk
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            controller = self.copy("clean-0", work / "disk-0")
            root = self.copy("crash-1" if disk == "crash-1" else "clean-1", work / "disk-1")
            trials: list[tuple[Recipe, Any, str | None]] = []
            for number, damage in enumerate(group):
                target = controller if disk == "clean-0" else root
                if disk == "legacy":
                    target = self.copy("legacy", work / f"legacy-{number}")
                expected = damage.apply(target)
                host = partition_of(damage, expected)
                if disk == "legacy":
                    host = LEGACY_HOSTS[number]
                    self.graft(target, expected.file.split("/")[0], root, host)
                trials.append((damage, expected, host))
            wanted = [(self.origin(trial), committed) for trial in trials for committed in self.levels(trial)]
            ground = self.ground(disk, wanted)
            dirs = [root, *(path for path in [self.recipes.second_directory(root)] if path.exists())]
            watched = controller if disk == "clean-0" else root
            before = files(watched)
            with Cluster(self.jars, work, controller, dirs) as cluster:
                up = cluster.started()
                if not up and len(group) > 1:
                    return self.culprits(trials, cluster)
                after = files(watched)
                ends = self.served({host for _, _, host in trials if host}, cluster) if up else {}
                with ThreadPoolExecutor(3) as pool:
                    results = list(pool.map(lambda trial: self.judge(trial, root, cluster, ground, ends, up), trials))
                role = "controller" if disk == "clean-0" else "broker"
                down = cluster.ended(role)
                lines = cluster.log(role)
                if down and len(group) > 1:
                    return self.culprits(trials, cluster)
        for result, (damage, expected, host) in zip(results, trials):
            everything = down or not up or damage.code in ALONE or not host
            names = () if everything else (str(host),)
            if disk == "legacy":
                sound, files_before, files_after = {}, {}, {}
                if damage.disk == "legacy" and host:
                    files_before, files_after = part(before, host + "/"), part(after, host + "/")
            else:
                directory = "" if len(group) == 1 else f"{expected.file.split('/')[0].split('.')[0]}"
                sound, files_before, files_after = (part(x, directory) for x in (ground.files, before, after))
            done = actions(sound, files_before, files_after)
            told = decisive(lines, ground.shapes, names)
            if (result["logEndAfter"] or 0) < (result["logEndBefore"] or 0) and host in ends and not done:
                done.append("ends the log early")
                told += [line for line in lines if f"/{host}, " in line and "Completed load of Log" in line]
            if any("caused truncation of conflicting entries" in line for line in told):
                done.append("removes leader epochs")
            if any("Swapping in cleaned segment" in line for line in told):
                done = ["cleans the log" if word == "truncates the log" else word for word in done]
            if down:
                offline = any("Stopping serving logs in dir" in line for line in lines)
                done = [*(["takes the log directory offline"] if offline else []), "exits"]
            elif not up:
                done.append("does not finish startup")
            elif host and host not in ends:
                done.append("rejects the partition")
            if disk == "legacy":
                result["servedAs"] = host
            refused = [result.pop("refused")] if "refused" in result else []
            result["broker"] = ", ".join([*done, *refused] if done else ["starts normally", *refused])
            result["brokerLog"] = told
        return results

    @staticmethod
    def culprits(trials: list[tuple[Recipe, Any, str | None]], cluster: Cluster) -> set[str]:
        failed = [line for line in cluster.log("broker") if "Error while loading logs in" in line]
        return {damage.name for damage, _, host in trials if any(f"/{host} in " in line for line in failed)}

    @staticmethod
    def served(hosts: set[str], cluster: Cluster) -> dict[str, int]:
        """Return the log end offsets of all partitions, once those of `hosts` are available; some take a few
        seconds."""
        ends = cluster.ends()
        for _ in range(3):
            if hosts <= set(ends):
                break
            time.sleep(3)
            ends = cluster.ends()
        return ends

    @staticmethod
    def origin(trial: tuple[Recipe, Any, str | None]) -> str:
        """Return the partition whose undamaged state is the reference."""
        damage, expected, host = trial
        if damage.disk == "legacy":
            return str(expected.file.split("/")[0])
        return host or "orders-none-0"

    @staticmethod
    def levels(trial: tuple[Recipe, Any, str | None]) -> tuple[bool, ...]:
        return (False, True) if is_about_transactions(trial[0]) or trial[2] == "payments-0" else (False,)

    # --- the consumer ---

    def judge(
        self,
        trial: tuple[Recipe, Any, str | None],
        root: Path,
        cluster: Cluster,
        ground: Ground,
        ends: dict[str, int],
        up: bool,
    ) -> Result:
        damage, expected, host = trial
        result: Result = {"code": damage.code, "name": damage.name, "disk": damage.disk, "what": damage.what}
        result |= {"severity": expected.severity, "kafka": KAFKA}
        partition = self.origin(trial)
        result["logEndBefore"], result["logEndAfter"] = ground.ends.get(partition), ends.get(host or partition)
        if not up or (host or partition) not in ends:
            return result | {"consumer": "not tried", "consumerLog": []}
        for committed in self.levels(trial):
            suffix = "Committed" if committed else ""
            reading = cluster.consume(host or partition, committed=committed)
            word = verdict(ground.read[partition, committed], reading)
            result |= {f"consumer{suffix}": word, f"consumerLog{suffix}": once(reading.lines)}
            offsets = reading.offsets
            result[f"consumed{suffix}"] = {"records": len(offsets), "last": max(offsets, default=None)}
            unread = (ends[host or partition] - (ground.ends.get(partition) or 0)) - len(
                set(offsets) - set(ground.read[partition, committed].offsets)
            )
            if damage.code == "offset-delta-invalid" and unread > 0:
                result[f"consumer{suffix}"] = "skips records"
            if missing := sorted(set(ground.read[partition, committed].offsets) - set(offsets)):
                result[f"consumed{suffix}"]["missing"] = ranges(missing)
            extra = sorted(set(offsets) - set(ground.read[partition, committed].offsets))
            if extra:
                result[f"consumed{suffix}"]["new"] = ranges(extra)
        served, words = host or partition, {result.get("consumer"), result.get("consumerCommitted")}
        sound = words <= {None, "reads everything"} and host is not None
        return result | self.probes.of((damage, expected, served), root, cluster, ends[served], sound)


def verdict(sound: Reading, got: Reading) -> str:
    """Return what the consumer did, compared with the undamaged disk."""
    end = max(sound.offsets, default=-1)
    if got.lines or max(got.offsets, default=-1) < end:
        return "stops"
    if set(sound.offsets) - set(got.offsets):
        return "skips records"
    if len(got.offsets) != len(set(got.offsets)):
        return "reads records twice"
    if any(offset <= end for offset in set(got.offsets) - set(sound.offsets)):
        return "reads records that it should not"
    return "reads everything"
