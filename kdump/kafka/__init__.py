"""Kafka's own classes over files, under their own names: what a broker does with these bytes."""
