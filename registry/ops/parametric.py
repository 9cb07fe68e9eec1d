"""Activations with a learned parameter."""
