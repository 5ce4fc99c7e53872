"""Recognizes configs that contain secrets. Kafka stores their values unencrypted in the metadata log.

Source: the configs of type PASSWORD in org.apache.kafka.common.config (SslConfigs, SaslConfigs), and
org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria, which also redacts configs that it does not know; for
connectors, what their converters and the services that they use call their credentials."""

from __future__ import annotations

import re

SECRET = re.compile(
    r"password|secret|passphrase|credential|jaas\.config|keystore\.key$|certificate\.chain$|truststore\.certificates$"
    r"|private\.key|access\.key|token$|auth\.user\.info$|api[._]?key$"
)
HIDDEN = "[hidden]"
SECRET_FIELDS = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
"""Fields that are always hidden, by message."""


def is_secret(config: str) -> bool:
    """Return True if the value of this config must not be shown."""
    return bool(SECRET.search(config.lower()))
