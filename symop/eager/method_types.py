"""The types of the methods of eager arrays that take NumPy's arguments (``method_types.pyi``)."""

from registry.var import Var


class ArrayMethods(Var):
    """Methods that ``array_methods`` and ``array_operators`` define."""

    __slots__ = ()
