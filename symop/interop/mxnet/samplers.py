"""Random draws by the names of ``mx.nd.random`` and ``mx.sym.random``.

If a parameter is an array or a symbol, there is a draw for each of its entries; if all parameters
are numbers, the result is an array of draws.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from symop.interop.mxnet.base import numeric_types
from symop.interop.mxnet.errors import MXNetError

Function = Callable[..., Any]
Find = Callable[[str], Function]


class _Sampler(NamedTuple):
    """A distribution.

    Attributes:
        defaults: its parameters, with a default or None.
        stem: the common suffix of the names of its two operators.
        many: whether parameters may be arrays.
    """

    defaults: Mapping[str, Any]
    stem: str
    many: bool = True


_SAMPLERS = {
    "uniform": _Sampler({"low": 0, "high": 1}, "uniform"),
    "normal": _Sampler({"loc": 0, "scale": 1}, "normal"),
    "poisson": _Sampler({"lam": 1}, "poisson"),
    "exponential": _Sampler({"scale": 1}, "exponential"),
    "gamma": _Sampler({"alpha": 1, "beta": 1}, "gamma"),
    "negative_binomial": _Sampler({"k": 1, "p": 1}, "negative_binomial"),
    "generalized_negative_binomial": _Sampler(
        {"mu": 1, "alpha": 1}, "generalized_negative_binomial"
    ),
    "randint": _Sampler({"low": None, "high": None}, "randint", many=False),
}
_REST = ("shape", "dtype", "ctx", "out")


def samplers(find: Find, least: int | None) -> dict[str, Function]:
    """The functions of ``random`` by name.

    Args:
        find: returns the function that calls an operator.
        least: the default shape of draws with numeric parameters; None if it may be inferred.
    """
    made = {name: _sampler(name, one, find, least) for name, one in _SAMPLERS.items()}
    normal = made["normal"]

    def randn(*shape: int, loc: Any = 0, scale: Any = 1, **options: Any) -> Any:
        """Normal draws; the shape is given as separate lengths."""
        return normal(loc, scale, shape=shape or None, **options)

    def multinomial(data: Any, shape: Any = None, get_prob: bool = False, **options: Any) -> Any:
        """Draws classes by the probabilities in rows of ``data``; ``get_prob`` adds their logs."""
        return find("_sample_multinomial")(data, shape=shape, get_prob=get_prob, **options)

    def shuffle(data: Any, **options: Any) -> Any:
        """Shuffles the entries along the first axis."""
        return find("_shuffle")(data, **options)

    return {**made, "randn": randn, "multinomial": multinomial, "shuffle": shuffle}


def _sampler(name: str, sampler: _Sampler, find: Find, least: int | None) -> Function:
    names = [*sampler.defaults, *_REST]

    def draw(*args: Any, **options: Any) -> Any:
        if len(args) > len(names):
            raise MXNetError(f"{name}: at most {len(names)} arguments are taken, got {len(args)}")
        given = {**sampler.defaults, **dict(zip(names, args, strict=False)), **options}
        parameters = [given.pop(one) for one in sampler.defaults]
        if None in [one for one in parameters if one is None]:
            raise MXNetError(f"{name}: {' and '.join(sampler.defaults)} must be given")
        if name == "exponential":  # MXNet's operators take the rate
            parameters = [1.0 / parameters[0]]
        rest = {key: one for key, one in given.items() if one is not None}
        count = sum(isinstance(one, numeric_types) for one in parameters)
        if count == 0 and sampler.many:
            rest.pop("ctx", None)
            return find(f"_sample_{sampler.stem}")(*parameters, **rest)
        if count < len(parameters):
            raise MXNetError(
                f"{name}: parameters must be numbers{', or all arrays' * sampler.many}, "
                f"got {', '.join(type(one).__name__ for one in parameters)}"
            )
        if least is not None and "out" not in rest:
            rest.setdefault("shape", least)
        return find(f"_random_{sampler.stem}")(*parameters, **rest)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = (
        f"Draws of the distribution {name}.\n\n"
        f"It takes {', '.join(names[:-2])}, in this order or by name; where arrays are made, "
        "``ctx`` and ``out``, too."
    )
    return draw
