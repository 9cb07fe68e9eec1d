"""The types of the methods of values: ``method_types.pyi`` lists every operator.

``make golden`` writes that file from the registry. At run time ``Var`` finds the methods by name.
"""


class OperatorMethods:
    """Every operator of the catalogue, as a method of its first input."""

    __slots__ = ()
