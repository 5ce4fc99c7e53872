"""What is sound of damaged partitions, written anew."""
