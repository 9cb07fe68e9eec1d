"""The same entries in another order: axes exchanged, entries flipped or rolled."""
