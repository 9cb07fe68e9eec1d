"""Symbols: the main interface to graphs.

``symbol.Symbol`` is one or several values that are not computed yet; ``building`` makes variables,
groups and derivatives, ``control_flow`` traces functions into bodies. This package imports
``symop.io``, ``symop.drawing`` and lower layers.
"""
