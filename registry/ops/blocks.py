"""Blocks of images as channels or as columns, and back."""
