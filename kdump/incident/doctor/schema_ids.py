"""Whether the schema registry on the disks has the schemas of the records, and whether it gave an ID twice."""

from __future__ import annotations

from kdump.cluster.schema_registries import RegistryLog, read_registry, registries_in, versions_in_deleted_logs
from kdump.decode.known_schemas import KnownSchemas
from kdump.format.count_text import count_text
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.run import Run
from kdump.problems.problem import Problem
from kdump.questions.registry.answer import SchemaUsage
from kdump.questions.registry.usage import NONE, logs_with_records, usage
from kdump.state.schema_registry import HARD_DELETED

LAST_BYTES = 4 * 1024 * 1024
"""Number of bytes at the end of each partition whose records are read; `kdump registry --usage` reads all."""
SHOWN = 3
"""Number of partitions or IDs that are evidence."""


class SchemasExamination:
    """Reads the registry of each cluster, and the ends of its partitions."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks, self.on = disks, on
        self._known = 0
        self._used: set[tuple[int | None, str | None]] = set()
        self._unresolved = 0

    def run(self) -> None:
        question = self.on.question
        for registry in registries_in(self.disks):
            try:
                self._registry(registry)
            except OutOfTime:
                self.on.out_of_time("registry", *self.disks.paths, "--usage", before="the records were read")
        question.answer = (
            f"{count_text(self._known, 'version')}; {count_text(len(self._used), 'schema ID')} in the last "
            f"{LAST_BYTES // (1 << 20)} MiB of each partition, {self._unresolved:,} without a schema"
        )
        question.answer += AS_READ if question.notExamined or self.on.is_partial else ""
        question.isComplete = not question.notExamined

    def _registry(self, registry: RegistryLog) -> None:
        run = Run(self.disks.options.limits, more=self.on.read_some)
        state = read_registry(registry, keep_gone=True, run=run)
        self._known += sum(len(state.rows(each)) for each in state.subjects)
        if state.unapplied:
            self.on.question.notExamined.append(f"the registry's topic: {state.unapplied}")
        mine = self.disks.clusters[registry.cluster]
        gone = [version for _, version in versions_in_deleted_logs(registry.deleted, state, run)]
        schemas = KnownSchemas(state, mine[0].path, gone)
        self._given_twice(registry.log.path, schemas)
        unresolved: list[SchemaUsage] = []
        every = logs_with_records(mine, lambda topic: True)
        logs = [log for log in every if not self.disks.counts_twice(log.path)]
        self.on.question.partitions += len(logs)
        for log in logs:
            ids = list(usage([log], schemas, lambda path, problem: None, self.on.reporting(run), LAST_BYTES))
            sure = [each for each in ids if each.doubt is None or each.state == HARD_DELETED]
            self._used |= {(each.id, each.guid) for each in sure}
            unresolved += [each for each in sure if each.state in (NONE, HARD_DELETED)]
        self._unresolved += len({(each.id, each.guid) for each in unresolved})
        if unresolved:
            self._without_schema(registry.log.path, unresolved)

    def _given_twice(self, source: str, schemas: KnownSchemas) -> None:
        """Report IDs that stand, or stood, for two schemas in a context."""
        evidence = [
            f"offset {offset}: {subject} version {version} with ID {schema_id}, which is that of another schema"
            for offset, subject, version, schema_id in schemas.registry.duplicates
        ]
        for schema_id, gone in sorted(schemas.gone.items()):
            for each in gone:
                now = schemas.registry.find_id(each.context, schema_id)
                if now is not None and now.text != each.text:
                    evidence.append(
                        f"ID {schema_id}: {each.subject} version {each.version} at offset {each.offset}, deleted, then "
                        f"{now.subject} version {now.version} at offset {now.offset}"
                    )
        if not evidence:
            return
        self.on.report(
            Problem("schema-id-given-twice", {"count": count_text(len(evidence), "schema ID was", "schema IDs were")}),
            source,
            evidence=_first(evidence),
            commands=(self._command("--deleted"),),
        )

    def _without_schema(self, source: str, unresolved: list[SchemaUsage]) -> None:
        evidence = [
            f"{used.topic}-{used.partition}: {used.part} with {_name(used)}, {count_text(used.records, 'record')} in "
            f"offsets {used.firstOffset}..{used.lastOffset}"
            + (": only a deleted schema has it" if used.state == HARD_DELETED else "")
            for used in unresolved
        ]
        count = count_text(len({(used.id, used.guid) for used in unresolved}), "schema ID")
        self.on.report(
            Problem("schema-ids-unresolved", {"count": count}),
            source,
            evidence=_first(evidence),
            offset=unresolved[0].firstOffset,
            commands=(self._command("--usage"), self._command("--deleted")),
        )

    def _command(self, *options: str) -> str:
        return command("registry", *self.disks.paths, *options)


def _name(used: SchemaUsage) -> str:
    return f"ID {used.id}" if used.guid is None else f"GUID {used.guid}"


def _first(evidence: list[str]) -> tuple[str, ...]:
    more = len(evidence) - SHOWN
    return (*evidence[:SHOWN], *([f"and {more:,} more"] if more > 0 else ()))
