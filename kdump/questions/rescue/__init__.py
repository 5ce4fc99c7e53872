"""Rescues a cluster's metadata: finds its copies, replays what can be loaded, and writes it for new controllers."""
