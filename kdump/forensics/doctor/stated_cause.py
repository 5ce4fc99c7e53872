"""Whether an item of the page states the cause of a message in a broker's log already."""

from __future__ import annotations

import os

from kdump.forensics.doctor.answers import STARTUP, Item
from kdump.forensics.explain.answers import Explanation
from kdump.forensics.explain.catalogue import by_name, family_of
from kdump.forensics.explain.commands import partition_of
from kdump.forensics.explain.grouping import read_entry
from kdump.forensics.explain.log_entries import Entry
from kdump.log import file_kinds
from kdump.log.internal_topics import METADATA_LOG

OF_STARTUP = ("record_reads", "recovery", "startup", "identity", "storage_failures", "small_files", "kraft")
"""Families of messages whose cause is that of a startup's failure or loss, if both are about the same file."""
OF_DIRECTORY = ("startup-stops", "startup-offline")
"""Items that explain why a log directory failed."""


def messages_of(item: Item) -> frozenset[str]:
    """Return the names of the messages that the broker logs for what an item predicts."""
    if not item.logged:
        return frozenset()
    reading = read_entry(Entry(item.logged), anywhere=True)
    if reading is None:
        return frozenset()
    inner = () if reading.inner is None else (reading.inner.name,)
    return frozenset((reading.message.name, *inner))


def states(item: Item, predicted: frozenset[str], found: Explanation, *, several: bool) -> bool:
    """Return True if an item states the cause of a message: it has the code of a finding that belongs to the message,
    or is about the startup that logged it; and both are about the same partition and file, as far as they name one.

    `predicted`: the messages_of the item; `several`: whether the disks are of several brokers, so that one must be the
    broker whose paths the message names."""
    message = by_name().get(found.message or "")
    if message is None or not _same_place(item, found, several=several):
        return False
    if item.code in message.codes or found.message in predicted or (found.causedBy or "") in predicted:
        return True
    if item.question != STARTUP or not message.plan or family_of(message) not in OF_STARTUP:
        return False
    if _partition(found) is not None or _file(found.about.get("file")) == _file(item.file) != "":
        return True
    directory = found.about.get("directory", "")
    names = {os.path.basename(path.rstrip("/")) for path in (directory, item.source)}
    return "file" not in found.about and item.code in OF_DIRECTORY and len(names) == 1


def _same_place(item: Item, found: Explanation, *, several: bool) -> bool:
    about = found.about
    path = about.get("file") or about.get("directory") or ""
    if several and os.path.basename(item.source.rstrip("/")) not in path.split("/"):
        return False
    if about.get("transactionalId", "") not in item.title:
        return False
    named, own = _partition(found), _partition_of_item(item)
    if named is not None and named != own:
        return False
    file, of_item = _file(about.get("file")), _file(item.file)
    return not (file and of_item) or file == of_item


def _partition(found: Explanation) -> str | None:
    """Return the partition that a message is about; None if it is about a file next to the partitions, or none."""
    about = found.about
    if _file(about.get("file")) and partition_of({"file": about["file"]}) is None:
        return None
    message = by_name().get(found.message or "")
    if "partition" not in about and message is not None and family_of(message) == "kraft":
        return METADATA_LOG
    return about.get("partition")


def _partition_of_item(item: Item) -> str | None:
    if item.topic is not None and item.partition is not None:
        return f"{item.topic}-{item.partition}"
    return partition_of({"file": os.path.abspath(item.file)}) if item.file else None


def _file(path: str | None) -> str:
    """Return the name of a file; empty for a path that is a directory, or nothing of Kafka's."""
    name = os.path.basename(path or "")
    return name if file_kinds.by_name(name)[0] is not None else ""
