"""Values -> tables, JSON lines, annotated hexdumps, format strings."""
