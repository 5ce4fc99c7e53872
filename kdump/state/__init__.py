"""Batches -> what a broker would rebuild from them when it starts."""
