"""Reads files, directories and devices next to a running broker: sources, windows, page cache, rates, errors."""
