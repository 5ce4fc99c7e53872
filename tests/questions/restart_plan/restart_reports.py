"""Recipes that rebuild disks of public reports, each with where it was reported."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.damages import META, METADATA, RECOVERY, REPLICATION
from tests.questions.restart_plan.restart_damages import CLEANER, CLICKS, MARK
from tests.questions.restart_plan.restart_recipe import (
    Node,
    changed,
    directory,
    gone,
    link,
    mode,
    owned,
    recipe,
    written,
)

TEMPORARY = ("bootstrap.checkpoint.tmp", "meta.properties.tmp")
STORE = "/var/lib/clickhouse/store"


def snapshot_of_root(root: Path) -> Node:
    node = owned(Node((root,)))
    max((root / METADATA).glob("*.checkpoint")).chmod(0)
    return node


def temporary_of_root(root: Path) -> Node:
    node = owned(Node((root,)))
    for name in TEMPORARY:
        shutil.chown(root / name, 0, 0)
    return node


def nfs_files(root: Path) -> None:
    deleted = next(root.glob("*-delete"))
    gone(f"{deleted.name}/*")(root)
    (deleted / ".nfs0000000000a1b2c300000003").write_bytes(bytes(100))


# fmt: off
recipe("report-temporary-files-cleaned", "crash-1",
       "the oldest .log files are gone: /tmp was cleaned up below the broker (phoebus, issue 1174)",
       lambda root: [path.unlink() for path in sorted((root / "clicks-0").glob("*.log"))[:3]])
recipe("report-time-index-zeros", "clean-1",
       "a closed segment's .timeindex is all zeros, and retention.ms is set (Kafka on ZFS: largestTime=0)",
       changed(f"{CLICKS}.timeindex", lambda data: bytes(len(data))),
       lambda root: Node((root,), configs="log.retention.ms=315360000000\n", wait=15))
recipe("report-metadata-snapshot-of-root", "clean-1",
       "the newest metadata snapshot cannot be read: it belongs to root (open-im-server, issue 2903)", snapshot_of_root)
recipe("report-temporary-files-of-root", "clean-1",
       "bootstrap.checkpoint.tmp and meta.properties.tmp of root, left by kafka-storage (lerd, issue 1553)",
       *(step for name in TEMPORARY for step in (written(name), mode(name, 0o600))), temporary_of_root)
recipe("report-directory-of-another-program", "clean-1",
       "the directory posthog with links to nothing, of another program (posthog charts, issue 703)",
       directory("posthog"), link("posthog/person_distinct_id", f"{STORE}/f21"))
recipe("report-links-of-another-program", "clean-1",
       "broken links of another program, one named like a partition (posthog charts, issue 703)",
       link("posthog", f"{STORE}/f21"), link("person-1", f"{STORE}/f22"))
recipe("report-checkpoints-emptied", "clean-1",
       "checkpoints of 0 bytes on NFS, after the pod was killed (helm charts, issue 3898)",
       gone(MARK), *(written(name) for name in (RECOVERY, REPLICATION, CLEANER)))
recipe("report-formatted-for-kraft", "legacy",
       "a ZooKeeper broker's disk, which an image formatted for KRaft (bitnami containers, issue 31488)", gone("v*-0"),
       written(META, b"version=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\nnode.id=1\ndirectory.id=NC0LDPpABlNgsHloSKd7mg\n"))
recipe("report-nfs-files", "crash-1", ".nfs files, which NFS leaves in place of open files that are deleted (Kafka on "
       "NFS, skybet)", written("clicks-0/.nfs0000000000a1b2c300000001", bytes(4096)),
       written(".nfs0000000000a1b2c300000002"), nfs_files)
# fmt: on
