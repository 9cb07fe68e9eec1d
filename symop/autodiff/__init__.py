"""Differentiation of graphs in reverse and forward mode, to any order.

A single traversal, ``differentiate.pullback``, calls the gradient maker of each operator and
accumulates cotangents; forward mode transposes it. The results are graphs. This package imports
``symop.graph`` and ``registry``. Its entry points are ``gradients`` (the meaning of a missing
gradient, deferred derivatives) and ``differentiate`` (``pullback``, ``pushforward_of``).
"""
