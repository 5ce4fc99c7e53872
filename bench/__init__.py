"""Benchmark that compares kdump with kafka-dump-log and with the bare limits of reading and decompressing. Run by
`make bench`."""
