"""python -m tools.broker_logs JARS LOG4J DISKS OUT [--only NAME,…]

Starts a real broker on a copy of a disk that recipes of tests/damages.py have damaged, and writes what it and its
controller logged, whole, to OUT/NAME.log.zst, in the layout of the log4j2.yaml that Kafka is shipped with. The lines
are those that `kdump explain` is tested with (tests/corpus/logs.tar.zst).

JARS is a directory with the jars listed in tools/kafka-jars.xml, LOG4J one with log4j-slf4j-impl of the release of
log4j-core among them, and DISKS contains kafka-4.3. The directory in which a broker ran is written as /srv/kafka.
Needs Java 17 and ten minutes."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import tempfile
import time
from pathlib import Path

import zstandard

from tools.trials.cluster import Cluster

LOG4J2 = """
status = warn
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
"""

LOGS: dict[str, tuple[str, ...]] = {
    "record-size-0": ("zeros-for-a-batch",),
    "length-negative": ("length-negative",),
    "recovery": ("value-bit-above-recovery-point", "torn-crash", "zeros-crash", "offset-back-recovery", "junk-crash"),
    "recovery-length": ("length-too-small-recovery", "epoch-falls-crash", "year-2100-crash", "value-bit-last-segment"),
    "torn-earlier": ("torn-earlier-segment", "tail-crash"),
    "checkpoint-of-cleaner": ("cleaner-line",),
    "checkpoint-of-recovery": ("recovery-count",),
    "checkpoint-of-replication": ("replication-count",),
    "checkpoint-of-epochs": ("epoch-line",),
    "small-files": ("index-lost", "index-alone", "snapshot-bit", "epochs-falling", "start-beyond", "tail-clean"),
    "snapshot-sequence": ("snapshot-sequence",),
    "cleaner": ("cleaner-beyond", "value-bit-users"),
    "lost-and-found": ("lost-and-found",),
    "two-directories": ("two-directories",),
    "meta-cluster-id": ("meta-cluster-id",),
    "meta-node-id": ("meta-node-id",),
    "meta-version": ("meta-version",),
    "directory-stray": ("directory-stray",),
    "partition-metadata": ("partition-metadata-other-id",),
    "partition-metadata-garbage": ("partition-metadata-garbage",),
    "future-beside": ("directory-future-beside",),
    "control-type": ("control-type-unknown",),
    "data-outside-transaction": ("data-outside-transaction",),
    "segment-of-2-gib": ("segment-of-2-gib",),
    "producer-epoch": ("producer-epoch-falls", "marker-of-old-epoch"),
    "name-above-first-offset": ("name-above-first-offset",),
    "kraft-snapshot-cut": ("kraft-snapshot-cut-clean-1",),
    "kraft-snapshot-lost": ("kraft-snapshot-lost-clean-1",),
    "kraft-snapshot-bit-controller": ("kraft-snapshot-bit-clean-0",),
    "quorum-garbage": ("quorum-garbage-clean-1",),
    "quorum-lost": ("quorum-lost",),
}
"""The recipes whose damage is on the disk of each broker."""


class LoggedCluster(Cluster):
    """A cluster that logs like a production broker. `log4j`: the directory of log4j-slf4j-impl."""

    log4j = Path()

    def java(self, name: str, *arguments: str, heap: str = "500m") -> list[str]:
        jars = [str(jar) for jar in sorted(self.jars.glob("*.jar")) if "slf4j-simple" not in jar.name]
        jars += [str(jar) for jar in self.log4j.glob("*.jar")]
        config = self.work / "log4j2.properties"
        config.write_text(LOG4J2)
        options = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={config}"]
        return ["java", *options, "-cp", ":".join(jars), name, *arguments]


def collect(jars: Path, disks: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the logs of broker and controller, by role."""
    recipes = importlib.import_module("tests.damages")
    known = {damage.name: damage for damage in [*recipes.DAMAGES, *recipes.DOUBTS]}
    damages = [known[name] for name in names]
    with tempfile.TemporaryDirectory(prefix="broker-logs-") as directory:
        work = Path(directory)
        controller = recipes.copy_disk(disks / recipes.DISK_PATHS["clean-0"], work / "disk-0")
        disk = "crash-1" if any(damage.disk == "crash-1" for damage in damages) else "clean-1"
        root = recipes.copy_disk(disks / recipes.DISK_PATHS[disk], work / "disk-1")
        read = []
        for damage in damages:
            expected = damage.apply(controller if damage.disk == "clean-0" else root)
            read.append(expected.file.split("/")[0].split(".")[0])
        dirs = [root, *(path for path in [recipes.second_directory(root)] if path.exists())]
        with LoggedCluster(jars, work, controller, dirs) as cluster:
            if cluster.started():
                for partition in read:
                    if re.fullmatch(r"[a-z].*-\d+", partition):
                        cluster.consume(partition)
                        topic = partition.rpartition("-")[0]
                        cluster.tool("ProducerPerformance", "--topic", topic, timeout=1)
                time.sleep(6)
            logs = {}
            for role in ("broker", "controller"):
                text = (work / f"{role}.log").read_bytes()
                logs[role] = text.replace(str(work).encode(), b"/srv/kafka")
        return logs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("log4j", type=Path)
    parser.add_argument("disks", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    LoggedCluster.log4j = options.log4j.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, options.only.split(",")))
    for name, recipes in LOGS.items():
        if only and name not in only:
            continue
        print(name, file=sys.stderr, flush=True)
        try:
            logs = collect(options.jars.resolve(), options.disks.resolve(), recipes)
        except KeyError as error:
            print(f"{name}: no recipe {error}", file=sys.stderr)
            continue
        for role, text in logs.items():
            target = options.out / f"{name}-{role}.log.zst"
            target.write_bytes(zstandard.ZstdCompressor(19).compress(text))


if __name__ == "__main__":
    main()
