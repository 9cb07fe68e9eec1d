"""Products of entries: reduced, cumulative, and over what is a number."""
