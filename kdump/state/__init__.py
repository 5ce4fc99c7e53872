"""Batches -> the state that a broker would rebuild from them at startup."""
