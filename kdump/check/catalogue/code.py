"""What the catalogue says of one code."""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

FAMILIES: dict[str, tuple[str, ...]] = {
    "bytes": (),
    "records": (),
    "log": ("offsets", "epochs", "timestamps", "producers", "transactions"),
    "files": ("indexes", "snapshots", "checkpoints"),
}
"""What `verify --only` takes: the families, and those inside them."""


class Code(NamedTuple):
    """One code. `severity` is the usual one, `unless` says when it is another; `consequence` is a sentence in which
    {offset} stands for the first offset that is hit; `fix` is what to do; `source` is where Kafka's own rule stands."""

    code: str
    family: str
    severity: str
    meaning: str
    consequence: str
    fix: str
    source: str
    unless: str = ""


STOPS = "a consumer that reaches offset {offset} stops with CorruptRecordException"
TRUNCATES = "a broker that recovers this log truncates it here"
INVALID = "a consumer that reaches offset {offset} stops with InvalidRecordException"
RESTORE = (
    "If another replica is sound, move this partition's directory away while the broker is down and let it be fetched "
    "anew; if this is the last copy, keep a copy of the file before anything else"
)
SKIP = "Let the consumer seek past the batch, once you have decided that its records can be missed"
