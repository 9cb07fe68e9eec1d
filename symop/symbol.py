"""Symbol: the front door to graphs; one or several values that are not computed yet."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, SupportsIndex

import jax.numpy as jnp
import numpy as np

from registry.desc import ProgramDesc
from registry.errors import ArgumentError, FeedError, GradientError, nearest
from registry.operator import Operator
from registry.types import DType, Shape, VarType, as_dtype
from registry.var import Var, infix
from symop import recomputing
from symop.draw import MAX_NODES, draw, html
from symop.emission import substitute
from symop.executor import Executor
from symop.files import PathLike, write_atomically
from symop.function import GraphFunction, evaluate
from symop.graph import DEFERRED, TRAINING, VARIABLE, Node, as_node, topological
from symop.inference import declared, typed
from symop.naming import names_of, require_known, variables_of
from symop.policies import Policy, require_policy
from symop.records import to_desc
from symop.serialize import encode
from symop.symbol_interface import Interface
from symop.text import text


class Symbol(Interface):
    """One or several values of a graph: what they are computed from, not what they are.

    Symbols are immutable. Every operator applies to them, by name (``so.sin(x)``), as a method
    (``x.sin()``) and by Python's operators. Indexing chooses among several outputs.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> y = so.sin(x) * 2.0
        >>> so.grad(y, x).eval(x=[0.0, 0.0]).tolist()
        [2.0, 2.0]
    """

    __slots__ = ("__weakref__",)
    program_of: ClassVar[Callable[["Symbol", Collection[str]], Any]]

    def __init__(self, nodes: Sequence[Node], also: tuple[Node, ...] = ()) -> None:
        """The values ``nodes``; users call ``so.var`` and operators instead.

        A derivative has the arguments of the function that it is the derivative of, also where it
        turns out not to need one: it is a constant in them, not disconnected. ``also`` lists them.
        """
        self.nodes = tuple(nodes)
        self.also = also
        for node in self.nodes:
            node.shown = True

    # One value ----------------------------------------------------------------------------------

    @property
    def node(self) -> Node:
        """The node of a symbol that is one value.

        Raises:
            ArgumentError: it has several.
        """
        if len(self.nodes) != 1:
            raise ArgumentError(
                f"symbol: one value must be chosen, got {len(self.nodes)} outputs "
                f"({', '.join(self.list_outputs())}); index it"
            )
        return self.nodes[0]

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind of the one value."""
        return self.node.type

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills the value, when the graph knows it."""
        return self.node.constant

    @property
    def name(self) -> str:
        """The given name, or the automatic one that the graph gives."""
        node = self.node
        return node.name or names_of(topological([node]))[node]

    def __len__(self) -> int:
        return len(self.nodes) if len(self.nodes) > 1 else Var.__len__(self)

    def __iter__(self) -> Iterator["Symbol"]:
        if len(self.nodes) > 1:
            return (Symbol([node], self.also) for node in self.nodes)
        return (self[i] for i in range(Var.__len__(self)))

    def __getitem__(self, index: Any) -> "Symbol":
        """One of several outputs, by position or name; of a single value, a slice of it."""
        if isinstance(index, str):
            return self._output_named(index)
        if len(self.nodes) > 1:
            if not isinstance(index, (int, np.integer, slice)):
                raise ArgumentError(f"symbol: an output is chosen by number or name, got {index!r}")
            chosen = self.nodes[index]
            return Symbol(chosen if isinstance(chosen, tuple) else [chosen], self.also)
        result: Symbol = infix["[]"](self, index)
        return result

    def _output_named(self, name: str) -> "Symbol":
        outputs = self.list_outputs()
        if name not in outputs:
            raise ArgumentError(f"symbol: no output is called {name!r}{nearest(name, outputs)}")
        return Symbol([self.nodes[outputs.index(name)]], self.also)

    def __eq__(self, other: object) -> Any:
        return infix["=="](self, other)

    def __ne__(self, other: object) -> Any:
        return infix["!="](self, other)

    def __hash__(self) -> int:
        return hash(self.nodes)

    def same_as(self, other: "Symbol") -> bool:
        """Whether both are the very same values of the same graph."""
        return self.nodes == other.nodes

    def __repr__(self) -> str:
        names = names_of(topological(self.nodes))
        shown = [
            names[node] if node.types is None else f"{names[node]}: {node.types[0]}"
            for node in self.nodes
        ]
        return f"<Symbol {', '.join(shown)}>"

    def __str__(self) -> str:
        """The graph as a program that a person reads."""
        return text(self.nodes, self._unneeded()).rstrip()

    def _repr_html_(self) -> str:
        """The drawing that a notebook shows."""
        return html(self.nodes, self.list_outputs())

    def to_svg(self, *, max_nodes: int = MAX_NODES, title: str | None = None) -> str:
        """The graph drawn as SVG; what is more than ``max_nodes`` boxes is folded."""
        return draw(self.nodes, max_nodes=max_nodes, title=title, names=self.list_outputs())

    def __copy__(self) -> "Symbol":
        return self

    def __deepcopy__(self, memo: object) -> "Symbol":
        return self

    # The graph -----------------------------------------------------------------------------------

    def get_internals(self) -> "Symbol":
        """Every value of the graph, as the outputs of one symbol."""
        # What a derivative is a function of, and does not need, is among them.
        return Symbol([node for node in topological(self.roots) if _is_value(node)], self.also)

    def get_children(self) -> "Symbol | None":
        """The direct inputs of the outputs, or None for a variable."""
        children = [child for node in self.nodes for child in node.operands if _is_value(child)]
        return Symbol(list(dict.fromkeys(children))) if children else None

    def attr(self, key: str) -> str | None:
        """One of the strings attached to a variable by ``so.var(..., attr=...)``."""
        return self.list_attr().get(key)

    def list_attr(self) -> dict[str, str]:
        """The strings attached to a variable."""
        node = self.node
        return dict(node.attributes[3]) if node.op is VARIABLE else {}

    # Rewriting ---------------------------------------------------------------------------------

    def with_types(self, **types: Any) -> "Symbol":
        """The same graph with types of variables filled in, and others inferred from them.

        Args:
            **types: for a variable its shape, a pair of shape and dtype, or an array like it.

        Example:
            >>> import symop as so
            >>> y = so.sin(so.var("x"))
            >>> y.with_types(x=(2, 3)).shape
            (2, 3)
        """
        known = self._known({name: _shape_and_dtype(given) for name, given in types.items()})
        return self._with_roots(declared(self.roots, known))

    def with_memory(self, remat: Policy | None) -> "Symbol":
        """The same graph, each step of whose loops keeps for a gradient what ``remat`` says.

        All types are known.
        """
        return self if remat is None else self._with_roots(recomputing.chosen(self.roots, remat))

    def _with_roots(self, roots: Sequence[Node]) -> "Symbol":
        """The symbol whose roots these are, in the order of this symbol's."""
        count = len(self.also)
        return Symbol(roots[count:], tuple(roots[:count]))

    def replace(self, **others: Any) -> "Symbol":
        """The same graph with variables replaced by other symbols, arrays or numbers: composition.

        Example:
            >>> import symop as so
            >>> x, y = so.var("x"), so.var("y")
            >>> so.sin(x).replace(x=so.exp(y)).list_arguments()
            ['y']
        """
        variables = self._variables()
        require_known("replace", others, variables)
        nodes = {variables[name]: to_node(other) for name, other in others.items()}
        if any(node.op is DEFERRED for node in topological(self.nodes)):
            raise GradientError(
                "replace: a derivative that waits for shapes must get them first, because it is "
                "taken by the variables that it was built with; use with_types(...)"
            )
        return self._with_roots(substitute(self.roots, nodes))

    def __call__(self, **others: Any) -> "Symbol":
        """``replace``."""
        return self.replace(**others)

    # Files -------------------------------------------------------------------------------------

    def to_desc(self) -> ProgramDesc:
        """The graph as records: variables, and OpDescs in an order in which they can run."""
        return to_desc(self.nodes, self._unneeded())

    def tojson(self) -> str:
        """The graph as JSON that ``so.load_json`` reads."""
        return encode(self.to_desc())

    def save(self, path: PathLike) -> None:
        """Write the graph as JSON that ``so.load`` reads; the file is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        write_atomically(path, self.tojson().encode())

    def to_program(self, parameters: Collection[str] = (), /, **types: Any) -> Any:
        """The graph as a ``so.Program``, whose ``to_symbol`` gives this symbol again.

        Args:
            parameters: names of the arguments that the program keeps and trains; it is fed the
                others.
            **types: of variables, as ``with_types`` takes them.

        Raises:
            FeedError: no argument has one of the names.
            UnknownTypeError: a shape is not known yet.

        Example:
            >>> import symop as so
            >>> y = so.matmul(so.var("x"), so.var("w"))
            >>> program = y.to_program(["w"], x=(2, 3), w=(3, 4))
            >>> [one.name for one in program.parameters], program.outputs
            (['w'], [<Variable matmul0: float32[2,4]>])
        """
        return Symbol.program_of(self.with_types(**types) if types else self, parameters)

    # Running ------------------------------------------------------------------------------------

    def eval(self, *, is_train: bool = False, **arrays: Any) -> Any:
        """The values for the given arrays: one array, or a list of them for several outputs.

        Compiled once for each structure and types. Random operators draw from
        ``so.random.seed``. With ``is_train`` and auxiliary states, a pair: the outputs, and a
        dict of the states' new values.

        Raises:
            FeedError: an array is missing, superfluous, or of the wrong shape or dtype.
        """
        return evaluate(self.nodes, self.also, arrays, training=is_train)

    def to_jax(
        self,
        *,
        is_train: bool = False,
        rules: bool | None = None,
        remat: Policy | None = None,
    ) -> Callable[..., Any]:
        """The graph as a pure JAX function ``f(*arrays, key=None, **arrays)``.

        Arrays go by position in the order of ``list_arguments()`` followed by
        ``list_auxiliary_states()``, or by name. The function traces under every JAX
        transformation. A graph that draws random numbers needs ``key=``. With ``is_train`` and
        auxiliary states it returns a pair: the outputs, and the states' new values by name.

        Args:
            is_train: whether operators behave as in training.
            rules: whether JAX differentiates operators by their gradient makers (True) or by
                their kernels (False, faster to trace). By default a graph that already contains
                its gradient goes without, except where a maker differs from the kernel's own
                derivative.
            remat: what JAX's gradients of the function keep (``so.remat``); what JAX likes without
                it, scopes apart.

        Example:
            >>> import jax, symop as so
            >>> x = so.var("x")
            >>> float(jax.grad((x * x).to_jax())(3.0))
            6.0
        """
        function = GraphFunction(
            self.nodes,
            self.also,
            training=is_train,
            rules=rules,
            remat=require_policy("to_jax", remat),
        )

        def call(*args: Any, key: Any = None, **arrays: Any) -> Any:
            return function(*args, key=key, **arrays)

        call.__name__ = call.__qualname__ = "_".join(self.list_outputs()[:1])
        call.__doc__ = f"The symbol of {', '.join(function.names)}."
        return call

    def bind(
        self,
        args: Mapping[str, Any] | Sequence[Any],
        args_grad: Mapping[str, Any] | Sequence[Any] | None = None,
        grad_req: Any = "write",
        aux_states: Mapping[str, Any] | Sequence[Any] | None = None,
        remat: Policy | None = None,
        *,
        stacked: bool = False,
    ) -> Executor:
        """An executor over given arrays.

        Args:
            args: arrays of the arguments, by name or in the order of ``list_arguments()``.
            args_grad: what gradients start from (``grad_req="add"``); zeros when left out.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all arguments or by name.
            aux_states: arrays of the auxiliary states.
            remat: what a forward pass for training leaves for ``backward`` (``so.remat``);
                everything that it reads without it.
            stacked: whether arrays of which a loop of repeated blocks reads one in each step, such
                as the weights of its layers, live in one array: a step copies nothing then, and
                what is read under their names are slices of it.

        Raises:
            FeedError: an array is missing, superfluous or of the wrong shape or dtype.
        """
        arguments = self.list_arguments()
        return Executor(
            self.nodes,
            self.also,
            _by_name("args", args, arguments),
            _by_name("aux_states", aux_states or {}, self.list_auxiliary_states()),
            grad_req,
            None if args_grad is None else _by_name("args_grad", args_grad, arguments),
            require_policy("bind", remat),
            stacked=stacked,
        )

    def simple_bind(
        self,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        remat: Policy | None = None,
        *,
        stacked: bool = False,
        **shapes: Sequence[int],
    ) -> Executor:
        """An executor over zeros; shapes that are not given follow from those that are.

        ``stacked`` is what it is for ``bind``.

        Raises:
            UnknownTypeError: some shapes do not follow; the message names them.
        """
        dtypes = {name: as_dtype(dtype) for name, dtype in (type_dict or {}).items()}
        given = {name: (tuple(shape), dtypes.get(name)) for name, shape in shapes.items()}
        require_known("simple_bind", {**given, **dtypes}, self.list_inputs())
        zeros = {
            name: jnp.zeros(node.type.shape, node.type.dtype)
            for name, node in variables_of(typed(self.roots, given)).items()
        }
        states = self.list_auxiliary_states()
        return self.bind(
            {name: array for name, array in zeros.items() if name not in states},
            grad_req=grad_req,
            aux_states={name: zeros[name] for name in states},
            remat=remat,
            stacked=stacked,
        )


def _by_name(what: str, given: Any, names: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    if len(given) != len(names):
        raise FeedError(
            f"bind: {what} must be one array for each of {', '.join(names) or 'none'}, "
            f"got {len(given)}"
        )
    return dict(zip(names, given, strict=True))


def _is_value(node: Node) -> bool:
    """Whether ``node`` is something to look at: not a flag, nor several outputs at once."""
    return node.op is not TRAINING and not (isinstance(node.op, Operator) and not node.op.single)


def _shape_and_dtype(given: Any) -> tuple[Shape, DType | None]:
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return tuple(given.shape), np.dtype(given.dtype)
    if isinstance(given, SupportsIndex):
        return (given.__index__(),), None
    if len(given) == 2 and isinstance(given[0], (tuple, list)):
        return tuple(given[0]), as_dtype(given[1])
    return tuple(given), None


def to_node(value: Any) -> Node:
    """The node of a symbol with one value; arrays and numbers become constants."""
    return value.node if isinstance(value, Symbol) else as_node(value)
