"""Entries repeated, and shapes taken from another array."""
