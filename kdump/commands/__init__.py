"""One short module per command, imported when that command runs."""
