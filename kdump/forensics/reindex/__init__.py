"""The indexes of a segment, rebuilt from its batches as a broker's recovery rebuilds them."""
