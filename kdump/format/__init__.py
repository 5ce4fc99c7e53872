"""Bytes -> values. Pure: no printing, no files, and nothing else of kdump is imported here."""
