"""Graphs of whole sequences as graphs that compute a few positions at a time, with caches.

It may import ``planning``, ``runtime`` and what is below; its door is ``by_steps``.
"""
