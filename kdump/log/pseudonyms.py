"""Replacements of names: the same name always has the same one, as long as the key is the same."""

from __future__ import annotations

import base64
import errno
import hmac
import os
import re
from functools import lru_cache

from kdump.format.meta_properties import DIRECTORY_ID
from kdump.format.metadata_names import SECURITY_PROTOCOL
from kdump.io.errors import Located
from kdump.io.link_boundary import LINK_LEAVES
from kdump.log.file_kinds import is_of_broker
from kdump.log.internal_topics import INTERNAL_TOPICS, SCHEMAS_TOPIC
from kdump.log.paths import PARTITION

DIGITS = 12
"""Hexadecimal digits of a replacement: of 200,000 names, two have the same one in 1 of 14,000 clusters."""
WILDCARD = "*"
ANONYMOUS = "ANONYMOUS"
"""Name of a user that Kafka itself has (KafkaPrincipal.ANONYMOUS)."""
USER = "User"
LISTENERS = frozenset((*SECURITY_PROTOCOL.values(), "CONTROLLER", "BROKER", "INTERNAL", "EXTERNAL", "REPLICATION"))
KEPT_NAMES = ("", ".", "..", "lost+found")
"""Parts of paths that are not names."""
SUFFIXES = (".deleted", ".swap", ".cleaned")
"""Suffixes that a broker appends to a file, and that say what becomes of it."""
LISTENER_CONFIG = re.compile(r"(?<=^listener\.name\.)[^.]+")
NUMBERS = frozenset(
    [
        *("version", "node.id", "broker.id", "data_version", "leaderId", "leaderEpoch", "votedId"),
        *("appliedOffset", "brokerEpoch"),
    ]
)
IDS = frozenset(("directory.id", "topic_id", "votedDirectoryId"))
CLUSTER_IDS = frozenset(("cluster.id", "clusterId"))
VOTERS, VOTER_ID = "currentVoters", "voterId"
PROPERTIES = NUMBERS | IDS | CLUSTER_IDS | {VOTERS, VOTER_ID}
"""What Kafka's small files have, by the kinds of the values."""
NUMBER = re.compile(r"-?[0-9]{1,19}")
REASONS = frozenset(map(os.strerror, errno.errorcode))


class Pseudonyms:
    """Replacements under one key: a prefix for the kind of the name, and the beginning of its HMAC-SHA256."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.of = lru_cache(1 << 16)(self._of)

    def _of(self, prefix: str, name: str) -> str:
        """Return the replacement of any name but the empty one, which stays."""
        digest = hmac.digest(self._key, name.encode("utf-8", "surrogatepass"), "sha256").hex()
        return f"{prefix}-{digest[:DIGITS]}" if name else ""

    @property
    def fingerprint(self) -> str:
        """What tells the keys of two bundles apart."""
        return self.of("key", "kdump bundle --redact")

    def topic(self, name: str) -> str:
        return name if name in (*INTERNAL_TOPICS, SCHEMAS_TOPIC) else self.of("t", name)

    def group(self, name: str) -> str:
        return self.of("g", name)

    def transactional_id(self, name: str) -> str:
        return self.of("txn", name)

    def user(self, name: str) -> str:
        return name if name in (WILDCARD, ANONYMOUS) else self.of("user", name)

    def principal(self, text: str) -> str:
        """Return the replacement of a type and a name, such as User:ann; that of a user if there is no type."""
        kind, colon, name = text.partition(":")
        if not colon:
            return self.user(text)
        return f"{kind if kind == USER else self.of('type', kind)}:{self.user(name)}"

    def host(self, text: str) -> str:
        """Return the replacement of a host: a name or an address, or both as Java's InetAddress writes them, with a
        slash."""
        return "/".join(part if part == WILDCARD else self.of("host", part) for part in text.split("/"))

    def listener(self, name: str) -> str:
        """Return the replacement of a listener's name, whose case does not matter."""
        return name if name.upper() in LISTENERS else self.of("listener", name.upper())

    def config(self, name: str) -> str:
        """Return the name of a config, in which only that of a listener is replaced."""
        return LISTENER_CONFIG.sub(lambda match: self.listener(match[0]), name)

    def file(self, name: str) -> str:
        """Return the replacement of the name of a file or directory: Kafka's own are kept, but for their topics."""
        match = PARTITION.match(name)
        if match is not None:
            return self.topic(match["topic"]) + name[match.end("topic") :]
        if name in KEPT_NAMES or is_of_broker(name):
            return name
        suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
        return self.of("name", name) + suffix

    def property(self, name: str, value: str) -> tuple[str, str]:
        """Return a property of a small file: what is neither Kafka's name nor of its kind of value is replaced."""
        is_kept = (
            (name in NUMBERS and NUMBER.fullmatch(value) is not None)
            or (name in IDS and DIRECTORY_ID.fullmatch(value) is not None)
            or (name in CLUSTER_IDS and is_random(value))
        )
        kept_name = name if name in PROPERTIES else self.of("name", name)
        return kept_name, value if is_kept else self.of("cluster" if name in CLUSTER_IDS else "name", value)

    def path(self, path: str) -> str:
        """Return the replacement of a path, name by name."""
        return "/".join(map(self.file, path.split("/")))

    def error(self, text: str) -> str:
        """Return the reason in the text of an error, without what may be a path."""
        if f": {LINK_LEAVES}, to " in text:
            return LINK_LEAVES
        reason = text.rpartition(": ")[2].partition(", because ")[0]
        return reason if reason in REASONS else "it could not be read; the reason is left out: it may have names"

    def located(self, text: str) -> str:
        """Return the text of an error that begins with a path, this one replaced."""
        path = self.path(getattr(text, "path", "") or text.partition(": ")[0])
        return Located(f"{path}: {self.error(text)}", path)


def is_random(value: str) -> bool:
    """Return True if an ID is a random Uuid (version 4), which is that of a cluster unless somebody has named it."""
    if not DIRECTORY_ID.fullmatch(value):
        return False
    data = base64.urlsafe_b64decode(value[:22] + "==")
    return data[6] >> 4 == 4 and data[8] >> 6 == 2
