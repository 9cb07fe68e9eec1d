"""Products that sum over named axes, and those that sum over none."""
