"""Logarithms of the densities of the common distributions."""
