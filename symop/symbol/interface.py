"""The interface of a graph: the names of its variables and outputs, and their types."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

from registry.errors import (
    ArgumentError,
    AttributeValueError,
    ShapeError,
    SymopError,
    UnknownTypeError,
)
from registry.symbolic import Symbolic
from registry.tracebacks import api_class
from registry.types import DType, Shape, VarType, as_dtype, is_symbolic
from symop.graph.inference import Known, infer_types, variable_type
from symop.graph.naming import names_of, output_name, require_known, variables_of
from symop.graph.nodes import VARIABLE, Node, leaves, topological
from symop.symbol.method_types import SymbolMethods


@api_class
class Interface(SymbolMethods, Symbolic):
    """Values of a graph and their interface: the variables they depend on, and types."""

    __slots__ = ("also", "nodes")
    nodes: tuple[Node, ...]
    also: tuple[Node, ...]
    """The nodes that the values are functions of, even if they do not read them."""

    def _remedy(self) -> str:
        try:
            names = self.list_inputs()
        except SymopError:  # names in conflict, which running reports
            names = []
        arguments = [f"{name}=..." for name in names[:3]] + ["..."] * (len(names) > 3)
        return f"compute it by x.eval({', '.join(arguments)})"

    @property
    def roots(self) -> tuple[Node, ...]:
        """All roots of the symbol: its values and ``also``."""
        return (*self.also, *self.nodes)

    def _unneeded(self) -> list[Node]:
        return leaves(topological(self.also), VARIABLE)

    def _variables(self) -> dict[str, Node]:
        return variables_of(self.roots)

    # Names

    def list_arguments(self) -> list[str]:
        """Returns the names of the variables that must be fed, in depth-first order."""
        return self._listed("argument")

    def list_auxiliary_states(self) -> list[str]:
        """Returns the names of the variables that are updated when the graph runs for training."""
        return self._listed("state")

    def list_inputs(self) -> list[str]:
        """Returns the names of all variables: arguments and auxiliary states."""
        return list(self._variables())

    def _listed(self, role: str) -> list[str]:
        return [n for n, node in self._variables().items() if node.attributes[2] == role]

    def list_outputs(self) -> list[str]:
        """Returns the names of the outputs."""
        names = names_of(topological(self.nodes))
        return [output_name(node, names) for node in self.nodes]

    # Types

    def infer_shape(self, **shapes: Sequence[int]) -> tuple[list[Shape], list[Shape], list[Shape]]:
        """Returns the shapes of the arguments, the outputs and the auxiliary states.

        Parameters of layers are inferred from their data, and data from the operators that use it.

        Raises:
            UnknownTypeError: the given shapes do not determine all others; the message names those.
        """
        arguments, outputs, states = self.infer_shape_partial(**shapes)
        unknown = [n for n, s in zip(self.list_arguments(), arguments, strict=True) if s is None]
        unknown += [
            n for n, s in zip(self.list_auxiliary_states(), states, strict=True) if s is None
        ]
        if unknown or None in outputs:
            raise UnknownTypeError(
                f"infer_shape: more shapes must be given, got too few to tell those of "
                f"{', '.join(unknown) or 'the outputs'}"
            )
        return _all(arguments), _all(outputs), _all(states)

    def infer_shape_partial(
        self, **shapes: Sequence[int]
    ) -> tuple[list[Shape | None], list[Shape | None], list[Shape | None]]:
        """Acts like ``infer_shape``, with None for shapes that cannot be inferred."""
        known = self._known(
            {name: (as_shape("infer_shape", shape), None) for name, shape in shapes.items()}
        )
        arguments, outputs, states = (
            [_type(known, node) for node in nodes] for nodes in self._three()
        )
        return _shapes(arguments), _shapes(outputs), _shapes(states)

    def infer_type(self, **dtypes: Any) -> tuple[list[DType], list[DType], list[DType]]:
        """Returns the dtypes of the arguments, the outputs and the auxiliary states.

        A variable of unknown shape is treated as a scalar: most dtypes do not depend on shapes.

        Raises:
            UnknownTypeError: a dtype depends on a shape that is not known.
        """
        variables = self._variables()
        require_known("infer_type", dtypes, variables)
        shapeless = [name for name, node in variables.items() if node.types is None]
        types = {
            variables[name]: variable_type(
                variables[name],
                () if name in shapeless else variables[name].type.shape,
                as_dtype(dtype),
            )
            for name, dtype in dtypes.items()
        }
        try:
            known = infer_types(self.roots, types)
            arguments, outputs, states = (
                [known[node][0] for node in nodes] for nodes in self._three()
            )
        except (KeyError, ShapeError, AttributeValueError) as error:
            if not shapeless:
                raise
            raise UnknownTypeError(
                f"infer_type: shapes must be known, got none for {', '.join(shapeless)}"
            ) from error
        return _dtypes(arguments), _dtypes(outputs), _dtypes(states)

    def _three(self) -> tuple[list[Node], list[Node], list[Node]]:
        variables = self._variables().values()
        arguments = [node for node in variables if node.attributes[2] == "argument"]
        states = [node for node in variables if node.attributes[2] == "state"]
        return arguments, list(self.nodes), states

    def _known(self, declared: Mapping[str, tuple[Shape, DType | None]]) -> Known:
        variables = self._variables()
        require_known("symbol", declared, variables)
        types = {variables[n]: variable_type(variables[n], *what) for n, what in declared.items()}
        return infer_types(self.roots, types)


def as_shape(owner: str, shape: Any) -> Shape:
    """Returns the lengths of axes that a user gives, one or several.

    Raises:
        ArgumentError: it is not a shape.
    """
    lengths = (shape,) if isinstance(shape, SupportsIndex) else shape
    if not isinstance(lengths, (tuple, list)) or not all(
        isinstance(one, SupportsIndex) or is_symbolic(one) for one in lengths
    ):
        raise ArgumentError(f"{owner}: a shape must hold lengths of axes, got {shape!r}")
    return tuple(lengths)


def _all(shapes: Sequence[Shape | None]) -> list[Shape]:
    return [shape for shape in shapes if shape is not None]


def _type(known: Known, node: Node) -> VarType | None:
    return known[node][0] if node in known else None


def _dtypes(types: Sequence[VarType | None]) -> list[DType]:
    return [type.dtype for type in types if type is not None]


def _shapes(types: Sequence[VarType | None]) -> list[Shape | None]:
    return [None if type is None else type.shape for type in types]
