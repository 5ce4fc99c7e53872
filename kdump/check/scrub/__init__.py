"""Checks a disk again and again: what an earlier run has read, and has not changed, is not read before it is due."""
