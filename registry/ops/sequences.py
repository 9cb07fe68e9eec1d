"""Sequences of varying length in one array, and masks of a fixed size."""
