"""Linear systems, inverses, determinants and powers of matrices."""
