"""Execution of graphs: compiled functions, executors, and the arrays they hold.

``function.GraphFunction`` checks its inputs and plans once for each combination of types,
``executor.Executor`` binds a graph to arrays, and ``donation.DonatingStep`` replaces donated state
in one operation of the interpreter. This package imports ``symop.passes`` and below.
"""
