"""Rebuilds a segment's indexes from its batches, as a broker's recovery does."""
