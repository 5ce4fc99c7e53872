"""Replaces the names of people and systems in what a bundle has (`kdump bundle --redact`, docs/bundle.md)."""
