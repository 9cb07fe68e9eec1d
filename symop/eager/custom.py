"""User-defined functions: eager code whose gradient is eager code, too."""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, GradientError
from symop.eager.modes import mode
from symop.eager.ndarray import NDArray, array_of
from symop.eager.recording import flush
from symop.eager.segments import local
from symop.eager.tape_nodes import Custom, Link, Source
from symop.graph.nodes import placeholder


class Function:
    """Base class of functions with a user-defined gradient.

    A subclass defines ``forward(*inputs)`` and ``backward(*cotangents)``, which returns a gradient
    for each input; both are eager code on arrays. If ``backward`` consists of operators, the
    gradient can be differentiated again. An instance can be called only once. Inside a JAX
    transformation, ``backward`` defines the derivative as well; JAX then rejects forward mode.

    ``forward`` is not recorded. Inputs and results that ``backward`` needs must be passed to
    ``save_for_backward``, which connects them to the record for derivatives of higher order. An
    array that is kept in another way, such as in an attribute, is a constant for ``backward``: the
    first derivative is correct, but the second lacks the terms through that array. The same applies
    to a saved array that is neither an input nor a result.

    Example:
        >>> from symop import autograd, nd
        >>> class Sigmoid(autograd.Function):
        ...     def forward(self, x):
        ...         y = 1 / (1 + nd.exp(-x))
        ...         self.save_for_backward(y)
        ...         return y
        ...     def backward(self, d_y):
        ...         (y,) = self.saved_tensors
        ...         return d_y * y * (1 - y)
        >>> x = nd.array(0.0)
        >>> x.attach_grad()
        >>> with autograd.record():
        ...     y = Sigmoid()(x)
        >>> y.backward()
        >>> x.grad
        NDArray(0.25, dtype=float32)
    """

    takes_rows: ClassVar[bool] = False
    """Whether ``backward`` accepts row-sparse cotangents of dense results."""

    def __init__(self) -> None:
        """Creates a function, to be called once."""
        self._saved: tuple[Any, ...] = ()
        self._called = False

    def save_for_backward(self, *arrays: Any) -> None:
        """Saves inputs and results of ``forward``, the same objects, for ``backward``."""
        self._saved = arrays

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The arrays that ``forward`` saved."""
        return self._saved

    def forward(self, *inputs: Any) -> Any:
        """Computes the results for ``inputs``."""
        # Abstract: a subclass must define it.
        raise NotImplementedError(f"{type(self).__name__}: forward must be defined")

    def backward(self, *cotangents: Any) -> Any:
        """Computes a gradient, or None, for each input of ``forward``."""
        # Abstract like ``forward``, but not needed if the function is never differentiated.
        raise NotImplementedError(f"{type(self).__name__}: backward must be defined")

    def __call__(self, *inputs: Any) -> Any:
        """Runs ``forward`` and records ``backward``.

        Raises:
            ArgumentError: the object was called before.
            GradientError: in a backward pass, ``backward`` returns the wrong number of gradients,
                or one of the wrong shape or dtype.
        """
        if getattr(self, "_called", False):  # a subclass's __init__ may not call this one's
            raise ArgumentError(
                f"{type(self).__name__}: an object must be called once, make another"
            )
        self._called = True
        flush()
        sources = [one.source if isinstance(one, NDArray) else None for one in inputs]
        if local.state.taped and any(one is not None for one in sources):
            return self._recorded(inputs, sources)
        if any(isinstance(one, NDArray) and _is_traced(one) for one in inputs):
            return self._traced(inputs)
        outputs, several = self._run(inputs)[1:]
        return tuple(outputs) if several else outputs[0]

    def _run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[NDArray], bool]:
        """Runs ``forward``; returns its inputs, its results, and whether it returned several."""
        plain = [one.detach() if isinstance(one, NDArray) else one for one in inputs]
        with mode(False):
            returned = self.forward(*plain)
            several = isinstance(returned, (tuple, list))
            arrays = list(returned) if several else [returned]
            outputs = [_unshared(one) for one in arrays]
        # Replace saved results by the outputs, which are recorded.
        known = dict(zip(map(id, arrays), outputs, strict=True))
        self._saved = tuple(known.get(id(one), one) for one in getattr(self, "_saved", ()))
        return plain, outputs, several

    def _recorded(self, inputs: Sequence[Any], sources: Sequence[Source]) -> Any:
        """Returns the results, connected to a tape node."""
        # The current values: an input may be changed in place before the backward pass.
        held = [one.at_present() if isinstance(one, NDArray) else one for one in inputs]
        plain, outputs, several = self._run(inputs)
        self._enter(held, sources, outputs)
        known = dict(zip(map(id, plain), held, strict=True))
        self._saved = tuple(known.get(id(one), one) for one in self._saved)
        return tuple(outputs) if several else outputs[0]

    def _traced(self, inputs: Sequence[Any]) -> Any:
        """Returns the results inside a JAX transformation, with ``backward`` as the derivative."""
        places = [i for i, one in enumerate(inputs) if isinstance(one, NDArray)]
        several = False

        def run(*values: Any) -> tuple[list[NDArray], list[Any]]:
            nonlocal several
            operands = dict(zip(places, map(array_of, values), strict=True))
            _, outputs, several = self._run([operands.get(i, one) for i, one in enumerate(inputs)])
            return outputs, [one.value for one in outputs]

        @jax.custom_vjp
        def call(*values: Any) -> list[Any]:
            return run(*values)[1]

        def ahead(*values: Any) -> tuple[list[Any], Any]:
            outputs, found = run(*values)
            return found, (list(self._saved), outputs)

        def back(kept: Any, cotangents: list[Any]) -> tuple[Any, ...]:
            saved, outputs = kept
            self._saved = tuple(saved)
            heads = [
                None if one.dtype == jax.dtypes.float0 else array_of(one) for one in cotangents
            ]
            found = self._pulled(inputs, outputs, heads)
            arrived = [found[i] for i in places]
            return tuple(None if one is None else one.value for one in arrived)

        call.defvjp(ahead, back)
        outputs = [NDArray(one) for one in call(*[inputs[i].value for i in places])]
        return tuple(outputs) if several else outputs[0]

    def _enter(self, inputs: Any, sources: Sequence[Source], outputs: list[NDArray]) -> None:
        nodes = [placeholder("output", one.type.strong()) for one in outputs]
        entry = Custom(sources, nodes, functools.partial(self._pulled, inputs, outputs))
        entry.takes_rows = self.takes_rows
        for one, node in zip(outputs, nodes, strict=True):
            if one.type.differentiable:
                one._link = Link(entry, node)

    def _pulled(
        self, inputs: Any, outputs: list[NDArray], cotangents: list[NDArray | None]
    ) -> list[NDArray | None]:
        heads = [
            NDArray(jnp.zeros(one.shape, one.dtype)) if head is None else head
            for one, head in zip(outputs, cotangents, strict=True)
        ]
        returned = self.backward(*heads)
        gradients = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(gradients) != len(inputs):
            raise GradientError(
                f"{type(self).__name__}: backward must return a gradient for each of "
                f"{len(inputs)} inputs, got {len(gradients)}"
            )
        return [self._fitting(*pair) for pair in zip(inputs, gradients, strict=True)]

    def _fitting(self, returned: Any, gradient: Any) -> NDArray | None:
        """Returns a gradient as an array; checks that it has its input's shape and dtype."""
        if gradient is None or not isinstance(returned, NDArray):
            return None
        result = gradient if isinstance(gradient, NDArray) else NDArray(gradient)
        if result.shape != returned.shape or result.dtype != returned.dtype:
            raise GradientError(
                f"{type(self).__name__}: a gradient that backward returns must be of its input's "
                f"type {returned.type}, got {result.type}"
            )
        return result


def _is_traced(array: NDArray) -> bool:
    return isinstance(array.value, jax.core.Tracer)


def _unshared(one: Any) -> NDArray:
    return NDArray(one.value) if isinstance(one, NDArray) else NDArray(one)
