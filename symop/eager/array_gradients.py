"""Gradients of eager arrays: the source of an array on the tape, and its stored gradient."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from registry.errors import GradientError
from registry.tracebacks import api_class
from registry.types import OpReqType
from symop.eager.array_protocols import Convertible
from symop.eager.recording import flush
from symop.eager.segments import Segment, local
from symop.eager.tape_nodes import Gradient, Source
from symop.runtime.requesting import as_request

_GRAD_REQS = (OpReqType.NULL, OpReqType.WRITE, OpReqType.ADD)
"""The requests for a gradient that a backward pass supports."""


@api_class
class Differentiable(Convertible):
    """An array that records how it was computed and may store a gradient."""

    __slots__ = ("_grad", "_link")
    pass_back: ClassVar[Callable[..., None]]
    _value: Any
    _segment: Segment | None
    _index: int
    _link: Source | tuple[()]
    _grad: Gradient | None

    @abstractmethod
    def __init__(self, data: Any) -> None:
        """Creates an array from ``data``."""

    # Source

    @property
    @abstractmethod
    def source(self) -> Source:
        """The destination of this array's gradient: a tape node, the array itself, or None."""

    @property
    def is_recorded(self) -> bool:
        """Whether a gradient may flow here: the array is marked, or computed from marked ones."""
        return self.source is not None or (self._value is None and self.flows)

    @property
    def is_recorded_now(self) -> bool:
        """Whether a call on this array would be recorded for a backward pass."""
        return local.state.taped and self.is_recorded

    @property
    def flows(self) -> bool:
        """Whether it is a value of a segment that has not run and carries a derivative."""
        segment = self._segment
        if segment is None or not segment.taped:
            return False
        return self._link is None and segment.flows(self._index)

    # Stored gradient

    def attach_grad(self, grad_req: str | OpReqType = "write") -> None:
        """Marks the array, so that ``backward()`` stores its gradient in ``grad``.

        The record of how the array was computed is dropped: backward passes end here. Copies of the
        array, including those by ``copy.deepcopy`` and ``pickle``, and arrays that pass through
        ``jax.jit`` are not marked.

        Args:
            grad_req: ``write`` replaces the gradient, ``add`` adds to it, and ``null`` removes the
                mark.

        Raises:
            ArgumentError: ``grad_req`` is not one of these requests.
            GradientError: the dtype is not differentiable.
        """
        req = as_request("attach_grad", grad_req, _GRAD_REQS)
        if not self.type.differentiable:
            raise GradientError(f"attach_grad: the dtype must be floating, got {self.dtype.name}")
        flush()
        self._link = None
        self._grad = None if req is OpReqType.NULL else Gradient(req)

    @property
    def grad(self) -> Self | None:
        """The gradient after the last backward pass, initially zero; None for an unmarked array."""
        kept = self._grad
        if kept is None:
            return None
        gradient: Self | None = kept.value
        if gradient is None:
            value = self.value
            dense = isinstance(value, jax.Array)  # zeros_like keeps its device
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
        """The request: whether a backward pass writes the gradient or adds to it."""
        return OpReqType.NULL if self._grad is None else self._grad.req

    def zero_grad(self) -> None:
        """Sets the gradient to zero."""
        if self._grad is not None:
            self._grad.value = None

    def detach(self) -> Self:  # type: ignore[override]  # unlike a graph, it has no names
        """Returns an array that shares the value but is not recorded."""
        return type(self)(self.value)

    def backward(
        self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Calls ``autograd.backward`` on this array."""
        type(self).pass_back(self, out_grad, retain_graph, train_mode)
