"""Losses of real-valued predictions."""
