"""Interned graph nodes, and how they are built, named and typed.

A node is an operator, its operands and its attributes; equal nodes are the same object. This
package builds nodes (``emission``), simplifies them as they are built, infers their types, and
records the user's source line and the scopes each node was built in. It imports only ``registry``.
Its entry points are ``nodes`` (``Node``, ``topological``, ``constant``, ``placeholder``) and
``emission.apply``.
"""
