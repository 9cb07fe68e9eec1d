"""Graphs of whole sequences as graphs that compute a few positions at a time, with caches.

``so.Generator`` runs them. This package imports ``symop.planning`` and below. Its entry point is
``by_steps``.
"""
