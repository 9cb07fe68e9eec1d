"""Workarounds for XLA, and arrays that are sharded across devices.

``barrier``, ``unstack`` and ``canonical_layouts`` avoid slow code of XLA's CPU backend, as seen in
jaxlib 0.10.2; ``tests/test_workarounds.py`` and ``benchmarks/workarounds.py`` show whether it is
still slow. ``device_types`` types values that vary across devices. This package imports nothing of
the registry.
"""
