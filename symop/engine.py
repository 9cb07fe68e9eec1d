"""Imports the modules of higher layers that lower layers call.

These modules register themselves on import: they add emitters, methods and conversions to the
classes of values, and rematerialization to gradients. Public modules import this one, so that each
of them works without the others.
"""

from symop import autograd
from symop.eager import array_methods, array_operators
from symop.passes.remat import pulling
from symop.program import control_flow, program
from symop.regions import bodies
from symop.runtime import jax_calls
from symop.symbol import calls

__all__ = [
    "array_methods",
    "array_operators",
    "autograd",
    "bodies",
    "calls",
    "control_flow",
    "jax_calls",
    "program",
    "pulling",
]
