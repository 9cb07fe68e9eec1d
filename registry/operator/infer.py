"""Inference of the types of an operator's outputs from those of its inputs, memoized."""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from registry.caches import Memo
from registry.errors import DTypeError, KindError, ShapeError, SymopError
from registry.operator.attributes import Attribute, identity_key
from registry.operator.rule import Rule
from registry.operator.signature import Slot
from registry.types import (
    KEY_TYPE,
    TRAINING_TYPE,
    DType,
    Shape,
    VarKind,
    VarType,
    is_symbolic,
)
from registry.values import SelectedRows, TensorArray
from registry.var import Attributes, Inputs

Types = tuple[VarType, ...]
_MEMO_LIMIT = 2048
_TRIED = [np.dtype(one) for one in (np.float32, np.int32, np.bool_, np.complex64)]
"""The dtypes in which a kernel that rejects its inputs is tried, to name the cause."""
_states: Any = jax
_X64, _PROMOTION = _states.enable_x64, _states.numpy_dtype_promotion
"""The settings of JAX on which types depend."""
_SOME_ROWS = 3
"""Number of rows of a row-sparse input in kernel tracing; types do not depend on it."""


class Inferable(Protocol):
    """The part of an operator's interface that inference uses."""

    name: str
    slots: tuple[Slot, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[str, ...]
    slot_index: dict[str, int]
    row_slots: frozenset[str]

    def slot_of(self, index: int) -> Slot:
        """Returns the slot that a flat input fills."""

    def run(self, inputs: Inputs, attributes: Attributes) -> Any:
        """Runs the kernel on arrays."""


class Inference:
    """Shape, dtype and kind rules of one operator, and their memoized results."""

    def __init__(
        self,
        operator: Inferable,
        shape: Callable[..., Any] | None,
        dtype: Callable[..., Any] | None,
    ) -> None:
        """Initializes the rules; without both of them, the kernel is traced for result types."""
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
        self._memo: Memo[Any, Types] = Memo(_MEMO_LIMIT)

    def of(self, operator: Inferable) -> "Inference":
        """Returns the same rules for ``operator``, which has other outputs."""
        other = copy.copy(self)
        other.operator, other.several, other._memo = (
            operator,
            len(operator.outputs) > 1,
            Memo(_MEMO_LIMIT),
        )
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
        """Returns the types of the outputs.

        Raises:
            ShapeError, DTypeError, KindError: the inputs are incompatible.
        """
        settings = _X64.value, _PROMOTION.value
        key = (types, identity_key(attributes) if attributes else (), settings)
        result = self._memo.get(key)
        if result is None:
            result = self._memo.put(key, self._infer(types, attributes))
        return result

    def kinds(
        self, kinds: tuple[VarKind | None, ...], attributes: Attributes
    ) -> tuple[VarKind, ...]:
        """Returns the kinds of the outputs, which depend only on kinds and attributes.

        Raises:
            KindError: the operator does not accept the kind of an input.
        """
        self._check_kinds(kinds)
        return self._kinds(kinds, attributes)

    @property
    def told(self) -> bool:
        """Whether rules determine all types, without tracing the kernel."""
        both = self.shape_rule is not None and self.dtype_rule is not None
        return both or self.types_rule is not None

    @property
    def slots_of_dtype(self) -> set[int] | None:
        """Indices of the slots that the dtype rule names; None if it may depend on every slot."""
        if self.types_rule is not None:
            return set()
        return self.dtype_rule.input_indices if isinstance(self.dtype_rule, Rule) else None

    def _infer(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        if self.types_rule is not None:
            with self.named():
                return tuple(self.types_rule(types, attributes))
        self._check_kinds(types)
        if _is_polymorphic(types, attributes):  # JAX computes with symbolic lengths, rules do not
            result = self._traced(types, attributes)
        elif self.shape_rule is None or self.dtype_rule is None:
            result = self._check_and_trace(types, attributes)
        else:
            shapes = self._shapes(types, attributes)
            if shapes is None:
                raise ShapeError(
                    f"{self.operator.name}: its shape rule must tell a shape, got None"
                )
            self._require_lengths(shapes)
            result = tuple(
                VarType(shape, dtype, weak=weak)
                for shape, (dtype, weak) in zip(
                    shapes, self._dtypes(types, attributes), strict=True
                )
            )
        return self._with_kinds(result, types, attributes)

    # Kinds

    def _check_kinds(self, inputs: Sequence[VarType | VarKind | None]) -> None:
        """Requires dense inputs unless the operator has a row-sparse kernel or a kind rule."""
        by_rows = self.operator.row_slots
        if self.kind_rule is not None and not by_rows:
            return
        for i, one in enumerate(inputs):
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
        input_kinds = tuple(None if t is None else t.kind for t in types)
        kinds = self._kinds(input_kinds, attributes)
        traced = self.shape_rule is None or self.dtype_rule is None
        plain = self.kind_rule is None or (self.operator.row_slots and _all_dense(input_kinds))
        real = result if traced or plain else self._traced(types, attributes)
        why = "dense by default" if self.kind_rule is None else "by its kind rule"
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
        self, input_kinds: tuple[VarKind | None, ...], attributes: Attributes
    ) -> tuple[VarKind, ...]:
        """Returns the kind rule's result for each output; dense without a rule.

        An operator that has a row-sparse kernel returns dense results for dense inputs.
        """
        count = len(self.operator.outputs)
        if self.kind_rule is None or (self.operator.row_slots and _all_dense(input_kinds)):
            return (VarKind.LOD_TENSOR,) * count
        with self.named():
            said = self.kind_rule(input_kinds, attributes)
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
        """Returns the shape rule's result; None if the rule leaves the shape to the kernel."""
        assert self.shape_rule is not None
        with self.named():
            said = self.shape_rule(_shapes_of(types), attributes)
        if said is None:
            return None
        return [tuple(shape) for shape in (said if self.several else (said,))]

    def _require_lengths(self, shapes: Sequence[Shape]) -> None:
        """Rejects attributes and inputs that would result in an axis of negative length."""
        for shape in shapes:
            if any(length < 0 for length in shape):
                raise ShapeError(
                    f"{self.operator.name}: an axis of the result must have a length of at least "
                    f"0, got shape {shape}"
                )

    def _dtypes(
        self, types: tuple[VarType | None, ...], attributes: Attributes
    ) -> Sequence[tuple[DType, bool]]:
        assert self.dtype_rule is not None
        with self.named():
            said = self.dtype_rule(types, attributes)
        if isinstance(said, list):
            return [_strong(one) for one in said]
        return [_strong(said)] * len(self.operator.outputs)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Prefixes the errors of rules with the operator's name."""
        try:
            yield
        except SymopError as error:
            raise type(error)(f"{self.operator.name}: {error}") from error.__cause__
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{self.operator.name}: {error}") from error

    def _check_and_trace(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        """Traces the kernel, and compares the shapes with those of the shape rule, if any."""
        expected = None if self.shape_rule is None else self._shapes(types, attributes)
        result = self._traced(types, attributes)
        if expected is not None and [one.shape for one in result] != expected:
            raise ShapeError(
                f"{self.operator.name}: the kernel's result must be of the shape that the shape "
                f"rule returns, {expected}, got {[one.shape for one in result]}"
            )
        return result

    def _traced(self, types: tuple[VarType | None, ...], attributes: Attributes) -> Types:
        """Returns the types of the kernel's results, by tracing."""
        arrays = [t for t in types if t is not None and t is not TRAINING_TYPE]

        def run(*values: Any) -> Any:
            supply = iter(values)
            inputs = [
                None if t is None else False if t is TRAINING_TYPE else next(supply) for t in types
            ]
            return self.operator.run(tuple(inputs), attributes)

        try:
            result = jax.eval_shape(run, *[abstract(t) for t in arrays])
        except SymopError:
            raise
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            text = ", ".join("absent" if t is None else str(t) for t in types)
            wrong = DTypeError if self._fit(run, arrays) else ShapeError
            reason = str(error).splitlines()[0]
            raise wrong(
                f"{self.operator.name}: the inputs must fit together ({reason}), got {text}"
            ) from error
        return self._types_of(result)

    def _fit(self, run: Callable[..., Any], types: Sequence[VarType]) -> bool:
        """Whether inputs of these shapes are accepted if all have one dtype."""
        for dtype in _TRIED:
            alike = [
                one if one is KEY_TYPE else VarType(one.shape, dtype, one.kind) for one in types
            ]
            try:
                jax.eval_shape(run, *map(abstract, alike))
            except Exception:  # of any kind: the kernel rejects the types
                continue
            return True
        return False

    def _types_of(self, result: Any) -> Types:
        """Returns the types of the results of a traced kernel."""
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
        """Infers shapes of inputs from the known shapes of the other inputs and of the outputs.

        Keys are indices into the flat inputs. The result is empty if nothing can be inferred.
        """
        if self.complete_rule is None:
            return {}
        with self.named():
            said = self.complete_rule(_shapes_of(types), attributes, _shapes_of(outputs))
        result: dict[int, Shape] = {}
        for slot, shape in (said or {}).items():
            start = self.operator.slot_index[slot]
            shapes = shape if self.operator.slots[start].variadic else [shape]
            for i, one in enumerate(shapes):
                if one is not None:
                    result[start + i] = tuple(one)
        return result


class _OverAll:
    """A rule that receives all present inputs as one sequence rather than by name."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, inputs: Inputs, attributes: Attributes) -> Any:
        del attributes
        return self.function(*[one for one in inputs if one is not None])


_ALL = ("types", "shapes")
"""The names that a rule may give the sequence of all inputs."""


def _over_all(rule: Callable[..., Any]) -> bool:
    """Whether the first parameter is ``*types`` or ``*shapes``."""
    if inspect.isfunction(rule) and not {"__wrapped__", "__signature__"} & vars(rule).keys():
        code = rule.__code__  # a thousand rules are read: twenty times as fast as a signature
        star = not code.co_argcount and code.co_flags & inspect.CO_VARARGS
        return bool(star) and code.co_varnames[code.co_kwonlyargcount] in _ALL
    first = next(iter(inspect.signature(rule).parameters.values()), None)
    return first is not None and first.kind is first.VAR_POSITIONAL and first.name in _ALL


def _over_all_completion(owner: Inferable, completes: Callable[..., Any]) -> Callable[..., Any]:
    """Adapts ``completes(shapes, out)`` to the form of a rule that names slots."""

    def complete(inputs: Inputs, attributes: Attributes, outputs: Inputs) -> dict[str, Any]:
        del attributes
        said = completes(inputs, outputs[0])
        fixed = len(owner.slots) - owner.slots[-1].variadic
        shapes = {slot.name: one for slot, one in zip(owner.slots[:fixed], said, strict=False)}
        if owner.slots[-1].variadic:
            shapes[owner.slots[-1].name] = said[fixed:]
        return shapes

    return complete


def _is_polymorphic(types: Sequence[VarType | None], attributes: Attributes) -> bool:
    """Whether lengths of inputs or in attributes are symbolic (``jax.export``)."""
    if any(one is not None and one.is_polymorphic for one in types):
        return True
    return any(is_symbolic(n) for one in attributes if type(one) is tuple for n in one)


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
    """Returns the type of a JAX value, tracer, NumPy array or Python number."""
    if isinstance(value, (SelectedRows, TensorArray)):
        return value.type
    seen = jax.typeof(value)
    if not isinstance(seen.dtype, np.dtype) and jnp.issubdtype(seen.dtype, jax.dtypes.prng_key):
        return VarType(tuple(seen.shape), KEY_TYPE.dtype, VarKind.RANDOM_KEY)
    return VarType(tuple(seen.shape), np.dtype(seen.dtype), weak=bool(seen.weak_type))


def _shapes_of(types: Sequence[VarType | None]) -> tuple[Shape | None, ...]:
    return tuple(None if t is None else t.shape for t in types)


def abstract(type: VarType) -> Any:
    """Returns the abstract value that JAX traces for a value of ``type``."""
    if type.kind is VarKind.RANDOM_KEY:
        return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), type.shape))
    struct: Any = jax.ShapeDtypeStruct
    if type.kind is VarKind.SELECTED_ROWS:
        rows = struct((_SOME_ROWS,), np.dtype(np.int32))
        values = struct((_SOME_ROWS, *type.shape[1:]), type.dtype)
        return SelectedRows(rows, values, type.shape[0])
    if type.kind is VarKind.LOD_TENSOR_ARRAY:
        length = struct((), np.dtype(np.int32))
        return TensorArray(struct(type.shape, type.dtype), length)
    return struct(type.shape, type.dtype, weak_type=type.weak)
