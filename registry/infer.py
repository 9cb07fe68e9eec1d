"""Inference: the types of an operator's outputs from those of its inputs, memoized."""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.attributes import Attribute, identity_key
from registry.errors import DTypeError, KindError, ShapeError, SymopError
from registry.rule import Rule
from registry.signature import Slot
from registry.types import KEY_TYPE, TRAINING_TYPE, DType, Shape, VarKind, VarType
from registry.values import SelectedRows, TensorArray
from registry.var import Attributes, Inputs

Types = tuple[VarType, ...]
_MEMO_LIMIT = 8192
_SOME_ROWS = 3
"""How many rows a row-sparse input has when a kernel is traced: types do not depend on it."""


class Declared(Protocol):
    """What inference reads of an operator."""

    name: str
    slots: tuple[Slot, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[str, ...]
    slot_index: dict[str, int]
    row_slots: frozenset[str]

    def slot_of(self, index: int) -> Slot:
        """The slot that a flat input fills."""

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """The kernel on arrays."""


class Inference:
    """Shape, dtype and kind rules of one operator, and what they said before."""

    def __init__(
        self,
        operator: Declared,
        shape: Callable[..., Any] | None,
        dtype: Callable[..., Any] | None,
    ) -> None:
        """Without both rules the kernel is traced for its result's type."""
        self.operator = operator
        slots, attributes = operator.slots, operator.attributes
        name = operator.name
        self.several = len(operator.outputs) > 1
        self.shape_rule = shape and (
            _OverAll(shape) if _over_all(shape) else Rule(name, shape, slots, attributes)
        )
        self.dtype_rule = dtype and (
            _OverAll(dtype) if _over_all(dtype) else Rule(name, dtype, slots, attributes)
        )
        self.kind_rule: Callable[[Inputs, Attributes], Any] | None = None
        self.types_rule: Rule | None = None
        self.complete_rule: Callable[..., Any] | None = None
        self._declare_completion(shape)
        self._memo: dict[Any, Types] = {}

    def of(self, operator: Declared) -> "Inference":
        """The same rules for ``operator``, which has other outputs."""
        other = copy.copy(self)
        other.operator, other.several, other._memo = operator, len(operator.outputs) > 1, {}
        return other

    def _declare_completion(self, shape: Callable[..., Any] | None) -> None:
        completes = getattr(shape, "completes", None)
        if completes is None or shape is None:
            return
        owner = self.operator
        self.complete_rule = (
            _over_all_completion(owner, completes)
            if _over_all(shape)
            else Rule(owner.name, completes, owner.slots, owner.attributes, owner.outputs)
        )

    def __call__(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        """Types of the outputs.

        Raises:
            ShapeError, DTypeError, KindError: the inputs do not fit together.
        """
        x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # set by jax at run time
        key = (types, identity_key(attributes) if attributes else (), x64)
        found = self._memo.get(key)
        if found is None:
            found = self._infer(types, attributes)
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            self._memo[key] = found
        return found

    def kinds(
        self, kinds: tuple[VarKind | None, ...], attributes: Attributes
    ) -> tuple[VarKind, ...]:
        """Kinds of the outputs; they follow from kinds and attributes alone.

        Raises:
            KindError: an input is of a kind that the operator does not take.
        """
        self._check_kinds(kinds)
        return self._kinds(kinds, attributes)

    def _infer(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        if self.types_rule is not None:
            with self._named():
                return tuple(self.types_rule(types, attributes))
        self._check_kinds(types)
        if self.shape_rule is None or self.dtype_rule is None:
            result = self._check_and_trace(types, attributes)
        else:
            shapes = self._shapes(types, attributes)
            if shapes is None:
                raise ShapeError(
                    f"{self.operator.name}: its shape rule must tell a shape, got None"
                )
            result = tuple(
                VarType(shape, dtype, weak=weak)
                for shape, (dtype, weak) in zip(
                    shapes, self._dtypes(types, attributes), strict=True
                )
            )
        return self._with_kinds(result, types, attributes)

    # Kinds

    def _check_kinds(self, given: Sequence[VarType | VarKind | None]) -> None:
        """An operator takes dense arrays, and rows where it has a kernel or a rule for them."""
        by_rows = self.operator.row_slots
        if self.kind_rule is not None and not by_rows:
            return
        for i, one in enumerate(given):
            slot = self.operator.slot_of(i)
            kind = one.kind if isinstance(one, VarType) else one
            if kind is None or slot.implicit or kind is VarKind.LOD_TENSOR:
                continue
            if kind is VarKind.SELECTED_ROWS and slot.name in by_rows:
                continue
            cure = (
                "; get_tensor_from_selected_rows makes a dense array of it, and where a gradient "
                "is row-sparse because a lookup says sparse=True, sparse=False does"
            )
            raise KindError(
                f"{self.operator.name}: slot {slot.name!r} must hold a dense array, got {one}"
                + (cure if kind is VarKind.SELECTED_ROWS else "")
            )

    def _with_kinds(
        self, result: Types, types: tuple[VarType | None, ...], attributes: Attributes
    ) -> Types:
        given = tuple(None if t is None else t.kind for t in types)
        kinds = self._kinds(given, attributes)
        traced = self.shape_rule is None or self.dtype_rule is None
        plain = self.kind_rule is None or (self.operator.row_slots and _all_dense(given))
        real = result if traced or plain else self._traced(types, attributes)
        why = "dense by default" if self.kind_rule is None else "as its kind rule tells"
        for name, one, kind in zip(self.operator.outputs, real, kinds, strict=True):
            if one.kind is not kind:
                raise KindError(
                    f"{self.operator.name}: output {name!r} must be of the kind {kind.value}, "
                    f"{why}, got {one.kind.value} from the kernel"
                )
        return tuple(
            VarType(one.shape, one.dtype, kind, one.weak)
            for one, kind in zip(result, kinds, strict=True)
        )

    def _kinds(
        self, given: tuple[VarKind | None, ...], attributes: Attributes
    ) -> tuple[VarKind, ...]:
        """What the kind rule says of each output; dense without one.

        An operator that has a kernel for rows makes dense results of dense inputs.
        """
        count = len(self.operator.outputs)
        if self.kind_rule is None or (self.operator.row_slots and _all_dense(given)):
            return (VarKind.LOD_TENSOR,) * count
        with self._named():
            said = self.kind_rule(given, attributes)
        kinds = said if isinstance(said, tuple) else (said,) * count
        if len(kinds) != count or not all(isinstance(kind, VarKind) for kind in kinds):
            raise KindError(
                f"{self.operator.name}: its kind rule must tell a VarKind for each of {count} "
                f"outputs, got {said!r}"
            )
        return kinds

    # Shapes and dtypes

    def _shapes(
        self, types: tuple[VarType | None, ...], attributes: Attributes
    ) -> list[Shape] | None:
        """What the shape rule says; None if it leaves that to the kernel."""
        assert self.shape_rule is not None
        with self._named():
            said = self.shape_rule(_shapes_of(types), attributes)
        if said is None:
            return None
        return [tuple(shape) for shape in (said if self.several else (said,))]

    def _dtypes(
        self, types: tuple[VarType | None, ...], attributes: Attributes
    ) -> Sequence[tuple[DType, bool]]:
        assert self.dtype_rule is not None
        with self._named():
            said = self.dtype_rule(types, attributes)
        if isinstance(said, list):
            return [_strong(one) for one in said]
        return [_strong(said)] * len(self.operator.outputs)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the operator's name in front of what a rule says is wrong."""
        try:
            yield
        except SymopError as error:
            raise type(error)(f"{self.operator.name}: {error}") from error.__cause__
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{self.operator.name}: {error}") from error

    def _check_and_trace(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        """What tracing the kernel finds; a shape rule without a dtype rule checks it."""
        expected = None if self.shape_rule is None else self._shapes(types, attributes)
        found = self._traced(types, attributes)
        if expected is not None and [one.shape for one in found] != expected:
            raise ShapeError(
                f"{self.operator.name}: the kernel's result must be of the shape that the shape "
                f"rule tells, {expected}, got {[one.shape for one in found]}"
            )
        return found

    def _traced(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        """The types of what the kernel returns."""
        arrays = [given for given in types if given is not None and given is not TRAINING_TYPE]

        def run(*values: Any) -> Any:
            supply = iter(values)
            inputs = [
                None if given is None else False if given is TRAINING_TYPE else next(supply)
                for given in types
            ]
            return self.operator.run(tuple(inputs), attributes)

        try:
            result = jax.eval_shape(run, *[abstract(given) for given in arrays])
        except SymopError:
            raise
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            given = ", ".join("absent" if t is None else str(t) for t in types)
            wrong = (
                DTypeError if "dtype" in str(error) and "shape" not in str(error) else ShapeError
            )
            reason = str(error).splitlines()[0]
            raise wrong(
                f"{self.operator.name}: the inputs must fit together ({reason}), got {given}"
            ) from error
        return self._types_of(result)

    def _types_of(self, result: Any) -> Types:
        """The types of what a kernel returned while it was traced."""
        names, owner = self.operator.outputs, self.operator.name
        results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if isinstance(result, (tuple, list)) is not self.several or len(results) != len(names):
            raise ShapeError(
                f"{owner}: the kernel must return "
                + (f"a tuple ({', '.join(names)})" if self.several else "one array")
                + f", got {type(result).__name__}"
                + (f" of {len(results)}" if isinstance(result, (tuple, list)) else "")
            )
        return tuple(_traced_type(owner, one) for one in results)

    def complete(
        self,
        types: tuple[VarType | None, ...],
        attributes: Attributes,
        outputs: tuple[VarType | None, ...],
    ) -> dict[int, Shape]:
        """Shapes of inputs that follow from what is known of the others and of the outputs.

        Keys are indices into the flat inputs. Empty where nothing follows.
        """
        if self.complete_rule is None:
            return {}
        with self._named():
            said = self.complete_rule(_shapes_of(types), attributes, _shapes_of(outputs))
        found: dict[int, Shape] = {}
        for slot, shape in (said or {}).items():
            start = self.operator.slot_index[slot]
            shapes = shape if self.operator.slots[start].variadic else [shape]
            for i, one in enumerate(shapes):
                if one is not None:
                    found[start + i] = tuple(one)
        return found


class _OverAll:
    """A rule that receives all present inputs alike instead of by name."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, inputs: Inputs, attributes: Attributes) -> Any:
        del attributes
        return self.function(*[one for one in inputs if one is not None])


def _over_all(rule: Callable[..., Any]) -> bool:
    first = next(iter(inspect.signature(rule).parameters.values()), None)
    return (
        first is not None
        and first.kind is first.VAR_POSITIONAL
        and first.name in ("types", "shapes")
    )


def _over_all_completion(owner: Declared, completes: Callable[..., Any]) -> Callable[..., Any]:
    """``completes(shapes, out)`` in the form of a rule that names slots."""

    def complete(inputs: Inputs, attributes: Attributes, outputs: Inputs) -> dict[str, Any]:
        del attributes
        said = completes(inputs, outputs[0])
        fixed = len(owner.slots) - owner.slots[-1].variadic
        found = {slot.name: one for slot, one in zip(owner.slots[:fixed], said, strict=False)}
        if owner.slots[-1].variadic:
            found[owner.slots[-1].name] = said[fixed:]
        return found

    return complete


def _all_dense(kinds: Sequence[VarKind | None]) -> bool:
    return all(kind in (None, VarKind.LOD_TENSOR) for kind in kinds)


def _strong(said: Any) -> tuple[DType, bool]:
    return said if isinstance(said, tuple) else (np.dtype(said), False)


def _traced_type(owner: str, one: Any) -> VarType:
    if isinstance(one, (SelectedRows, TensorArray)):
        return one.type
    if not hasattr(one, "dtype") or not hasattr(one, "weak_type"):
        raise DTypeError(f"{owner}: the kernel must return arrays, got {type(one).__name__}")
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        return KEY_TYPE
    return VarType(tuple(one.shape), np.dtype(one.dtype), weak=one.weak_type)


def type_of(value: Any) -> VarType:
    """The type of a JAX value, tracer, NumPy array or Python number."""
    if isinstance(value, (SelectedRows, TensorArray)):
        return value.type
    seen = jax.typeof(value)
    if jnp.issubdtype(seen.dtype, jax.dtypes.prng_key):
        return VarType(tuple(seen.shape), KEY_TYPE.dtype, VarKind.RANDOM_KEY)
    return VarType(tuple(seen.shape), np.dtype(seen.dtype), weak=bool(seen.weak_type))


def _shapes_of(types: Sequence[VarType | None]) -> tuple[Shape | None, ...]:
    return tuple(None if given is None else given.shape for given in types)


def abstract(given: VarType) -> Any:
    """What JAX traces for a value of type ``given``."""
    if given.kind is VarKind.RANDOM_KEY:
        return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), given.shape))
    struct: Any = jax.ShapeDtypeStruct
    if given.kind is VarKind.SELECTED_ROWS:
        rows = struct((_SOME_ROWS,), np.dtype(np.int32))
        values = struct((_SOME_ROWS, *given.shape[1:]), given.dtype)
        return SelectedRows(rows, values, given.shape[0])
    if given.kind is VarKind.LOD_TENSOR_ARRAY:
        length = struct((), np.dtype(np.int32))
        return TensorArray(struct(given.shape, given.dtype), length)
    return struct(given.shape, given.dtype, weak_type=given.weak)


def promoted(*types: VarType) -> tuple[DType, bool]:
    """The dtype that JAX promotes values of ``types`` to, and whether it is weak."""
    stand_ins = [_stand_in(one) for one in types]
    dtype, weak = jax.dtypes.result_type(*stand_ins, return_weak_type_flag=True)
    return np.dtype(dtype), weak


def _stand_in(given: VarType) -> Any:
    """A weak type promotes as the Python scalar it came from."""
    if not given.weak:
        return given.dtype
    return {"i": 0, "u": 0, "f": 0.0, "c": 0j}.get(given.dtype.kind, given.dtype)
