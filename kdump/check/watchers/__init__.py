"""What rules and forensics need to know of the batches so far: state that is kept, and no findings."""
