"""Recipes that rebuild disks of public reports, each with where it was reported."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.damages import META, RECOVERY, REPLICATION, ZERO
from tests.questions.restart_plan.restart_recipe import Node, edit, owned, recipe

CLICKS = f"clicks-0/{ZERO}"


@recipe("crash-1", "the oldest .log files are gone: /tmp was cleaned up below the broker (phoebus, issue 1174)")
def report_temporary_files_cleaned(root: Path) -> None:
    for path in sorted((root / "clicks-0").glob("*.log"))[:3]:
        path.unlink()


@recipe("clean-1", "a closed segment's .timeindex is all zeros, and retention.ms is set (Kafka on ZFS: largestTime=0)")
def report_time_index_zeros(root: Path) -> Node:
    edit(root / f"{CLICKS}.timeindex", lambda data: bytes(len(data)))
    return Node((root,), configs="log.retention.ms=315360000000\n", wait=15)


@recipe("clean-1", "the newest metadata snapshot cannot be read: it belongs to root (open-im-server, issue 2903)")
def report_metadata_snapshot_of_root(root: Path) -> Node:
    node = owned(Node((root,)))
    max((root / "__cluster_metadata-0").glob("*.checkpoint")).chmod(0)
    return node


@recipe("clean-1", "bootstrap.checkpoint.tmp and meta.properties.tmp of root, left by kafka-storage (lerd, issue 1553)")
def report_temporary_files_of_root(root: Path) -> Node:
    for name in ("bootstrap.checkpoint.tmp", "meta.properties.tmp"):
        (root / name).write_bytes(b"")
        (root / name).chmod(0o600)
    node = owned(Node((root,)))
    for name in ("bootstrap.checkpoint.tmp", "meta.properties.tmp"):
        shutil.chown(root / name, 0, 0)
    return node


@recipe("clean-1", "the directory posthog with links to nothing, of another program (posthog charts, issue 703)")
def report_directory_of_another_program(root: Path) -> None:
    (root / "posthog").mkdir()
    (root / "posthog/person_distinct_id").symlink_to("/var/lib/clickhouse/store/f21")


@recipe("clean-1", "broken links of another program, one named like a partition (posthog charts, issue 703)")
def report_links_of_another_program(root: Path) -> None:
    (root / "posthog").symlink_to("/var/lib/clickhouse/store/f21")
    (root / "person-1").symlink_to("/var/lib/clickhouse/store/f22")


@recipe("clean-1", "checkpoints of 0 bytes on NFS, after the pod was killed (helm charts, issue 3898)")
def report_checkpoints_emptied(root: Path) -> None:
    (root / ".kafka_cleanshutdown").unlink()
    for name in (RECOVERY, REPLICATION, "cleaner-offset-checkpoint"):
        (root / name).write_bytes(b"")


@recipe("legacy", "a ZooKeeper broker's disk, which an image formatted for KRaft (bitnami containers, issue 31488)")
def report_formatted_for_kraft(root: Path) -> None:
    for path in root.glob("v*-0"):
        shutil.rmtree(path)
    (root / META).write_text(
        "version=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\nnode.id=1\ndirectory.id=NC0LDPpABlNgsHloSKd7mg\n"
    )


@recipe("crash-1", ".nfs files, which NFS leaves in place of open files that are deleted (Kafka on NFS, skybet)")
def report_nfs_files(root: Path) -> None:
    (root / "clicks-0/.nfs0000000000a1b2c300000001").write_bytes(b"\0" * 4096)
    (root / ".nfs0000000000a1b2c300000002").write_bytes(b"")
    gone = next(root.glob("*-delete"))
    for path in gone.iterdir():
        path.unlink()
    (gone / ".nfs0000000000a1b2c300000003").write_bytes(b"\0" * 100)
