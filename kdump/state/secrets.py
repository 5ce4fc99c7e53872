"""Recognizes configs that contain secrets. Kafka stores their values unencrypted in the metadata log.

Source: the configs of type PASSWORD in org.apache.kafka.common.config (SslConfigs, SaslConfigs), and
org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria, which also redacts configs that it does not know; for
connectors, what their converters and the services that they use call their credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SECRET = re.compile(
    r"password|secret|passphrase|credential|jaas\.config|keystore\.key$|certificate\.chain$|truststore\.certificates$"
    r"|private\.key|access\.key|token$|auth\.user\.info$|api[._]?key$"
)
PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]*@")
"""A password in a URL; the user's name may be empty."""
HIDDEN = "[hidden]"
CONFIG, SCRAM = "ConfigRecord", "UserScramCredentialRecord"
SECRET_FIELDS = {
    SCRAM: ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
"""Fields that a bundle never has, by message."""


def is_secret(config: str) -> bool:
    """Return True if the value of this config must not be shown."""
    return bool(SECRET.search(config.lower()))


def secrets_of(message: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a metadata record that must not be shown; the ID of a delegation token is not its secret.
    The name or value of a config may not decode: it may be a secret then."""
    if message == CONFIG and fields.get("value", HIDDEN) is not None and is_secret(fields.get("name", "secret")):
        return ("value",)
    return SECRET_FIELDS[message] if message == SCRAM else ()
