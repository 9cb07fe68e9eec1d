"""Gradients by the graph in single precision, and what they are compared with."""

import numpy as np

import symop as so


def gradient(operator, x, head=None, **attributes):
    """The gradient with respect to ``x``, by the graph; the output is summed, or weighed."""
    array = np.asarray(x, np.float32)
    variable = so.var("x", shape=array.shape)
    out = operator(variable, **attributes)
    weights = 1.0 if head is None else np.asarray(head, np.float32)
    found = so.grad(so.sum(out * weights), variable)
    return np.asarray(found.eval(**dict.fromkeys(found.list_arguments(), array)))


def check(found, expected, rtol=1e-6):
    np.testing.assert_allclose(found, np.asarray(expected, np.float32), rtol=rtol, atol=1e-6)
