"""Finds what may be deleted on a full disk: what each step frees, what it costs, and what must stay."""
