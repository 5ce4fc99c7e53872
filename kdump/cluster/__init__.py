"""What is on the disks of a run: nodes, their log directories, and the cluster's metadata, each worked out once."""
