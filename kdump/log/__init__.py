"""Files -> a stream of regions that account for every byte."""
