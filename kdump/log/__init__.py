"""Files -> a stream of regions that cover every byte."""
