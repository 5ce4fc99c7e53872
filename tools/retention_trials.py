"""python -m tools.retention_trials JARS DISKS [--out docs/retention-trials.json] [--compare]

Puts the logs of tests/questions/retention/retention_cases.py on a copied disk, starts a real broker on it, gives each
topic the configs of its case, and records which segments the broker deletes, which logs it cleans, and which it marks
as uncleanable. Also records what `kdump retention` predicts for the same disk as it was before, with the topic configs
from the broker's own metadata log and its server.properties.

JARS is a directory with the jars listed in tools/kafka-jars.xml, of 4.4 or later. DISKS contains kafka-4.3. --compare
writes nothing, and exits with 1 if the broker behaves differently than in OUT. Needs Java 17 and about three minutes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kdump
from tools.trials.cluster import Cluster, release_of

WAIT = 12
"""Seconds to wait for the cleaner (which runs every 0.5 s) and the retention check (every 2 s)."""
CLIENTS = ("librdkafka", "kafkapython", "aiokafka", "franz", "orders", "kafkajs")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HOSTS = [*(f"{client}-{codec}" for client in CLIENTS for codec in CODECS), "acks0", "clicks", "prealloc", "large"]
"""Topics with one partition and one replica, whose files can be replaced with those of a case."""
Result = dict[str, Any]
FACTS = ("logStart", "cleaned", "cleanedTo", "givenUp", "dropped")
"""Facts that must be as predicted: the log start offset, whether the log was cleaned and up to which offset, whether it
was marked as uncleanable, and how many records were dropped. (Which segments are deleted depends on whether the cleaner
has merged them before.)"""


def read_checkpoint(path: Path) -> dict[str, int]:
    rows = path.read_text().splitlines()[2:] if path.exists() else []
    return {name: int(offset) for name, _, offset in (line.rpartition(" ") for line in rows)}


def checkpoint(path: Path, values: dict[str, int]) -> None:
    """Write the offsets of these partitions into a checkpoint file, which keeps those of other partitions."""
    rows = read_checkpoint(path) | {f"{topic} 0": offset for topic, offset in values.items()}
    path.write_text("\n".join(["0", str(len(rows)), *(f"{name} {offset}" for name, offset in rows.items())]) + "\n")


def prepare(root: Path, recipes: Any, now: int) -> dict[str, Any]:
    """Replace the files of a topic with those of a case, for every case. Returns the cases by topic."""
    hosts = dict(zip(HOSTS, recipes.CASES, strict=False))
    assert len(hosts) == len(recipes.CASES), "more cases than topics"
    ends, cleaned, starts = {}, {}, {}
    for topic, case in hosts.items():
        made = case.make(now)
        ends[topic] = recipes.write(root / f"{topic}-0", made)
        if made.cleaned is not None:
            cleaned[topic] = made.cleaned
        if made.log_start is not None:
            starts[topic] = made.log_start
    checkpoint(root / "replication-offset-checkpoint", ends)
    checkpoint(root / "recovery-point-offset-checkpoint", ends)
    checkpoint(root / "cleaner-offset-checkpoint", cleaned)
    checkpoint(root / "log-start-offset-checkpoint", starts)
    return hosts


def observed(topic: str, lines: list[str], start: int, cleaned_to: int | None, dropped: int | None) -> Result:
    """Return what the broker did with the partition, according to its log."""
    mine = [line for line in lines if f"{topic}-0" in line]
    deleted: set[int] = set()
    rules = set()
    for line in mine:
        match = re.search(r"Deleting segments? due to (.*?) breach.*?:? (?=LogSegment)", line)
        if match or ("Deleting segment" in line and " due to " in line):
            deleted |= {int(base) for base in re.findall(r"baseOffset=(\d+)", line)}
            rules.add(re.sub(r".* due to ", "", line)[:80])
    return {
        "logStart": start,
        "cleanedTo": cleaned_to,
        "dropped": dropped,
        "deleted": sorted(deleted),
        "cleaned": any("Beginning cleaning of log" in line for line in mine),
        "givenUp": any("as uncleanable" in line for line in mine),
        "lines": list(dict.fromkeys(line.split(" - ", 1)[-1][:400] for line in mine if re.search(TELLING, line)))[:6],
    }


def records_below(partition: Path, stop: int) -> int:
    """Return the number of records below offset `stop`. Includes batches whose checksum does not match, because the
    cleaner reads them."""
    log = kdump.open(str(partition))
    return sum(1 for record in log.records(damaged=True) if (record.offset or 0) < stop)


def cleanings(text: str) -> dict[str, int]:
    """Return the number of messages that the first cleaning of each partition dropped, as counted by the cleaner."""
    found: dict[str, int] = {}
    pattern = r"cleaned log (\S+) \(dirty.*?Start size: [^(]*\(([\d,]+) messages\)"
    pattern += r".*?End size: [^(]*\(([\d,]+) messages\)"
    for name, before, after in re.findall(pattern, text, re.DOTALL):
        found.setdefault(name, int(before.replace(",", "")) - int(after.replace(",", "")))
    return found


TELLING = r"Deleting segment|uncleanable|Beginning cleaning|Found \d+ invalid|future timestamp|dirty offset|Rolled new"


def predicted(disk: Path, topic: str, metadata: Path, properties: Path, now: int, release: str) -> Result:
    """Return what kdump predicts for the partition."""
    command = [
        sys.executable,
        "-m",
        "kdump",
        "retention",
        str(disk / f"{topic}-0"),
        "--json",
        "--keys",
        "--now",
        str(now),
    ]
    command += ["--metadata", str(metadata), "--properties", str(properties), "--kafka-version", release]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {**outcome(rows), "exit": done.returncode}


def outcome(rows: list[Result]) -> Result:
    """Reduce the JSON objects of a partition to what can be observed of a broker."""
    holds = [row["hold"] for row in rows if row["type"] == "retentionHold"]
    (whole,) = (row for row in rows if row["type"] == "retention")
    segments = [row for row in rows if row["type"] == "retentionSegment"]
    left = [row["baseOffset"] for row in segments if row["deletion"] != "now"]
    given_up = bool(whole["wouldClean"]) and not {"damage", "recordTooLarge"}.isdisjoint(holds)
    stop = next((row["baseOffset"] for row in segments if row["compaction"] == "uncleanable"), None)
    cleaned_to = whole["cleanerCheckpoint"]
    if whole["wouldClean"]:
        cleaned_to = whole["firstDirtyOffset"] if given_up else stop
    elif whole["resetBecause"]:
        cleaned_to = whole["firstDirtyOffset"]
    return {
        "logStart": max(whole["logStartOffset"], left[0] if left else whole["logEndOffset"]),
        "cleanedTo": cleaned_to,
        "deleted": [row["baseOffset"] for row in segments if row["deletion"] == "now"],
        "cleaned": bool(whole["wouldClean"]),
        "givenUp": given_up,
        "dropped": whole["droppedRecords"] if whole["wouldClean"] and not given_up else None,
        "holds": holds,
    }


def trial(jars: Path, disks: Path, work: Path) -> list[Result]:
    damages, recipes = (
        importlib.import_module("tests.damages"),
        importlib.import_module("tests.questions.retention.retention_cases"),
    )
    root = damages.copy_disk(disks / "kafka-4.3" / "clean-1", work / "disk-1")
    controller = damages.copy_disk(disks / "kafka-4.3" / "clean-0", work / "disk-0")
    now = round(time.time() * 1000)
    hosts = prepare(root, recipes, now)
    subprocess.run(["cp", "-a", root, work / "before"], check=True)
    with Cluster(jars, work, controller, [root]) as cluster:
        if not cluster.started():
            raise SystemExit("the broker does not start:\n" + "\n".join(cluster.log("broker")[-20:]))
        for topic, case in hosts.items():
            configs = case.configs.items()
            cluster.configure_topic(
                topic, ",".join(f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in configs)
            )
        time.sleep(WAIT)
        lines = cluster.log("broker")
        starts = cluster.ends("earliest")
        stats = cleanings((work / "broker.log").read_text(errors="replace"))
        reached = read_checkpoint(root / "cleaner-offset-checkpoint")
        for topic in hosts:
            stop = reached.get(f"{topic} 0")
            # The cleaner does not count the records of a batch that it drops whole, so count records on disk, unless
            # retention has deleted segments too.
            if f"{topic}-0" in stats and stop and not starts[f"{topic}-0"]:
                left = [records_below(disk / f"{topic}-0", stop) for disk in (work / "before", root)]
                stats[f"{topic}-0"] = left[0] - left[1]
        (work / "metadata").mkdir()
        subprocess.run(["cp", "-a", root / "__cluster_metadata-0", work / "metadata"], check=True)
    results = []
    for topic, case in hosts.items():
        did = observed(topic, lines, starts[f"{topic}-0"], reached.get(f"{topic} 0"), stats.get(f"{topic}-0"))
        said = predicted(
            work / "before", topic, work / "metadata", work / "broker.properties", now + 60_000, release_of(jars).number
        )
        did["lines"] = [line.replace(f"{topic}-0", "t-0").replace(str(work), "…") for line in did["lines"]]
        agrees = all(did[what] == said[what] for what in FACTS)
        results.append(
            {
                "name": case.name,
                "what": case.what,
                "configs": case.configs,
                "broker": did,
                "kdump": said,
                "agrees": agrees,
            }
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("disks", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/retention-trials.json"))
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        results = trial(options.jars.resolve(), options.disks.resolve(), Path(name))
    differing = [each for each in results if not each["agrees"]]
    for each in differing:
        print(f"{each['name']}: broker {each['broker']}, kdump {each['kdump']}", file=sys.stderr)
    print(f"{len(results) - len(differing)} of {len(results)} as predicted", file=sys.stderr)
    if options.compare:
        known = {each["name"]: each["broker"] for each in json.loads(options.out.read_text())}
        other = [e["name"] for e in results if any(e["broker"][f] != known.get(e["name"], {}).get(f) for f in FACTS)]
        print("\n".join(f"{each}: differs from OUT" for each in other))
        sys.exit(bool(other))
    options.out.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
