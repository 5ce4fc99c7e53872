"""What the properties of meta.properties state.

Source: org.apache.kafka.metadata.properties.MetaProperties.Builder, MetaPropertiesVersion, PropertiesUtils;
org.apache.kafka.common.Uuid.fromString."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import NamedTuple

from kdump.format.kafka_uuid import uuid_text
from kdump.format.numbers import parse_int

TRIMMED = "".join(map(chr, range(0x21)))
"""What String.trim removes: all characters up to the space."""
DIRECTORY_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


class MetaProperties(NamedTuple):
    """A valid meta.properties; None: the file does not state it. A node of a KRaft cluster exits without `node_id` and
    `cluster_id`, which only version 0 may lack. `directory_id` is as Kafka writes it, whatever its spare bits are."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None


def meta_properties(values: Mapping[str, str]) -> MetaProperties:
    """Return what the file states. Raises ValueError, with Kafka's message, if a node cannot use the file."""
    text = values.get("version", "0")
    version = parse_int(text.strip(TRIMMED))
    if version is None:
        raise ValueError(f"Invalid meta.properties version string '{text}'")
    if version not in (0, 1):
        raise ValueError(f"Unknown meta.properties version number {version}")
    name = "node.id" if version else "broker.id"  # the other one is not read
    node = parse_int(values.get(name))
    if node is None and name in values:
        raise ValueError(f"Unable to read {name} as a base-10 number.")
    if node is None and version:
        raise ValueError(f"Failed to find {name}")
    directory = values.get("directory.id")
    if directory is not None and not DIRECTORY_ID.fullmatch(directory):
        raise ValueError(f"Unable to read directory.id as a Uuid: {directory!r}")
    cluster = values.get("cluster.id")
    if cluster is None and version:
        raise ValueError("cluster.id was not found.")
    if directory is not None:
        directory = uuid_text(base64.urlsafe_b64decode(directory[:22] + "=="))
    return MetaProperties(version, node, cluster, directory)
