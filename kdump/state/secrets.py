"""Recognizes configs that contain secrets. Kafka stores their values unencrypted in the metadata log.

Source: the configs of type PASSWORD in org.apache.kafka.common.config (SslConfigs, SaslConfigs), and
org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria, which also redacts configs that it does not know; for
connectors, what their converters and the services that they use call their credentials.
"""

from __future__ import annotations

import re

from kdump.state.effective_config import dynamic_synonyms
from kdump.state.metadata_image import BROKER, TOPIC

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
PUBLIC_RESOURCES = (TOPIC, 8, 16, 32)
"""Types of resources whose configs Kafka defines, none as a PASSWORD: topics, loggers of brokers, client metrics and
groups (org.apache.kafka.common.config.ConfigResource.Type)."""


def is_secret(config: str) -> bool:
    """Return True if the value of this config must not be shown."""
    return bool(SECRET.search(config.lower()))


def is_public(values: dict[str, object]) -> bool:
    """Return True if the value of a config may be shown, because its name does not sound like a secret and it is not
    a broker's, or it is the default of a topic's, a number or a truth value. What plugins of brokers are configured
    with is not known. (Topics, groups and client metrics have no configs of type PASSWORD.)"""
    name, value = str(values["name"]), str(values["value"])
    if is_secret(name):
        return False
    plain = value.lstrip("-").isdecimal() or value in ("true", "false")
    if values["resourceType"] == BROKER:
        return name in dynamic_synonyms().values() or plain
    return values["resourceType"] in PUBLIC_RESOURCES
