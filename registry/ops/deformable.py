"""Convolution whose taps move by learned offsets."""
