"""Differential operators: sums of partial derivatives, computed in one pass through a graph.

``sums`` has the Laplacian and its like, ``linear`` partial derivatives and their combinations,
``taylor`` the derivatives along a curve; ``functions`` applies them at arrays. This package imports
``symop.orders`` and below.
"""
