"""python -m tools.salvage_trials JARS DISKS [--only NAME,…] [--out docs/salvage-trials.json] [--compare]

Damages copies of real disks with the recipes of tests/damages.py, replaces the damaged partitions with the output of
kdump salvage, starts a real broker on the disk, and reads every partition with Kafka's own console consumer and
kafka-dump-log: they have to read what kdump kept, record for record.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3 and kafka-2.8-legacy.
--compare writes nothing: it prints what differs from OUT, and then exits with 1. Needs Java 17."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from kdump.problems import catalogue
from tools.trials.cluster import KAFKA, TOOL, Cluster
from tools.trials.disk import files
from tools.trials.recorded_results import trial_options
from tools.trials.trial import LEGACY_HOSTS
from tools.trials.wording import once, ranges

Recipe = Any
Result = dict[str, Any]
TRIES = 3
"""Number of times that a partition is read if the result is not as expected: a busy machine may be slower than the
consumer's timeout."""
AT_ONCE = 24
"""Maximum number of partitions per startup of a broker."""
FAMILIES = ("bytes", "records", "offsets", "epochs", "producers", "transactions")
COMPLAINTS = ("isvalid: false", "Found", "Mismatch", "Exception", "Following offsets", "Messages not found")
"""Parts of the lines by which kafka-dump-log reports a damaged segment or index."""


PAYMENTS = "payments-0/00000000000000000000.log"


class Case(NamedTuple):
    """Trial in addition to the recipes. `options`: additional options of kdump salvage, given the root of the damaged
    disk; `clean`: the clean-shutdown file is left in place; `abort`: open transactions are aborted as kdump's report
    recommends, and the partition is read again."""

    name: str
    code: str
    disk: str
    what: str
    apply: Callable[[Path], Any]
    options: Callable[[Path], list[str]] = lambda root: []
    clean: bool = False
    abort: bool = False


def cases(recipes: Any) -> list[Case]:
    """Return trials of the options of kdump salvage, and of the actions that its report recommends."""

    def nothing(file: str) -> Callable[[Path], Any]:
        return lambda root: recipes.Expected("", "", file)

    def lose_marker(root: Path) -> Any:
        log = recipes.Log(root, "payments-0")
        headers = [recipes.BATCH_HEADER.read(each) for each in log.batches]
        last = max(number for number, header in enumerate(headers) if header.isControlBatch)
        log.batches[last] = bytes(byte ^ 0xFF for byte in log.batches[last])
        log.path.write_bytes(b"".join(log.batches))
        return recipes.Expected("", "", log.file)

    def two_replicas(root: Path) -> Any:
        other = root.with_name(root.name + "-replica")
        shutil.copytree(root / "orders-none-0", other / "orders-none-0")
        for number, place in ((1, root), (3, other)):
            log = recipes.Log(place, "orders-none-0")
            log.batches[number] = log.batches[number][:-40] + b"#" * 40
            log.path.write_bytes(b"".join(log.batches))
        return recipes.Expected("", "", log.file)

    def cut_in_two(root: Path) -> Any:
        log = recipes.Log(root, "orders-none-0")
        half = len(log.batches[2]) // 2
        log.batches[2] = log.batches[2][:half] + bytes(len(log.batches[2]) - half)
        log.path.write_bytes(b"".join(log.batches))
        return recipes.Expected("", "", log.file)

    def reordered(partition: str, order: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], Any]:
        def apply(root: Path) -> Any:
            log = recipes.Log(root, partition)
            log.path.write_bytes(b"".join(order(log.batches)))
            return recipes.Expected("", "", log.file)

        return apply

    def between_segments(root: Path) -> Any:
        logs = [recipes.Log(root, "users-0", base) for base in (0, 254)]
        moved = logs[0].batches.pop(-2)
        logs[1].batches.insert(1, moved)
        for log in logs:
            log.path.write_bytes(b"".join(log.batches))
        return recipes.Expected("", "", logs[0].file)

    def without_keys(root: Path) -> list[str]:
        keys = root.with_name(root.name + "-keys")
        keys.write_text("".join(f"k{number}\n" for number in range(0, 300, 7)))
        return ["--without-keys", str(keys), "--without", "value.qty > 7"]

    cuts = [
        Case(
            f"cut-without-{codec}",
            "salvage",
            "clean-1",
            "nothing is damaged; --without-keys with every seventh key, --without of a field of the value",
            nothing(f"orders-{codec}-0/00000000000000000000.log"),
            without_keys,
        )
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ]
    cuts += [
        Case(
            name,
            "salvage",
            "clean-1",
            f"nothing is damaged; {' '.join(wishes)}",
            nothing(PAYMENTS),
            lambda root, wishes=wishes: wishes,  # type: ignore[misc]
        )
        for name, wishes in (
            ("cut-open", ["--until", "90"]),
            ("cut-ended", ["--from", "20", "--until", "90", "--abort-open"]),
        )
    ]
    cuts += [
        Case(
            f"cut-{partition}",
            "salvage",
            "legacy",
            "messages of magic 0, 1 and 2 of which nothing is damaged; --from 31 --until 77",
            nothing(f"{partition}/00000000000000000000.log"),
            lambda root: ["--from", "31", "--until", "77"],
        )
        for partition in ("v0-broker28-lz4-0", "upgraded-gzip-0")
    ]

    beside = lambda root: ["--replica", str(root.with_name(root.name + "-replica") / "orders-none-0")]  # noqa: E731
    return [
        Case(
            "clean-mark-left",
            "salvage",
            "clean-1",
            "nothing is damaged, and .kafka_cleanshutdown is not deleted",
            nothing(PAYMENTS),
            clean=True,
        ),
        Case(
            "marker-lost",
            "salvage",
            "clean-1",
            "the last marker of a transaction is lost; the open transaction is aborted with the command in the report",
            lose_marker,
            abort=True,
        ),
        Case(
            "two-replicas",
            "salvage",
            "clean-1",
            "two replicas, each with a different batch damaged; --replica",
            two_replicas,
            beside,
        ),
        Case(
            "half-a-batch",
            "salvage",
            "clean-1",
            "zeros in the second half of a batch; --damaged-records",
            cut_in_two,
            lambda root: ["--damaged-records"],
        ),
        Case(
            "deleted-files",
            "salvage",
            "clean-1",
            "a compacted partition with .deleted files; --deleted",
            nothing("users-0/00000000000000000000.log"),
            lambda root: ["--deleted"],
        ),
        Case(
            "two-swapped",
            "salvage",
            "clean-1",
            "the second and the third of five batches are swapped",
            reordered("orders-none-0", lambda each: [each[0], each[2], each[1], *each[3:]]),
        ),
        Case(
            "last-two-swapped",
            "salvage",
            "clean-1",
            "the last two of five batches are swapped",
            reordered("orders-gzip-0", lambda each: [*each[:-2], each[-1], each[-2]]),
        ),
        Case(
            "moved-to-the-front",
            "salvage",
            "clean-1",
            "the last of five batches is moved to the front, and the first batch occurs twice",
            reordered("orders-lz4-0", lambda each: [each[-1], *each[:-1], each[0]]),
        ),
        Case(
            "transactions-reversed",
            "salvage",
            "clean-1",
            "all batches of transactions, including markers, in reverse order",
            reordered(PAYMENTS.partition("/")[0], lambda each: each[::-1]),
        ),
        Case(
            "moved-between-segments",
            "salvage",
            "clean-1",
            "a batch is moved from the first segment into the second",
            between_segments,
        ),
        *cuts,
    ]


class Trial(NamedTuple):
    """Damaged partition. `source`: its directory; `host`: the partition whose place it takes on the broker."""

    recipe: Recipe
    source: Path
    host: str


def chosen(recipes: Any, only: set[str]) -> Iterator[Recipe]:
    """Yield the recipes that damage batches, or files derived from them, in partitions that clients read."""
    for recipe in (*recipes.DAMAGES, *cases(recipes)):
        code = catalogue.findings().get(recipe.code)
        wanted = code is None or code.family in FAMILIES or recipe.code.startswith("txn-")
        if wanted and recipe.disk != "clean-0" and (not only or {recipe.name, recipe.code} & only):
            yield recipe


def groups(found: Iterable[Recipe], disks: Path, recipes: Any) -> Iterator[list[Recipe]]:
    """Yield groups of recipes that one broker can serve: from the same disk, each in a partition of its own."""
    open_groups: dict[str, list[tuple[set[str], list[Recipe]]]] = {}
    for recipe in found:
        with tempfile.TemporaryDirectory() as name:
            root = recipes.copy_disk(disks / recipes.DISK_PATHS[recipe.disk], Path(name) / "disk")
            place = recipe.apply(root).file.split("/")[0]
            if not (root / place).is_dir() or place.startswith("__") or not any((root / place).glob("0*.log")):
                continue
        if "." in place:
            continue
        for places, group in open_groups.setdefault(recipe.disk, []):
            alone = getattr(recipe, "clean", False) or getattr(group[0], "clean", False)
            if not alone and len(group) < AT_ONCE and (place not in places or recipe.disk == "legacy"):
                places.add(place)
                group.append(recipe)
                break
        else:
            open_groups[recipe.disk].append(({place}, [recipe]))
    for of_disk in open_groups.values():
        yield from (group for _, group in of_disk)


def kdump(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kdump", *arguments], capture_output=True, text=True, check=False)


MODES: tuple[tuple[str, ...], ...] = ((), ("--read-committed",))
"""Options of kdump inspect for the records that each kind of consumer should read."""


def offsets(directory: Path, *options: str) -> list[int]:
    """Return the offsets of the records that a consumer should read."""
    lines = kdump("inspect", "--records", "--json", *options, str(directory)).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["offset"] for row in rows if row["type"] == "record" and "control" not in row]


class Lab:
    """Salvages, serves and reads a group of damaged partitions."""

    def __init__(self, jars: Path, disks: Path, recipes: Any) -> None:
        self.jars, self.disks, self.recipes = jars, disks, recipes

    def copy(self, disk: str, target: Path) -> Path:
        return Path(self.recipes.copy_disk(self.disks / self.recipes.DISK_PATHS[disk], target))

    def run(self, group: list[Recipe]) -> list[Result]:
        print(f"{group[0].disk}: {', '.join(recipe.name for recipe in group)}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="salvage-") as name:
            work = Path(name)
            disk = "clean-1" if group[0].disk == "legacy" else group[0].disk
            controller, root = self.copy("clean-0", work / "disk-0"), self.copy(disk, work / "disk-1")
            trials = []
            for number, recipe in enumerate(group):
                target = self.copy("legacy", work / f"legacy-{number}") if recipe.disk == "legacy" else root
                place = recipe.apply(target).file.split("/")[0]
                host = LEGACY_HOSTS[number] if recipe.disk == "legacy" else place
                trials.append(Trial(recipe, target / place, host))
            results = [self.salvage(trial, root, work / f"out-{number}") for number, trial in enumerate(trials)]
            if not getattr(group[0], "clean", False):
                (root / ".kafka_cleanshutdown").unlink(missing_ok=True)
            self.dump(results, trials, root)
            before = files(root)
            # Before the broker starts: its coordinator aborts open transactions, sooner or later.
            kept = [[offsets(root / trial.host, *options) for options in MODES] for trial in trials]
            with Cluster(self.jars, work, controller, [root]) as cluster:
                if not cluster.started():
                    raise SystemExit("the broker does not start:\n" + "\n".join(cluster.log("broker")[-30:]))
                after = files(root)
                ends = cluster.ends()
                with ThreadPoolExecutor(3) as pool:
                    jobs = [
                        pool.submit(self.judge, *each, root, cluster, ends, before, after)
                        for each in zip(results, trials, kept)
                    ]
                    for job in jobs:
                        job.result()
            return results

    def salvage(self, trial: Trial, root: Path, out: Path) -> Result:
        """Replace the damaged partition with the output of kdump salvage, and return what it reports."""
        wishes = trial.recipe.options(trial.source.parent) if isinstance(trial.recipe, Case) else []
        done = kdump("salvage", str(trial.source), "--out", str(out), "--json", *wishes)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{trial.recipe.name}: kdump salvage: {done.stderr}")
        made = json.loads(done.stdout.splitlines()[0])
        directory = out / f"{made['topic']}-{made['partition']}"
        if trial.recipe.disk == "legacy":
            for path in (root / trial.host).iterdir():
                if path.name != "partition.metadata":
                    path.unlink()
            for path in directory.iterdir():
                if path.name != "partition.metadata":
                    shutil.copy(path, root / trial.host)
        else:
            shutil.rmtree(root / trial.host)
            shutil.copytree(directory, root / trial.host)
        return {
            "name": trial.recipe.name,
            "code": trial.recipe.code,
            "disk": trial.recipe.disk,
            "what": trial.recipe.what,
            "kafka": KAFKA,
            "exit": done.returncode,
            "partition": f"{made['topic']}-{made['partition']}",
            "servedAs": trial.host,
            "bytes": made["bytes"],
            "lostOffsets": made["lostOffsets"],
            "logEnd": made["logEndOffset"],
            "open": made["openTransactions"],
        }

    def dump(self, results: list[Result], trials: list[Trial], root: Path) -> None:
        """Record what kafka-dump-log reports about segments and indexes; nothing should be wrong."""
        for result, trial in zip(results, trials):
            names = sorted(str(path) for path in (root / trial.host).glob("0*.log"))
            command = ["java", "-cp", f"{self.jars}/*", f"{TOOL}DumpLogSegments", "--deep-iteration"]
            done = subprocess.run([*command, "--files", ",".join(names)], capture_output=True, text=True, check=False)
            lines = (done.stdout + done.stderr).replace(str(root), "…").splitlines()
            said = once(line for line in lines if any(word in line for word in COMPLAINTS))
            result["dumpLog"] = said or ("nothing is wrong" if done.returncode == 0 else "fails")

    def judge(
        self,
        result: Result,
        trial: Trial,
        kept: list[list[int]],
        root: Path,
        cluster: Cluster,
        ends: dict[str, int],
        before: Any,
        after: Any,
    ) -> None:
        """Record whether the broker keeps everything that was written, and whether a consumer reads all of it. `kept`:
        the offsets that each kind of consumer should read, for each of MODES."""
        of_log = [name for name in before if name.startswith(trial.host + "/") and name.endswith(".log")]
        changed = [name for name in of_log if after.get(name) != before[name]]
        cleaned = any("lean" in line and trial.host in line for line in cluster.log("broker"))
        result["broker"] = "serves all of it" if cleaned or not changed else f"changes {', '.join(changed)}"
        if ends.get(trial.host) != result["logEnd"]:
            result["broker"] = f"ends the log at {ends.get(trial.host)}"
        for options, expected in zip(MODES, kept):
            committed = bool(options)
            if committed and expected == kept[0]:
                continue  # no transaction makes a difference
            for _ in range(TRIES):
                # Read again each time: the coordinator may have aborted an open transaction meanwhile.
                wanted = offsets(root / trial.host, *options)
                got = cluster.consume(trial.host, committed=committed)
                if got.offsets == wanted:
                    break
            else:
                wanted = expected
            suffix = "Committed" if committed else ""
            result[f"consumed{suffix}"] = len(got.offsets)
            result[f"consumer{suffix}"] = verdict(wanted, got.offsets, got.lines)
        if getattr(trial.recipe, "abort", False):
            self.end_open(result, trial, root, cluster)

    @staticmethod
    def end_open(result: Result, trial: Trial, root: Path, cluster: Cluster) -> None:
        """End the open transactions as the report recommends; read_committed consumers should then read to the end."""
        topic, _, number = trial.host.rpartition("-")
        said = []
        for each in result["open"]:
            start = ["--start-offset", str(each["firstOffset"])]
            out, err = cluster.tool("TransactionsCommand", "abort", "--topic", topic, "--partition", number, *start)
            said += once(line for line in (out + err).splitlines() if "AppInfoParser" not in line)
        result["abort"] = said or "ends without a word"
        committed = cluster.consume(trial.host, committed=True)
        behind = [
            offset
            for offset in offsets(root / trial.host)
            if offset > max(each["lastOffset"] for each in result["open"])
        ]
        result["consumedAfterAbort"] = len(committed.offsets)
        result["readsBehindIt"] = set(behind) <= set(committed.offsets) or max(committed.offsets, default=-1)


def verdict(wanted: list[int], got: list[int], lines: list[str]) -> str:
    """Return what the consumer read, compared with what was kept."""
    if got == wanted and not lines:
        return "reads all that was kept"
    missing, more = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
    parts = [f"does not read {ranges(missing)}"] if missing else []
    parts += [f"reads {ranges(more)} too"] if more else []
    return ", ".join([*parts, *once(lines)]) or "reads it in another order"


def main() -> None:
    parser = trial_options(__doc__, "docs/salvage-trials.json")
    parser.add_argument("disks", type=Path)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    recipes = importlib.import_module("tests.damages")
    only = set(filter(None, options.only.split(",")))
    lab = Lab(options.jars.resolve(), options.disks.resolve(), recipes)
    known = {each["name"]: each for each in json.loads(options.out.read_text())} if options.out.exists() else {}
    results = dict(known) if only or options.compare else {}
    differing = 0
    for group in groups(chosen(recipes, only), lab.disks, recipes):
        for result in lab.run(group):
            if options.compare and result != known.get(result["name"]):
                differing += 1
                print(f"{result['name']}: {result}, before {known.get(result['name'])}")
            results[result["name"]] = result
        if not options.compare:
            rows = sorted(results.values(), key=lambda each: (each["code"], each["name"]))
            options.out.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    sys.exit(int(differing > 0))


if __name__ == "__main__":
    main()
