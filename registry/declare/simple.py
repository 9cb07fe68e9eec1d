"""register_simple_op: operators of up to two inputs, declared by plain functions of arrays."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

from registry import platforms
from registry.cases import Case, Misuse
from registry.declare.environment import requested
from registry.declare.simple_operators import Made, backward_name, build
from registry.declare.simple_parts import ORDERS, Device, Part, Settings, read_part
from registry.errors import ArgumentError, DeclarationError, RegistrationError, nearest
from registry.operator import Derivative, Operator
from registry.table import find, register, unregister

CALL_KEYWORDS = ("name", "out", "req")
"""What every call takes: the name of a node, and what ``so.nd`` does with a result."""


def register_simple_op(name: str, *, replace: bool = False) -> "SimpleOp":
    """Begin to declare the operator called ``name``: a source, or one of one or two inputs.

    Each call that follows says more of it. As soon as its function is set, the operator exists,
    for arrays (``so.nd``) and for symbols (``so.sym``) alike. A call that fails changes nothing.

    Args:
        name: the operator's name.
        replace: replace an operator of that name on purpose.

    Raises:
        RegistrationError: the name is taken.

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
    """A declaration in progress; ``register_simple_op`` begins one."""

    def __init__(self, name: str, *, replace: bool = False) -> None:
        if not name.isidentifier() or name.startswith("_"):
            raise RegistrationError(
                f"{name}: an operator's name must be a Python identifier that does not begin with _"
            )
        self._replace = replace
        self._settings = Settings(name)
        self._made: Made | None = None
        self._require_free()

    @property
    def name(self) -> str:
        """The operator's name."""
        return self._settings.name

    @property
    def operator(self) -> Operator:
        """The operator as it is declared so far.

        Raises:
            DeclarationError: its function is not set yet.
        """
        if self._made is None:
            raise DeclarationError(f"{self.name}: set_function must come first, got no function")
        return self._made.forward

    # Functions ---------------------------------------------------------------------------------

    def set_function(
        self, function: Callable[..., Any], inplace: str = "none", *, device: Device = None
    ) -> Self:
        """Set what computes the operator: from JAX arrays, and ``env``, to one array.

        Args:
            function: its parameters are the inputs, none, one or two, and ``env`` if it needs that.
            inplace: ``in_out`` (of one input) or ``lhs_out`` (of two) permits that the result takes
                the place of the first input, which the gradient then must not need; with a
                function for each of several devices all must permit it.
            device: the platform that it is for: ``cpu``, ``gpu``, ``cuda``, ``rocm``, ``tpu``; None
                for every one without a function of its own, where otherwise the first one runs.

        Raises:
            DeclarationError: the function is set already, or does not fit what is said before.
        """
        part = read_part(self.name, "function", function, inplace)
        added = self._added("function", self._settings.functions, device, part)
        return self._changed(functions=added)

    def set_gradient(
        self,
        gradient: Callable[..., Any],
        inplace: str = "none",
        *,
        device: Device = None,
        differs: bool = False,
    ) -> Self:
        """Set what computes the gradient: one array for each input.

        It is an operator itself, ``_backward_<name>``, which is differentiated to every order.

        Args:
            gradient: it names what it needs, and nothing else is kept for it: ``out_grad``,
                ``out_value``, the inputs (``in_data0``, ``in_data1``, ``lhs``, ``rhs``, or as the
                function calls them), and ``env``.
            inplace: ``out_in`` (of one input) or ``out_lhs`` (of two) permits that the gradient of
                the first input takes the place of ``out_grad``.
            device: the platform that it is for, as in ``set_function``.
            differs: the gradient is not that of the function, on purpose: no proof compares them.

        Raises:
            DeclarationError: the gradient is set already, or names something that does not exist.
        """
        part = read_part(self.name, "gradient", gradient, inplace)
        added = self._added("gradient", self._settings.gradients, device, part)
        return self._changed(gradients=added, differs=differs or self._settings.differs)

    def set_zero_gradient(self, reason: str) -> Self:
        """Say that the derivative is zero wherever it exists, and why."""
        return self._underived(Derivative.ZERO, reason)

    def set_no_gradient(self, reason: str) -> Self:
        """Say that the operator has no derivative by its nature, and why."""
        return self._underived(Derivative.UNDEFINED, reason)

    def set_shape_function(self, shape: Callable[..., Any]) -> Self:
        """Set the shape of the result: from the inputs' shapes, tuples of ints, and ``env``.

        Without it the inputs and the result have one shape; a source has that of its result.
        """
        return self._changed(shape=read_part(self.name, "shape function", shape))

    def _added(self, what: str, parts: Any, device: Device, part: Part) -> dict[Device, Part]:
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

    def set_enable_scalar(self, enable: bool = True, *, order: str = "array_scalar") -> Self:
        """Let a call take a number, ``env.scalar``; ``order`` tells where it stands.

        Args:
            enable: whether it takes one.
            order: ``array_scalar`` for ``op(a, 2.0)``, ``scalar_array`` for ``op(2.0, a)``.

        Raises:
            RegistrationError: the operator takes keywords.
        """
        if order not in ORDERS:
            raise ArgumentError(
                f"{self.name}: order must be one of {', '.join(ORDERS)}, got "
                f"{order!r}{nearest(order, ORDERS)}"
            )
        if enable and self._settings.keywords:
            raise RegistrationError(self._exclusive())
        return self._changed(order=order if enable else None)

    def set_enable_kwargs(self, enable: bool = True, /, **declared: Any) -> Self:
        """Let a call take keywords, ``env.kwargs``: ``axis=(int, 0)``, or without default ``int``.

        Raises:
            RegistrationError: the operator takes a scalar.
        """
        if enable != bool(declared):
            raise ArgumentError(
                f"{self.name}: set_enable_kwargs must declare each keyword with its type, "
                f"axis=(int, 0) or axis=int, got {', '.join(declared) or 'none'}"
            )
        if enable and self._settings.order is not None:
            raise RegistrationError(self._exclusive())
        return self._changed(keywords={k: self._declared(k, v) for k, v in declared.items()})

    def set_resource_request(self, requests: str | Sequence[str]) -> Self:
        """Request resources, ``env.resource``: ``random``, ``temp_space``, or a list of them."""
        return self._changed(requests=requested(self.name, requests))

    def _declared(self, keyword: str, given: Any) -> tuple[Any, ...]:
        if keyword in CALL_KEYWORDS:
            raise ArgumentError(
                f"{self.name}: a keyword must not be called {keyword!r}, which means something "
                "else in a call"
            )
        if not isinstance(given, tuple):
            return (given,)
        if len(given) != 2:
            raise ArgumentError(
                f"{self.name}: keyword {keyword!r} must be declared by its type and its default, "
                f"got {given!r}"
            )
        return given

    def _exclusive(self) -> str:
        return f"{self.name}: an operator must take a scalar or keywords, got both"

    # What stands beside ------------------------------------------------------------------------

    def describe(self, text: str) -> Self:
        """Set the text of the operator's page."""
        return self._changed(text=text)

    def add_cases(self, *cases: Case | Misuse, reference: Callable[..., Any] | None = None) -> Self:
        """Add sample calls and misuses, and the same function in NumPy, which drive its proofs."""
        wrong = [one for one in cases if not isinstance(one, (Case, Misuse))]
        if wrong:
            raise ArgumentError(
                f"{self.name}: a case must be made by case() or misuse(), got {wrong[0]!r}"
            )
        known = self._settings
        return self._changed(cases=(*known.cases, *cases), reference=reference or known.reference)

    def __repr__(self) -> str:
        made = "no function yet" if self._made is None else self._made.forward.signature()
        return f"<simple operator {self.name}: {made}>"

    # Registration ------------------------------------------------------------------------------

    def _changed(self, **changes: Any) -> Self:
        """Register the operator anew, with ``changes``; if that fails all stays as it was."""
        settings = dataclasses.replace(self._settings, **changes)
        made = build(settings)
        if made is not None:
            if self._made is None:
                self._require_free()
            _enter(made)
        self._settings, self._made = settings, made
        return self

    def _require_free(self) -> None:
        for name in (self.name, backward_name(self.name)):
            owner = find(name)
            if owner is not None and not (self._replace and owner.name == name):
                raise RegistrationError(
                    f"{name}: an operator must be registered once, got a second one"
                    + (
                        "; pass replace=True to replace it"
                        if owner.name == name
                        else f"; the name belongs to {owner.name}"
                    )
                )


def _enter(made: Made) -> None:
    register(made.forward, replace=True)
    if made.backward is None:
        unregister(backward_name(made.forward.name))
    else:
        register(made.backward, replace=True)
