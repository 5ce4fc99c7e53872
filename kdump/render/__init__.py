"""Renders values as tables, JSON Lines, annotated hexdumps and format strings."""
