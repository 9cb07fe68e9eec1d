"""Bodies of control flow: closed graphs that operators run, analogous to JAX's closed jaxprs.

A body has parameters and results. It can be run, differentiated, compared and hashed. This package
imports ``symop.lowering`` and below. Its entry points are ``bodies.GraphBody`` and
``bodies.body_of``.
"""
