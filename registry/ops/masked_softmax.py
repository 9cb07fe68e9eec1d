"""Softmax and its kin with a temperature, a mask, or a length for each row."""
