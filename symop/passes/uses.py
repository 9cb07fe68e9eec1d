"""How a graph uses its variables: as factors of products, as biases or as scales.

The fan-in of a weight is the number of terms in each sum that it is a factor of; its fan-out is the
number of sums that each input enters (Glorot and Bengio, "Understanding the difficulty of training
deep feedforward neural networks", 2010). Both follow from the axes that a product sums over, and
these from the equations of the kernels: no operator declares them.

A variable is followed from kernel to kernel, through reshapes, transposes, slices, casts and
constant factors, until it meets a value that depends on another variable. The first product that it
meets in the order of the graph's calls decides; without one, the first entrywise operation.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jax.extend.core import Jaxpr, JaxprEqn
from jax.extend.core import Literal as JaxLiteral

from registry.jax_derivatives.calculus import program_of
from registry.operator.operator import Operator
from registry.primitives import called_by, primitives_named, scan_parts
from registry.types import TRAINING_TYPE, VarKind
from symop.graph.nodes import KEY, KEYS, VARIABLE, Node, by_age, reaching, topological
from symop.passes.axis_factors import Axes, rule_of

Role = Literal["product", "bias", "scale"]
_RANKS: dict[str, int] = {"product": 0, "bias": 1, "scale": 1}


class Use(NamedTuple):
    """One use of a variable.

    Attributes:
        role: a factor of a product that is summed; added to data of more entries; or a factor of
            data of more entries.
        inward: the axes that a product sums over together with the other operand.
        outward: the axes of a product that the other operand lacks.
        window: the axes of a convolution's window, which count as both. All other axes are batch
            axes, along which there is one product for each index.
    """

    role: Role
    inward: tuple[int, ...] = ()
    outward: tuple[int, ...] = ()
    window: tuple[int, ...] = ()


class Uses:
    """The uses of the variables of a graph, found on demand."""

    def __init__(self, roots: Sequence[Node]) -> None:
        """Reads the graph of ``roots``, whose types must be known where a use is to be found."""
        order = topological(roots)
        self._age = {node: i for i, node in enumerate(by_age(order))}
        moving = [node for node in order if node.op in (VARIABLE, KEY, KEYS)]
        self._moving = reaching(order, moving)
        self._readers: dict[Node, list[Node]] = {}
        for node in order:
            for one in dict.fromkeys(node.operands):
                self._readers.setdefault(one, []).append(node)

    def of(self, variable: Node) -> Use | None:
        """Returns the use that decides how ``variable`` is initialized; None if there is none."""
        if variable.types is None:
            return None
        axes = tuple(frozenset([i]) for i in range(len(variable.type.shape)))
        known: dict[Node, _State] = {variable: _Value(axes)}
        walk, waiting = _Walk(), list[tuple[int, Node]]()
        self._add_readers(variable, known, waiting)
        while waiting and not walk.decided:
            _, node = heapq.heappop(waiting)
            if node in known:
                continue
            for one, state in self._follow(node, known, walk):
                known[one] = state
                if isinstance(state, _Value):
                    self._add_readers(one, known, waiting)
        return walk.best

    def _add_readers(
        self, node: Node, known: Mapping[Node, Any], waiting: list[tuple[int, Node]]
    ) -> None:
        for reader in self._readers.get(node, ()):
            if reader not in known:
                heapq.heappush(waiting, (self._age[reader], reader))

    def _follow(
        self, node: Node, known: Mapping[Node, "_State"], walk: "_Walk"
    ) -> Iterator[tuple[Node, "_State"]]:
        """Yields the states of the results of a call, or of a selection of a known result."""
        if not isinstance(node.op, Operator) or not _is_plain(node):
            yield node, DATA
            return
        flag = node.op.training_index  # whose value matters for no product
        types = tuple(
            None if one is None else TRAINING_TYPE if i == flag else one.type
            for i, one in enumerate(node.inputs)
        )
        program = program_of(node.op, types, node.attributes)
        states = [
            known.get(one, DATA if one in self._moving else None)
            for i, one in enumerate(node.inputs)
            if one is not None and i != flag
        ]
        results = walk.through(program.jaxpr, states)
        if len(results) == 1:
            yield node, results[0]
            return
        yield node, DATA
        for reader in self._readers.get(node, ()):
            if reader.is_selection:
                yield reader, results[reader.index]


def _is_plain(node: Node) -> bool:
    """Whether a call reads and computes dense arrays of known types."""
    read = [one for one in node.inputs if one is not None]
    if node.types is None or any(one.types is None for one in read):
        return False
    kinds = {one.kind for one in node.types} | {one.type.kind for one in read}
    return kinds <= {VarKind.LOD_TENSOR, VarKind.RANDOM_KEY, TRAINING_TYPE.kind}


# Values of a jaxpr -------------------------------------------------------------------------------


class _Value(NamedTuple):
    """A value that depends on the variable, linearly, and on no other one.

    Attributes:
        axes: for each axis of the value, the axes of the variable that run along it.
        shared: after an entrywise product with data, the axes along which data varies, too; None
            before.
        spread: whether that data has axes that the value lacks.
    """

    axes: tuple[frozenset[int], ...]
    shared: frozenset[int] | None = None
    spread: bool = False


class _Data:
    """A value that depends on other variables, or on this one in a way that is not followed."""


DATA = _Data()
_State = _Value | _Data | None
"""What is known of a value; None for a constant."""


class _Walk:
    """Collects the uses that jaxprs make of the variable.

    Attributes:
        best: the first use of the most important role so far.
    """

    def __init__(self) -> None:
        self.best: Use | None = None

    @property
    def decided(self) -> bool:
        """Whether no later use can be more important."""
        return self.best is not None and self.best.role == "product"

    def report(self, use: Use) -> None:
        """Keeps ``use`` if it is more important than those before."""
        if self.best is None or _RANKS[use.role] < _RANKS[self.best.role]:
            self.best = use

    def through(self, jaxpr: Jaxpr, states: Sequence[_State]) -> list[_State]:
        """Returns the states of the results of a jaxpr from those of its inputs."""
        known: dict[Any, _State] = dict(zip(jaxpr.invars, states, strict=True))

        def of(atom: Any) -> _State:
            return None if isinstance(atom, JaxLiteral) else known.get(atom)

        for equation in jaxpr.eqns:
            known.update(
                zip(equation.outvars, self._step(equation, list(map(of, equation.invars))),
                    strict=True)
            )  # fmt: skip
        return list(map(of, jaxpr.outvars))

    def _step(self, equation: JaxprEqn, read: list[_State]) -> Sequence[_State]:
        count = len(equation.outvars)
        own = [i for i, one in enumerate(read) if isinstance(one, _Value)]
        if not own:
            return [DATA if DATA in read else None] * count
        inner = called_by(equation)
        if inner is not None:
            return self.through(inner, read)
        special = _SPECIAL.get(equation.primitive)
        if special is not None:
            return special(self, equation, read)
        value = read[own[0]]
        assert isinstance(value, _Value)
        if len(own) > 1 or (DATA in read) or not _passes(equation, value):
            return [DATA] * count
        return _mapped(equation, own[0], value)


def _passes(equation: JaxprEqn, value: _Value) -> bool:
    """Whether the equation keeps what the value is: an image of the variable, entry for entry."""
    return equation.primitive in (_LAYOUT if value.spread else _LAYOUT | _LINEAR)


def _mapped(equation: JaxprEqn, place: int, value: _Value) -> list[_State]:
    """Returns the results of an equation that rearranges the operand at ``place``."""
    rule = rule_of(equation)
    held: dict[int, frozenset[int]] = {}
    for factors, axes in zip(rule.operands[place], value.axes, strict=True):
        for factor in factors:
            held[factor] = held.get(factor, frozenset()) | axes

    def image(axes: Axes) -> _Value:
        every = [[held.get(one, frozenset()) for one in factors] for factors in axes]
        return value._replace(axes=tuple(frozenset[int]().union(*one) for one in every))

    return [image(axes) for axes in rule.results]


def _along(value: _Value, places: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes of the variable that run along the axes of ``value`` at ``places``."""
    return tuple(sorted(frozenset[int]().union(*[value.axes[i] for i in places])))


def _product(
    value: _Value, inward: Sequence[int], outward: Sequence[int], window: Sequence[int] = ()
) -> Use:
    """Returns the use as a factor whose axes at these places have these roles."""
    ins, outs, both = (_along(value, one) for one in (inward, outward, window))
    outs = tuple(one for one in outs if one not in ins)
    return Use("product", ins, outs, tuple(one for one in both if one not in (*ins, *outs)))


def _shape(atom: Any) -> tuple[int, ...]:
    return tuple(atom.aval.shape)


# Operations that decide --------------------------------------------------------------------------


def _dot(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    summed, batch = equation.params["dimension_numbers"]
    place = 0 if isinstance(read[0], _Value) else 1
    value, other = read[place], read[1 - place]
    if not isinstance(value, _Value) or isinstance(other, _Value):
        return [DATA]
    if not value.spread:
        ndim = len(value.axes)
        outward = [i for i in range(ndim) if i not in (*summed[place], *batch[place])]
        walk.report(_product(value, summed[place], outward))
    return [DATA]


def _convolution(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    value = read[1]
    if isinstance(value, _Value) and not (value.spread or isinstance(read[0], _Value)):
        features, summed, *window = equation.params["dimension_numbers"].rhs_spec
        walk.report(_product(value, [summed], [features], window))
    return [DATA]


def _lookup(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """The fan-in of a table of which rows are looked up is the width of a row, as in flax.

    It is also that of the last layer, where both share a table (Press and Wolf, "Using the output
    embedding to improve language models", 2017).
    """
    value, numbers = read[0], equation.params["dimension_numbers"]
    if not isinstance(value, _Value) or isinstance(read[1], _Value):
        return [DATA]
    if read[1] is None or all(n == 1 for n in _shape(equation.invars[1])[:-1]):
        return _mapped(equation, 0, value)  # a slice
    if not value.spread:
        rows = numbers.collapsed_slice_dims
        kept = [i for i in range(len(value.axes)) if i not in rows]
        walk.report(_product(value, kept, rows) if kept else Use("bias"))
    return [DATA]


def _sliced(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """A slice at a place that data decides is a slice."""
    del walk
    value = read[0]
    return _mapped(equation, 0, value) if isinstance(value, _Value) else [DATA]


def _sum(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """A sum of the products with data is a product; of the variable itself it is not followed."""
    (value,) = read
    if not isinstance(value, _Value) or value.shared is None:
        return [DATA]
    summed = _along(value, equation.params["axes"])
    if not summed:
        return _mapped(equation, 0, value)
    every = _along(value, range(len(value.axes)))
    outward = tuple(one for one in every if one not in (*summed, *value.shared))
    walk.report(Use("product", summed, outward))
    return [DATA]


def _met(equation: JaxprEqn, read: list[_State]) -> tuple[_Value, int] | None:
    """Returns the value and its place, of two operands, if the other one is data."""
    for place in (0, 1):
        value = read[place]
        if isinstance(value, _Value) and read[1 - place] is DATA and not value.spread:
            return value, place
    return None


def _is_spread(equation: JaxprEqn, value: _Value, place: int) -> bool:
    """Whether the result has axes along which the value is constant."""
    own, out = _shape(equation.invars[place]), _shape(equation.outvars[0])
    if not own:
        return bool(out)
    pairs = zip(own, out, value.axes, strict=True)
    return any(m > 1 and (n == 1 or not axes) for n, m, axes in pairs)


def _added(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    met = _met(equation, read)
    if met is None:
        return _entrywise(equation, read)
    value, place = met
    walk.report(Use("bias"))
    return [DATA] if _is_spread(equation, value, place) else [value]


def _multiplied(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    met = _met(equation, read)
    if met is None:
        return _entrywise(equation, read)
    value, place = met
    spread = _is_spread(equation, value, place)
    if spread:
        walk.report(Use("scale"))
    if not value.axes:
        return [DATA]
    other = _shape(equation.invars[1 - place])
    shared = _along(value, [i for i, n in enumerate(other) if n > 1])
    return [value._replace(shared=frozenset(shared), spread=spread)]


def _entrywise(equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """Of a variable and a constant; what two of its images make is not followed."""
    own = [i for i, one in enumerate(read) if isinstance(one, _Value)]
    value = read[own[0]]
    if len(own) > 1 or DATA in read or not isinstance(value, _Value):
        return [DATA]
    return _mapped(equation, own[0], value) if _shape(equation.invars[own[0]]) else [DATA]


def _scan(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """Follows constants, and arrays that a step reads one row of."""
    constants, carried = scan_parts(equation.params)
    rows = [
        one._replace(axes=one.axes[1:]) if isinstance(one, _Value) else one
        for one in read[constants + carried :]
    ]
    walk.through(equation.params["jaxpr"].jaxpr, [*read[:constants], *[DATA] * carried, *rows])
    return [DATA] * len(equation.outvars)


def _while(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    """Follows the first step."""
    walk.through(equation.params["body_jaxpr"].jaxpr, read[equation.params["cond_nconsts"] :])
    return [DATA] * len(equation.outvars)


def _cond(walk: _Walk, equation: JaxprEqn, read: list[_State]) -> list[_State]:
    for branch in equation.params["branches"]:
        walk.through(branch.jaxpr, read[1:])
    return [DATA] * len(equation.outvars)


_LAYOUT = primitives_named(
    *("broadcast_in_dim", "reshape", "squeeze", "transpose", "convert_element_type", "copy"),
    *("reduce_precision", "optimization_barrier", "stop_gradient", "slice", "split", "unstack"),
)
_LINEAR = primitives_named("concatenate", "neg", "pad", "real", "rev", "select_n", "stack")
_Step = Callable[[_Walk, JaxprEqn, list[_State]], list[_State]]
_SPECIAL: Mapping[Any, _Step] = {
    primitive: step
    for names, step in {
        ("dot_general",): _dot,
        ("conv_general_dilated",): _convolution,
        ("gather",): _lookup,
        ("dynamic_slice",): _sliced,
        ("reduce_sum",): _sum,
        ("add", "sub", "add_jaxvals"): _added,
        ("mul", "div"): _multiplied,
        ("scan",): _scan,
        ("while",): _while,
        ("cond",): _cond,
    }.items()
    for primitive in primitives_named(*names)
}
