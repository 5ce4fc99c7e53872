"""Questions -> answers, each put together from what state and check know."""
