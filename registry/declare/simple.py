"""register_simple_op: operators with up to two inputs, declared by plain functions of arrays."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from registry.cases import Case, Misuse
from registry.declare.environment import requested
from registry.declare.simple_operators import OperatorPair, backward_name, build, is_own_backward
from registry.declare.simple_parts import ORDERS, Device, SimplePart, SimpleSettings, read_part
from registry.errors import (
    ArgumentError,
    AttributeTypeError,
    AttributeValueError,
    DeclarationError,
    RegistrationError,
    nearest,
)
from registry.operator import platforms
from registry.operator.attributes import REQUIRED, make_attribute
from registry.operator.operator import Derivative, Operator
from registry.table import find, is_declared_again, register, unregister

CALL_KEYWORDS = ("name", "out", "req", "self")
"""Keywords of every call: the node's name, the handling of results in ``so.nd``, the operator."""
P = ParamSpec("P")
S = TypeVar("S", bound="SimpleOp")


def _setter(method: Callable[Concatenate[S, P], S]) -> Callable[Concatenate[S, P], S]:
    """Wraps ``method`` to undo the declaration if it fails before the operator was used.

    Chains of setters are one expression: a failure in the middle of a chain leaves no handle to
    repair the operator with, only a partly declared operator.
    """

    @functools.wraps(method)
    def setter(self: S, /, *args: P.args, **kwargs: P.kwargs) -> S:
        self._require_alive()
        try:
            return method(self, *args, **kwargs)
        except Exception:
            self._failed()
            raise

    return setter


def register_simple_op(name: str, *, replace: bool = False) -> "SimpleOp":
    """Starts the declaration of the operator called ``name``, with no, one or two inputs.

    Each subsequent call adds to the declaration. Once its function is set, the operator exists, for
    arrays (``so.nd``) and for symbols (``so.sym``) alike.

    A call that fails changes nothing, if the operator was used before or read from ``operator``.
    Otherwise it undoes the whole declaration: the operator that was replaced is restored, or the
    name is free, and the declaration must be started again.

    Args:
        name: the operator's name.
        replace: whether to replace an operator of that name.

    Raises:
        RegistrationError: the name is taken, or is not a legal operator name.

    Example:
        >>> import jax.numpy as jnp
        >>> from registry import register_simple_op
        >>> simple = (
        ...     register_simple_op("doc_power")
        ...     .set_function(lambda src, env: src**env.scalar)
        ...     .set_gradient(
        ...         lambda out_grad, in_data0, env: (
        ...             out_grad * env.scalar * in_data0 ** (env.scalar - 1)
        ...         )
        ...     )
        ...     .set_enable_scalar(True)
        ...     .describe("``src ** scalar``.")
        ... )
        >>> simple.operator(jnp.array([1.0, 2.0]), 3.0).tolist()
        [1.0, 8.0]
    """
    return SimpleOp(name, replace=replace)


class SimpleOp:
    """A declaration in progress, started by ``register_simple_op``."""

    def __init__(self, name: str, *, replace: bool = False) -> None:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise RegistrationError(
                f"{name}: an operator's name must be a Python identifier that does not begin with "
                f"_, got {name!r}"
            )
        self._replace = replace or is_declared_again(name)
        self._settings = SimpleSettings(name)
        self._operators: OperatorPair | None = None
        self._replaced: tuple[Operator | None, Operator | None] = (None, None)
        self._is_alive = True
        self._require_free(name)

    @property
    def name(self) -> str:
        """The operator's name."""
        return self._settings.name

    @property
    def operator(self) -> Operator:
        """The operator as declared so far.

        Raises:
            DeclarationError: its function is not set yet.
            RegistrationError: the declaration failed and was undone.
        """
        self._require_alive()
        if self._operators is None:
            raise DeclarationError(f"{self.name}: set_function must come first, got no function")
        self._settings.use.began = True
        return self._operators.forward

    # Functions ---------------------------------------------------------------------------------

    @_setter
    def set_function(
        self, function: Callable[..., Any], inplace: str = "none", *, device: Device = None
    ) -> Self:
        """Sets the function that computes the operator: from JAX arrays, and ``env``, to one array.

        JAX traces it, so it must use ``jnp`` and must not branch on the values of an array.

        Args:
            function: its parameters are the inputs (none, one or two), and ``env`` if needed.
            inplace: ``in_out`` (for one input) or ``lhs_out`` (for two) permits the result to reuse
                the memory of the first input, which the gradient then must not read; functions for
                several devices must all permit it.
            device: the platform of the function: ``cpu``, ``gpu``, ``cuda``, ``rocm``, ``tpu``;
                None for every platform without a function. Without a function for None, the first
                one is the default.

        Raises:
            DeclarationError: the function is set already, or contradicts earlier declarations.
        """
        part = read_part(self.name, "function", function, inplace)
        added = self._added("function", self._settings.functions, device, part)
        return self._changed(functions=added)

    @_setter
    def set_gradient(
        self,
        gradient: Callable[..., Any],
        inplace: str = "none",
        *,
        device: Device = None,
        differs: bool = False,
    ) -> Self:
        """Sets the function of the gradient: one array for each input, of that input's shape.

        Each array is cast to the dtype of the input. The function becomes an operator,
        ``_backward_<name>``, which is itself differentiable to every order.

        Args:
            gradient: its parameters name the residuals that it needs: ``out_grad``, ``out_value``,
                the inputs (``in_data0``, ``in_data1``, ``lhs``, ``rhs``, or the function's names),
                and ``env``.
            inplace: ``out_in`` (for one input) or ``out_lhs`` (for two) permits the gradient of the
                first input to reuse the memory of ``out_grad``, where ``so.nd`` calls the
                gradient's operator; in a compiled program XLA decides on memory reuse.
            device: the platform of the function, as in ``set_function``.
            differs: whether the gradient deliberately differs from that of the function: tests do
                not compare them.

        Raises:
            DeclarationError: the gradient is set already, or has an unknown parameter.
        """
        part = read_part(self.name, "gradient", gradient, inplace)
        added = self._added("gradient", self._settings.gradients, device, part)
        return self._changed(gradients=added, differs=differs or self._settings.differs)

    @_setter
    def set_zero_gradient(self, reason: str) -> Self:
        """Declares that the derivative is zero wherever it exists, and the reason."""
        return self._underived(Derivative.ZERO, reason)

    @_setter
    def set_no_gradient(self, reason: str) -> Self:
        """Declares that the operator has no derivative by its nature, and the reason."""
        return self._underived(Derivative.UNDEFINED, reason)

    @_setter
    def set_shape_function(self, shape: Callable[..., Any]) -> Self:
        """Sets the shape of the result: from the inputs' shapes, tuples of ints, and ``env``.

        Without it, the inputs and the result have one shape; without inputs, the function
        determines the shape.
        """
        return self._changed(shape=read_part(self.name, "shape function", shape))

    def _added(
        self, what: str, parts: Any, device: Device, part: SimplePart
    ) -> dict[Device, SimplePart]:
        if device is None and None in parts:
            raise DeclarationError(f"{self.name}: the {what} is declared twice")
        own: dict[str, Any] = {}
        for one in (*parts, device):
            if one is not None:
                own = platforms.added(self.name, own, one, part.function)
        return {**parts, device: part}

    def _underived(self, derivative: Derivative, reason: str) -> Self:
        if self._settings.derivative is not None:
            raise DeclarationError(f"{self.name}: its derivative is declared twice")
        return self._changed(derivative=(derivative, reason))

    # Environment -------------------------------------------------------------------------------

    @_setter
    def set_enable_scalar(self, enable: bool = True, *, order: str = "array_scalar") -> Self:
        """Enables a number in calls, ``env.scalar``, at the position given by ``order``.

        Args:
            enable: whether calls take a number.
            order: ``array_scalar`` for ``op(a, 2.0)``, ``scalar_array`` for ``op(2.0, a)``.

        Raises:
            RegistrationError: the operator has keywords.
        """
        if order not in ORDERS:
            raise ArgumentError(
                f"{self.name}: order must be one of {', '.join(ORDERS)}, got "
                f"{order!r}{nearest(order, ORDERS)}"
            )
        if enable and self._settings.keywords:
            raise RegistrationError(self._exclusive())
        return self._changed(order=order if enable else None)

    @_setter
    def set_enable_kwargs(self, enable: bool = True, /, **declared: Any) -> Self:
        """Enables keywords, ``env.kwargs``: ``axis=(int, 0)``, or ``axis=int`` without a default.

        Raises:
            RegistrationError: the operator has a scalar.
        """
        if enable != bool(declared):
            raise ArgumentError(
                f"{self.name}: set_enable_kwargs must declare each keyword with its type, "
                f"axis=(int, 0) or axis=int, got {', '.join(declared) or 'none'}"
            )
        if enable and self._settings.order is not None:
            raise RegistrationError(self._exclusive())
        return self._changed(keywords={k: self._declared(k, v) for k, v in declared.items()})

    @_setter
    def set_resource_request(self, requests: str | Sequence[str]) -> Self:
        """Requests resources, ``env.resource``: ``random``, ``temp_space``, or a list of them."""
        return self._changed(requests=requested(self.name, requests))

    def _declared(self, keyword: str, declaration: Any) -> tuple[Any, ...]:
        if keyword in CALL_KEYWORDS:
            raise ArgumentError(
                f"{self.name}: a keyword must not be called {keyword!r}, which means something "
                "else in a call"
            )
        if not isinstance(declaration, tuple):
            return (declaration,)
        if len(declaration) != 2:
            raise ArgumentError(
                f"{self.name}: keyword {keyword!r} must be declared by its type and its default, "
                f"got {declaration!r}"
            )
        self._require_default(keyword, *declaration)
        return declaration

    def _require_default(self, keyword: str, annotation: Any, default: Any) -> None:
        try:
            attribute = make_attribute(keyword, annotation, REQUIRED)
        except TypeError:
            return  # the operator rejects the type, and lists the legal ones
        try:
            attribute.canonical(default, self.name)
        except (AttributeTypeError, AttributeValueError) as error:
            of_default = str(error).replace(f"attribute {keyword!r}", f"default of {keyword!r}", 1)
            raise type(error)(of_default) from None

    def _exclusive(self) -> str:
        return f"{self.name}: an operator must take a scalar or keywords, got both"

    # Documentation and tests -------------------------------------------------------------------

    @_setter
    def describe(self, text: str) -> Self:
        """Sets the text of the operator's page."""
        return self._changed(text=text)

    @_setter
    def add_cases(self, *cases: Case | Misuse, reference: Callable[..., Any] | None = None) -> Self:
        """Adds sample calls and misuses for tests, and optionally the same function in NumPy."""
        wrong = [one for one in cases if not isinstance(one, (Case, Misuse))]
        if wrong:
            raise ArgumentError(
                f"{self.name}: a case must be made by case() or misuse(), got {wrong[0]!r}"
            )
        known = self._settings
        return self._changed(cases=(*known.cases, *cases), reference=reference or known.reference)

    def __repr__(self) -> str:
        signature = (
            "no function yet" if self._operators is None else self._operators.forward.signature()
        )
        return f"<simple operator {self.name}: {signature if self._is_alive else 'taken back'}>"

    # Registration ------------------------------------------------------------------------------

    def _changed(self, **changes: Any) -> Self:
        """Registers the operator again, with ``changes``; on failure, nothing changes."""
        settings = dataclasses.replace(self._settings, **changes)
        operators = build(settings)
        if operators is not None:
            self._require_own(operators)
            if self._operators is None:
                self._replaced = (find(self.name), self._own_backward())
            self._enter(operators)
        self._settings, self._operators = settings, operators
        return self

    def _require_own(self, operators: OperatorPair) -> None:
        """Requires that this declaration may replace the operators that currently have its names.

        Raises:
            RegistrationError: another declaration has registered an operator there.
        """
        if self._operators is None:
            self._require_free(self.name)
        elif find(self.name) is not self._operators.forward:
            raise RegistrationError(
                f"{self.name}: the operator must be the one that this declaration made, but it was "
                "replaced since"
            )
        if operators.backward is not None and self._own_backward() is None:
            self._require_free(operators.backward.name)

    def _own_backward(self) -> Operator | None:
        """Returns the gradient's operator in the table, if this declaration may replace it."""
        backward = find(backward_name(self.name))
        if backward is None or (
            self._operators is not None and backward is self._operators.backward
        ):
            return backward
        return backward if self._replace and is_own_backward(backward) else None

    def _require_free(self, name: str) -> None:
        owner = find(name)
        is_replaceable = owner is not None and owner.name == name == self.name
        if owner is not None and not (self._replace and is_replaceable):
            raise RegistrationError(
                f"{name}: an operator must be registered once, got a second one"
                + (
                    "; pass replace=True to replace it"
                    if is_replaceable
                    else f"; the name belongs to {owner.name}"
                )
            )

    def _enter(self, operators: OperatorPair) -> None:
        old = self._own_backward()
        register(*[one for one in operators if one is not None], replace=True)
        if operators.backward is None and old is not None:
            unregister(old.name)

    def _require_alive(self) -> None:
        if not self._is_alive:
            raise RegistrationError(
                f"{self.name}: the declaration failed and was reverted; start again with "
                "register_simple_op"
            )

    def _failed(self) -> None:
        """Restores the previous meaning of the names, unless the operator is in use."""
        if self._settings.use.began:
            return
        self._is_alive = False
        operators, self._operators = self._operators, None
        if operators is None or find(self.name) is not operators.forward:
            return
        before = [one for one in self._replaced if one is not None]
        if before:
            register(*before, replace=True)
        for one in operators:
            if one is not None and find(one.name) is one:
                unregister(one.name)
