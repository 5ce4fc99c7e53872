"""The check of `kdump verify` and `kdump.verify`: files of log directories, and objects in remote storage."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.engine.workers import run_all, usual_jobs_for
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.rules.bytes import UNREADABLE_BYTES
from kdump.check.summary import CheckSummary
from kdump.check.totals import CheckTotals
from kdump.format.kafka_release import KafkaRelease
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.low_impact_reads import limit_requests
from kdump.io.run import ignore
from kdump.problems.catalogue import family_names, findings
from kdump.query import (
    Names,
    Query,
    flag,
    jobs_option,
    message_size_option,
    offered,
    option,
    partition_option,
    refuse_unmatched,
    release_option,
    timeout_option,
    topic_option,
)

if TYPE_CHECKING:
    from kdump.check.scrub.run import Scrub
    from kdump.kafka.server_properties import ServerProperties
    from kdump.log.remote_objects import RemoteStorage

__all__ = ["verify"]


def _families() -> Iterator[tuple[str, str]]:
    return ((name, "") for name in family_names())


def _codes() -> Iterator[tuple[str, str]]:
    return ((code.code, code.meaning) for code in findings().values())


@dataclass(frozen=True, kw_only=True)
class VerifyQuery(Query):
    """What to check, and by which rules."""

    paths_option = {**Query.paths_option, "required": False}  # --list takes none
    headers_only: bool = flag("--crc", help="Check only headers, checksums and offsets; nothing is decompressed.")
    only: Iterable[str] = option(
        "--only",
        metavar="FAMILY,…",
        type=Names(_families, "family"),
        otherwise=(),
        help="Check only these families of findings.",
    )
    ignore: Iterable[str] = option(
        "--ignore",
        metavar="CODE,…",
        type=Names(_codes, "code"),
        otherwise=(),
        help="Omit findings with these codes.",
    )
    topics: Iterable[str] = topic_option("Check only partitions of these topics")
    partitions: Iterable[int] = partition_option("Check only partitions")
    jobs: int | None = jobs_option("Check")
    baseline: str | None = option(
        "--baseline", metavar="FILE", help="Omit the findings in FILE, the output of an earlier --json run."
    )
    timeout: int = timeout_option()
    max_message_bytes: int | None = message_size_option()
    kafka_version: KafkaRelease | str | None = release_option("Judge by the rules")

    def wants(self, topic: str | None, number: int | None) -> bool:
        return (topic is None or self.of_topic(topic)) and (number is None or self.of_partition(number))


ScrubOf = Callable[[Options, CheckTotals, frozenset[str]], "Scrub"]
"""Makes a scrub with these options, which counts into the totals; the codes are not shown of what it remembers."""


class Check:
    """One check. `max_requests`: the most requests to the store of `remote`; `tell` is called with what these will
    be. `scrub`: what reads the units in part and remembers the rest."""

    def __init__(
        self,
        query: VerifyQuery,
        *,
        server: ServerProperties | None = None,
        remote: RemoteStorage | None = None,
        max_requests: int | None = None,
        tell: Callable[[str], object] = ignore,
        scrub: ScrubOf | None = None,
    ) -> None:
        self.query, self.tell, self.max_requests = query, tell, max_requests
        self.totals = CheckTotals()
        self._stated = set[str]()
        """Absolute paths of files of which a finding states what could not be read."""
        self._known = read_baseline(query.baseline) if query.baseline else set[BaselineKey]()
        given = Options.as_of(query.run, kafka_version=query.kafka_version, max_message_bytes=query.max_message_bytes)
        self.options = replace(
            given,
            only=frozenset(query.only),
            ignore=frozenset(query.ignore if scrub is None else ()),
            headers_only=query.headers_only,
            transaction_timeout=query.timeout,
            server=server,
            remote=remote,
            open_source=careful_source,
            unreadable=self._unreadable,
        )
        self.scrub = None if scrub is None else scrub(self.options, self.totals, frozenset(query.ignore))

    def _unreadable(self, error: SourceError) -> None:
        self.totals.add_unreadable(error)
        self.query.run.unreadable(error)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings, which the totals count, and call `run.begin` with the name of each partition or file."""
        query, check, run = self.query, self.options, self.query.run
        disks = check.disks_at(query.paths)
        work = [unit for unit in units_of(disks, check) if query.wants(unit.topic, unit.number)]
        if query.topics or query.partitions:
            self._note_missing(work)
        if not self.totals.unread:
            refuse_unmatched(query.topics, query.partitions)
        limit_requests(self.max_requests)
        remote = None
        if check.remote is not None:
            from kdump.check.engine.remote_check import remote_check  # most runs have no --remote

            remote = remote_check(disks, check, work, self.totals)
        if remote is not None and remote.estimate:
            self.tell(remote.estimate)
        if self.scrub is None:
            run.expect(sum(unit.size for unit in work) + (0 if remote is None else remote.size))
            found_in = run_all(work, query.jobs or usual_jobs_for(work), self.totals)
        else:
            found_in = self.scrub.run(work)
        for unit, found in found_in:
            run.begin(unit.name)
            of_directory = unit.directory is not None and self.totals.is_selection
            yield from self._counted(each for each in found if not of_directory or self._is_of_selection(each))
        for place, topic in remote.places() if remote is not None else ():
            if remote is not None and query.wants(topic, place[1]):
                self.totals.partitions += 1
                run.begin(f"{topic}-{place[1]} in {remote.listing.url}")
                yield from self._counted(remote.findings(place, topic, self.totals))
        if remote is not None:
            remote.end(self.totals)
        self.totals.add_failures(self._stated)

    def _note_missing(self, work: list[CheckUnit]) -> None:
        """Note the selected partitions that have no directory on any of their node's disks: nothing of them is read."""
        self.totals.is_selection = True
        roots = [unit for unit in work if unit.directory is not None]
        nodes = {unit.name: (unit.ids.get("cluster.id"), unit.ids.get("node.id")) for unit in roots}
        live = [unit.partition for unit in work if unit.partition is not None and not unit.partition.state]
        here = {(nodes.get(each.source), each.topic, each.partition) for each in live}
        for unit in roots:
            for key, why in unit.missing().items():
                if self.query.wants(*key) and (nodes[unit.name], *key) not in here:
                    self.totals.problem(why)

    def _is_of_selection(self, finding: Finding) -> bool:
        """Return True for a finding about a log directory's root that is about a selected partition."""
        has_topic = finding.topic is not None or not self.query.topics
        return has_topic and self.query.wants(finding.topic, finding.partition)

    def _counted(self, found: Iterable[Finding]) -> Iterator[Finding]:
        for finding in found:
            if self._known and _key(finding) in self._known:
                self.totals.known += 1
                continue
            if finding.code == UNREADABLE_BYTES.code:
                self._stated.add(os.path.abspath(finding.file))
            self.totals.findings[finding.severity] += 1
            self.totals.missing.add(finding)
            yield finding


def answers(query: VerifyQuery) -> Iterator[Finding | CheckSummary]:
    """Yield each Finding, then the CheckSummary. Raises SourceError for a `baseline` that kdump verify --json has not
    written."""
    check, began = Check(query), time.monotonic()
    yield from check.findings()
    yield CheckSummary.of(check.totals, time.monotonic() - began)


verify = offered("verify", VerifyQuery, answers)
OF_SUMMARY = {"findings", "known", "unread"}
"""Keys of verify's summary, which distinguish it from that of other commands."""
BaselineKey = tuple[str, str | None, int | None, int | None, str]
"""What a baseline identifies an accepted finding by: code, topic-partition and offset; without a topic or an offset,
also file name."""


def read_baseline(path: str) -> set[BaselineKey]:
    """Return the findings of a file written by `kdump verify --json`. Raises SourceError if it cannot be read or is
    anything else."""
    keys: set[BaselineKey] = set()
    lines = 0
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    lines += 1
                    if row["type"] == "finding":
                        keys.add(_key_of(row["code"], row["topic"], row["partition"], row["offset"], row["file"]))
                    elif row["type"] != "summary" or not row.keys() >= OF_SUMMARY:
                        raise ValueError(row["type"])
                except (ValueError, KeyError, TypeError) as error:
                    raise SourceError.at(
                        path, f"line {number} is not a line that kdump verify --json writes"
                    ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError.at(path, f"{getattr(error, 'strerror', None) or error}") from error
    if not lines:
        raise SourceError.at(path, "is empty, and the output of kdump verify --json is not")
    return keys


def _key(finding: Finding) -> BaselineKey:
    return _key_of(finding.code, finding.topic, finding.partition, finding.offset, finding.file)


def _key_of(code: str, topic: str | None, partition: int | None, offset: int | None, file: str) -> BaselineKey:
    return code, topic, partition, offset, os.path.basename(file) if topic is None or offset is None else ""
