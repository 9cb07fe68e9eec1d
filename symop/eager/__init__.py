"""Eager arrays: calls are recorded, compiled together, and differentiated.

``ndarray.NDArray`` is the array. ``segments`` record its calls and run them when a value is needed.
``trace_cache`` holds known sequences of calls and their programs. ``tape`` and ``lazy_backward``
differentiate recorded calls. The ``array_*`` modules implement the Python array API. This package
imports ``symop.symbol`` and the layers below it.
"""
