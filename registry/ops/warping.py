"""Sampling grids, and images sampled at them."""
