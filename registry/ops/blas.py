"""Matrix products as BLAS names them."""
