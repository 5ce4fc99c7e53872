"""kdump reads Kafka's files straight from a broker's disk, with no broker running."""

__version__ = "0.1.0"
