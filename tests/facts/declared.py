"""Facts about a disk, each declared once: what it means, what computes it, and which commands state it where.

docs/facts.md is generated from these declarations (tools/facts_reference.py), and compare.py holds the commands against
each other. A command that states something else under a similar name has a fact of its own, or an `only_if` that says
when both are the same."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from kdump.log.internal_topics import METADATA_TOPIC, TRANSACTION_TOPIC
from kdump.problems import catalogue

COMMANDS: dict[str, tuple[str, ...]] = {
    "ls": (),
    "ls --segments": (),
    "verify": ("--info",),
    "stats": (),
    "diff": ("--all",),
    "transactions": ("--list",),
    "producers": ("--list",),
    "retention": ("--list",),
    "space": (),
    "restart-plan": ("--all",),
    "restart-plan --estimate": (),
    "reindex": ("--all",),
    "groups": (),
    "groups --offsets": (),
    "cluster": (),
    "doctor": (),
}
"""The commands, and further options that show all that they know. `diff` compares the disk with itself."""

Row = dict[str, Any]
"""An object of a command's --json."""
Everything = dict[str, dict[str, list[Row]]]
"""The objects of each command by type."""
Statement = tuple[Hashable, Any]
"""Subject and value. The value None is unknown, and contradicts nothing."""


class States(NamedTuple):
    """Where a command states a fact. `shown`: type and key of its JSON object, for the reader; `find`: yields the
    statements; `only_if`: when it states this fact, in words."""

    command: str
    shown: str
    find: Callable[[Everything], Iterable[Statement]]
    only_if: str = ""


class Fact(NamedTuple):
    """`kafka`: Kafka's class that defines it; `function`: what computes it, as module:name below kdump."""

    name: str
    meaning: str
    unit: str
    kafka: str
    function: str
    states: tuple[States, ...]


class Condition(NamedTuple):
    """Whether an object states a fact, and the same in words."""

    holds: Callable[[Row], bool]
    words: str


Subject = Callable[[Row], Hashable]
ALWAYS = Condition(lambda row: True, "")


def at(
    command: str,
    shown: str,
    value: Callable[[Row], Any] | None = None,
    of: str | Subject = "path",
    only_if: Condition = ALWAYS,
) -> States:
    """Return that a command states a fact in a key of the objects of a type (`shown`: "type.key"), or as a function
    `value` of them. `of`: the key with the path of the subject, or a function that returns the subject."""
    type_, _, key = shown.partition(".")

    def find(everything: Everything) -> Iterator[Statement]:
        for row in everything[command][type_]:
            if only_if.holds(row):
                subject = os.path.abspath(row[of]) if isinstance(of, str) else of(row)
                yield subject, row[key] if value is None else value(row)

    return States(command, shown, find, only_if.words)


REPORT = "kdump.report()"
"""The Python function: the facts of its answer, as objects like those of `kdump transactions` and `kdump stats`."""
TYPES = {
    "transactions": "transactionPartition",
    "producers": "producerPartition",
    "retention": "retention",
    REPORT: "ended",
}


def logs(key: str, commands: str, only_if: Condition = ALWAYS) -> Iterator[States]:
    """Yield that these commands state a fact about a partition in a key of that name. `only_if`: when `ls` does."""
    for command in commands.split():
        if command == "ls":
            yield at("ls", f"partitionLog.{key}", of="partitionDirectory", only_if=only_if)
        elif command == "diff":
            yield copied(key)
        else:
            yield grouped(key) if command == "groups" else at(command, f"{TYPES[command]}.{key}")


def total(command: str, shown: str, of: Subject, only_if: Condition = ALWAYS) -> States:
    """Return that a command states a fact as the sum of a key over the objects with the same subject; or, if `shown`
    has no key, as their number. The sum is unknown if one value is."""
    type_, _, key = shown.partition(".")

    def find(everything: Everything) -> Iterator[Statement]:
        values: dict[Hashable, list[Any]] = defaultdict(list)
        for row in everything[command][type_]:
            if only_if.holds(row):
                values[of(row)].append(row[key] if key else 1)
        for subject, found in values.items():
            yield subject, None if None in found else sum(found)

    return States(command, f"sum of {shown}" if key else f"number of {shown} objects", find, only_if.words)


def copied(key: str) -> States:
    """Return that `diff` states a fact about each copy."""

    def find(everything: Everything) -> Iterator[Statement]:
        for row in everything["diff"]["diff"]:
            for copy in row["copies"]:
                if not copy["unread"]:
                    yield os.path.realpath(copy["path"]), copy[key]

    return States("diff", f"diff.copies[].{key}", find)


def verified(shown: str, wanted: Callable[[Row], bool], value: Callable[[list[Row]], Any]) -> States:
    """Return that `verify` states a fact about each partition by some of its findings."""

    def find(everything: Everything) -> Iterator[Statement]:
        found = defaultdict(list)
        for row in everything["verify"]["finding"]:
            if wanted(row):
                found[os.path.dirname(os.path.abspath(row["file"]))].append(row)
        for row in everything["ls"]["partitionLog"]:
            subject = os.path.abspath(row["partitionDirectory"])
            yield subject, value(found[subject])

    return States("verify", shown, find)


# --- Subjects and conditions ------------------------------------------------------------------------------------------


DISKS = "all disks"


def the_disk(row: Row) -> Hashable:
    return DISKS


def directory(row: Row) -> str:
    """Return the log directory that an object is about."""
    return os.path.abspath(str(row["source"]))


def topic(row: Row) -> Hashable:
    return f"topic {row['topic']}"


def group(row: Row) -> Hashable:
    return f"group {row['groupId']}"


def partition_of_file(row: Row) -> str:
    """Return the partition directory that has a file."""
    return os.path.dirname(os.path.abspath(str(row["file"])))


LIVE = Condition(lambda row: row["state"] in ("", "live"), "the directory is live")
SERVED = Condition(lambda row: row["state"] in ("", "live", "future"), "the directory is live or future")
NAMED = Condition(lambda row: row["scope"] == "partition" and row["topic"] is not None, "its scope is partition")
TOTAL = Condition(lambda row: row["scope"] == "total", "its scope is total")
NO_TAIL = Condition(
    lambda row: NAMED.holds(row) and not row["paddingBytes"],
    "the last segment does not end in zeros or an incomplete batch, which is paddingBytes",
)
UNCHANGED = Condition(
    lambda row: (
        not (row["bytesCut"] or row["stops"] or row["missing"] or row["unread"] or row["state"] in ("delete", "stray"))
        and not any(
            step["kind"] == "truncate" or (step["kind"] == "delete" and step["file"].endswith(".log"))
            for step in row["steps"]
        )
    ),
    "the startup loads the log, truncates nothing and deletes no segment",
)
RECOVERED_ONCE = Condition(
    lambda row: UNCHANGED.holds(row) and recovers_once(row["steps"]),
    f"{UNCHANGED.words}, no index is damaged (--estimate does not look for that), and no segment is recovered twice",
)
NOT_RECOVERED = Condition(
    lambda row: not (row["stops"] or row["missing"] or row["unread"] or row["state"] or row["recovered"]),
    "the startup loads the log and recovers no segment",
)
STARTS = Condition(lambda row: not (row["stops"] or row["missing"] or row["unread"]), "the startup loads the log")
RECOVERED_WHOLE = Condition(lambda row: row["validSize"] == row["size"], "recovery accepts the whole segment")
THERE = Condition(lambda row: not row["missing"], "the directory exists")
ASCENDING = Condition(lambda row: not row["stops"] and ascends(row["epochsBefore"]), "they ascend")
LIVE_AND_THERE = Condition(lambda row: LIVE.holds(row) and THERE.holds(row), "")
MISSING = Condition(lambda row: row["missing"], "")
NAMED_AS_MISSING = Condition(lambda row: row["code"] == "partition-missing" and row["topic"] is not None, "")
INDEX_CODES = {code for code in catalogue.findings() if "index" in code} - {"index-missing", "index-orphan"}


def is_damage(finding: Row) -> bool:
    """Return True for damaged bytes of a segment."""
    if not finding["file"].endswith(".log"):
        return False
    return catalogue.findings()[finding["code"]].family == "bytes" and finding["severity"] != "info"


def undamaged(states: States) -> States:
    """Return that a command, which computes no checksums or accepts a wrong magic, as recovery does, states a fact
    about what has no damage."""

    def find(everything: Everything) -> Iterator[Statement]:
        damaged = {os.path.abspath(row["file"]) for row in everything["verify"]["finding"] if is_damage(row)}
        damaged |= {os.path.dirname(path) for path in damaged}
        return (each for each in states.find(everything) if each[0] not in damaged)

    words = "no batch is damaged"
    return states._replace(find=find, only_if=f"{states.only_if}, and {words}" if states.only_if else words)


def decoded(states: States) -> States:
    """Return that a command, which counts the records that decode, states a fact about batches whose records do."""

    def find(everything: Everything) -> Iterator[Statement]:
        wrong = {
            os.path.dirname(os.path.abspath(row["file"])) for row in everything["verify"]["finding"] if is_odd(row)
        }
        return (each for each in states.find(everything) if each[0] not in wrong and not (each[0] == DISKS and wrong))

    words = "each valid batch has as many records as it counts, and they decode"
    return states._replace(find=find, only_if=f"{states.only_if}, and {words}" if states.only_if else words)


def is_odd(finding: Row) -> bool:
    """Return True for a finding about the records of a batch."""
    return catalogue.findings()[finding["code"]].family == "records" and finding["severity"] == "error"


def of_one_node(states: States) -> States:
    """Return that a command states a fact about a node: all directories are of one. restart-plan is given one node's
    log.dirs; other commands take a directory whose meta.properties cannot be read, or states other IDs, for another
    node's, and one that has a live partition of another for a copy."""

    def find(everything: Everything) -> Iterator[Statement]:
        live: dict[str, set[str]] = {row["directory"]: set() for row in everything["ls"]["logDirectory"]}
        partitions = {source: set[tuple[str, int]]() for source in live}
        for row in everything["ls"]["partitionLog"]:
            if row["state"] == "live":
                live[row["source"]].add(row["topic"])
                partitions[row["source"]].add((row["topic"], row["partition"]))
        every = {row["directory"]: (row["clusterId"], row["nodeId"]) for row in everything["ls"]["logDirectory"]}
        unread = {row["directory"] for row in everything["ls"]["logDirectory"] if "meta.properties" in row["broken"]}
        for one, other in combinations(live, 2):
            is_one_node = every[one] == every[other] and None not in every[one] and not unread & {one, other}
            if (not is_one_node and live[one] & live[other]) or partitions[one] & partitions[other]:
                return iter(())
        return iter(states.find(everything))

    words = "no partition is in two directories, no topic in one whose meta.properties is unreadable or differs"
    return states._replace(find=find, only_if=f"{states.only_if}, and {words}" if states.only_if else words)


def recovers_once(steps: list[Row]) -> bool:
    """Return True if a startup recovers each segment at most once, and none because of a damaged index."""
    found = [step["file"] for step in steps if step["kind"] == "recover"]
    return len(found) == len(set(found)) and not any(step["kind"] == "rebuild" for step in steps)


def ascends(epochs: list[Row] | None) -> bool:
    """Return True if leader epochs ascend in both columns."""
    pairs = [(each["epoch"], each["startOffset"]) for each in epochs or ()]
    return all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


def as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def grouped(key: str) -> States:
    """Return that `groups` states a fact about a partition with a committed offset. It names no path: the directory is
    known if one only has the partition."""

    def find(everything: Everything) -> Iterator[Statement]:
        paths = defaultdict(list)
        for row in everything["ls"]["partitionLog"]:
            if row["state"] == "live":
                paths[row["topic"], row["partition"]].append(os.path.abspath(row["partitionDirectory"]))
        for row in everything["groups --offsets"]["groupOffset"]:
            directories = paths[row["topic"], row["partition"]]
            if len(directories) == 1:
                yield directories[0], row[key]

    return States("groups --offsets", f"groupOffset.{key}", find, "only one log directory has the live partition")


def about(name: str, type_: str, key: str, rule: Callable[[Row], bool], words: str) -> Fact:
    """Return the fact which directories a command is about: those that `ls` lists for which the rule holds."""

    def rows(everything: Everything) -> Iterator[Statement]:
        found = everything[name]
        is_refused = name.startswith("restart-plan") and not any(found.values())
        if is_refused or any(row["stops"] for row in found["restartPlan"]):
            return  # the broker exits before it has looked at all of them; restart-plan refuses a copy of partitions
        rows = [row for row in found[type_] if not row.get("missing") and row["topic"] not in (METADATA_TOPIC, None)]
        yield "all disks", sorted(os.path.abspath(row[key]) for row in rows)

    def listed(everything: Everything) -> Iterator[Statement]:
        found = [row for row in everything["ls"]["partitionLog"] if row["topic"] != METADATA_TOPIC and rule(row)]
        yield "all disks", sorted(os.path.abspath(row["partitionDirectory"]) for row in found)

    states = (States(name, f"{type_}.{key}", rows), States("ls", "partitionLog.partitionDirectory", listed, words))
    return Fact(f"directories that {name} is about", words, "", "", "", states)


def has_clients(row: Row) -> bool:
    """Return True for a live partition with segments that producers with IDs write to."""
    return bool(row["state"] == "live" and row["segments"] and row["topic"] != TRANSACTION_TOPIC)


# --- Statements that take several objects -----------------------------------------------------------------------------


def live_directories(command: str, type_: str, condition: Condition) -> Callable[[Everything], Iterable[Statement]]:
    """Return what yields the number of objects of a type that hold, for each log directory that `ls` shows. A broker
    that exits has not loaded all, and restart-plan says nothing about a copy of partitions."""

    def find(everything: Everything) -> Iterator[Statement]:
        if not any(everything[command].values()) or any(row["stops"] for row in everything[command]["restartPlan"]):
            return
        counts = Counter(directory(row) for row in everything[command][type_] if condition.holds(row))
        for row in everything["ls"]["logDirectory"]:
            subject = os.path.abspath(row["directory"])
            yield subject, counts[subject]

    return find


def transactions_in(*states: str) -> Callable[[Everything], Iterable[Statement]]:
    def find(everything: Everything) -> Iterator[Statement]:
        rows = everything["transactions"]["transaction"]
        counts = Counter((directory(row), row["topic"], row["partition"]) for row in rows if row["state"] in states)
        for row in everything["transactions"]["transactionPartition"]:
            yield os.path.abspath(row["path"]), counts[directory(row), row["topic"], row["partition"]]

    return find


def due_topics(everything: Everything) -> Iterator[Statement]:
    found: dict[Hashable, bool] = {}
    for row in everything["retention"]["retentionSegment"]:
        is_due = row["deletion"] == "now" and not row["isActive"]
        found[topic(row)] = found.get(topic(row), False) or is_due
    yield from found.items()


def newest_metadata(everything: Everything) -> Iterator[Statement]:
    rows = everything["cluster"]["cluster"]
    chosen = [row for row in rows if row["topics"]] or rows  # a copy without topics is newer only than others without
    yield "all disks", max((row["replayedOffset"] for row in chosen), default=None)


def remarks(everything: Everything) -> Iterator[Statement]:
    groups = everything["groups --offsets"]
    counts = Counter(row["groupId"] for row in (*groups["groupOffset"], *groups["groupShare"]) if row["remark"])
    for row in groups["group"]:
        yield group(row), counts[row["groupId"]]


def judged_indexes(everything: Everything) -> Iterator[Statement]:
    for row in everything["reindex"]["reindex"]:
        throws = any(ending["does"] == "throws" for ending in row["endings"])
        for index in row["indexes"]:
            if index["file"] is not None and index["status"] != "unread" and not throws:
                yield os.path.abspath(index["file"]), index["severity"]


def index_severities(everything: Everything) -> Iterator[Statement]:
    found: dict[Hashable, set[str]] = {}
    for row in everything["verify"]["finding"]:
        if row["code"] in INDEX_CODES:
            found.setdefault(os.path.abspath(row["file"]), set()).add(row["severity"])
    for subject, _ in judged_indexes(everything):
        yield subject, next((each for each in ("error", "warning") if each in found.get(subject, set())), None)


def truncated(row: Row) -> int:
    """Return the bytes that recovery truncates of a rebuilt segment: where it splits one, the parts have all of it."""
    return 0 if any(each["does"] == "splits" for each in row["endings"]) else row["size"] - row["validSize"]


def first_cuts(everything: Everything) -> Iterator[Statement]:
    """Yield what a startup truncates of each segment that it recovers, up to the first that it truncates."""
    for row in everything["restart-plan"]["restartPartition"]:
        if not STARTS.holds(row):
            continue
        cuts = {os.path.abspath(each["file"]): each["size"] for each in row["cuts"] if each["kind"] == "truncated"}
        for step in row["steps"]:
            if step["kind"] == "recover":
                subject = os.path.abspath(step["file"])
                yield subject, cuts.get(subject, 0)
                if subject in cuts:
                    break


def estimated(command: str) -> States:
    def find(everything: Everything) -> Iterator[Statement]:
        if not any(row["stops"] for row in everything["restart-plan"]["restartPlan"]):
            for row in everything[command]["recoveryTime"]:
                yield the_disk(row), (row["recoveredLogs"], row["segments"], row["bytes"])

    return States(command, "recoveryTime.{recoveredLogs, segments, bytes}", find, "the broker starts")


# --- The facts --------------------------------------------------------------------------------------------------------

WITH_IDS = "live, with a segment; not __cluster_metadata and __transaction_state, written to without producer IDs"

# fmt: off
ABOUT: list[Fact] = [
    about("transactions", "transactionPartition", "path", has_clients, WITH_IDS),
    about("producers", "producerPartition", "path", has_clients, WITH_IDS),
    about("retention", "retention", "path", lambda row: row["segments"] > 0,
          "in any state, with a segment; not __cluster_metadata, to which no topic config applies"),
    about("stats", "stats", "source", lambda row: row["segments"] > 0, "in any state, with a segment"),
    about("restart-plan", "restartPartition", "path", lambda row: True,
          "in any state; of the metadata logs, the node's own"),
    about("restart-plan --estimate", "recoveryLog", "path", lambda row: True,
          "in any state; not __cluster_metadata, which the node recovers before its logs"),
]
# fmt: on
"""Which directories each command is about."""

# fmt: off
FACTS: list[Fact] = [
    *ABOUT,
    Fact("logStartOffset",
         "first offset of the log: that of log-start-offset-checkpoint, if a broker can read it, or the base offset of "
         "the first segment, whichever is higher", "offset", "LogLoader.load",
         "log.partition_directory:log_start_offset",
         (*logs("logStartOffset", "ls transactions producers retention", LIVE),
          at("restart-plan", "restartPartition.logStartOffset", only_if=UNCHANGED),
          *logs("logStartOffset", f"diff groups {REPORT}"))),
    Fact("logEndOffset",
         "offset after the last batch that a broker finds when it starts (a damaged one counts unless it recovers the "
         "segment), or the base offset of the last segment if it finds none", "offset",
         "LocalLog.logEndOffset", "cluster.partition_summary:log_end",
         (*logs("logEndOffset", "ls transactions producers retention"),
          at("restart-plan", "restartPartition.logEndOffset", only_if=UNCHANGED), undamaged(copied("logEndOffset")),
          *logs("logEndOffset", f"{REPORT} groups"))),
    Fact("log end offset after a startup", "log end offset of a broker that starts and does not check the log",
         "offset", "LogSegment.readNextOffset", "check.engine.partition_scan:PartitionScan.log_end",
         (at("transactions", "transactionPartition.startLogEndOffset"),
          at("restart-plan", "restartPartition.logEndOffset", only_if=NOT_RECOVERED))),
    Fact("lastOffset", "last offset of the last valid batch of a segment", "offset", "LogSegment.readNextOffset",
         "log.region_totals:RegionTotals",
         (at("ls --segments", "logSegment.lastOffset", of="file"),
          at("retention", "retentionSegment.lastOffset", of="file"),
          undamaged(at("reindex", "reindex.lastOffset", of="file", only_if=RECOVERED_WHOLE)))),
    Fact("highWatermark", "offset below which consumers read, when replication-offset-checkpoint was written", "offset",
         "ReplicaManager.checkpointHighWatermarks", "kafka.small_files:offsets",
         (*logs("highWatermark", "ls transactions retention", LIVE),
          at("restart-plan", "restartPartition.highWatermark", only_if=LIVE), *logs("highWatermark", "diff groups"))),
    Fact("recoveryPoint", "offset below which the log is flushed, in recovery-point-offset-checkpoint", "offset",
         "LogManager.checkpointLogRecoveryOffsets", "kafka.small_files:offsets",
         (*logs("recoveryPoint", "ls retention", LIVE),
          at("restart-plan", "restartPartition.recoveryPoint", only_if=LIVE))),
    Fact("lastStableOffset",
         "first offset of the oldest open transaction of a broker, not below logStartOffset, or the log end offset",
         "offset", "UnifiedLog.maybeIncrementFirstUnstableOffset",
         "check.engine.partition_scan:PartitionScan.last_stable_offset",
         (*logs("lastStableOffset", f"transactions retention {REPORT}"),)),
    Fact("first open transaction",
         "first offset of the oldest open transaction: where read_committed consumers stop; none if none is open",
         "offset", "UnifiedLog.maybeIncrementFirstUnstableOffset",
         "check.engine.partition_scan:PartitionScan.last_stable_offset",
         (at("transactions", "transactionPartition.lastStableOffset",
             lambda row: "none" if row["heldBy"] is None else row["lastStableOffset"]),
          at("inspect --read-committed", "note on standard error",
             lambda row: "none" if row["stable"] is None else row["stable"]))),
    Fact("leader epochs", "entries of leader-epoch-checkpoint, if they ascend", "", "LeaderEpochCheckpointFile",
         "log.entries:entries",
         (at("restart-plan", "restartPartition.epochsBefore", only_if=ASCENDING),
          copied("epochs"))),
    Fact("segments", "segments that belong to the log", "", "LogSegments", "log.partition_directory:PartitionDirectory",
         (at("ls", "partitionLog.segments", of="partitionDirectory"),
          total("ls --segments", "logSegment", partition_of_file),
          *logs("segments", "transactions producers retention"), at("restart-plan --estimate", "recoveryLog.segments"),
          total("reindex", "reindex", partition_of_file), at("stats", "stats.files", of="source", only_if=NAMED),
          at(REPORT, "stats.files"), copied("segments"))),
    Fact("bytes", "length of the segments that belong to the log", "bytes", "LogSegments.sizeInBytes",
         "log.partition_directory:PartitionDirectory",
         (at("ls", "partitionLog.size", of="partitionDirectory"),
          total("ls --segments", "logSegment.size", partition_of_file),
          total("reindex", "reindex.size", partition_of_file),
          at("stats", "stats.bytes", of="source", only_if=NAMED), at(REPORT, "stats.bytes"))),
    Fact("batches", "batches, and messages of magic 0 and 1; damaged, too", "", "FileRecords.batches",
         "log.region_reader:regions",
         (undamaged(at("ls", "partitionLog.batches", of="partitionDirectory")),
          undamaged(total("ls --segments", "logSegment.batches", partition_of_file)),
          at("stats", "stats.batches", of="source", only_if=NAMED), at(REPORT, "stats.batches"))),
    Fact("batches of all partitions", "batches of all partitions, and messages of magic 0 and 1; damaged, too", "",
         "FileRecords.batches", "log.region_reader:regions",
         (at("verify", "summary.batches", of=the_disk), at("stats", "stats.batches", of=the_disk, only_if=TOTAL))),
    Fact("records of all partitions", "records in valid batches", "", "RecordBatch.countOrNull",
         "log.batch_validity:invalidity",
         (decoded(at("verify", "summary.records", of=the_disk)),
          at("stats", "stats.records", of=the_disk, only_if=TOTAL))),
    Fact("valid batches", "batches of a segment that are valid", "", "FileRecords.batches",
         "log.batch_validity:invalidity",
         (undamaged(at("ls --segments", "logSegment.batches", of="file")),
          at("retention", "retentionSegment.batches", of="file"),
          undamaged(at("reindex", "reindex.batches", of="file", only_if=RECOVERED_WHOLE)))),
    Fact("records", "records in valid batches of a partition", "", "RecordBatch.countOrNull",
         "log.batch_validity:invalidity",
         (undamaged(at("ls", "partitionLog.records", of="partitionDirectory")),
          decoded(at("stats", "stats.records", of="source", only_if=NAMED)),
          total("retention", "retentionSegment.records", partition_of_file))),
    Fact("damages", "places in the segments with bytes that are not part of a valid batch", "", "",
         "questions.certain_answers:is_damage",
         (verified("findings of family bytes", is_damage, len),
          *logs("damages", f"transactions producers retention {REPORT}"),
          at("stats", "stats.damagedPlaces", of="source", only_if=NO_TAIL))),
    Fact("whether a log is damaged", "whether the segments have bytes that are not part of a valid batch", "", "",
         "questions.certain_answers:is_damage",
         (verified("findings of family bytes", is_damage, bool),
          at("transactions", "transactionPartition.damages", lambda row: row["damages"] > 0),
          at("producers", "producerPartition.damages", lambda row: row["damages"] > 0),
          at("retention", "retention.damages", lambda row: None if row["damages"] is None else row["damages"] > 0),
          at("stats", "stats.damagedPlaces", lambda row: row["damagedPlaces"] > 0, "source", NO_TAIL))),
    Fact("state of a directory", "live, delete, future or stray, from the suffix of its name", "",
         "LocalLog.parseTopicPartitionName", "log.partition_directory:partition",
         (at("ls", "partitionLog.state", of="partitionDirectory"),
          at("restart-plan", "restartPartition.state", lambda row: row["state"] or "live", only_if=THERE),
          at("retention", "retention.state", lambda row: row["state"] or "live"))),
    Fact("live partitions", "directories of live partitions in a log directory, the metadata log included", "",
         "LogManager.loadLogs", "log.log_directory:LogDirectory",
         (at("ls", "logDirectory.partitions", of="directory"),
          States("ls", "number of partitionLog objects", live_directories("ls", "partitionLog", LIVE), LIVE.words),
          States("restart-plan", "number of restartPartition objects",
                 live_directories("restart-plan", "restartPartition", LIVE_AND_THERE),
                 "the directory is live, and the broker starts"),
          at("space", "spaceDirectory.partitions"))),
    Fact("partition directories", "directories of partitions, in any state", "", "LogManager.loadLogs",
         "log.log_directory:LogDirectory",
         (at("doctor", "doctorDisk.partitions"),
          States("ls", "number of partitionLog objects", live_directories("ls", "partitionLog", ALWAYS)))),
    Fact("partition directories of all disks", "directories of partitions, in any state", "", "LogManager.loadLogs",
         "log.log_directory:LogDirectory",
         (at("verify", "summary.partitions", of=the_disk), total("ls", "partitionLog", the_disk))),
    Fact("missing partitions", "partitions that the log directory had, and whose directories are missing", "",
         "ReplicaManager.applyDelta", "cluster.missing_partitions:missing_partitions",
         (at("ls", "logDirectory.absent", lambda row: len(row["absent"]), "directory"),
          States("restart-plan", "number of restartPartition objects",
                 live_directories("restart-plan", "restartPartition", MISSING), "it is missing"),
          States("verify", "findings partition-missing", live_directories("verify", "finding", NAMED_AS_MISSING)))),
    Fact("committed transactions", "transactions with a COMMIT marker in the log", "",
         "ProducerAppendInfo.appendEndTxnMarker", "state.transaction_tracker:OpenTransactions",
         (*logs("committed", f"transactions {REPORT}"),
          States("transactions", "number of transaction objects", transactions_in("committed"),
                 "its state is committed"))),
    Fact("aborted transactions",
         "transactions with an ABORT marker in the log, or of which damage has left only the entry in the .txnindex",
         "", "ProducerAppendInfo.appendEndTxnMarker", "state.transaction_tracker:OpenTransactions",
         (*logs("aborted", f"transactions {REPORT}"),
          States("transactions", "number of transaction objects", transactions_in("aborted"), "its state is aborted"))),
    Fact("open transactions", "transactions that a broker has open, those included that hang", "",
         "ProducerStateManager.ongoingTxns", "state.transaction_tracker:OpenTransactions.in_broker",
         (at("transactions", "transactionPartition.{open, hanging}", lambda row: row["open"] + row["hanging"]),
          verified("findings transaction-open and transaction-hanging",
                   lambda row: row["code"] in ("transaction-open", "transaction-hanging"), len),
          States("transactions", "number of transaction objects", transactions_in("open", "hanging"),
                 "its state is open or hanging"))),
    Fact("release", "release of Kafka that ran on the disk", "", "MetadataVersion",
         "cluster.release_evidence:applied_release",
         tuple(of_one_node(states) for states in (
             at("producers", "producerPartition.kafkaVersion", of=the_disk),
             at("retention", "retention.kafkaVersion", of=the_disk, only_if=SERVED),
             at("restart-plan", "restartPlan.release.version", lambda row: (row["release"] or {}).get("version"),
                the_disk)))),
    Fact("whether a topic's configs are known", "whether the topic's own configs were found in the cluster's metadata",
         "", "ConfigurationsImage", "questions.retention.configs:settings",
         (of_one_node(at("retention", "retention.isConfigKnown", of=topic, only_if=LIVE)),
          of_one_node(at("space", "spaceTopic.isConfigKnown", of=topic)))),
    Fact("clean shutdown",
         "whether the broker shut down cleanly; null where no broker has run, as in a controller's directory", "",
         "CleanShutdownFileHandler", "cluster.directory_summary:had_clean_shutdown",
         (at("ls", "logDirectory.cleanShutdown", lambda row: str(row["cleanShutdown"]), "directory"),
          at("doctor", "doctorDisk.clean", lambda row: str(row["clean"])),
          at("space", "spaceDirectory.isClean", lambda row: str(row["isClean"])))),
    Fact("clean start", "whether a startup finds .kafka_cleanshutdown; null in a directory that is not in log.dirs", "",
         "LogManager.loadLogs", "cluster.directory_summary:had_clean_shutdown",
         (at("ls", "logDirectory.cleanShutdown", of="directory"), at("restart-plan", "restartDirectory.clean"))),
    Fact("cluster.id", "ID of the cluster, in meta.properties", "", "MetaProperties", "kafka.small_files:properties",
         (at("ls", "logDirectory.clusterId", of="directory"), at("doctor", "doctorDisk.clusterId"),
          at("restart-plan", "restartDirectory.clusterId"))),
    Fact("node.id", "ID of the node, in meta.properties", "", "MetaProperties", "kafka.small_files:properties",
         (at("ls", "logDirectory.nodeId", of="directory"), at("doctor", "doctorDisk.nodeId"),
          at("space", "spaceDirectory.nodeId", lambda row: as_text(row["nodeId"])),
          at("restart-plan", "restartDirectory.nodeId", lambda row: as_text(row["nodeId"])))),
    Fact("directory.id", "ID of the log directory, in meta.properties", "", "MetaProperties",
         "kafka.small_files:properties",
         (at("ls", "logDirectory.directoryId", of="directory"), at("restart-plan", "restartDirectory.directoryId"))),
    Fact("recovery of all logs",
         "logs and segments that a startup recovers, and bytes that it reads for that; without the metadata log", "",
         "LogLoader.recoverLog", "questions.restart_plan.recovery.recovery_work:DirectoryReader",
         (estimated("restart-plan"), estimated("restart-plan --estimate"))),
    Fact("recovered segments",
         "segments of a log that a startup reads and checks because of its recovery point or of a missing .index", "",
         "LogLoader.recoverLog", "questions.restart_plan.recovery.recovery_work:DirectoryReader",
         (at("restart-plan", "restartPartition.recovered", only_if=RECOVERED_ONCE),
          at("restart-plan --estimate", "recoveryLog.recovered"))),
    Fact("metadata offset", "end offset of what can be replayed of the newest metadata on the disks", "offset",
         "KafkaRaftLog.endOffset", "cluster.metadata_log:read_metadata",
         (States("cluster", "cluster.replayedOffset", newest_metadata, "the highest of a copy that has topics"),
          at("space", "space.metadataOffset", of=the_disk),
          at("restart-plan", "restartCluster.metadataOffset", of=the_disk))),
    Fact("whether retention deletes segments next",
         "whether the next check deletes a segment of the topic other than the active ones", "",
         "UnifiedLog.deleteOldSegments", "questions.retention.deletion:due_now",
         (States("retention", "retentionSegment.deletion", due_topics, "the segment is not active"),
          at("space", "spaceTopic.dueNow", lambda row: row["dueNow"] > 0, topic))),
    Fact("remarks on committed offsets",
         "committed offsets of a group that are out of range, or of a partition that is not there", "",
         "OffsetFetcherUtils", "cluster.lag:out_of_range",
         (at("groups", "group.remarks", of=group), at("groups --offsets", "group.remarks", of=group),
          States("groups --offsets", "number of groupOffset and groupShare objects with a remark", remarks))),
    Fact("whether an index is right",
         "error if a broker that uses the index goes wrong, warning if no release writes it so; otherwise unset", "",
         "OffsetIndex, TimeIndex, TransactionIndex", "kafka.index_judge:IndexJudge",
         (States("reindex", "reindex.indexes[].severity", judged_indexes,
                 "recovery of the segment throws no exception: entries after it are not judged"),
          States("verify", "highest severity of a finding about the index", index_severities))),
    Fact("truncated bytes", "bytes that recovery truncates from a segment that it reads", "bytes", "LogSegment.recover",
         "kafka.log_segment:recover",
         (
          States("restart-plan", "restartPartition.cuts[].size", first_cuts,
                 "up to the first segment that is truncated"),
          at("reindex", "reindex.{size, validSize, endings[].does}", truncated, "file"))),
]
# fmt: on
