"""Sample: one call of an operator of MXNet on arrays, run, differentiated, and compared."""

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import symop as so
import symop.interop.mxnet as mx

Gradient = Literal["differences", "declared", "zero"]


@dataclasses.dataclass(frozen=True)
class Sample:
    """One call.

    Attributes:
        op: the operator's name.
        inputs: by name an array, or a shape, of which normal numbers are drawn. Those of variadic
            operators are called ``arg0``, ``arg1`` and so on.
        attributes: as a script would pass them.
        reference: the outputs, computed by NumPy or SciPy from the arrays in the order of
            ``inputs``: one or a list. None for draws, and where MXNet's recorded values are all.
        gradient: ``"differences"``: it is the derivative of the values. ``"declared"``: it is
            MXNet's own, as that of a loss layer, which ``slopes`` computes. ``"zero"``: there is
            none, or it is zero by definition.
        slopes: for a declared gradient, the gradients by input, computed from the arrays in the
            order of ``inputs``, for cotangents of one.
        by: the inputs that are differentiated by; all of a floating dtype unless told.
        second: whether the second derivative is compared with differences of the first.
        train: whether it runs as in training.
        rtol: relative tolerance of values in float64; that in float32 is 1e-5 at least.
        draws: whether it draws random numbers, so that only shapes and dtypes are compared.
        dtypes: what the floating inputs are tried in.
        why: for ``"zero"``, or for what is left out, the reason.
    """

    op: str
    inputs: Mapping[str, Any]
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    gradient: Gradient = "differences"
    slopes: Callable[..., Mapping[str, Any]] | None = None
    by: Sequence[str] | None = None
    second: bool = True
    train: bool = False
    rtol: float = 1e-9
    draws: bool = False
    dtypes: Sequence[str] = ("float32", "float64")
    why: str = ""

    @property
    def name(self) -> str:
        """The operator and its attributes, for the test's name."""
        inner = ",".join(f"{key}={one}" for key, one in self.attributes.items())
        return f"{self.op}({inner})" if inner else self.op

    def arrays(self, dtype: str = "float64") -> dict[str, np.ndarray]:
        """The inputs, floating ones in ``dtype``."""
        draw = np.random.default_rng(zlib.crc32(self.name.encode()))
        found = {}
        for name, one in self.inputs.items():
            array = draw.normal(size=one) if isinstance(one, tuple) else np.asarray(one)
            found[name] = array.astype(dtype) if array.dtype.kind == "f" else array
        return found

    def wrt(self) -> list[str]:
        """The inputs that it is differentiated by."""
        if self.by is not None:
            return list(self.by)
        return [name for name, one in self.arrays().items() if one.dtype.kind == "f"]

    # As a graph

    def symbol(self, names: Iterable[str]) -> Any:
        """MXNet's symbol of variables called ``names``."""
        variables = {name: mx.sym.var(name) for name in names}
        function = getattr(mx.sym, self.op)
        if "arg0" in variables:
            return function(*variables.values(), **self.attributes)
        return function(**variables, **self.attributes)

    def graph(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """The symbol of the catalogue for arrays of these types."""
        return self.symbol(arrays).to_graph(
            {name: one.dtype for name, one in arrays.items()},
            **{name: one.shape for name, one in arrays.items()},
        )

    def values(self, graph: Any, arrays: Mapping[str, Any]) -> list[np.ndarray]:
        """The outputs of ``graph``."""
        names = [*graph.list_arguments(), *graph.list_auxiliary_states()]
        given = {name: jnp.asarray(arrays[name]) for name in names}
        found = jax.jit(graph.to_jax(is_train=self.train))(**given, key=jax.random.key(0))
        if self.train and graph.list_auxiliary_states():
            found = found[0]
        return [np.asarray(one) for one in (found if isinstance(found, list) else [found])]

    def eager(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs of a call on eager arrays."""
        given = {name: mx.nd.array(one, dtype=one.dtype) for name, one in arrays.items()}
        function = getattr(mx.nd, self.op)
        with mx.autograd.train_mode() if self.train else mx.autograd.predict_mode():
            if any(name == "arg0" for name in arrays):
                found = function(*given.values(), **self.attributes)
            else:
                found = function(**given, **self.attributes)
        return [one.asnumpy() for one in (found if isinstance(found, (list, tuple)) else [found])]

    def expected(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """What the reference computes."""
        assert self.reference is not None
        found = self.reference(*[np.asarray(one, _wide(one)) for one in arrays.values()])
        return [np.asarray(one) for one in (found if isinstance(found, (list, tuple)) else [found])]

    # Derivatives, along random directions

    def differentiable(self, graph: Any) -> Any:
        """The outputs of a floating dtype as one scalar, each weighed by an array of its own."""
        draw = np.random.default_rng(7)
        terms = [
            so.sum(one * draw.normal(size=one.shape).astype(one.dtype.name))
            for one in outputs(graph)
            if one.dtype.kind == "f"
        ]
        return so.add_n(*terms)

    def slope(self, graph: Any, scalar: Any) -> Any:
        """How ``scalar`` changes along one direction of all inputs, by reverse mode."""
        internals = graph.get_internals()
        xs = [internals[name] for name in self.wrt()]
        gradients = so.grad(scalar, xs, unreachable="zero")
        ways = self.ways()
        pairs = zip(self.wrt(), gradients, strict=True)
        return so.add_n(*[so.sum(one * ways[name]) for name, one in pairs])

    def ways(self) -> dict[str, np.ndarray]:
        """A direction for each input."""
        draw = np.random.default_rng(11)
        return {name: draw.normal(size=one.shape) for name, one in self.arrays().items()}

    def difference(self, scalar: Any, step: float = 1e-5) -> float:
        """How ``scalar`` changes along the direction, by a central difference of fourth order."""
        arrays, ways = self.arrays(), self.ways()

        def at(times: float) -> float:
            moved = {name: arrays[name] + times * step * ways[name] for name in self.wrt()}
            return float(self.values(scalar, {**arrays, **moved})[0])

        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


def outputs(graph: Any) -> list[Any]:
    """The outputs of ``graph``, each a symbol; a lone one would be taken apart into its entries."""
    return list(graph) if len(graph.nodes) > 1 else [graph]


def _wide(array: np.ndarray) -> Any:
    return np.float64 if array.dtype.kind == "f" else array.dtype
