"""Questions about logs, and their answers. Knows nothing of the terminal."""
