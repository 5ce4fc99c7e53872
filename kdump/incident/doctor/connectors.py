"""Which connectors and tasks of Kafka Connect have failed, and whose schema history lacks records."""

from __future__ import annotations

from kdump.cluster.connect_clusters import (
    CONFIGS,
    ConnectCluster,
    SchemaHistory,
    connect_changes,
    connect_in,
    missing_partitions,
    schema_history,
)
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.format.count_text import count_text
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.run import Run
from kdump.problems.problem import Problem
from kdump.questions.connect.answer import Connector, ConnectorTask, connectors, tasks
from kdump.state.as_of import AsOf
from kdump.state.connect_replay import ConnectState

FAILED = "FAILED"


def has_connect(disks: Disks) -> bool:
    """Return True if topics of Connect are on the disks."""
    return bool(connect_in(disks))


class ConnectExamination:
    """Reads the topics of each Connect cluster."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks, self.on = disks, on
        self._connectors = self._tasks = self._failed = 0

    def run(self) -> None:
        question = self.on.question
        for found in connect_in(self.disks):
            try:
                self._cluster(found)
            except OutOfTime:
                self.on.out_of_time("connect", *self.disks.paths, before="Connect's topics were read")
        question.answer = (
            f"{count_text(self._connectors, 'connector')}, {count_text(self._tasks, 'task')}; "
            f"{f'{self._failed:,} failed' if self._failed else 'none has failed'}"
        )
        question.answer += AS_READ if question.notExamined or self.on.is_partial else ""
        question.isComplete = not question.notExamined

    def _cluster(self, found: ConnectCluster) -> None:
        state = ConnectState()
        run = Run(self.disks.options.limits, more=self.on.read_some)
        for _ in connect_changes(found, state, AsOf(), run=run):
            pass
        directories = self.disks.clusters.get(found.cluster, [])
        metadata = self.disks.metadata(directories)[1]
        self.on.question.partitions += len(found.logs)
        self.on.question.notExamined += missing_partitions(found, metadata)
        ends = LogOffsetsByPartition(directories, metadata)
        for name, stored in sorted(state.configs.items()):
            history = schema_history(stored.value, ends)
            if history is not None and (history.lost or history.deletes):
                self._history(name, found, history)
        for connector in connectors(found, state, ends):
            if not connector.deleted:
                self._connectors += 1
                self._report(connector.name, "it", connector)
        has_configs = any(log.kind == CONFIGS for log in found.logs)
        for task in tasks(found, state):
            if task.connector in state.configs or not has_configs:
                self._tasks += 1
                self._report(task.connector, f"task {task.task}", task)

    def _report(self, name: str, what: str, row: Connector | ConnectorTask) -> None:
        if row.state != FAILED:
            return
        self._failed += 1
        self.on.report(
            Problem("connector-failed", {"what": what, "CONNECTOR": name}),
            row.source or self.disks.paths[0],
            connector=name,
            evidence=(row.failure,) if row.failure else (),
            commands=(command("connect", *self.disks.paths, "--connector", name),),
            commandForAll=command("connect", *self.disks.paths),
        )

    def _history(self, name: str, found: ConnectCluster, history: SchemaHistory) -> None:
        code = "connector-history-incomplete" if history.lost else "connector-history-retention"
        self.on.report(
            Problem(code, {"TOPIC": history.topic}, {"deletes": bool(history.deletes)}),
            found.logs[0].log.path,
            connector=name,
            evidence=tuple(history.problems),
            offset=0 if history.lost else None,
            commands=(command("connect", *self.disks.paths, "--connector", name),),
        )
