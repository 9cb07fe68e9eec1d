"""Entries scattered, added or replaced by arrays of indices."""
