"""Sorting, the largest entries, and places in a sorted array."""
