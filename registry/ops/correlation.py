"""Correlation of patches of two feature maps."""
