"""What an eager array has to do with gradients: where one goes, and the one that it keeps."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from registry.errors import GradientError
from registry.types import OpReqType
from symop.array_protocols import Convertible
from symop.entries import Gradient, Source
from symop.recording import settle
from symop.requesting import as_request
from symop.segments import Segment

_GRAD_REQS = (OpReqType.NULL, OpReqType.WRITE, OpReqType.ADD)
"""What a backward pass may do with a gradient."""


class Differentiable(Convertible):
    """An array that remembers how it was computed, and may have a gradient of its own."""

    __slots__ = ("_grad", "_link")
    pass_back: ClassVar[Callable[..., None]]
    _value: Any
    _segment: Segment | None
    _index: int
    _link: Source | tuple[()]
    _grad: Gradient | None

    @abstractmethod
    def __init__(self, data: Any) -> None:
        """An array of ``data``."""

    # Where a gradient goes

    @property
    @abstractmethod
    def source(self) -> Source:
        """Where a gradient by this array goes: to the tape, to the array itself, or nowhere."""

    @property
    def is_recorded(self) -> bool:
        """Whether a gradient may flow through it: it is attached, or computed from such arrays."""
        return self.source is not None or (self._value is None and self.flows)

    @property
    def flows(self) -> bool:
        """Whether it is a value of a segment that did not run yet and a derivative may flow by."""
        segment = self._segment
        if segment is None or not segment.taped:
            return False
        return self._link is None and segment.flows(self._index)

    # Its own gradient

    def attach_grad(self, grad_req: str | OpReqType = "write") -> None:
        """Make room for a gradient, which ``backward()`` writes, adds to, or leaves (``null``).

        How the array was computed is forgotten: a backward pass ends here. Copies, also those by
        ``copy.deepcopy`` and ``pickle``, and what goes through ``jax.jit``, have no gradient of
        their own: mark them anew.

        Raises:
            ArgumentError: there is no such request.
            GradientError: the dtype has no derivatives.
        """
        req = as_request("attach_grad", grad_req, _GRAD_REQS)
        if not self.type.differentiable:
            raise GradientError(f"attach_grad: the dtype must be floating, got {self.dtype.name}")
        settle()
        self._link = None
        self._grad = None if req is OpReqType.NULL else Gradient(req)

    @property
    def grad(self) -> Self | None:
        """The gradient that the last backward pass left; None without ``attach_grad()``."""
        kept = self._grad
        if kept is None:
            return None
        gradient: Self | None = kept.value
        if gradient is None:
            value = self.value
            dense = isinstance(value, jax.Array)  # whose place the zeros share
            gradient = type(self)(
                jnp.zeros_like(value) if dense else jnp.zeros(self.shape, self.dtype)
            )
            if not kept.outlives(gradient.value):
                kept.value = gradient
        return gradient

    @grad.setter
    def grad(self, gradient: Self | None) -> None:
        if self._grad is None:
            if gradient is not None:
                raise GradientError("grad: there must be room for it, made by attach_grad()")
            return
        if gradient is not None and (gradient.shape != self.shape or gradient.dtype != self.dtype):
            raise GradientError(f"grad: it must be of type {self.type}, got {gradient.type}")
        if gradient is not None:
            self._grad.require_lasting(gradient.value)
        self._grad.value = gradient

    @property
    def grad_req(self) -> OpReqType:
        """What a backward pass does with the gradient."""
        return OpReqType.NULL if self._grad is None else self._grad.req

    def zero_grad(self) -> None:
        """Set the gradient to zero."""
        if self._grad is not None:
            self._grad.value = None

    def detach(self) -> Self:
        """The same value, of which no record knows how it was computed."""
        return type(self)(self.value)

    def backward(
        self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """``autograd.backward`` of this array."""
        type(self).pass_back(self, out_grad, retain_graph, train_mode)
