"""How users make symbols: variables, groups, files, and derivatives of other symbols."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex

from registry.apart import put_together
from registry.errors import ArgumentError, FeedError, FormatError
from registry.types import DType, Shape, as_dtype
from symop import graph
from symop.files import PathLike, read_bounded
from symop.function import GraphFunction, owners_of
from symop.gradients import Unreachable, grad_nodes, jvp_nodes
from symop.graph import VARIABLE, Node, leaves, topological
from symop.naming import require_known, scoped, variables_of
from symop.policies import Policy, require_policy
from symop.serialize import LIMIT, decode
from symop.symbol import Symbol, to_node
from symop.symbol_calls import from_desc, united


def var(
    name: str,
    shape: Sequence[int] | int | None = None,
    dtype: Any = None,
    *,
    state: bool = False,
    attr: Mapping[str, str] | None = None,
) -> Symbol:
    """A variable: an input of a graph, fed when the graph runs.

    Args:
        name: what it is fed by; unique within a graph.
        shape: its shape, when it is known already.
        dtype: its dtype; without one, JAX's default float unless what is fed says otherwise.
        state: whether it is an auxiliary state, which training updates and no gradient reaches.
        attr: strings to attach.

    Example:
        >>> import symop as so
        >>> so.var("x", shape=(2, 3)).type
        VarType(float32[2,3])
    """
    full = scoped(name, "var")
    for key, value in (attr or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentError(f"var {name!r}: attr must map str to str, got {attr!r}")
    extra = tuple(sorted((attr or {}).items()))
    declared = None if dtype is None else _declared_dtype(name, dtype)
    role = "state" if state else "argument"
    return Symbol([graph.variable(full, _lengths(name, shape), declared, role, extra)])


def _declared_dtype(name: str, dtype: Any) -> DType:
    try:
        return as_dtype(dtype)
    except TypeError:
        raise ArgumentError(f"var {name!r}: dtype must be a dtype, got {dtype!r}") from None


def _lengths(name: str, shape: Sequence[int] | int | None) -> Shape | None:
    if shape is None:
        return None
    lengths = (shape,) if isinstance(shape, SupportsIndex) else tuple(shape)
    for length in lengths:
        if not isinstance(length, SupportsIndex) or length.__index__() < 0:
            raise ArgumentError(f"var {name!r}: shape must hold lengths of axes, got {shape!r}")
    return tuple(length.__index__() for length in lengths)


def Group(symbols: Sequence[Symbol]) -> Symbol:  # noqa: N802  # the name that MXNet users know
    """One symbol with the outputs of all ``symbols``."""
    if not symbols:
        raise ArgumentError("Group: at least one symbol must be given, got none")
    for symbol in symbols:
        if not isinstance(symbol, Symbol):
            raise ArgumentError(f"Group: symbols must be given, got {symbol!r}")
    return Symbol([node for symbol in symbols for node in symbol.nodes], united(symbols))


def load(path: PathLike, *, limit: int = LIMIT) -> Symbol:
    """The symbol that ``Symbol.save`` wrote; nothing in the file is executed.

    Args:
        path: the file.
        limit: how many bytes are read at most.

    Raises:
        FormatError: the file is damaged, too large or of a newer version; the message tells where.
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
    """Gradients of ``sum(ys * head_grads)`` with respect to ``xs``, as symbols.

    The result is a graph like any other: it can be differentiated again, to any order.

    Args:
        ys: a symbol or a list of them.
        xs: a symbol, variable or not, or the name of an argument; or a list of them.
        head_grads: for each of ``ys`` its cotangent, or None for ones.
        unreachable: what to do when no path leads from ``ys`` to one of ``xs``: raise an error,
            return zeros, or return None. A derivative that is zero by definition is zeros always.
        remat: what the gradients keep of the graph (``so.remat``), whose types are known then;
            loops are not changed by it.

    Returns:
        One symbol for one ``x``, a list for a list or a symbol of several values.

    Raises:
        DisconnectedError: ``ys`` do not depend on one of ``xs``.
        NotDifferentiableError: the derivative is undefined; the message says by which operator.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=())
        >>> y = so.grad(so.grad(so.sin(x), x), x)
        >>> print(y)
        (x: float[]) {
          # gradient of cos
          sin0: float32[] = sin(x)
          negative0: float32[] = negative(sin0)
        } -> negative0
    """
    y_list = listed(ys)
    x_list = chosen("grad", y_list, xs)
    heads = listed(head_grads) if head_grads is not None else [None] * len(y_list)
    if len(heads) != len(y_list):
        raise ArgumentError(
            f"grad: head_grads must be one for each y ({len(y_list)}), got {len(heads)}"
        )
    found = grad_nodes(
        [to_node(y) for y in y_list],
        [to_node(x) for x in x_list],
        [None if head is None else to_node(head) for head in heads],
        unreachable,
        _functions_of(y_list),
        require_policy("grad", remat),
    )
    also = arguments_of([*y_list, *x_list, *heads], x_list)
    symbols = [None if node is None else Symbol([node], also) for node in found]
    return symbols if isinstance(xs, (list, tuple)) or len(symbols) > 1 else symbols[0]


def value_and_grad(
    loss: Symbol,
    wrt: Sequence[str] | None = None,
    *,
    is_train: bool = False,
    stacked: bool = False,
    remat: Policy | None = None,
) -> "ValueAndGrad":
    """A pure JAX function that gives ``loss`` and its gradients, row-sparse ones as rows.

    For one's own jitted loop: a ``SelectedRows`` is a pytree, which ``so.sgd`` and its kin take
    in place of an array, and which costs the rows that it names.

    Args:
        loss: a scalar; all shapes are known.
        wrt: names of the variables whose gradients are wanted; without it, all arguments of a
            floating dtype.
        is_train: whether operators behave as in training.
        stacked: whether variables of which a loop of repeated blocks reads one in each step, such
            as the weights of its layers, are taken as one array: the function's ``stacks`` names
            them, its ``stack`` and ``unstack`` convert. Then a step copies nothing, and what
            compiles does not grow with the number of layers.
        remat: what the gradients keep of the forward pass (``so.remat``); everything without it.

    Returns:
        A function of arrays, by position or name as that of ``Symbol.to_jax``. It returns the loss
        and a dict of gradients; in training with auxiliary states also a dict of their new values.

    Raises:
        ArgumentError: ``loss`` is not of shape ``()``.
        UnknownTypeError: a shape is not known.
        FeedError: ``wrt`` names something else than a variable.

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
    return ValueAndGrad(loss, wrt, is_train=is_train, stacked=stacked, remat=remat)


class ValueAndGrad:
    """A loss and its gradients as a function of arrays; ``value_and_grad`` makes it.

    Attributes:
        arguments: names of the arguments, in the order of positional arrays.
        states: names of the auxiliary states, which follow them.
        wrt: names of those whose gradients it gives.
        stacks: for each of these that is a stack the names of the variables that lie in it.
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
        """Build the gradients; what cannot be differentiated is told now."""
        if loss.shape != ():
            raise ArgumentError(f"value_and_grad: the loss must be of shape (), got {loss.shape}")
        variables = variables_of(loss.roots)
        names = [name for name, node in variables.items() if node.attributes[2] == "argument"]
        if wrt is None:
            wrt = [name for name in names if variables[name].type.differentiable]
        require_known("value_and_grad", wrt, names)
        self._function = GraphFunction(
            loss.nodes, loss.also, training=is_train, wrt=wrt, stacking=stacked, remat=remat
        )
        self.stacks, self.wrt = self._function.stacks, self._function.wrt
        _require_whole(self.stacks, wrt)
        self._function.schedule(())
        self.arguments, self.states = self._function.arguments, self._function.states
        self._updates = is_train and bool(self.states)

    def __call__(self, *args: Any, key: Any = None, **arrays: Any) -> Any:
        """The loss and a dict of gradients, and in training a dict of new states if there are any.

        Raises:
            FeedError: what is fed does not fit, or a random key is needed and missing.
        """
        result = self._function(*args, key=key, **arrays)
        values, states = result if self._updates else (result, {})
        values = values if self.wrt else [values]
        found = dict(zip(self.wrt, values[1:], strict=True))
        return (values[0], found, states) if self._updates else (values[0], found)

    def stack(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays by the names of variables, as this function takes them: some of them stacked.

        Raises:
            FeedError: some of the variables that lie in one array are missing.
        """
        owners = owners_of(self.stacks)
        found = {name: one for name, one in arrays.items() if name not in owners}
        for stack, members in self.stacks.items():
            missing = [one for one in members if one not in arrays]
            if missing and len(missing) < len(members):
                raise FeedError(
                    f"stack: of variables that lie in one array all must be given or none, got no "
                    f"{', '.join(missing)}"
                )
            if not missing:
                found[stack] = put_together([arrays[one] for one in members])
        return found

    def unstack(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays that this function takes or gives, by the names of variables."""
        found: dict[str, Any] = {}
        for name, one in arrays.items():
            members = self.stacks.get(name)
            found.update({name: one} if members is None else zip(members, one, strict=True))
        return found


def _require_whole(stacks: Mapping[str, Sequence[str]], wrt: Sequence[str]) -> None:
    for members in stacks.values():
        missing = [name for name in members if name not in wrt]
        if missing and len(missing) < len(members):
            raise ArgumentError(
                f"value_and_grad: of variables that lie in one stack all must be in wrt or none, "
                f"got no {', '.join(missing)}; or pass stacked=False"
            )


def jvp(ys: Any, xs: Any, tangents: Any, *, unreachable: Literal["error", "zero"] = "error") -> Any:
    """``derivatives.jvp`` of symbols, where its arguments and errors are told."""
    y_list, t_list = listed(ys), listed(tangents)
    x_list = chosen("jvp", y_list, xs)
    if len(x_list) != len(t_list):
        raise ArgumentError(
            f"jvp: tangents must be one for each x ({len(x_list)}), got {len(t_list)}"
        )
    found = jvp_nodes(
        [to_node(y) for y in y_list],
        [to_node(x) for x in x_list],
        [to_node(tangent) for tangent in t_list],
        unreachable,
        _functions_of(y_list),
    )
    also = arguments_of([*y_list, *x_list, *t_list], x_list)
    symbols = [Symbol([node], also) for node in found]
    return symbols if isinstance(ys, (list, tuple)) or len(symbols) > 1 else symbols[0]


def chosen(owner: str, ys: Sequence[Any], xs: Any) -> list[Any]:
    """``xs`` in a list, what is named among them as the variables of ``ys``."""
    given = listed(xs)
    names = [one for one in given if isinstance(one, str)]
    if not names:
        return given
    variables = variables_of([node for y in ys if isinstance(y, Symbol) for node in y.roots])
    require_known(owner, names, variables)
    return [Symbol([variables[one]]) if isinstance(one, str) else one for one in given]


def arguments_of(values: Sequence[Any], xs: Sequence[Any]) -> tuple[Node, ...]:
    """What a derivative is a function of: all variables of ``values``, and ``xs``.

    The variables are in the order in which the symbols among ``values`` list them.
    """
    roots = [node for one in values if isinstance(one, Symbol) for node in one.roots]
    variables = leaves(topological(roots), VARIABLE)
    return tuple(dict.fromkeys([*variables, *(to_node(x) for x in xs)]))


def _functions_of(ys: Sequence[Any]) -> list[Node]:
    """The values that symbols among ``ys`` are functions of, although they may not need them."""
    return topological([node for y in ys if isinstance(y, Symbol) for node in y.also])


def listed(values: Any) -> list[Any]:
    """The values in a list; those of a symbol one by one."""
    if isinstance(values, Symbol):
        return [Symbol([node], values.also) for node in values.nodes]
    return list(values) if isinstance(values, (list, tuple)) else [values]
