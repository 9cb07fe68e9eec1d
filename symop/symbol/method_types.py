"""The types of the methods of symbols that differ from those of other values.

``make golden`` writes ``method_types.pyi`` from the registry.
"""

from registry.var import Var


class SymbolMethods(Var):
    """Operators with several outputs, which are one symbol."""

    __slots__ = ()
