"""Produces the records of partitions, as they are on a disk, to topics of a running cluster."""
