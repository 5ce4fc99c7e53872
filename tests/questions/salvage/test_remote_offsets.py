"""A partition whose older half is in remote storage is not complete without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import objects, run
from tests.conftest import DISKS


@pytest.mark.sampled
def test_what_is_in_remote_storage_is_not_complete(tmp_path: Path) -> None:
    disk, (bucket,) = DISKS / "kafka-4.3-tiered" / "disk" / "tiered-0", DISKS.glob("kafka-4.3-tiered/tier/*/tiered-0-*")
    (made, _) = objects("salvage", disk, "--out", tmp_path / "one", status=1)
    assert (made["whole"], made["onlyRemote"]) == (False, [110377, 215208])
    assert "complete" not in run("salvage", disk, "--out", tmp_path / "two").stdout.splitlines()[0]
    (made, _) = objects("salvage", disk, "--replica", bucket, "--out", tmp_path / "three")
    assert (made["whole"], made["onlyRemote"], made["logStartOffset"]) == (True, None, 110377)
