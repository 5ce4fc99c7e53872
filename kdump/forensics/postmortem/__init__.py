"""Facts for a post-mortem of disks: verdict, shape of the segments, times, transactions, producers; each read once."""
