"""The cost of a graph on a mesh, known before it is compiled; constraints that keep values split.

``propagation`` follows shardings through a jaxpr, and collects the exchanges that they require.
``plan`` does so for a graph, its gradients and the ``updating`` of its parameters; ``proposing``
searches for rules. ``activations`` keeps values of a batch split by examples. This package imports
``symop.training`` and below. Its entry points are ``plan.plan`` and ``proposing.propose_rules``.
"""
