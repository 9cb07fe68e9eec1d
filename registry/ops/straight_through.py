"""Operators whose gradient is chosen rather than derived: scaled, reversed, or straight through."""
