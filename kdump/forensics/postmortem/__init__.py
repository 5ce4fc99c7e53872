"""What a post-mortem tells of disks: verdict, shape of the segments, times, transactions, producers; read once."""
