"""Pooling by the p-norm of each window."""
