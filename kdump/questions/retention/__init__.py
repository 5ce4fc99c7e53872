"""Explains why segments are not deleted or compacted: what a broker's retention and log cleaner do with a log."""
