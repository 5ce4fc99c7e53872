"""What rules and questions need to know of the batches so far: state that is kept, and no findings."""
