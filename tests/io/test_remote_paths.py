"""Paths of segments in remote storage: they have the topic, or its ID."""

from __future__ import annotations

from kdump.io.remote_paths import remote_partition
from kdump.log.partition_directory import partition
from kdump.log.paths import target
from tests.each_case import each_case

ID = "wAa01FzqTkayNnf6QOm_2w"
PATHS = {
    f"/tier/orders-7-{ID}": ("orders", 7),
    f"/tier/a-1-2-{ID}": ("a-1", 2),
    f"/tier/orders-7-{'-' * 21}A": ("orders", 7),
    f"/tier/orders-{ID}/7": ("orders", 7),
    f"/tier/{ID}/7": (ID, 7),
    f"/tier/{ID}/": None,
    f"/tier/orders-7-{ID}x": None,
    f"/tier/orders-7-{ID[:-1]}x": None,
    "/tier/orders/7": None,
    "7": None,
}


@each_case("path", PATHS)
def test_the_partition_of_a_path(path: str) -> None:
    found = remote_partition(path)
    assert (found and found[:2]) == PATHS[path]
    found = partition(path)
    assert (found.topic, found.partition, found.state) == (*(PATHS[path] or (None, None)), "")
    for root in ("", "s3://bucket"):
        file = target(f"{root}{path.rstrip('/')}/00000000000000110377-WcYB7bTLTXuTVwAYPCIYgg.log")
        assert (file.topic, file.partition) == (PATHS[path] or (None, None))


def test_a_broker_s_directory_is_no_remote_one() -> None:
    """A topic may have a name that looks like an ID."""
    found = partition(f"/disk/orders-7-{ID}-3")
    assert (found.topic, found.partition) == (f"orders-7-{ID}", 3)
