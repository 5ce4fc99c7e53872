"""The post-mortem page, and its charts as files."""
