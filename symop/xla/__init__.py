"""Workarounds for XLA's CPU backend in graphs and compiled functions.

- ``chain_barriers``: fusion copies operators into each reader, so that long chains compile slowly.
- ``body_barriers``: a loop's body is merged with preceding code.
- ``compiling``: fusion recomputes intermediate results; operators run in parallel on too few cores;
  convolutions are slow in loops.

All symptoms occur in jaxlib 0.10.2. ``tests/test_workarounds.py`` fails if a symptom is gone;
``benchmarks/workarounds.py`` shows those that only affect time, and ``benchmarks/memory.py`` those
of bodies. Workarounds for kernels are in ``registry/xla``. Of ``symop``, this package imports only
graph nodes.
"""
