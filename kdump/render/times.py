"""Formats epoch milliseconds for display."""

from __future__ import annotations

from kdump.format.iso_time import iso as iso
