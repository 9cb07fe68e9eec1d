"""Paddle's saved programs: read, written, run and differentiated."""
