"""Stubs: what type checkers and editors know of names that are found at run time.

``files`` writes them from the registry and from the modules whose names they list.
"""
