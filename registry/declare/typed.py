"""``registry.op`` for users: ``typed.pyi`` gives an operator the signature of its kernel.

The catalogue takes ``op`` from ``registry.table``, whose operators accept values of every kind
unchecked: gradient makers of the catalogue run on all of them.
"""

from registry.table import op

__all__ = ["op"]
