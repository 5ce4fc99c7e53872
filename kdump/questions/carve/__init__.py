"""Finds batches in bytes that are not a segment: disk images, core dumps, truncated backups, freed blocks."""
