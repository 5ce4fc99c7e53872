"""Bundles, read like the disks that they were made from (docs/bundle.md)."""
