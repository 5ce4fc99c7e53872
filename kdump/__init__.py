"""kdump reads Kafka's files directly from a broker's disk, with no broker running."""

from typing import TYPE_CHECKING, Any

from kdump.engine import check_choice, choose
from kdump.version import __version__ as __version__

choose()

API = {
    "open": "kdump.api.open_log",
    "Log": "kdump.api.open_log",
    "carve": "kdump.questions.carve.run",
    "CarvedBatch": "kdump.questions.carve.search",
    "CarvedRun": "kdump.questions.carve.carved_runs",
    "CarvedFile": "kdump.questions.carve.run",
    "diff": "kdump.questions.diff.run",
    "doctor": "kdump.incident.doctor.run",
    "DoctorResult": "kdump.incident.doctor.run",
    "Diff": "kdump.questions.diff.run",
    "explain": "kdump.incident.explain.run",
    "connect": "kdump.questions.connect.run",
    "decoded": "kdump.api.decoded_records",
    "producers": "kdump.questions.producers.run",
    "records": "kdump.api.records",
    "Records": "kdump.api.records",
    "registry": "kdump.questions.registry.run",
    "retention": "kdump.questions.retention.run",
    "space": "kdump.questions.space.run",
    "restart_plan": "kdump.questions.restart_plan.run",
    "restart_cluster": "kdump.questions.restart_plan.replicas.restart_cluster",
    "RestartPlan": "kdump.questions.restart_plan.answer",
    "reindex": "kdump.questions.reindex.run",
    "Reindexed": "kdump.questions.reindex.run",
    "report": "kdump.incident.report.html.report",
    "ReportFiles": "kdump.incident.report.html.report",
    "find": "kdump.questions.find.run",
    "stats": "kdump.questions.stats.run",
    "Stats": "kdump.questions.stats.totals",
    "transactions": "kdump.questions.transactions.run",
    "salvage": "kdump.questions.salvage.run",
    "Salvaged": "kdump.questions.salvage.answer",
    "SalvageError": "kdump.questions.salvage.source.sources",
    "OutputError": "kdump.log.output_directory",
    "Options": "kdump.check.options",
    "Limits": "kdump.io.run",
    "Run": "kdump.io.run",
    "Region": "kdump.log.region",
    "Batch": "kdump.log.region",
    "Record": "kdump.log.record",
    "Entry": "kdump.log.entries",
    "SourceError": "kdump.io.errors",
}
"""What `import kdump` offers, and the module that defines it, which is imported on first access. See docs/api.md."""

if TYPE_CHECKING:
    from kdump.api.decoded_records import decoded as decoded
    from kdump.api.open_log import Log as Log
    from kdump.api.open_log import open as open
    from kdump.api.records import Records as Records
    from kdump.api.records import records as records
    from kdump.check.options import Options as Options
    from kdump.incident.doctor.run import DoctorResult as DoctorResult
    from kdump.incident.doctor.run import doctor as doctor
    from kdump.incident.explain.run import explain as explain
    from kdump.incident.report.html.report import ReportFiles as ReportFiles
    from kdump.incident.report.html.report import report as report
    from kdump.io.errors import SourceError as SourceError
    from kdump.io.run import Limits as Limits
    from kdump.io.run import Run as Run
    from kdump.log.entries import Entry as Entry
    from kdump.log.output_directory import OutputError as OutputError
    from kdump.log.record import Record as Record
    from kdump.log.region import Batch as Batch
    from kdump.log.region import Region as Region
    from kdump.questions.carve.carved_runs import CarvedRun as CarvedRun
    from kdump.questions.carve.run import CarvedFile as CarvedFile
    from kdump.questions.carve.run import carve as carve
    from kdump.questions.carve.search import CarvedBatch as CarvedBatch
    from kdump.questions.connect.run import connect as connect
    from kdump.questions.diff.run import Diff as Diff
    from kdump.questions.diff.run import diff as diff
    from kdump.questions.find.run import find as find
    from kdump.questions.producers.run import producers as producers
    from kdump.questions.registry.run import registry as registry
    from kdump.questions.reindex.run import Reindexed as Reindexed
    from kdump.questions.reindex.run import reindex as reindex
    from kdump.questions.restart_plan.answer import RestartPlan as RestartPlan
    from kdump.questions.restart_plan.replicas.restart_cluster import restart_cluster as restart_cluster
    from kdump.questions.restart_plan.run import restart_plan as restart_plan
    from kdump.questions.retention.run import retention as retention
    from kdump.questions.salvage.answer import Salvaged as Salvaged
    from kdump.questions.salvage.run import salvage as salvage
    from kdump.questions.salvage.source.sources import SalvageError as SalvageError
    from kdump.questions.space.run import space as space
    from kdump.questions.stats.run import stats as stats
    from kdump.questions.stats.totals import Stats as Stats
    from kdump.questions.transactions.run import transactions as transactions


def __getattr__(name: str) -> Any:
    module = API.get(name)
    if module is None:
        raise AttributeError(f"module 'kdump' has no attribute {name!r}")
    from importlib import import_module

    check_choice()
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *API})
