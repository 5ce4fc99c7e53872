"""Facts for a post-mortem of log directories: verdict, segment layout, times, transactions and producers, from one
read."""
