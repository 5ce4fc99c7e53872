"""Regions -> findings: each problem with its evidence, impact and action."""
