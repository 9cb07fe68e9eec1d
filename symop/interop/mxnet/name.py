"""``mx.name``: managers of automatic names."""

from symop.interop.mxnet.scopes import NameManager, Prefix

__all__ = ["NameManager", "Prefix"]
