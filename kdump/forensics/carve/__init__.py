"""Batches in bytes that are no segment: images of disks, core dumps, truncated backups, freed blocks."""
