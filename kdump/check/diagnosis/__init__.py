"""What the damage to a batch looks like, if its checksum does not match."""
