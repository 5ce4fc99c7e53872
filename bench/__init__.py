"""The benchmark: kdump beside kafka-dump-log and beside the bare limits. Run by `make bench`."""
