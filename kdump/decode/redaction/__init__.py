"""Replaces the names of people and systems in records and small files (docs/bundle.md#without-names)."""
