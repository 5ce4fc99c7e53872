"""A finding, its code and its severity.

A finding is a problem in bytes that could be read: a value, never an exception. What a code means, its impact and what
to do are in the catalogue (kdump/problems)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, OFFSET, Doc, PathText, Shown, answer, columns
from kdump.log.file_kinds import AT_ROOT, by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import BOOTSTRAP
from kdump.log.paths import Target
from kdump.problems.advice import NO_FACTS, NO_VALUES, cases_of
from kdump.problems.catalogue import PAST_IT, declaration
from kdump.problems.problem import Problem, next_of

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)


FILES = {
    "leader-epoch-checkpoint": "epochFile",
    "recovery-point-offset-checkpoint": "recoveryFile",
    "replication-offset-checkpoint": "watermarkFile",
    "cleaner-offset-checkpoint": "cleanerFile",
    "log-start-offset-checkpoint": "startFile",
    BOOTSTRAP: "bootstrapFile",
}
"""The facts that the name of a file is (problems/facts.toml)."""


TRUNCATES = ("truncates", "truncatesRecords", "truncatesBefore")
"""Cases of damage at which a restart truncates the log."""
ALSO_OF_OBJECTS = ("wrapper", "ours", "notChecked", "slow", "unwritten", "several", "unknownType", "ignored")
"""Cases whose impact is the same if the file is an object."""


@columns(where=Shown(rank=8, least=16, cell=lambda each: "/".join(each.file.rstrip("/").split("/")[-2:]), after="code"))
@answer(
    "finding",
    problem=lambda finding: finding.severity != INFO,
    measures=lambda finding: [("kdump_findings", 1, finding.code, finding.severity)],
)
class Finding(NamedTuple):
    """One finding with its evidence. `position` and `size` are in bytes and refer to `file`; topic and partition are
    None if the directory name does not contain them; `source` is the log directory, or the path that was given."""

    code: Annotated[str, Doc("code of the finding, as in findings.md"), Shown(after="severity")]
    severity: Annotated[str, Doc("error, warning or info"), Shown(rank=7)]
    topic: Annotated[str | None, Doc("from the name of the file's directory")]
    partition: Annotated[int | None, Doc("from the name of the file's directory")]
    file: Annotated[PathText, Doc("path as given, or found below a given directory")]
    position: Annotated[int, Doc("start of the affected bytes", FILE_BYTE), Shown(rank=6, after="where")]
    size: Annotated[int, Doc("how many bytes are affected", BYTES)]
    offset: Annotated[int | None, Doc("first affected offset", OFFSET), Shown(rank=5, after="position")]
    expected: Annotated[Any, Doc("expected value, if it is a single value")]
    actual: Annotated[Any, Doc("actual value")]
    message: Annotated[str, Doc("what is wrong"), Shown(least=20, after="offset")]
    consequence: Annotated[str, Doc("impact on brokers and consumers")]
    source: Annotated[PathText, Doc("the log directory, or the given path; it differs between copies of a disk")] = ""
    next_offset: int | None = None
    """The first offset after the batch, if it is certain."""
    producer_id: int | None = None
    case: str = ""
    """Which of the impacts of the code applies, in place of the usual one; several: joined_cases."""
    facts: Mapping[str, bool | None] = NO_FACTS
    """What is known of the facts on which the actions depend (problems/facts.toml)."""
    fields: Mapping[str, object] = NO_VALUES
    """Those of its impact."""
    wrong_field: str = ""
    """The field in the header of the batch that is wrong; empty if it is not one."""

    def in_case(self, case: str, severity: str | None = None, values: Mapping[str, object] = NO_VALUES) -> Finding:
        """Return the finding with another of the impacts of its code, and perhaps another severity."""
        consequence = Problem(self.code, {"offset": self.offset, **values}, case=case).impact
        return self._replace(consequence=consequence, severity=severity or self.severity, case=case, fields=values)

    def given(self, facts: Mapping[str, bool | None]) -> Finding:
        """Return the finding with more facts; what it has stated itself stays."""
        return self._replace(facts={**facts, **self.facts})

    @property
    def title(self) -> str:
        return self.message

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do about it, in order."""
        return problem_of(self).actions

    @property
    def values(self) -> dict[str, object]:
        """What it states of the fields of its impact, and of the words for it in actions (problems/catalogue.py)."""
        values: dict[str, object] = {"offset": self.offset, **self.fields}
        if self.topic is not None:
            values["TOPIC"] = self.topic
            if self.partition is not None:
                values["PARTITION"] = self.partition
                values["TOPIC:PARTITION"] = f"{self.topic}:{self.partition}"
        if self.file != "-":
            values |= {"DIR": os.path.dirname(self.file) or ".", "SEGMENT": self.file, "POSITION": self.position}
        past_it = "--to-latest" if self.facts.get("logEndsHere") else None
        past_it = past_it if self.next_offset is None else f"--to-offset {self.next_offset}"
        stated = {"OFFSET": self.offset, PAST_IT: past_it, "PRODUCER-ID": self.producer_id}
        return values | {name: value for name, value in stated.items() if value is not None}


def problem_of(finding: Finding) -> Problem:
    """Return the problem of the catalogue that a finding is, which states what to do."""
    own = {"error": finding.severity == ERROR, "truncated": cases_of(finding.case)[0] in TRUNCATES}
    name = os.path.basename(finding.file)
    if finding.topic is not None or name == BOOTSTRAP:
        own["metadataLog"] = is_metadata = finding.topic in (METADATA_TOPIC, None)
        own |= {"exactRepair": False} if is_metadata else {}  # unless the finding states it
    own |= {fact: name == each for each, fact in FILES.items()}
    return Problem(finding.code, finding.values, {**own, **finding.facts}, finding.case)


def next_command(finding: Finding) -> str:
    """Return the command that shows more; empty for standard input, which cannot be read again."""
    if finding.file == "-":
        return ""
    directory, partition = finding.source, os.path.dirname(finding.file) or "."
    kind = by_name(os.path.basename(finding.file))[0]
    is_of_partition = finding.topic is not None and kind is not None and kind not in AT_ROOT
    if is_of_partition and directory.rstrip("/") in (finding.file, partition):
        directory = os.path.dirname(partition) or "."  # not the log directory, but a partition or a file was given
    return next_of(finding.code, {**finding.values, "directory": directory})


class Code(NamedTuple):
    """The code of a finding, which the catalogue declares (kdump/problems): it is read once there is a finding."""

    code: str

    def finding(
        self,
        target: Target,
        *,
        message: str,
        position: int = 0,
        size: int = 0,
        offset: int | None = None,
        expected: Any = None,
        actual: Any = None,
        severity: str | None = None,
        case: str = "",
        values: Mapping[str, object] = NO_VALUES,
        next_offset: int | None = None,
        producer_id: int | None = None,
        facts: Mapping[str, bool | None] = NO_FACTS,
        wrong_field: str = "",
    ) -> Finding:
        """Return a finding of this code about `target`; severity and impact default to those of the code. `case`: which
        of its impacts applies instead; `values`: of the fields in that text; `facts`, `wrong_field`: see
        Finding."""
        return Finding(
            code=self.code,
            severity=severity or declaration(self.code).severity,
            topic=target.topic,
            partition=target.partition,
            file=target.path,
            position=position,
            size=size,
            offset=offset,
            expected=expected,
            actual=actual,
            message=message,
            consequence="",
            source=target.source,
            next_offset=next_offset,
            producer_id=producer_id,
            facts=facts,
            wrong_field=wrong_field,
        ).in_case(case, values=values)


def codes_in(module: Mapping[str, object]) -> dict[str, Code]:
    """Return the codes among the names of a module (its `globals()`), in the order in which it declares them."""
    return {code.code: code for code in module.values() if isinstance(code, Code)}


def about_object(finding: Finding, local_copy: bool | None = False) -> Finding:
    """Return a finding as one about an object in remote storage: no broker loads, recovers or truncates it, and no
    follower fetches it. `local_copy`: the fact localCopy."""
    finding, declared = finding.given({"object": True, "localCopy": local_copy}), declaration(finding.code)
    is_other = finding.severity != INFO and cases_of(finding.case)[0] not in ALSO_OF_OBJECTS
    return (
        finding.in_case("remote")
        if is_other and ("remote" in declared.impacts or declared.family == "bytes")
        else finding
    )
