"""Tables of a disk: their columns, what is read for each, and their rows as Arrow arrays."""
