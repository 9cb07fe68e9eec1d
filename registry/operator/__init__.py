"""Operators: their declarations, inference, gradients and records.

``operator.Operator`` holds a kernel, its slots and attributes (``signature``, ``binding``,
``attributes``), its rules of inference, its gradient maker, and the conversion of calls to records.
This package imports only records and types. Its entry point is ``operator.Operator``.
"""
