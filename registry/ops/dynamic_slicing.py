"""Slices along one axis, like another array, and at places known only at run time."""
