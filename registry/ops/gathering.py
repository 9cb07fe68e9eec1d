"""Entries gathered by arrays of indices."""
