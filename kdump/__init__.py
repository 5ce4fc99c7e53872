"""kdump reads Kafka's files straight from a broker's disk, with no broker running."""

from kdump.engine import choose

__version__ = "0.1.0"

choose()
