"""python -m tools.adopt VERSION [--before VERSION] [--jars DIR] [--out DIR] [--only STEP,…]

Adopts a release of Kafka: compares its jars with those of the release before, imports what is data, runs its brokers on
disks that they make, and writes what a human has to decide to OUT/VERSION/report.md.

The steps, in this order:

- knows: levels, features, messages, configs and small files; imports the schemas, the data file of the release, and for
  the tests records of the messages that changed
- messages: which wordings of `kdump explain` are in its classes, for the tests
- classes: those that read or write a log directory, method by method
- disks: a broker's after a clean shutdown and after kill -9, and its controller's (three minutes)
- oracle: kafka-dump-log on these disks, compared with dump-log and inspect; verify, which should find nothing
- units: what kdump says of the log directories of Kafka's unit tests, and what the release's classes say (ten minutes)
- ways: the two releases on each other's disks: upgraded, finalised, lowered, and back (five minutes)
- trials: brokers on disks that recipes have damaged; writes docs/release-trials.json (15 minutes)
- tests: those of formats and schemas, which say what an import leaves to do

Each step is a process of its own, which knows what those before it have imported. It leaves its part of the report in
OUT, and is left out if that is there already; remove the file to repeat it. Needs Java 17, Maven, and 2 GB of memory;
brokers run one at a time, and listen on 127.0.0.1."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kdump.format.releases import RELEASES
from kdump.questions.dump_log.command import OLDEST
from kdump.questions.restart_plan.answer import UNKNOWN
from tools import message_sources, metadata_trials, release_trials, unit_test_trials, upgrade_trials
from tools.adopt import bytecode, facts, oracle, records, report
from tools.adopt.registry import fetch, numbers, text
from tools.condense_schemas import condense, in_jars
from tools.release_disks import build
from tools.trials.release import RELEASES as TRIED
from tools.trials.release import named
from tools.trials.release_record import starts

SCHEMAS = facts.FORMAT / "schemas"
TRIALS = Path("docs/release-trials.json")
WORDINGS = {
    "Messages that explain knows": Path("tests/incident/explain/message_sources.tsv"),
    "Exceptions that kdump quotes": Path("tests/incident/explain/quoted_exceptions.tsv"),
}
TESTS = (
    *("tests/format", "tests/decode", "tests/questions/schema/test_command.py", "tests/state/test_metadata.py"),
    *("tests/state/test_cluster.py", "tests/questions/restart_plan/test_newer_release.py"),
    "tests/questions/restart_plan/test_restart_releases.py",
    *("tests/incident/explain/test_explain_messages.py", "tests/incident/explain/test_quoted_exceptions.py"),
    *("tests/questions/dump_log/test_command.py", "tests/test_releases.py"),
)


class Adoption(NamedTuple):
    """The release, and the one before; the directory with the jars of each; and where the report is written."""

    version: str
    before: str
    jars: Path
    out: Path

    @property
    def name(self) -> str:
        """The name of the directory of its disks."""
        return f"{self.version}-kraft"

    @property
    def disks(self) -> Path:
        return self.out / "disks" / self.name

    def fetched(self, version: str) -> Path:
        return fetch(version, self.jars)


def knows(adopted: Adoption) -> Iterator[str]:
    compared, schemas = [], []
    for version in (adopted.before, adopted.version):
        jars = adopted.fetched(version)
        condensed = {package: condense(schemas, package) for package, schemas in in_jars(jars).items()}
        known = facts.facts(jars, version)
        schemas.append({package: json.loads(each) for package, each in condensed.items()})
        compared.append(report.flat(known, schemas[-1]))
    # An older patch release, or one of an older line, adds no schema.
    if numbers(adopted.version) >= max(RELEASES):
        for package, each in condensed.items():
            (SCHEMAS / f"{package}.json").write_text(each)
        records.write(jars, *schemas)
    facts.write(known)
    yield f"## What it knows, compared with {adopted.before}\n"
    yield from report.knowledge(*compared)


def messages(adopted: Adoption) -> Iterator[str]:
    files = list(message_sources.compiled(adopted.fetched(adopted.version)))
    for title, wordings in WORDINGS.items():
        updated, lost = message_sources.added(wordings.read_text().splitlines(), adopted.version, files)
        wordings.write_text("".join(f"{row}\n" for row in updated))
        yield f"## {title}\n"
        yield f"{len(lost)} wordings of the release before are not in its classes\n"
        yield from (f"- {name}: {wording} ({file})" for name, wording, _, file in (row.split("\t") for row in lost))


def classes(adopted: Adoption) -> Iterator[str]:
    yield "## Classes that read or write a log directory\n"
    yield from report.bytecode(bytecode.compare(adopted.fetched(adopted.before), adopted.fetched(adopted.version)))


def disks(adopted: Adoption) -> Iterator[str]:
    adopted.fetched(adopted.version)
    shutil.rmtree(adopted.disks, ignore_errors=True)  # of a run that was interrupted
    build(named(adopted.name), adopted.jars, adopted.disks)
    forget(adopted.name)
    yield "## Disks\n"
    for path in sorted(adopted.disks.iterdir()):
        files = [each for each in path.rglob("*") if each.is_file()]
        yield f"- {path.name}: {len(files)} files, {sum(each.stat().st_blocks for each in files) // 2:,} KiB"


def forget(name: str, trials: Path = TRIALS) -> None:
    """Remove the recorded starts of a release: its disks are other ones now."""
    kept = {each["key"]: each for each in json.loads(trials.read_text()) if each["release"] != name}
    release_trials.write(kept, list(kept), trials)


def compare(adopted: Adoption) -> Iterator[str]:
    as_of = ("--kafka-version", text(max(numbers(adopted.version), OLDEST)))
    yield "## Kafka's own tool on these disks, and kdump\n"
    for disk in sorted(adopted.disks.iterdir()):
        out = adopted.out / "oracle" / f"{adopted.name}-{disk.name}"
        files = oracle.written(adopted.fetched(adopted.version), disk, out)
        yield from report.oracle(disk.name, len(files), oracle.compare(disk, out, files, *as_of))
        found = oracle.findings([disk])
        yield f"verify: {len(found)} findings of warning or error\n"
        yield from (f"- {each['code']}: {each['topic']}: {each['message']}" for each in found)
        yield ""


def refused(adopted: Adoption) -> Iterator[str]:
    """Compare what the release's own classes refuse of mutated metadata logs with what kdump says."""
    result = metadata_trials.trial(adopted.fetched(adopted.version))
    differences = result["differences"]
    yield "## Metadata records that the release refuses\n"
    yield f"{result['cases']} mutated logs, {len(differences)} of which differ from what kdump says\n"
    rows = [(each["case"], str(each["kafka"]), str(each["kdump"]), each["reason"]) for each in differences]
    yield from report.table(("log", "Kafka", "kdump", "explained"), rows)


def units(adopted: Adoption) -> Iterator[str]:
    """Compare kdump with the release's classes on the log directories that Kafka's unit tests make."""
    with tempfile.TemporaryDirectory() as work:
        result = unit_test_trials.trial(adopted.jars, adopted.version, Path(work))
    yield f"## Kafka's unit tests, those of {result['testsOf']}\n"
    counts = ", ".join(f"{name} {count:,}" for name, count in result["compared"].items())
    yield f"compared: {counts}; {len(result['differences'])} differ\n"
    rows = [tuple(map(str, each.values())) for each in result["differences"]]
    yield from report.table(("what", "test", "Kafka", "kdump", "explained"), rows)


def ways(adopted: Adoption) -> Iterator[str]:
    for version in (adopted.before, adopted.version):
        adopted.fetched(version)
    kept = adopted.out / "ways"
    shutil.rmtree(kept, ignore_errors=True)
    pair = upgrade_trials.Pair(adopted.before, adopted.version)
    rows = [upgrade_trials.predicted(found, kept) for found in upgrade_trials.starts(pair, adopted.jars, kept)]
    yield f"## Between {adopted.before} and {adopted.version}\n"
    open_ones = sum(UNKNOWN in (row["controller"]["predicted"], row["broker"]["predicted"]) for row in rows)
    differing = sum(bool(row["differences"]) for row in rows)
    yield f"{len(rows)} starts, {differing} of which differ from what kdump says; of {open_ones}, it says unknown\n"
    yield from report.ways(rows)


def trials(adopted: Adoption) -> Iterator[str]:
    every = adopted.out / "disks"
    corpus = Path("build/corpus/releases").resolve()
    for path in corpus.iterdir():
        if not (every / path.name).exists():
            (every / path.name).symlink_to(path)
    command = ["-m", "tools.release_trials", str(adopted.jars), str(every), "--releases", adopted.name, "--jobs", "1"]
    subprocess.run([sys.executable, *command], check=True)
    results = [each for each in json.loads(TRIALS.read_text()) if each["release"] == adopted.name]
    differing = [each for each in results if each["differences"]]
    yield "## Damaged disks\n"
    asked = starts(every, [] if adopted.name in TRIED else [adopted.name])
    done = {each["key"] for each in results}
    missing = [start.key for start in asked if start.release == adopted.name and start.key not in done]
    yield f"{len(results)} starts, {len(differing)} of which differ from what kdump says\n"
    yield from (f"- {key}: neither up nor exited in time, left out\n" for key in missing)
    rows = [
        (each["name"], each["differences"], each.get("explained", ""), each["broker"]["log"][:2]) for each in differing
    ]
    yield from report.table(("recipe", "kdump said, broker did", "explained", "log"), rows)


def tests(adopted: Adoption) -> Iterator[str]:
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--tb=line", *TESTS], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    kinds = Counter(line.partition("[")[0] for line in lines)
    yield "## Tests that an import of its data breaks\n"
    yield from (f"- {name}: {count}" for name, count in kinds.items())
    yield f"\n{len(lines)} fail"


STEPS: dict[str, Callable[[Adoption], Iterator[str]]] = {
    "knows": knows,
    "messages": messages,
    "classes": classes,
    "disks": disks,
    "oracle": compare,
    "refused": refused,
    "units": units,
    "ways": ways,
    "trials": trials,
    "tests": tests,
}


def leave(adopted: Adoption, name: str) -> None:
    """Run a step, and write its part of the report."""
    start = time.monotonic()
    written = "\n".join(STEPS[name](adopted)) + "\n"
    (adopted.out / f"{name}.md").write_text(f"{written}\n({name}: {time.monotonic() - start:.0f} s)\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--before", default="", help="default: the newest known release before it")
    parser.add_argument("--jars", type=Path, default=Path("build/release-jars"))
    parser.add_argument("--out", type=Path, default=Path("build/release-adopt"))
    parser.add_argument("--only", default="")
    parser.add_argument("--step", help=argparse.SUPPRESS)  # run this step, here
    options = parser.parse_args()
    earlier = [each for each in RELEASES if each < numbers(options.version)]
    before = options.before or text(max(earlier))
    adopted = Adoption(options.version, before, options.jars.resolve(), (options.out / options.version).resolve())
    adopted.out.mkdir(parents=True, exist_ok=True)
    if options.step:
        leave(adopted, options.step)
        return
    again = [sys.executable, "-m", "tools.adopt", adopted.version, "--before", before]
    again += ["--jars", str(adopted.jars), "--out", str(options.out)]
    only = set(filter(None, options.only.split(",")))
    for name in STEPS:
        if (adopted.out / f"{name}.md").exists() or (only and name not in only):
            continue
        print(name, file=sys.stderr, flush=True)
        subprocess.run([*again, "--step", name], check=True)
    parts = [(adopted.out / f"{name}.md") for name in STEPS]
    whole = f"# Kafka {adopted.version}\n\n" + "\n".join(part.read_text() for part in parts if part.exists())
    (adopted.out / "report.md").write_text(whole)
    print(whole)


if __name__ == "__main__":
    main()
