"""Alternative declarations of operators; each creates an ``Operator``, as ``@op`` does.

``registration.register_operator`` assembles an operator from components, ``pairs.register_op`` adds
its gradient operator, ``simple.register_simple_op`` takes plain functions of arrays, and
``elementwise.elementwise`` maps a scalar function. ``typed.op`` is ``@op`` with the types that
editors show. This package imports ``registry.table`` and the modules below it.
"""
