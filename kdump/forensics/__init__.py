"""Questions about logs -> answers, each put together from what state and check know. Knows nothing of the terminal."""
