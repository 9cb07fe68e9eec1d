"""Cholesky, QR and LQ decompositions."""
