"""What a graph costs on a mesh, told before it is compiled, and how its values stay split.

``factors`` says, for each primitive of JAX, which axes of its operands are which axes of its
results. ``propagation`` follows shardings through a jaxpr by these, and collects what must be
exchanged. ``plan`` does so for a graph and its gradients, and ``proposing`` searches for rules.
The package imports what computes a graph and lower layers; ``plan.plan`` is its door.
"""
