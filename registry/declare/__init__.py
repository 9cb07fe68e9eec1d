"""Alternative declarations of operators; each creates an ``Operator``, as ``@op`` does."""
