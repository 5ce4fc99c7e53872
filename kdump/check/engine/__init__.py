"""Runs the rules over segments, partitions, log directories and single files, in one process or several."""
