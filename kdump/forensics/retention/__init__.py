"""Why is this not deleted, why is this not compacted: what a broker's retention and cleaner make of a log."""
