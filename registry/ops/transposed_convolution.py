"""Transposed convolution: the adjoint of convolution as a layer."""
