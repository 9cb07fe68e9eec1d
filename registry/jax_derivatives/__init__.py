"""JAX's derivatives of kernels, for operators without a gradient maker.

``gradients`` turns them into operators, ``calculus`` computes them, and ``zeros`` determines from a
jaxpr where a kernel is zero. This package imports ``registry.operator`` and the modules below it.
"""
