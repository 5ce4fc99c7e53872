"""Bytes -> values: pure functions that print nothing, open no files and import nothing else from kdump."""
