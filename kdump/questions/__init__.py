"""What users ask of logs: one folder a command, and what several of them use."""
