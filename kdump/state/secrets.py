"""Which configs hold a secret. Kafka writes them into the metadata log as they are.

Source: the configs of type PASSWORD in org.apache.kafka.common.config (SslConfigs, SaslConfigs), and
org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria, which hides what it cannot tell.
"""

from __future__ import annotations

import re

SECRET = re.compile(
    r"password|secret|passphrase|credential|jaas\.config|keystore\.key$|certificate\.chain$|truststore\.certificates$"
    r"|private\.key|access\.key|token$"
)
HIDDEN = "[hidden]"


def is_secret(config: str) -> bool:
    """Whether the value of this config may not be shown."""
    return bool(SECRET.search(config.lower()))
