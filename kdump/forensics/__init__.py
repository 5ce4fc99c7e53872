"""Answers questions about logs from the results of state and check. Independent of the terminal."""
