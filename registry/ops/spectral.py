"""Eigenvalues, singular values and the pseudoinverse."""
