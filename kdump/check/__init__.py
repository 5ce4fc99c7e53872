"""Regions -> findings: what is wrong, with its evidence and what follows from it."""
