"""Variance, standard deviation, norms, and sums that need care to stay finite."""
