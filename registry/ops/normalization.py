"""Normalization over features, groups, instances and neighbouring channels."""
