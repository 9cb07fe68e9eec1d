"""Custom operators: base classes for users, and the registered classes by name."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from registry.caches import memoized
from registry.shapes import canonical
from registry.types import DType, Shape
from symop.interop.mxnet.arrays import NDArray
from symop.interop.mxnet.errors import MXNetError, near

Arrays = list[NDArray]
Arguments = tuple[tuple[str, str], ...]
"""The arguments of a property class: strings by name."""


class CustomOp:
    """An operator in Python: a subclass defines ``forward`` and ``backward``.

    Both are called with ``mx.nd`` arrays and write their results into given arrays. They run on the
    host each time the operator runs, also in compiled programs. Executors and modules wait for such
    programs. A caller that runs a function of ``Symbol.to_jax`` in a loop on the CPU must wait, too
    (``jax.block_until_ready``): with many of them in flight, JAX has no threads left for the
    computations of the user's code, and deadlocks.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> class Cube(CustomOp):
        ...     def forward(self, is_train, req, in_data, out_data, aux):
        ...         self.assign(out_data[0], req[0], in_data[0] ** 3)
        ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        ...         self.assign(in_grad[0], req[0], 3 * in_data[0] ** 2 * out_grad[0])
        >>> cube, x, y = Cube(), mx.nd.array([2]), mx.nd.zeros(1)
        >>> cube.forward(True, ["write"], [x], [y], [])
        >>> y.asscalar()
        np.float32(8.0)
    """

    def forward(
        self, is_train: bool, req: list[str], in_data: Arrays, out_data: Arrays, aux: Arrays
    ) -> None:
        """Writes the outputs.

        Args:
            is_train: whether this is a forward pass for training.
            req: for each output, the request passed to ``assign``.
            in_data: the inputs.
            out_data: arrays for the outputs.
            aux: the auxiliary states, which may also be written.
        """

    def backward(
        self,
        req: list[str],
        out_grad: Arrays,
        in_data: Arrays,
        out_data: Arrays,
        in_grad: Arrays,
        aux: Arrays,
    ) -> None:
        """Writes the gradients of the inputs.

        Args:
            req: for each input, the request passed to ``assign``: ``"null"`` if it is not needed.
            out_grad: the gradients of the outputs; zeros if the property declares them unneeded.
            in_data: the inputs.
            out_data: the outputs.
            in_grad: arrays for the gradients.
            aux: the auxiliary states as left by ``forward``; writes to them are lost.
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Writes ``src`` to ``dst`` according to ``req``.

        Raises:
            MXNetError: there is no such request.
        """
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] = dst + src
        elif req != "null":
            raise MXNetError(f"assign: req must be null, write, inplace or add, got {req!r}")


class CustomOpProp:
    """The properties of an operator: names, shapes, dtypes.

    It is created with the attributes of a call as keyword arguments, which are strings.

    Attributes:
        need_top_grad_: whether ``backward`` reads the gradients of the outputs.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        """``need_top_grad`` is False for a loss, which defines its own gradient."""
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape: list[list[int]]) -> Any:
        """Shapes of inputs, outputs and, if any, states; by default all equal the first input's.

        Args:
            in_shape: shapes of the inputs, with 0 for an unknown length and [] for an unknown
                shape; the returned shapes may complete them.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Dtypes of inputs, outputs and states; by default all equal the first input's.

        Args:
            in_type: dtypes of the inputs, as NumPy classes.
        """
        outputs, states = len(self.list_outputs()), len(self.list_auxiliary_states())
        return in_type, [in_type[0]] * outputs, [in_type[0]] * states

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """The numbers of the arrays that ``backward`` reads.

        Only the selection from ``out_grad`` matters; the other arrays are always available.
        """
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(
        self, ctx: Any, in_shapes: list[list[int]], in_dtypes: list[Any]
    ) -> CustomOp:
        """Creates the operator for arrays of these shapes and dtypes, states after inputs.

        Args:
            ctx: the device of its arrays.
            in_shapes: shapes of the inputs and the states.
            in_dtypes: their dtypes, as NumPy classes.
        """
        del ctx, in_shapes, in_dtypes
        return CustomOp()


Prop = TypeVar("Prop", bound=type[CustomOpProp])
Made = Callable[..., CustomOpProp]
_registered: dict[str, list[Made]] = {}


def enter(op_type: str, made: Made) -> None:
    """Sets the meaning of ``op_type`` to ``made``; bound executors keep the earlier one."""
    _registered.setdefault(op_type, []).append(made)


def version_of(op_type: str) -> int | None:
    """The number of the current class of ``op_type``; None if it is not registered."""
    known = _registered.get(op_type)
    return len(known) - 1 if known else None


@contextlib.contextmanager
def called(op_type: str, method: str) -> Iterator[None]:
    """Converts errors of a user's method to MXNetError, with the name of the method."""
    try:
        yield
    except Exception as error:
        raise MXNetError(f"{op_type}: {method} failed: {type(error).__name__}: {error}") from error


class Types(NamedTuple):
    """The types of a call.

    Attributes:
        inputs: required dtypes of the inputs.
        outputs: shapes and dtypes of the outputs.
    """

    inputs: list[DType]
    outputs: list[tuple[Shape, DType]]


class Form(NamedTuple):
    """The common properties of calls of a registered operator with given arguments.

    Attributes:
        op_type: the registered name.
        make: creates an object of the property class.
        prop: such an object.
        arguments: names of the inputs.
        outputs: names of the outputs.
        states: names of the auxiliary states.
        heads: indices of the outputs whose gradients ``backward`` reads.
    """

    op_type: str
    make: Callable[[], CustomOpProp]
    prop: CustomOpProp
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[str, ...]
    heads: tuple[int, ...]

    def shapes(self, inputs: Sequence[Sequence[int]]) -> list[list[Shape]]:
        """The result of ``infer_shape`` for inputs, outputs and states; () is an unknown shape.

        Raises:
            MXNetError: it fails, or returns too few or too many shapes.
        """
        return _inferred_shapes(self, self.prop, inputs)

    def types(self, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> Types:
        """Types of the outputs, given those of inputs and states.

        Raises:
            MXNetError: a user's method fails, or leaves a shape unknown.
        """
        count = len(self.arguments)
        found = self.shapes(shapes[:count])[1]
        for name, shape in zip(self.outputs, found, strict=True):
            if not shape or 0 in shape:
                raise MXNetError(
                    f"{self.op_type}: infer_shape must tell the shape of {name!r}, got {shape}"
                )
        given, outputs = _inferred_types(self, self.prop, dtypes[:count])
        return Types(given, list(zip(found, outputs, strict=True)))

    def create(self, ctx: Any, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> CustomOp:
        """Creates a new operator, with the same sequence of method calls as in a call.

        Raises:
            MXNetError: a user's method fails, or does not return an operator.
        """
        count, prop = len(self.arguments), self.make()
        _inferred_shapes(self, prop, shapes[:count])  # may store data for the following methods
        _inferred_types(self, prop, dtypes[:count])
        with called(self.op_type, "create_operator"):
            result = prop.create_operator(ctx, [*map(list, shapes)], [one.type for one in dtypes])
        if not isinstance(result, CustomOp):
            raise MXNetError(
                f"{self.op_type}: create_operator must give a CustomOp, got {result!r:.200}"
            )
        return result


def form_of(op_type: str, arguments: Arguments, version: int | None = None) -> Form:
    """The form of calls of the operator registered as ``op_type``.

    Args:
        op_type: its name.
        arguments: the arguments of its property class.
        version: the number of the class among those of this name; defaults to the last.

    Raises:
        MXNetError: it is not registered, or cannot be created with these arguments.
    """
    known = _registered.get(op_type)
    if not known:
        raise MXNetError(
            f"Custom: op_type must be registered (mx.operator.register), got {op_type!r}"
            f"{near(op_type, _registered)}"
        )
    last = len(known) - 1
    return _form(op_type, known[last if version is None else min(version, last)], arguments)


@memoized(1024)
def _form(op_type: str, made: Made, arguments: Arguments) -> Form:
    make: Callable[[], CustomOpProp] = functools.partial(_made, op_type, made, arguments)
    prop = make()
    inputs = _names(op_type, "list_arguments", prop.list_arguments)
    outputs = _names(op_type, "list_outputs", prop.list_outputs)
    states = _names(op_type, "list_auxiliary_states", prop.list_auxiliary_states)
    heads = _heads(op_type, prop, len(inputs), len(outputs))
    return Form(op_type, make, prop, inputs, outputs, states, heads)


def _made(op_type: str, made: Made, arguments: Arguments) -> CustomOpProp:
    with called(op_type, "its property class"):
        return made(**dict(arguments))


def _names(op_type: str, method: str, listed: Callable[[], list[str]]) -> tuple[str, ...]:
    with called(op_type, method):
        return tuple(map(str, listed()))


def _heads(op_type: str, prop: CustomOpProp, inputs: int, outputs: int) -> tuple[int, ...]:
    """Indices of the outputs whose gradients ``backward`` reads."""
    numbers = list(range(inputs + 2 * outputs))
    with called(op_type, "declare_backward_dependency"):
        needed = prop.declare_backward_dependency(
            numbers[:outputs], numbers[outputs : outputs + inputs], numbers[outputs + inputs :]
        )
        return tuple(i for i in range(outputs) if i in needed)


def _parts(op_type: str, method: str, said: Any, counts: Sequence[int]) -> list[list[Any]]:
    """The lists that a method returns for inputs, outputs and, optionally, states."""
    parts = [list(one) for one in said] if isinstance(said, (tuple, list)) else []
    if len(parts) == 2:
        parts.append([None] * counts[2] if method == "infer_type" else [])
    if [len(one) for one in parts] != list(counts):
        raise MXNetError(
            f"{op_type}: {method} must return lists for {counts[0]} inputs, {counts[1]} outputs "
            f"and {counts[2]} states, got {said!r:.200}"
        )
    return parts


def _counts(form: Form) -> tuple[int, int, int]:
    return len(form.arguments), len(form.outputs), len(form.states)


def _inferred_shapes(
    form: Form, prop: CustomOpProp, inputs: Sequence[Sequence[int]]
) -> list[list[Shape]]:
    with called(form.op_type, "infer_shape"):
        said = prop.infer_shape([*map(list, inputs)])
        parts = _parts(form.op_type, "infer_shape", said, _counts(form))
        return [[tuple(map(int, shape)) for shape in part] for part in parts]


def _inferred_types(
    form: Form, prop: CustomOpProp, inputs: Sequence[DType]
) -> tuple[list[DType], list[DType]]:
    """Dtypes of inputs and outputs."""
    with called(form.op_type, "infer_type"):
        said = prop.infer_type([one.type for one in inputs])
        given, outputs, _ = _parts(form.op_type, "infer_type", said, _counts(form))
        wanted = [
            own if one is None else canonical(np.dtype(one))
            for one, own in zip(given, inputs, strict=True)
        ]
        return wanted, [canonical(np.dtype(one)) for one in outputs]
