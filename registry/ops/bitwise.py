"""Bits of integers: and, or, exclusive or, inversion and shifts."""
