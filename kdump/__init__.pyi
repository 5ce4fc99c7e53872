# Do not edit: python -m tools.index writes this file.
from kdump.api.decoded_records import decoded as decoded
from kdump.api.open_log import Log as Log, open as open
from kdump.api.records import Records as Records, records as records
from kdump.check.options import Options as Options
from kdump.incident.doctor.run import DoctorResult as DoctorResult, doctor as doctor
from kdump.incident.explain.run import explain as explain
from kdump.incident.report.html.report import ReportFiles as ReportFiles, report as report
from kdump.io.errors import SourceError as SourceError
from kdump.io.run import Limits as Limits, Run as Run
from kdump.log.entries import Entry as Entry
from kdump.log.output_directory import OutputError as OutputError
from kdump.log.record import Record as Record
from kdump.log.region import Batch as Batch, Region as Region
from kdump.questions.bundle.run import bundle as bundle
from kdump.questions.carve.carved_runs import CarvedRun as CarvedRun
from kdump.questions.carve.run import CarvedFile as CarvedFile, carve as carve
from kdump.questions.carve.search import CarvedBatch as CarvedBatch
from kdump.questions.cluster.run import cluster_metadata as cluster_metadata
from kdump.questions.connect.run import connect as connect
from kdump.questions.diff.run import Diff as Diff, diff as diff
from kdump.questions.find.run import find as find
from kdump.questions.groups.run import groups as groups
from kdump.questions.ls.run import ls as ls
from kdump.questions.producers.run import producers as producers
from kdump.questions.registry.run import registry as registry
from kdump.questions.reindex.run import Reindexed as Reindexed, reindex as reindex
from kdump.questions.rescue.run import rescue as rescue
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
from kdump.questions.verify.run import verify as verify
from kdump.version import __version__ as __version__

API: dict[str, str]
