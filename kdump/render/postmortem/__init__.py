"""The page of a post-mortem, and its charts as files."""
