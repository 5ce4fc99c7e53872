"""Copies the valid batches of damaged partitions to new directories."""
