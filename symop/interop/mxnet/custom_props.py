"""Custom operators: the classes that users derive from, and what they registered by name."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from registry.shapes import canonical
from registry.types import DType, Shape
from symop.interop.mxnet.errors import MXNetError, near
from symop.interop.mxnet.ndarray import NDArray

Arrays = list[NDArray]
Arguments = tuple[tuple[str, str], ...]
"""What a property class is made with: strings by name."""


class CustomOp:
    """An operator in Python: a subclass defines ``forward`` and ``backward``.

    Both are called with ``mx.nd`` arrays and write what they compute into arrays that are there.
    They run on the host each time that the operator does, in compiled programs, too. Executors and
    modules wait for such programs. Whoever calls a function of ``Symbol.to_jax`` in a loop on the
    CPU must do so, too (``jax.block_until_ready``): where many of them are under way, JAX has no
    room left for what the user's code computes, and comes to a standstill.

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
        """Write the outputs.

        Args:
            is_train: whether a forward pass for training calls.
            req: for each output, what ``assign`` is to do.
            in_data: the inputs.
            out_data: arrays for the outputs.
            aux: the auxiliary states, which may be written as well.
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
        """Write the gradients of the inputs.

        Args:
            req: for each input, what ``assign`` is to do: ``"null"`` where nobody asks for it.
            out_grad: the gradients of the outputs; zeros where the property says that they are not
                needed.
            in_data: the inputs.
            out_data: the outputs.
            in_grad: arrays for the gradients.
            aux: the auxiliary states as ``forward`` left them; what is written here is lost.
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write ``src`` into ``dst`` as ``req`` says.

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
    """What there is to know of an operator before it runs: names, shapes, dtypes.

    It is made with the attributes of a call, which are strings, by name.

    Attributes:
        need_top_grad_: whether ``backward`` reads the gradients of the outputs.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        """``need_top_grad`` is False for a loss, whose gradient is its own."""
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
        """Shapes of inputs, outputs and, if there are any, states; here all are the first one's.

        Args:
            in_shape: shapes of the inputs, with 0 for a length and [] for a shape that is not
                known; what is returned for them may complete them.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Dtypes of inputs, outputs and states; here all are the first input's.

        Args:
            in_type: those of the inputs, as classes of NumPy.
        """
        outputs, states = len(self.list_outputs()), len(self.list_auxiliary_states())
        return in_type, [in_type[0]] * outputs, [in_type[0]] * states

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """Which of these numbers of arrays ``backward`` reads.

        Only what it says of ``out_grad`` matters; the others are always there.
        """
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(
        self, ctx: Any, in_shapes: list[list[int]], in_dtypes: list[Any]
    ) -> CustomOp:
        """The operator for arrays of these shapes and dtypes, states behind inputs.

        Args:
            ctx: where the arrays lie that it gets.
            in_shapes: of the inputs and the states.
            in_dtypes: likewise, as classes of NumPy.
        """
        del ctx, in_shapes, in_dtypes
        return CustomOp()


Prop = TypeVar("Prop", bound=type[CustomOpProp])
Made = Callable[..., CustomOpProp]
_registered: dict[str, list[Made]] = {}


def enter(op_type: str, made: Made) -> None:
    """Let ``op_type`` mean ``made`` from now on; what was bound with another one keeps it."""
    _registered.setdefault(op_type, []).append(made)


def version_of(op_type: str) -> int | None:
    """The number of the class that ``op_type`` means at the moment; None if it means none."""
    known = _registered.get(op_type)
    return len(known) - 1 if known else None


@contextlib.contextmanager
def called(op_type: str, method: str) -> Iterator[None]:
    """While a method of the user's is called: its errors are MXNet's, and say which one it is."""
    try:
        yield
    except Exception as error:
        raise MXNetError(f"{op_type}: {method} failed: {type(error).__name__}: {error}") from error


class Types(NamedTuple):
    """What a call computes.

    Attributes:
        inputs: dtypes that the inputs are to have.
        outputs: shapes and dtypes of the outputs.
    """

    inputs: list[DType]
    outputs: list[tuple[Shape, DType]]


class Form(NamedTuple):
    """What calls of a registered operator with given arguments have in common.

    Attributes:
        op_type: the name under which it was registered.
        make: makes an object of its property class.
        prop: such an object.
        arguments: names of the inputs.
        outputs: names of the outputs.
        states: names of the auxiliary states.
        heads: numbers of the outputs whose gradients ``backward`` reads.
    """

    op_type: str
    make: Callable[[], CustomOpProp]
    prop: CustomOpProp
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[str, ...]
    heads: tuple[int, ...]

    def shapes(self, inputs: Sequence[Sequence[int]]) -> list[list[Shape]]:
        """What ``infer_shape`` says of inputs, outputs and states; () is a shape not known.

        Raises:
            MXNetError: it fails, or tells too few shapes or too many.
        """
        return _inferred_shapes(self, self.prop, inputs)

    def types(self, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> Types:
        """Types of the outputs, for those of inputs and states.

        Raises:
            MXNetError: a method of the user's fails, or leaves a shape open.
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
        """A new operator, made as a call of it makes one.

        Raises:
            MXNetError: a method of the user's fails, or what it makes is no operator.
        """
        count, prop = len(self.arguments), self.make()
        _inferred_shapes(self, prop, shapes[:count])  # which may leave notes for what follows
        _inferred_types(self, prop, dtypes[:count])
        with called(self.op_type, "create_operator"):
            made = prop.create_operator(ctx, [*map(list, shapes)], [one.type for one in dtypes])
        if not isinstance(made, CustomOp):
            raise MXNetError(
                f"{self.op_type}: create_operator must give a CustomOp, got {made!r:.200}"
            )
        return made


def form_of(op_type: str, arguments: Arguments, version: int | None = None) -> Form:
    """What there is to know of calls of the operator that was registered as ``op_type``.

    Args:
        op_type: its name.
        arguments: what its property class is made with.
        version: the number of the class, among those of this name; the last one by default.

    Raises:
        MXNetError: there is none, or it cannot be made with these arguments.
    """
    known = _registered.get(op_type)
    if not known:
        raise MXNetError(
            f"Custom: op_type must be registered (mx.operator.register), got {op_type!r}"
            f"{near(op_type, _registered)}"
        )
    last = len(known) - 1
    return _form(op_type, known[last if version is None else min(version, last)], arguments)


@functools.lru_cache(maxsize=1024)
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
    """Numbers of the outputs whose gradients ``backward`` reads."""
    numbers = list(range(inputs + 2 * outputs))
    with called(op_type, "declare_backward_dependency"):
        needed = prop.declare_backward_dependency(
            numbers[:outputs], numbers[outputs : outputs + inputs], numbers[outputs + inputs :]
        )
        return tuple(i for i in range(outputs) if i in needed)


def _parts(op_type: str, method: str, said: Any, counts: Sequence[int]) -> list[list[Any]]:
    """What a method says of inputs, outputs and, unless it leaves them out, states."""
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
