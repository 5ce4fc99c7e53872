"""kdump reads Kafka's files directly from a broker's disk, with no broker running."""

from typing import TYPE_CHECKING, Any

from kdump.engine import check_choice, choose
from kdump.version import __version__ as __version__

choose()

API = {
    "open": "kdump.forensics.open_log",
    "Log": "kdump.forensics.open_log",
    "carve": "kdump.forensics.carve.run",
    "CarvedBatch": "kdump.forensics.carve.search",
    "CarvedRun": "kdump.forensics.carve.carved_runs",
    "CarvedFile": "kdump.forensics.carve.run",
    "diff": "kdump.forensics.diff",
    "doctor": "kdump.forensics.doctor.run",
    "DoctorResult": "kdump.forensics.doctor.run",
    "Diff": "kdump.forensics.diff",
    "explain": "kdump.forensics.explain.run",
    "connect": "kdump.forensics.api",
    "decoded": "kdump.decode.decoded_records",
    "producers": "kdump.forensics.api",
    "registry": "kdump.forensics.api",
    "retention": "kdump.forensics.retention.run",
    "space": "kdump.forensics.space.run",
    "restart_plan": "kdump.forensics.restart.restart_plan",
    "restart_cluster": "kdump.forensics.restart.restart_cluster",
    "RestartPlan": "kdump.forensics.restart.plan_values",
    "reindex": "kdump.forensics.reindex.run",
    "Reindexed": "kdump.forensics.reindex.run",
    "report": "kdump.render.postmortem.report",
    "ReportFiles": "kdump.render.postmortem.report",
    "stats": "kdump.forensics.read_stats",
    "Stats": "kdump.forensics.stats",
    "transactions": "kdump.forensics.api",
    "salvage": "kdump.forensics.salvage.run",
    "Salvaged": "kdump.forensics.salvage.result",
    "SalvageError": "kdump.forensics.salvage.sources",
    "OutputError": "kdump.forensics.output_directory",
    "Options": "kdump.check.options",
    "Limits": "kdump.log.run",
    "Run": "kdump.log.run",
    "Region": "kdump.log.region",
    "Batch": "kdump.log.region",
    "Record": "kdump.log.record",
    "Entry": "kdump.log.entries",
    "SourceError": "kdump.log.errors",
}
"""What `import kdump` offers, and the module that defines it, which is imported on first access. See docs/api.md."""

if TYPE_CHECKING:
    from kdump.check.options import Options as Options
    from kdump.decode.decoded_records import decoded as decoded
    from kdump.forensics.api import connect as connect
    from kdump.forensics.api import producers as producers
    from kdump.forensics.api import registry as registry
    from kdump.forensics.api import transactions as transactions
    from kdump.forensics.carve.carved_runs import CarvedRun as CarvedRun
    from kdump.forensics.carve.run import CarvedFile as CarvedFile
    from kdump.forensics.carve.run import carve as carve
    from kdump.forensics.carve.search import CarvedBatch as CarvedBatch
    from kdump.forensics.diff import Diff as Diff
    from kdump.forensics.diff import diff as diff
    from kdump.forensics.doctor.run import DoctorResult as DoctorResult
    from kdump.forensics.doctor.run import doctor as doctor
    from kdump.forensics.explain.run import explain as explain
    from kdump.forensics.open_log import Log as Log
    from kdump.forensics.open_log import open as open
    from kdump.forensics.output_directory import OutputError as OutputError
    from kdump.forensics.read_stats import stats as stats
    from kdump.forensics.reindex.run import Reindexed as Reindexed
    from kdump.forensics.reindex.run import reindex as reindex
    from kdump.forensics.restart.plan_values import RestartPlan as RestartPlan
    from kdump.forensics.restart.restart_cluster import restart_cluster as restart_cluster
    from kdump.forensics.restart.restart_plan import restart_plan as restart_plan
    from kdump.forensics.retention.run import retention as retention
    from kdump.forensics.salvage.result import Salvaged as Salvaged
    from kdump.forensics.salvage.run import salvage as salvage
    from kdump.forensics.salvage.sources import SalvageError as SalvageError
    from kdump.forensics.space.run import space as space
    from kdump.forensics.stats import Stats as Stats
    from kdump.log.entries import Entry as Entry
    from kdump.log.errors import SourceError as SourceError
    from kdump.log.record import Record as Record
    from kdump.log.region import Batch as Batch
    from kdump.log.region import Region as Region
    from kdump.log.run import Limits as Limits
    from kdump.log.run import Run as Run
    from kdump.render.postmortem.report import ReportFiles as ReportFiles
    from kdump.render.postmortem.report import report as report


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
