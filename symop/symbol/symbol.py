"""Symbol, the main interface to graphs: one or several values that are not computed yet."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from registry.desc import ProgramDesc
from registry.errors import (
    ArgumentError,
    DTypeError,
    FeedError,
    GradientError,
    ShapeError,
    SymopError,
    nearest,
)
from registry.operator.operator import Operator
from registry.shardings import Sharding
from registry.tracebacks import api_boundary, api_class, hide_frames
from registry.types import DType, Shape, VarType, as_dtype
from registry.var import Var, infix
from symop.drawing.draw import MAX_NODES, draw_subject, subject_html
from symop.drawing.subject import Subject, subject_of
from symop.graph.emission import alike
from symop.graph.inference import infer_variables, redeclare
from symop.graph.naming import names_of, require_known, variables_of
from symop.graph.nodes import (
    ARRAY,
    CONSTANT,
    DEFERRED,
    TRAINING,
    VARIABLE,
    Node,
    as_node,
    topological,
    variable,
)
from symop.graph.policies import Policy, require_policy
from symop.graph.rewriting import settle, substitute
from symop.graph.shardings import Rules, ndims_of, resolve, shardings_of, undeclared, with_shardings
from symop.io.files import PathLike, write_atomically
from symop.io.records import to_desc
from symop.io.serialize import encode
from symop.io.text import text
from symop.lowering.steps import type_of
from symop.passes import remat as recomputing
from symop.passes.folding import fold_for_inference, require_types
from symop.passes.partial_evaluation import early
from symop.runtime.executor import Executor, Settings
from symop.runtime.function import GraphFunction, as_fed, evaluate
from symop.runtime.initial import initial_values
from symop.runtime.placement import placement_of
from symop.symbol.interface import Interface, as_shape


@api_class
class Symbol(Interface):
    """One or several values of a graph, described by their computation.

    Symbols are immutable. Every operator applies to them, by name (``so.sin(x)``), as a method
    (``x.sin()``) and through Python's operators. Indexing selects among several outputs.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2,))
        >>> y = so.sin(x) * 2.0
        >>> so.grad(y, x).eval(x=[0.0, 0.0]).tolist()
        [2.0, 2.0]
    """

    __slots__ = ("__weakref__",)
    HOOKS: ClassVar[frozenset[str]] = frozenset({"program_of"})
    program_of: ClassVar[Callable[["Symbol", Collection[str]], Any]]

    def __init__(self, nodes: Sequence[Node], also: tuple[Node, ...] = ()) -> None:
        """Creates a symbol of the values ``nodes``; users call ``so.var`` and operators instead.

        A derivative has the arguments of the function that it differentiates, even those it turns
        out not to need: it is constant in them, not disconnected. ``also`` lists them.
        """
        self.nodes = tuple(nodes)
        self.also = also

    # One value ----------------------------------------------------------------------------------

    @property
    def node(self) -> Node:
        """The node of a symbol with a single value.

        Raises:
            ArgumentError: the symbol has several values.
        """
        if len(self.nodes) != 1:
            raise ArgumentError(
                f"symbol: one value must be chosen, got {len(self.nodes)} outputs "
                f"({', '.join(self.list_outputs())}); index it"
            )
        return self.nodes[0]

    @property
    def type(self) -> VarType:
        """Shape, dtype and kind of the single value."""
        try:
            return self.node.type
        except SymopError as error:
            hide_frames(error)
            raise

    @property
    def constant(self) -> bool | int | float | complex | None:
        """The number that fills the value, if the graph knows it."""
        return self.node.constant

    @property
    def name(self) -> str:
        """The given name, or the automatic name within the graph."""
        node = self.node
        return node.name or names_of(topological([node]))[node]

    @api_boundary
    def __len__(self) -> int:
        return len(self.nodes) if len(self.nodes) > 1 else Var.__len__(self)

    @api_boundary
    def __iter__(self) -> Iterator["Symbol"]:
        if len(self.nodes) > 1:
            return (Symbol([node], self.also) for node in self.nodes)
        return (self[i] for i in range(Var.__len__(self)))

    @api_boundary
    def __getitem__(self, index: Any) -> "Symbol":
        """Selects an output by position or name; slices a single value."""
        if isinstance(index, str):
            return self._output_named(index)
        if len(self.nodes) > 1:
            if not isinstance(index, (int, np.integer, slice)):
                raise ArgumentError(f"symbol: an output is chosen by number or name, got {index!r}")
            chosen = self.nodes[index]
            return Symbol(chosen if isinstance(chosen, tuple) else [chosen], self.also)
        self._refuse_masks(index)
        result: Symbol = infix["[]"](self, index)
        return result

    def _output_named(self, name: str) -> "Symbol":
        outputs = self.list_outputs()
        if name not in outputs:
            raise ArgumentError(f"symbol: no output is called {name!r}{nearest(name, outputs)}")
        return Symbol([self.nodes[outputs.index(name)]], self.also)

    # Python evaluates ``a == b`` as a truth value to find a symbol in a list or a dict, and JAX to
    # compare static arguments. It is true if both are the same values of the same graph.

    def __eq__(self, other: object) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("!=", other)

    def _compared(self, sign: str, other: object) -> Any:
        if not isinstance(other, (Symbol, *_COMPARABLE)):
            return NotImplemented
        if isinstance(other, Symbol):
            if len(self.nodes) != 1 or len(other.nodes) != 1:
                return (self.nodes == other.nodes) is (sign == "==")
            try:
                return infix[sign](self, other)
            except (ShapeError, DTypeError) as error:
                return Incomparable(error, truth=sign == "!=")
        return infix[sign](self, other)

    @api_boundary
    def __bool__(self) -> bool:
        if len(self.nodes) == 1:
            for sign, expected in (("==", True), ("!=", False)):
                if self.node.op is infix[sign]:
                    left, right = self.node.operands
                    if not any(one.op in (CONSTANT, ARRAY) for one in (left, right)):
                        return (left is right) is expected
        return super().__bool__()

    def __hash__(self) -> int:
        return hash(self.nodes)

    def same_as(self, other: "Symbol") -> bool:
        """Whether both are the same calls on the same values, however they were built.

        The operands of a sum or a product may be in either order.
        """
        return self.nodes == other.nodes or alike(settle(self.nodes), settle(other.nodes))

    def __repr__(self) -> str:
        names = names_of(topological(self.nodes))
        shown = [
            names[node] if node.types is None else f"{names[node]}: {node.types[0]}"
            for node in self.nodes
        ]
        return f"<Symbol {', '.join(shown)}>"

    def __str__(self) -> str:
        """Returns the graph as a readable program."""
        return text(self.nodes, self._unneeded()).rstrip()

    def _repr_html_(self) -> str:
        """Returns the drawing shown by a notebook."""
        return subject_html(self._subject())

    def to_svg(self, *, max_nodes: int = MAX_NODES, title: str | None = None) -> str:
        """Draws the graph as SVG; parts are folded if it exceeds ``max_nodes`` boxes."""
        return draw_subject(self._subject()._replace(title=title), max_nodes=max_nodes)

    def _subject(self) -> Subject:
        """Returns what drawings show."""
        return subject_of(self.nodes, self.list_outputs())

    def __copy__(self) -> "Symbol":
        return self

    def __deepcopy__(self, memo: object) -> "Symbol":
        return self

    # The graph -----------------------------------------------------------------------------------

    def get_internals(self) -> "Symbol":
        """Returns every value of the graph, as the outputs of one symbol."""
        # This includes variables that a derivative is a function of but does not need.
        return Symbol([node for node in topological(self.roots) if _is_value(node)], self.also)

    def get_children(self) -> "Symbol | None":
        """Returns the direct inputs of the outputs, or None for a variable."""
        children = [child for node in self.nodes for child in node.operands if _is_value(child)]
        return Symbol(list(dict.fromkeys(children))) if children else None

    def attr(self, key: str) -> str | None:
        """Returns a string attached to a variable by ``so.var(..., attr=...)``, or None."""
        return self.list_attr().get(key)

    def list_attr(self) -> dict[str, str]:
        """Returns the strings attached to a variable."""
        node = self.node
        return dict(node.attributes[3]) if node.op is VARIABLE else {}

    # Rewriting ---------------------------------------------------------------------------------

    def with_types(self, **types: Any) -> "Symbol":
        """Returns the same graph with the given types of variables, and others inferred from them.

        Args:
            **types: for each variable its shape, a pair of shape and dtype, or a similar array.

        Example:
            >>> import symop as so
            >>> y = so.sin(so.var("x"))
            >>> y.with_types(x=(2, 3)).shape
            (2, 3)
        """
        known = self._known({name: _shape_and_dtype(type) for name, type in types.items()})
        return self._with_roots(redeclare(self.roots, known))

    def with_sharding(self, rules: Rules) -> "Symbol":
        """Returns the same graph with variables that are split over a mesh as ``rules`` say.

        Args:
            rules: shardings (see ``so.shard``) by name of variable, or by pattern such as
                ``"*_weight"``. Of several that match, the first counts.

        Raises:
            ArgumentError: a rule matches no variable, or its sharding is invalid.

        Example:
            >>> import symop as so
            >>> y = so.fully_connected(so.var("x", shape=(8, 4)), units=2, name="layer")
            >>> y.with_sharding({"*_weight": ("model", None)}).shardings()
            {'layer_weight': ('model',)}
        """
        shardings = resolve("with_sharding", rules, ndims_of(self.roots))
        return self._with_roots(with_shardings(self.roots, shardings))

    def shardings(self) -> dict[str, Sharding]:
        """Returns the shardings of the variables that declare one, by name."""
        return shardings_of(self.roots)

    def with_memory(self, remat: Policy | None) -> "Symbol":
        """Returns the same graph with loops whose steps keep residuals according to ``remat``.

        All types must be known.
        """
        return self if remat is None else self._with_roots(recomputing.chosen(self.roots, remat))

    def _with_roots(self, roots: Sequence[Node]) -> "Symbol":
        """Returns the symbol with these roots, in the order of this symbol's roots."""
        count = len(self.also)
        return Symbol(roots[count:], tuple(roots[:count]))

    def replace(self, **others: Any) -> "Symbol":
        """Composes graphs: replaces variables by other symbols, arrays or numbers.

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

    def for_inference(self, inputs: Collection[str] | None = None, /, **types: Any) -> "Symbol":
        """Returns the graph for prediction alone, with fewer operators and the same variables.

        The training flag is false, so dropout disappears, and running statistics are not updated.
        Where only one call reads the result of a convolution, a fully connected layer or a product
        with a matrix, and that call is batch normalization, or multiplies or adds one number for
        each channel, it becomes part of the layer's weight and bias. These are then expressions of
        the parameters, which ``fold`` computes once. Results differ by rounding only.
        ``so.explain`` lists what was folded.

        Args:
            inputs: the names of the variables that are fed; folded weights depend on none of them.
                By default, these are the ones that the data of a layer depend on, unless a layer
                takes them as parameters.
            **types: types of variables that declare none, as in ``with_types``; only the folding
                reads them, and the result remains open to others.

        Raises:
            UnknownTypeError: a shape is not known.
            FeedError: a name is not that of a variable.

        Example:
            >>> import symop as so
            >>> x = so.var("x", shape=(2, 3, 8, 8))
            >>> layer = so.convolution(x, channels=4, kernel=3, name="conv")
            >>> net = so.dropout(so.relu(so.batch_norm(layer, name="norm")))
            >>> own = net.simple_bind(seed=0, x=(2, 3, 8, 8))
            >>> parameters = {n: one for n, one in own.arg_dict.items() if n != "x"}
            >>> small, arrays = net.for_inference().fold({**parameters, **own.aux_dict})
            >>> print(small)
            (x: float[2,3,8,8], conv_weight: float32[4,3,3,3], conv_bias: float32[4]) {
              conv: float32[2,4,6,6] = convolution(x, conv_weight, conv_bias, channels=4, kernel=3)
              relu0: float32[2,4,6,6] = relu(conv)
            } -> relu0
            >>> sorted(arrays)
            ['conv_bias', 'conv_weight']
        """
        known = self._known({name: _shape_and_dtype(type) for name, type in types.items()})
        require_types(self.roots, known)
        require_known("for_inference", inputs or (), self._variables())
        return self._with_roots(fold_for_inference(self.roots, known, inputs))

    def fold(self, arrays: Mapping[str, Any], /) -> tuple["Symbol", dict[str, Any]]:
        """Computes once what depends on some variables alone: partial evaluation.

        Values that depend on ``arrays`` and on nothing else become variables of the result, named
        after the call and the slot that read them. Values that are larger than what they are
        computed from are still computed in each run, as are random draws.

        Args:
            arrays: the arrays of variables by name, such as the parameters of a trained model.

        Returns:
            The graph of the rest, and the arrays of those of its variables that are known.

        Raises:
            FeedError: a name is not that of a variable, or an array is of the wrong type.

        Example:
            >>> import numpy as np, symop as so
            >>> x, w, c = so.var("x", shape=(3,)), so.var("w", shape=(4, 3)), so.var("c", shape=())
            >>> y = so.matmul(so.exp(w) * c, x, name="y")
            >>> rest, arrays = y.fold({"w": np.zeros((4, 3)), "c": 2.0})
            >>> rest.list_arguments(), arrays["y_x"].shape
            (['y_x', 'x'], (4, 3))
        """
        variables = self._variables()
        require_known("fold", arrays, variables)
        fed = {name: as_fed(name, variables[name], value) for name, value in arrays.items()}
        given = {variables[name]: type_of(value).strong() for name, value in fed.items()}
        values, names = early(self.roots, given)
        needed = variables_of(values)
        made = evaluate(values, (), {n: fed[n] for n in needed}, training=False) if values else []
        computed = dict(zip(names, [made] if len(values) == 1 else made, strict=True))
        new = {
            value: variable(name, tuple(computed[name].shape), computed[name].dtype)
            for name, value in zip(names, values, strict=True)
        }
        also = tuple([one for one in self.also if one not in given])
        rest = Symbol(substitute(self.nodes, new), also)
        remaining = rest._variables()
        return rest, {n: one for n, one in {**fed, **computed}.items() if n in remaining}

    def __call__(self, *arrays: Any, **others: Any) -> "Symbol":
        """Calls ``replace``, which names what it replaces."""
        if arrays:
            raise ArgumentError(
                "symbol: a call replaces variables by keyword, y(x=other), got "
                f"{len(arrays)} values by position; eval(x=array) or to_jax()(array) computes"
            )
        return self.replace(**others)

    # Files -------------------------------------------------------------------------------------

    def to_desc(self) -> ProgramDesc:
        """Returns the graph as records: variables, and OpDescs in an executable order."""
        return to_desc(self.nodes, self._unneeded())

    def tojson(self) -> str:
        """Returns the graph as JSON, readable by ``so.load_json``."""
        return encode(self.to_desc())

    def save(self, path: PathLike) -> None:
        """Writes the graph as JSON, readable by ``so.load``; the file is replaced atomically.

        Raises:
            OSError: the file cannot be written.
        """
        write_atomically(path, self.tojson().encode())

    def to_program(self, parameters: Collection[str] = (), /, **types: Any) -> Any:
        """Converts the graph to a ``so.Program``; the program's ``to_symbol`` returns this symbol.

        Args:
            parameters: names of the arguments that the program keeps and trains; the others are
                fed.
            **types: types of variables, as in ``with_types``.

        Raises:
            FeedError: a name is not that of an argument.
            UnknownTypeError: a shape is not known.

        Example:
            >>> import symop as so
            >>> y = so.matmul(so.var("x"), so.var("w"))
            >>> program = y.to_program(["w"], x=(2, 3), w=(3, 4))
            >>> [one.name for one in program.parameters], program.outputs
            (['w'], [<Variable matmul0: float32[2,4]>])
        """
        return Symbol.program_of(self.with_types(**types) if types else self, parameters)

    # Running ------------------------------------------------------------------------------------

    def eval(
        self, arrays: Mapping[str, Any] | None = None, /, *, is_train: bool = False, **others: Any
    ) -> Any:
        """Evaluates the graph; returns one array, or a list for several outputs.

        Arrays are given by name, as keywords or in a dict: ``y.eval(x=1.0)``, ``y.eval({"x": 1})``.
        Each structure and combination of types is compiled once. Random operators draw from
        ``so.random.seed``. With ``is_train`` and auxiliary states, the result is a pair: the
        outputs, and a dict of the states' new values.

        Raises:
            FeedError: an array is missing, unexpected, or of the wrong shape or dtype.
            ArgumentError: ``arrays`` is not a dict.
        """
        named = others if arrays is None else _merged(arrays, others)
        return evaluate(self.nodes, self.also, named, training=is_train)

    def to_jax(
        self,
        *,
        is_train: bool = False,
        rules: bool | None = None,
        remat: Policy | None = None,
    ) -> Callable[..., Any]:
        """Returns the graph as a pure JAX function ``f(*arrays, key=None, **arrays)``.

        Arrays are passed by position, in the order of ``list_arguments()`` followed by
        ``list_auxiliary_states()``, or by name. The function traces under every JAX
        transformation. A graph that draws random numbers needs ``key=``. With ``is_train`` and
        auxiliary states it returns a pair: the outputs, and the states' new values by name.

        Args:
            is_train: whether operators behave as in training.
            rules: whether JAX differentiates operators by their gradient makers (True) or by
                their kernels (False, faster to trace). By default a graph that already contains
                its gradient is differentiated by its kernels, except where a maker differs from
                the kernel's own derivative.
            remat: the residuals that JAX's gradients of the function keep (``so.remat``); by
                default JAX decides, except within scopes.

        Example:
            >>> import jax, symop as so
            >>> x = so.var("x")
            >>> float(jax.grad((x * x).to_jax())(3.0))
            6.0
        """
        return JaxFunction(self, is_train, rules, require_policy("to_jax", remat))

    def bind(
        self,
        args: Mapping[str, Any] | Sequence[Any],
        args_grad: Mapping[str, Any] | Sequence[Any] | None = None,
        grad_req: Any = "write",
        aux_states: Mapping[str, Any] | Sequence[Any] | None = None,
        remat: Policy | None = None,
        *,
        stacked: bool = False,
        mesh: Any = None,
        rules: Rules | None = None,
    ) -> Executor:
        """Creates an executor over the given arrays.

        Args:
            args: arrays of the arguments, by name or in the order of ``list_arguments()``.
            args_grad: initial values of gradients (``grad_req="add"``); zeros where None.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all arguments or by name. An
                argument missing from a dict has no gradient, as in MXNet; an array given for a
                ``"null"`` gradient is left unchanged.
            aux_states: arrays of the auxiliary states.
            remat: the residuals that a forward pass for training keeps for ``backward``
                (``so.remat``); defaults to all that ``backward`` reads.
            stacked: whether arrays that a loop of repeated blocks reads one per step, such as the
                weights of its layers, are stacked in one array: a step then copies nothing, and
                the arrays read under their names are slices of it.
            mesh: the devices that hold the arrays, a ``jax.sharding.Mesh``; those of variables
                without a sharding are whole on each device.
            rules: shardings by name of variable or by pattern, as for ``with_sharding``.

        Raises:
            FeedError: an array is missing, unexpected or of the wrong shape or dtype.
        """
        arguments = self.list_arguments()
        placement = placement_of("bind", self.roots, mesh, rules)
        declared = {} if placement is None else placement.shardings
        own = self._with_roots(with_shardings(self.roots, undeclared(self.roots, declared)))
        return Executor(
            own.nodes,
            own.also,
            _by_name("args", args, arguments),
            _by_name("aux_states", aux_states or {}, self.list_auxiliary_states()),
            grad_req,
            None if args_grad is None else _by_name("args_grad", args_grad, arguments),
            Settings(require_policy("bind", remat), stacked, placement),
        )

    def simple_bind(
        self,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        remat: Policy | None = None,
        *,
        stacked: bool = False,
        mesh: Any = None,
        rules: Rules | None = None,
        seed: int | None = None,
        **shapes: Sequence[int],
    ) -> Executor:
        """Creates an executor over zeros, or over initial values; omitted shapes are inferred.

        ``stacked``, ``mesh`` and ``rules`` are as in ``bind``. With a ``seed``, variables that
        ``shapes`` does not list start as ``train.initialize`` says.

        Raises:
            UnknownTypeError: some shapes cannot be inferred; the message names them.
        """
        dtypes = {name: as_dtype(dtype) for name, dtype in (type_dict or {}).items()}
        types = {
            name: (as_shape("simple_bind", shape), dtypes.get(name))
            for name, shape in shapes.items()
        }
        require_known("simple_bind", {**types, **dtypes}, self.list_inputs())
        roots = infer_variables(self.roots, types)
        variables = variables_of(roots)
        zeros = {
            name: jnp.zeros(node.type.shape, node.type.dtype) for name, node in variables.items()
        }
        if seed is not None:
            drawn = {name: node for name, node in variables.items() if name not in types}
            keys = jax.random.split(jax.random.key(seed), max(len(drawn), 1))
            zeros.update(initial_values(drawn, roots, keys))
        states = self.list_auxiliary_states()
        return self.bind(
            {name: array for name, array in zeros.items() if name not in states},
            grad_req=grad_req,
            aux_states={name: zeros[name] for name in states},
            remat=remat,
            stacked=stacked,
            mesh=mesh,
            rules=rules,
        )


@api_class
class JaxFunction:
    """A symbol as a function of arrays, made by ``Symbol.to_jax``. It can be pickled."""

    def __init__(
        self, symbol: Symbol, is_train: bool, rules: bool | None, remat: Policy | None
    ) -> None:
        """Creates the function; see ``Symbol.to_jax``."""
        self._made_of = symbol, is_train, rules, remat
        self._function = GraphFunction(
            symbol.nodes, symbol.also, training=is_train, rules=rules, remat=remat
        )
        self.__name__ = self.__qualname__ = "_".join(symbol.list_outputs()[:1])
        self.__doc__ = f"The symbol of {', '.join(self._function.names)}."

    def __call__(self, /, *args: Any, key: Any = None, **arrays: Any) -> Any:
        """Returns the outputs, as described in ``Symbol.to_jax``."""
        return self._function(*args, key=key, **arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxFunction, self._made_of


_COMPARABLE = (bool, int, float, complex, np.ndarray, np.generic, jax.Array, list, tuple)


class Incomparable:
    """The result of ``a == b`` for symbols no operator can compare; it only has a truth value."""

    __slots__ = ("_error", "_truth")

    def __init__(self, error: Exception, *, truth: bool) -> None:
        """Stores the truth value, and the error that explains why the symbols are incomparable."""
        self._error, self._truth = error, truth

    def __bool__(self) -> bool:
        return self._truth

    def __getattr__(self, name: str) -> Any:
        raise self._error

    def __repr__(self) -> str:
        return f"<Incomparable: {self._error}>"


def _merged(arrays: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arrays of a dict and of keywords.

    Raises:
        ArgumentError: ``arrays`` is not a dict with names as keys.
        FeedError: an array is given twice.
    """
    if not isinstance(arrays, Mapping) or not all(isinstance(name, str) for name in arrays):
        got = repr(list(arrays)) if isinstance(arrays, Mapping) else type(arrays).__name__
        raise ArgumentError(
            f"eval: arrays must be given by name, as eval(x=...) or eval({{'x': ...}}), got {got}"
        )
    for name in others:
        if name in arrays:
            raise FeedError(f"eval: an array must be given once, got {name!r} twice")
    return {**arrays, **others}


def _by_name(what: str, values: Any, names: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(values, Mapping):
        return values
    if len(values) != len(names):
        raise FeedError(
            f"bind: {what} must be one array for each of {', '.join(names) or 'none'}, "
            f"got {len(values)}"
        )
    return dict(zip(names, values, strict=True))


def _is_value(node: Node) -> bool:
    """Whether ``node`` is a value: not a flag, nor several outputs at once."""
    return node.op is not TRAINING and not (isinstance(node.op, Operator) and not node.op.single)


def _shape_and_dtype(type: Any) -> tuple[Shape, DType | None]:
    if hasattr(type, "shape") and hasattr(type, "dtype"):
        return tuple(type.shape), np.dtype(type.dtype)
    if isinstance(type, SupportsIndex):
        return (type.__index__(),), None
    if len(type) == 2 and isinstance(type[0], (tuple, list)):
        return as_shape("with_types", type[0]), as_dtype(type[1])
    return as_shape("with_types", type), None


def to_node(value: Any) -> Node:
    """Returns the node of a symbol with one value; arrays and numbers become constants."""
    return value.node if isinstance(value, Symbol) else as_node(value)
