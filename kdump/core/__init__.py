"""What exists for speed: modules that are compiled if there is a C compiler, and otherwise run as plain Python.

They read many batches or records at a time into columns of integers, and write rows from columns."""
