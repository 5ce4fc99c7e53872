"""Every JSON object there is, by its type, with its keys in order: for the reference, tests, Spark and --columns.

Imports every answer, so import it only where all of them are needed."""

from __future__ import annotations

from importlib import import_module

from kdump.answer import ANSWERS, Key, keys_by_type

MODULES = (
    *("log.inspect_answer", "check.finding", "check.summary", "problems.catalogue"),
    *("questions.ls.answer", "cluster.segment_answer", "questions.schema.answer"),
    *("incident.explain.answer", "incident.explain.message", "questions.bundle.run", "cluster.broker_configuration"),
    *("incident.doctor.answer", "questions.groups.answer", "cluster.lag", "questions.cluster.answer"),
    *("state.metadata_image", "state.recorded_change", "answer", "questions.transactions.answer"),
    *("questions.producers.answer", "questions.registry.answer", "questions.connect.answer"),
    *("questions.retention.answer", "questions.space.answer", "questions.diff.answer"),
    *("questions.restart_plan.answer", "questions.restart_plan.course"),
    *("questions.restart_plan.replicas.replica_answer", "questions.restart_plan.recovery.recovery_time"),
    *("questions.restart_plan.recovery.recovery_work", "questions.restart_plan.recovery.recovery_progress"),
    *("questions.stats.answer", "questions.stats.row_counts", "questions.inspect.record_counts", "spark.scan_answer"),
    *("questions.reindex.run", "questions.rescue.answer", "questions.find.answer", "questions.carve.carved_runs"),
    *("questions.carve.answer", "questions.restore.answer", "questions.salvage.byte_outcomes"),
    "questions.salvage.answer",
)
"""The modules with answers, in the order of the reference."""
for _name in MODULES:
    import_module(f"kdump.{_name}")
TYPES: dict[str, tuple[Key, ...]] = keys_by_type(
    *sorted(ANSWERS.values(), key=lambda answer: MODULES.index(answer.__module__.removeprefix("kdump.")))
)
"""`type` itself comes first in each object."""
