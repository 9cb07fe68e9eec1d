"""Pooling over regions of interest."""
