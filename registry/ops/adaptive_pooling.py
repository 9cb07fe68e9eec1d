"""Pooling to a given output size."""
