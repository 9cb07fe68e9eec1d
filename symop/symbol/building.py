"""Functions that make symbols: variables, groups, files, and derivatives of other symbols."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex

from registry.errors import ArgumentError, FormatError, UnknownTypeError, nearest
from registry.shardings import MeshAxes
from registry.tracebacks import api_boundary, api_class
from registry.types import DType, Shape, VarKind, as_dtype, is_inexact, near_dtype
from symop.autodiff.gradients import Unreachable, grad_nodes, jvp_nodes
from symop.graph import nodes as graph
from symop.graph.naming import require_known, scoped_name, variables_of
from symop.graph.nodes import VARIABLE, Node, leaves, topological
from symop.graph.policies import Policy, require_policy
from symop.graph.shardings import sharding_attribute
from symop.io.definitions import Definitions
from symop.io.files import PathLike, read_bounded
from symop.io.serialize import LIMIT, decode
from symop.runtime.function import GraphFunction, stack_arrays, unstack_arrays
from symop.runtime.initial import initial_attribute
from symop.symbol.calls import from_desc, union
from symop.symbol.symbol import Symbol, to_node


@api_boundary
def var(
    name: str,
    shape: Sequence[int] | int | None = None,
    dtype: Any = None,
    *,
    state: bool = False,
    attr: Mapping[str, str] | None = None,
    kind: str | VarKind = VarKind.LOD_TENSOR,
    sharding: Sequence[MeshAxes] | None = None,
    initial: Any = None,
) -> Symbol:
    """Creates a variable: an input of a graph, fed when the graph runs.

    Args:
        name: the name by which it is fed; unique within a graph.
        shape: its shape, if known.
        dtype: its dtype; defaults to the dtype of the fed array, or to JAX's default float.
        state: whether it is an auxiliary state, which training updates and no gradient reaches.
        attr: strings to attach.
        kind: a dense array, or ``"selected_rows"``, whose shape is that of the whole array and
            must be given.
        sharding: for each axis the mesh axis that it is split over on many devices, a tuple of mesh
            axes, or None; see ``so.shard``.
        initial: where training starts: a number; an array; the name of an initializer of
            ``jax.nn.initializers``, with its arguments if it has any, as in ``"normal(0.01)"``; or
            a function from key, shape and dtype to an array, which a file cannot hold. Fan-in and
            fan-out follow from the use of the variable. See ``train.initialize`` for the default.

    Raises:
        ArgumentError: the kind, dtype, shape, sharding or initializer is invalid, or values of the
            kind cannot be fed.

    Example:
        >>> import symop as so
        >>> so.var("x", shape=(2, 3)).type
        VarType(float32[2,3])
    """
    full = scoped_name(name, "var")
    for key, value in (attr or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentError(f"var {name!r}: attr must map str to str, got {attr!r}")
    lengths, known = _lengths(name, shape), _kind(name, kind)
    ndim = None if lengths is None else len(lengths)
    declared = None if dtype is None else _declared_dtype(name, dtype)
    strings = {
        **(attr or {}),
        **sharding_attribute(f"var {name!r}", sharding, ndim),
        **initial_attribute(f"var {name!r}", initial, lengths, declared),
    }
    extra = tuple(sorted(strings.items()))
    role = "state" if state else "argument"
    if lengths is None and known is not VarKind.LOD_TENSOR:
        raise ArgumentError(f"var {name!r}: the shape of {known.value} must be given, got none")
    return Symbol([graph.variable(full, lengths, declared, role, extra, known)])


def _kind(name: str, kind: str | VarKind) -> VarKind:
    legal = [one.value for one in Definitions.feedable]
    if kind not in legal:
        hint = nearest(str(kind), legal)
        raise ArgumentError(f"var {name!r}: kind must be {' or '.join(legal)}, got {kind!r}{hint}")
    return VarKind(kind)


def _declared_dtype(name: str, dtype: Any) -> DType:
    try:
        return as_dtype(dtype)
    except TypeError:
        raise ArgumentError(
            f"var {name!r}: dtype must be a dtype, got {dtype!r}{near_dtype(dtype)}"
        ) from None


def _lengths(name: str, shape: Sequence[int] | int | None) -> Shape | None:
    if shape is None:
        return None
    lengths = (shape,) if isinstance(shape, SupportsIndex) else tuple(shape)
    for length in lengths:
        if not isinstance(length, SupportsIndex) or length.__index__() < 0:
            raise ArgumentError(
                f"var {name!r}: shape must hold lengths of axes, got {shape!r}; leave it out if "
                "they are known only when arrays are fed"
            )
    return tuple(length.__index__() for length in lengths)


@api_boundary
def Group(symbols: Sequence[Symbol], *others: Symbol) -> Symbol:  # noqa: N802  # MXNet's name
    """Returns one symbol with the outputs of all ``symbols``.

    Raises:
        ArgumentError: ``symbols`` is not a list of symbols, or is empty.
    """
    if others:
        count = len(others) + 1
        raise ArgumentError(f"Group: one list must be given, Group([x, y]), got {count} arguments")
    if not symbols:
        raise ArgumentError("Group: at least one symbol must be given, got none")
    for symbol in symbols:
        if not isinstance(symbol, Symbol):
            raise ArgumentError(f"Group: symbols must be given, got {symbol!r}")
    return Symbol([node for symbol in symbols for node in symbol.nodes], union(symbols))


@api_boundary
def load(path: PathLike, *, limit: int = LIMIT) -> Symbol:
    """Loads a symbol written by ``Symbol.save``; nothing in the file is executed.

    Args:
        path: the file.
        limit: the maximal number of bytes to read.

    Raises:
        FormatError: the file is damaged, too large or of a newer version; the message shows where.
        OSError: the file cannot be read.
    """
    data = read_bounded(path, limit)
    try:
        return from_desc(decode(data, limit=limit))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error.__cause__


# Derivatives -----------------------------------------------------------------------------------


def grad(
    ys: Any,
    xs: Any,
    head_grads: Any = None,
    *,
    unreachable: Unreachable = "error",
    remat: Policy | None = None,
) -> Any:
    """Computes ``derivatives.grad`` of symbols; see there for arguments and errors."""
    return build_gradients(ys, xs, head_grads, unreachable, remat, lenient=True)


def build_gradients(
    ys: Any,
    xs: Any,
    head_grads: Any = None,
    unreachable: Unreachable = "error",
    remat: Policy | None = None,
    *,
    lenient: bool = False,
) -> Any:
    """Computes ``grad``; an undefined gradient is an error unless ``lenient`` is set."""
    y_list = as_list(ys)
    x_list = chosen("grad", y_list, xs)
    heads = as_list(head_grads) if head_grads is not None else [None] * len(y_list)
    if len(heads) != len(y_list):
        raise ArgumentError(
            f"grad: head_grads must be one for each y ({len(y_list)}), got {len(heads)}"
        )
    nodes = grad_nodes(
        [to_node(y) for y in y_list],
        [to_node(x) for x in x_list],
        [None if head is None else to_node(head) for head in heads],
        unreachable,
        _functions_of(y_list),
        require_policy("grad", remat),
        lenient=lenient,
    )
    also = arguments_of([*y_list, *x_list, *heads], x_list)
    symbols = [None if node is None else Symbol([node], also) for node in nodes]
    return symbols if isinstance(xs, (list, tuple)) or len(symbols) > 1 else symbols[0]


@api_boundary
def value_and_grad(
    loss: Symbol,
    wrt: Sequence[str] | None = None,
    *,
    is_train: bool = False,
    stacked: bool = False,
    remat: Policy | None = None,
) -> "ValueAndGrad":
    """Returns a pure JAX function that returns ``loss`` and its gradients, row-sparse ones as rows.

    For use in a custom jitted loop: a ``SelectedRows`` is a pytree that ``so.sgd`` and similar
    functions accept in place of an array, with a cost proportional to its number of rows.

    Args:
        loss: a scalar. Undeclared shapes are taken from the arrays of each call. Variables that
            are not in ``wrt`` take arrays of another length along the first axis, the batch, than
            they declare.
        wrt: names of the variables to differentiate by; defaults to all arguments of a floating or
            complex dtype. An undeclared dtype is that of the array of each call.
        is_train: whether operators behave as in training.
        stacked: whether variables that a loop of repeated blocks reads one per step, such as the
            weights of its layers, are passed as one array: the function's ``stacks`` names them,
            its ``stack`` and ``unstack`` convert. A step then copies nothing, and the
            compiled code does not grow with the number of layers.
        remat: the residuals that the gradients keep of the forward pass (``so.remat``); defaults
            to all.

    Returns:
        A function of arrays, by position or name as that of ``Symbol.to_jax``. It returns the loss
        and a dict of gradients; in training with auxiliary states also a dict of their new values.

    Raises:
        ArgumentError: ``loss`` is not of shape ``()``.
        UnknownTypeError: ``stacked`` is set and a shape is not known, from which the stacks follow.
        FeedError: ``wrt`` contains a name that is not an argument.

    Example:
        >>> import jax, jax.numpy as jnp, symop as so
        >>> table, ids = so.var("table", shape=(100, 2)), so.var("ids", shape=(3,), dtype="int32")
        >>> loss = so.sum(so.square(so.lookup_table(table, ids, sparse=True)))
        >>> function = jax.jit(so.value_and_grad(loss, ["table"]))
        >>> value, slopes = function(jnp.ones((100, 2)), jnp.array([3, 7, 3]))
        >>> float(value), slopes["table"].rows.tolist(), slopes["table"].values.shape
        (6.0, [3, 7, 3], (3, 2))
    """
    remat = require_policy("value_and_grad", remat)
    if not isinstance(loss, Symbol):
        raise ArgumentError(
            f"value_and_grad: the loss must be a symbol, got a {type(loss).__name__}; so.grad and "
            "so.jvp take functions of arrays, and so.from_jax makes them symbols"
        )
    return ValueAndGrad(loss, wrt, is_train=is_train, stacked=stacked, remat=remat)


@api_class
class ValueAndGrad:
    """A loss and its gradients as a function of arrays, made by ``value_and_grad``.

    Attributes:
        arguments: names of the arguments, in the order of positional arrays.
        states: names of the auxiliary states, which follow the arguments.
        wrt: names of the arguments for which it returns gradients; by default also of those without
            a declared dtype, which have none in a call with integers or booleans.
        stacks: for each stacked argument, the names of the variables that it stacks.
    """

    def __init__(
        self,
        loss: Symbol,
        wrt: Sequence[str] | None,
        *,
        is_train: bool,
        stacked: bool,
        remat: Policy | None,
    ) -> None:
        """Builds the gradients; missing derivatives raise once shapes are known."""
        self._made_of = loss, wrt, is_train, stacked, remat
        known = all(node.types is not None for node in topological(loss.roots))
        if known and loss.shape != ():
            raise ArgumentError(f"value_and_grad: the loss must be of shape (), got {loss.shape}")
        variables = variables_of(loss.roots)
        names = [name for name, node in variables.items() if node.attributes[2] == "argument"]
        by_default = wrt is None
        if wrt is None:
            wrt = [name for name in names if may_move(variables[name])]
        require_known("value_and_grad", wrt, names)
        how: dict[str, Any] = {"training": is_train, "stacking": stacked, "remat": remat}
        try:
            self._function = GraphFunction(
                loss.nodes, loss.also, wrt=wrt, inexact_only=by_default, **how
            )
        except UnknownTypeError as error:  # without stacks, shapes are not needed yet
            raise UnknownTypeError(
                "value_and_grad: with stacked=True all shapes must be declared, or given by "
                f"loss.with_types(...), since the arguments follow from them; {error}"
            ) from None
        self._function.open([name for name in names if name not in wrt])
        self.stacks, self.wrt = self._function.stacks, self._function.wrt
        _require_whole(self.stacks, wrt)
        if known:
            self._function.schedule(())
        self.arguments, self.states = self._function.arguments, self._function.states
        self._updates = is_train and bool(self.states)

    def __call__(self, /, *args: Any, key: Any = None, **arrays: Any) -> Any:
        """Returns the loss, a dict of gradients, and in training a dict of new states, if any.

        Raises:
            FeedError: a fed array does not fit, or a required random key is missing.
        """
        result = self._function(*args, key=key, **arrays)
        values, states = result if self._updates else (result, {})
        values = values if self.wrt else [values]
        pairs = zip(self.wrt, values[1:], strict=True)
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        return (values[0], gradients, states) if self._updates else (values[0], gradients)

    def __reduce__(self) -> tuple[Any, ...]:
        return _value_and_grad_of, self._made_of

    def stack(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Converts arrays by variable name to the arguments of this function: stacks some.

        Raises:
            FeedError: some, but not all, variables of a stack are given.
        """
        return stack_arrays(self.stacks, arrays)

    def unstack(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Converts arguments or results of this function to arrays by variable name."""
        return unstack_arrays(self.stacks, arrays)


def _value_and_grad_of(loss: Symbol, wrt: Any, *how: Any) -> ValueAndGrad:
    """Restores the function from a pickle."""
    is_train, stacked, remat = how
    return ValueAndGrad(loss, wrt, is_train=is_train, stacked=stacked, remat=remat)


def may_move(variable: Node) -> bool:
    """Whether ``variable`` may have a gradient, according to its declared dtype."""
    dtype = variable.attributes[1]
    return dtype is None or is_inexact(dtype)


def _require_whole(stacks: Mapping[str, Sequence[str]], wrt: Sequence[str]) -> None:
    for members in stacks.values():
        missing = [name for name in members if name not in wrt]
        if missing and len(missing) < len(members):
            raise ArgumentError(
                f"value_and_grad: of variables that lie in one stack all must be in wrt or none, "
                f"got no {', '.join(missing)}; or pass stacked=False"
            )


def jvp(ys: Any, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error") -> Any:
    """Computes ``derivatives.jvp`` of symbols; see there for arguments and errors."""
    return build_tangents(ys, xs, tangents, unreachable, lenient=True)


def build_tangents(
    ys: Any, xs: Any, tangents: Any, unreachable: Unreachable = "error", *, lenient: bool = False
) -> Any:
    """Computes ``jvp``; an undefined tangent is an error unless ``lenient`` is set."""
    y_list, t_list = as_list(ys), as_list(tangents)
    x_list = chosen("jvp", y_list, xs)
    if len(x_list) != len(t_list):
        raise ArgumentError(
            f"jvp: tangents must be one for each x ({len(x_list)}), got {len(t_list)}"
        )
    nodes = jvp_nodes(
        [to_node(y) for y in y_list],
        [to_node(x) for x in x_list],
        [to_node(tangent) for tangent in t_list],
        unreachable,
        _functions_of(y_list),
        lenient=lenient,
    )
    also = arguments_of([*y_list, *x_list, *t_list], x_list)
    symbols = [Symbol([node], also) for node in nodes]
    return symbols if isinstance(ys, (list, tuple)) or len(symbols) > 1 else symbols[0]


def chosen(owner: str, ys: Sequence[Any], xs: Any) -> list[Any]:
    """Returns ``xs`` as a list, with names replaced by the variables of ``ys``."""
    result = as_list(xs)
    names = [one for one in result if isinstance(one, str)]
    if not names:
        return result
    variables = variables_of([node for y in ys if isinstance(y, Symbol) for node in y.roots])
    require_known(owner, names, variables)
    return [Symbol([variables[one]]) if isinstance(one, str) else one for one in result]


def arguments_of(values: Sequence[Any], xs: Sequence[Any]) -> tuple[Node, ...]:
    """Returns the arguments of a derivative: all variables of ``values``, and ``xs``.

    The variables are in the order in which the symbols among ``values`` list them.
    """
    roots = [node for one in values if isinstance(one, Symbol) for node in one.roots]
    variables = leaves(topological(roots), VARIABLE)
    return tuple(dict.fromkeys([*variables, *(to_node(x) for x in xs)]))


def _functions_of(ys: Sequence[Any]) -> list[Node]:
    """Returns the arguments that symbols among ``ys`` list, even if they do not need them."""
    return topological([node for y in ys if isinstance(y, Symbol) for node in y.also])


def as_list(values: Any) -> list[Any]:
    """Returns the values as a list, with one symbol for each output."""
    if isinstance(values, Symbol):
        return [Symbol([node], values.also) for node in values.nodes]
    return list(values) if isinstance(values, (list, tuple)) else [values]
