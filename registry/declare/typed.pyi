"""``registry.op`` as type checkers see it: an operator keeps the signature of its kernel."""

# Of overloads, the first one that fits counts.
# pyright: reportOverlappingOverload=false

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from jax.typing import ArrayLike

from registry.operator.operator import Operator
from registry.operator.signature import Omitted
from registry.values import SelectedRows
from registry.var import Var

P = ParamSpec("P")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
V = TypeVar("V", bound=Var)

class TypedOperator(Operator, Generic[P, Result_co]):
    """An operator whose kernel has the parameters ``P``.

    A call on a symbol, or another value that is not an array, returns a value of the same kind.
    A kernel annotates its inputs as arrays, which other values are not. Therefore the arguments
    after the first input are checked only if there is no second input, or if all are arrays.
    """

    # Several outputs are one symbol, but a tuple of eager arrays.
    @overload
    def __call__(
        self: TypedOperator[..., tuple[Any, ...]], value: Var, /, *args: Any, **kwargs: Any
    ) -> Any: ...

    # What a call on rows returns depends on the operator's kinds.
    @overload
    def __call__(self, value: SelectedRows, /, *args: Any, **kwargs: Any) -> Any: ...

    # Parameters, states and keys, which calls may omit, follow the first input.
    @overload
    def __call__(
        self: TypedOperator[Concatenate[Any, Omitted, ...], Result_co],
        value: V,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> V: ...
    @overload
    def __call__(
        self: TypedOperator[Concatenate[Any, Omitted, ...], Result_co],
        value: ArrayLike,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Result_co: ...

    # One input. Arrays are no values of the later overloads.
    @overload
    def __call__(
        self: TypedOperator[Concatenate[Any, Rest], Result_co],
        value: V,
        /,
        *args: Rest.args,
        **kwargs: Rest.kwargs,
    ) -> V: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self: TypedOperator[Concatenate[Any, Rest], Result_co],
        value: ArrayLike,
        /,
        *args: Rest.args,
        **kwargs: Rest.kwargs,
    ) -> Result_co: ...
    @overload
    def __call__(
        self, value: V | ArrayLike, /, *args: V | ArrayLike, name: str, **kwargs: Any
    ) -> V: ...

    # Two inputs or more.
    @overload
    def __call__(
        self: TypedOperator[Concatenate[Any, Any, Rest], Result_co],
        first: ArrayLike,
        second: ArrayLike,
        /,
        *args: ArrayLike,
        **kwargs: Any,
    ) -> Result_co: ...
    @overload
    def __call__(
        self: TypedOperator[Concatenate[Any, Any, Rest], Result_co],
        first: V | ArrayLike,
        second: V | ArrayLike,
        /,
        *args: V | ArrayLike,
        **kwargs: Any,
    ) -> V: ...

    # All inputs by name.
    @overload
    def __call__(self, /, **kwargs: Any) -> Any: ...

@overload
def op(kernel: Callable[P, Result], *, replace: bool = False) -> TypedOperator[P, Result]: ...
@overload
def op(
    *, replace: bool = False, **options: Any
) -> Callable[[Callable[P, Result]], TypedOperator[P, Result]]: ...
