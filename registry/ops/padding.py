"""Padding with a constant, with the edge, or reflected."""
