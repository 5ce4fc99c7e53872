"""Every JSON object there is, by its type, with its keys in order: for the reference, tests, Spark and --columns.

Imports every answer, so import it only where all of them are needed."""

from __future__ import annotations

from kdump.answer import Key, Note, keys_by_type
from kdump.check.finding import Finding
from kdump.check.summary import CheckSummary
from kdump.cluster.broker_configuration import NodeConfiguration
from kdump.cluster.lag import CommittedPosition, SharePosition
from kdump.incident.doctor import answer as doctor
from kdump.incident.explain import answer as explain
from kdump.incident.explain.message import Message
from kdump.log import inspect_answer
from kdump.problems.catalogue import Declaration
from kdump.questions.bundle.run import BundleSummary
from kdump.questions.carve import answer as carve
from kdump.questions.carve.carved_runs import CarvedRun
from kdump.questions.cluster import answer as cluster_answer
from kdump.questions.connect import answer as connect_answer
from kdump.questions.diff import answer as diff
from kdump.questions.find import answer as find
from kdump.questions.groups import answer as groups_answer
from kdump.questions.inspect.record_counts import RecordCount
from kdump.questions.ls import answer as ls_answer
from kdump.questions.producers import answer as producers
from kdump.questions.registry import answer as registry_answer
from kdump.questions.reindex import run as reindex
from kdump.questions.rescue import answer as rescue
from kdump.questions.restart_plan import answer as restart
from kdump.questions.restart_plan.course import StartupEvent
from kdump.questions.restart_plan.recovery.recovery_progress import RecoveryProgress
from kdump.questions.restart_plan.recovery.recovery_time import RecoveryTime
from kdump.questions.restart_plan.recovery.recovery_work import LogWork
from kdump.questions.restart_plan.replicas.replica_answer import ClusterSummary, PartitionReplicas
from kdump.questions.restore import answer as restored
from kdump.questions.retention import answer as retention
from kdump.questions.salvage.answer import Salvaged, SalvageSummary
from kdump.questions.salvage.byte_outcomes import LedgerExcluded, LedgerHole, LedgerSpan
from kdump.questions.schema import answer as schema_answer
from kdump.questions.space import answer as space
from kdump.questions.stats.answer import PartitionStatistics, TopKey, TopProducer
from kdump.questions.stats.row_counts import PeriodCount
from kdump.questions.transactions import answer as forensic
from kdump.spark.scan_answer import FleetSummary
from kdump.state import metadata_image
from kdump.state.recorded_change import RecordedChange
from kdump.state.segment_answer import ListedSegment

TYPES: dict[str, tuple[Key, ...]] = {
    **keys_by_type(
        inspect_answer.InspectedBatch,
        inspect_answer.InspectedRecord,
        inspect_answer.InspectedRegion,
        Finding,
        inspect_answer.InspectedIndexEntry,
        inspect_answer.InspectedTimeIndexEntry,
        inspect_answer.InspectedTxnIndexEntry,
        inspect_answer.InspectedProducer,
        inspect_answer.InspectedCheckpointEntry,
        inspect_answer.InspectedProperty,
        CheckSummary,
        Declaration,
    ),
    **keys_by_type(ls_answer.ListedDirectory, ls_answer.ListedPartition, ls_answer.ListedTopic, ListedSegment),
    **keys_by_type(schema_answer.StructAnswer, schema_answer.FieldAnswer),
    **keys_by_type(explain.Explanation, explain.ExplanationSummary, explain.FindingExplanation, Message),
    **keys_by_type(BundleSummary),
    **keys_by_type(NodeConfiguration),
    **keys_by_type(doctor.ExaminedDisk, doctor.Item, doctor.LargestTopic, doctor.Question, doctor.Page),
    **keys_by_type(
        groups_answer.DescribedGroup,
        groups_answer.GroupMember,
        CommittedPosition,
        SharePosition,
        cluster_answer.Cluster,
        cluster_answer.ClusterVoter,
        metadata_image.ControllerRegistration,
        cluster_answer.ClusterBroker,
        cluster_answer.ClusterFeature,
        cluster_answer.ClusterTopic,
        cluster_answer.ClusterPartition,
        cluster_answer.ClusterConfig,
        cluster_answer.ClusterQuota,
        metadata_image.StandardAcl,
        metadata_image.ScramCredential,
        metadata_image.DelegationToken,
        RecordedChange,
        Note,
        forensic.Transaction,
        forensic.PartitionTransactions,
        forensic.CoordinatorTransaction,
        forensic.Difference,
        producers.Producer,
        producers.ProducerEvent,
        producers.PartitionProducers,
    ),
    **keys_by_type(registry_answer.RegisteredVersion, registry_answer.RegistrySetting, registry_answer.SchemaUsage),
    **keys_by_type(
        connect_answer.Connector,
        connect_answer.ConnectorTask,
        connect_answer.ConnectorOffset,
        connect_answer.MirrorCheckpoint,
    ),
    **keys_by_type(retention.SegmentRetention, retention.RetentionBlocker, retention.PartitionRetention),
    **keys_by_type(
        space.SpaceDirectory,
        space.SpaceTopic,
        space.SpaceStep,
        space.SpaceKept,
        space.SpaceSummary,
    ),
    **keys_by_type(diff.CopyDifference, diff.PartitionDiff, diff.DiffSummary),
    **keys_by_type(
        restart.PartitionPlan,
        restart.DirectoryPlan,
        StartupEvent,
        restart.RestartPlan,
        PartitionReplicas,
        ClusterSummary,
    ),
    **keys_by_type(RecoveryTime, LogWork, RecoveryProgress),
    **keys_by_type(PartitionStatistics, PeriodCount, TopKey, TopProducer, RecordCount),
    **keys_by_type(FleetSummary),
    **keys_by_type(reindex.Reindexed, reindex.ReindexSummary),
    **keys_by_type(
        rescue.RescueSummary,
        rescue.RescueCopy,
        rescue.RescueRecord,
        rescue.RescueLoss,
        rescue.RescueTopic,
        rescue.RescueDirectory,
        rescue.RescueUnknown,
        rescue.RescueInvention,
        rescue.RescueController,
        rescue.RescueStep,
    ),
    **keys_by_type(find.Match, find.SearchCoverage),
    **keys_by_type(CarvedRun, carve.NestedBatch, carve.CarvedTornBatch, carve.CarveSummary),
    **keys_by_type(
        restored.RestorePartition,
        restored.RestoreRefusal,
        restored.RestoreDifference,
        restored.RestoreGroup,
        restored.RestoreSummary,
    ),
    **keys_by_type(LedgerSpan, LedgerHole, LedgerExcluded, Salvaged, SalvageSummary),
}
"""`type` itself comes first in each object."""
