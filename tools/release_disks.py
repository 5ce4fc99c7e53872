"""python -m tools.release_disks JARS OUT [--only RELEASE,…]

Builds small disks with real brokers of each release of tools/trials/release.py, or of those named: OUT/RELEASE/clean
(the broker's log directory after a clean shutdown), crash (after kill -9), and controller or zookeeper (that of the
node that keeps the cluster's metadata, after a clean shutdown).

JARS has a directory for each version with the jars of tools/kafka-jars.xml (-Dkafka.version=3.9.1). Needs Java 17; a
release takes about a minute."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.trials.release import KRAFT, RELEASES, Release, ReleaseCluster, named

PRODUCE = Path(__file__).parent / "factories" / "ProduceSmall.java"
RETENTION_SECONDS = 60
"""Time in which the first retention check deletes the segment below the log start offset of `trimmed`. Before 3.9, the
check begins 30 s after startup."""


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", "--sparse=always", "--", source, target], check=True)


def produce(cluster: ReleaseCluster, what: str) -> None:
    """Run a part of ProduceSmall.java with the release's own client."""
    command = cluster.java(str(PRODUCE), f"127.0.0.1:{cluster.ports['broker']}", what)
    result = subprocess.run(command, capture_output=True, text=True, timeout=180)
    if "done" not in result.stdout:
        raise RuntimeError(result.stdout[-1000:] + result.stderr[-3000:])


def stop(cluster: ReleaseCluster, role: str) -> None:
    cluster.processes[role].send_signal(signal.SIGTERM)
    cluster.processes[role].wait(timeout=120)


def build(release: Release, jars: Path, out: Path) -> None:
    """Build the disks of a release in `out`, which must not exist."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        keeper, root = work / release.keeper, work / "broker"
        keeper.mkdir()
        for part in ("first", "more"):
            node = ReleaseCluster(release, jars, work, keeper, [root])
            if part == "first" and release.mode == KRAFT:
                node.format_disks()
            with node:
                cluster = node
                if not cluster.started():
                    raise RuntimeError("\n".join(cluster.log("broker")[-30:]))
                produce(cluster, part)
                if part == "first":
                    until = time.monotonic() + RETENTION_SECONDS
                    while (root / "trimmed-0" / f"{0:020}.log").exists():
                        if time.monotonic() > until:
                            raise RuntimeError("trimmed-0 still has its first segment")
                        time.sleep(0.5)
                    stop(cluster, "broker")
                    stop(cluster, "controller")
                    out.mkdir(parents=True)
                    copy(root, out / "clean")
                    copy(keeper, out / release.keeper)
                else:
                    cluster.processes["broker"].kill()
                    time.sleep(0.5)
                    copy(root, out / "crash")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for name in list(filter(None, options.only.split(","))) or RELEASES:
        print(name, file=sys.stderr, flush=True)
        build(named(name), options.jars.resolve(), options.out / name)


if __name__ == "__main__":
    main()
