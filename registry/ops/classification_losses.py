"""Losses of scores of classes."""
