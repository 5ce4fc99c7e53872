"""Options, exit statuses and input files that commands share, and completion."""
