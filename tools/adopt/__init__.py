"""Adopts a release of Kafka, from its jars."""
