"""EnvArguments: arguments of an operator's function other than its inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp

from registry.errors import ArgumentError, DeclarationError, nearest
from registry.types import Shape

Request = Literal["random", "temp_space"]
REQUESTS: tuple[Request, ...] = ("random", "temp_space")


class Random:
    """Random numbers of one call: each draw has a separate key, folded from ``key``.

    Numbers have the dtype of the operator's floating inputs by default, so a draw does not change
    the dtype of the values that it is combined with.

    Attributes:
        key: the JAX key that the draws are folded from.
        dtype: the default dtype of a draw.

    Example:
        >>> import jax
        >>> from registry.declare.environment import Random
        >>> first, again = (Random(jax.random.key(0)).uniform((2,)) for _ in range(2))
        >>> bool((first == again).all())
        True
    """

    def __init__(self, key: Any, dtype: Any = float) -> None:
        self.key, self.dtype = key, dtype
        self._drawn = 0

    def draw(self, sampler: Callable[..., Any], *args: Any, **kwargs: Any) -> jax.Array:
        """Returns ``sampler(key, *args, **kwargs)`` with a key that no other draw has."""
        key = jax.random.fold_in(self.key, self._drawn)
        self._drawn += 1
        drawn: jax.Array = sampler(key, *args, **kwargs)
        return drawn

    def uniform(
        self, shape: Shape = (), dtype: Any = None, low: float = 0.0, high: float = 1.0
    ) -> jax.Array:
        """Draws from the uniform distribution on ``[low, high)``."""
        return self.draw(jax.random.uniform, shape, dtype or self.dtype, low, high)

    def normal(
        self, shape: Shape = (), dtype: Any = None, mean: float = 0.0, std: float = 1.0
    ) -> jax.Array:
        """Draws from the normal distribution."""
        return mean + std * self.draw(jax.random.normal, shape, dtype or self.dtype)

    def bernoulli(self, p: Any = 0.5, shape: Shape | None = None) -> jax.Array:
        """Draws booleans that are true with probability ``p``."""
        return self.draw(jax.random.bernoulli, p, shape)

    def randint(self, shape: Shape, low: Any, high: Any, dtype: Any = int) -> jax.Array:
        """Draws integers from ``low`` (inclusive) to ``high`` (exclusive)."""
        return self.draw(jax.random.randint, shape, low, high, dtype)

    def gumbel(self, shape: Shape = (), dtype: Any = None) -> jax.Array:
        """Draws from the standard Gumbel distribution."""
        return self.draw(jax.random.gumbel, shape, dtype or self.dtype)

    def exponential(self, shape: Shape = (), dtype: Any = None) -> jax.Array:
        """Draws from the exponential distribution of mean one."""
        return self.draw(jax.random.exponential, shape, dtype or self.dtype)

    def permutation(self, x: Any, axis: int = 0) -> jax.Array:
        """Permutes ``x`` (or ``arange(x)``) randomly along ``axis``."""
        return self.draw(jax.random.permutation, x, axis)


class Resource:
    """One requested resource of an operator: random numbers or scratch space."""

    def __init__(self, kind: str, key: Any = None, *, owner: str = "", dtype: Any = float) -> None:
        """Creates a resource of ``kind``; without a key it draws no numbers."""
        self.kind = kind
        self._key, self._owner, self._dtype = key, owner, dtype
        self._count = 0

    @property
    def draws(self) -> bool:
        """Whether random numbers can be drawn from it."""
        return self._key is not None

    def for_each(self) -> "Callable[[Any], Resource]":
        """Returns a function from an element's index to a separate resource for that element."""
        key = self._next_key() if self.draws else None

        def of_element(index: Any) -> Resource:
            own = None if key is None else jax.random.fold_in(key, index)
            return Resource(self.kind, own, owner=self._owner, dtype=self._dtype)

        return of_element

    def _next_key(self) -> Any:
        key = jax.random.fold_in(self._key, self._count)
        self._count += 1
        return key

    def get_random(self, stream: None = None) -> Random:
        """Returns a source of random numbers, different from all previous ones in this call.

        ``stream`` exists for code written for MXNet: JAX has no streams, and it is None.

        Raises:
            DeclarationError: the operator requested another resource here.
        """
        del stream
        self._require("random")
        if self._key is None:
            raise DeclarationError(
                f"{self._owner}random numbers must be drawn by the function or its gradient, "
                "got a draw in a rule for shapes"
            )
        return Random(self._next_key(), self._dtype)

    def get_space(self, shape: Shape, dtype: Any = None, *, stream: None = None) -> jax.Array:
        """Returns scratch space: an array of zeros, by default of the dtype of the floating inputs.

        ``get_space(shape, None)``, with a stream as in MXNet code, is equivalent. ``stream`` is for
        such code, too: JAX has no streams, and it is None.

        Raises:
            DeclarationError: the operator requested another resource here.
        """
        del stream
        self._require("temp_space")
        return jnp.zeros(shape, dtype or self._dtype)

    def _require(self, kind: str) -> None:
        if self.kind != kind:
            raise DeclarationError(
                f"{self._owner}set_resource_request must request {kind!r} to use it, "
                f"got {self.kind!r}"
            )

    def __repr__(self) -> str:
        return f"Resource({self.kind!r})"


class Resources(Sequence[Resource]):
    """The requested resources, in the order of the request."""

    def __init__(self, resources: Sequence[Resource], owner: str = "") -> None:
        self._resources, self._owner = tuple(resources), owner

    def __len__(self) -> int:
        return len(self._resources)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources)

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._resources[index]
        except IndexError:
            listed = ", ".join(one.kind for one in self._resources) or "none"
            raise DeclarationError(
                f"{self._owner}set_resource_request must request resource {index} to use it, "
                f"got {listed}"
            ) from None


class Keywords(Mapping[str, Any]):
    """The keywords of one call; reading an undeclared keyword is an error."""

    def __init__(self, keywords: Mapping[str, Any], owner: str = "") -> None:
        self._keywords, self._owner = dict(keywords), owner

    def __len__(self) -> int:
        return len(self._keywords)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keywords)

    def __contains__(self, name: object) -> bool:
        return name in self._keywords

    def __getitem__(self, name: str) -> Any:
        if name not in self._keywords:
            raise DeclarationError(
                f"{self._owner}set_enable_kwargs must declare a keyword to use it, got {name!r}"
                f"{nearest(name, self._keywords)}"
            )
        return self._keywords[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the keyword called ``name``, or ``default``."""
        return self._keywords.get(name, default)

    def __repr__(self) -> str:
        return repr(self._keywords)


class EnvArguments:
    """The scalar, the keywords and the resources of one call.

    Attributes:
        resource: the requested resources, in the order of the request.

    Example:
        >>> from registry import EnvArguments
        >>> EnvArguments(scalar=2.0).scalar
        2.0
        >>> EnvArguments(kwargs={"axis": 0}).kwargs["axis"]
        0
    """

    def __init__(
        self,
        *,
        scalar: float | None = None,
        kwargs: Mapping[str, Any] | None = None,
        resource: Sequence[Resource] = (),
        owner: str = "",
    ) -> None:
        """Operators create an instance for each call; create one explicitly to test a function."""
        self._scalar, self._kwargs = scalar, kwargs
        self._owner = f"{owner}: " if owner else ""
        self.resource = Resources(resource, self._owner)

    @property
    def resources(self) -> Resources:
        """Another name of ``resource``."""
        return self.resource

    @property
    def scalar(self) -> float:
        """The scalar.

        Raises:
            DeclarationError: the operator has none.
        """
        if self._scalar is None:
            raise DeclarationError(
                f"{self._owner}set_enable_scalar(True) must come before env.scalar is used"
            )
        return self._scalar

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The keywords, by name.

        Raises:
            DeclarationError: the operator has none.
        """
        if self._kwargs is None:
            raise DeclarationError(
                f"{self._owner}set_enable_kwargs(True, ...) must come before env.kwargs is used"
            )
        return Keywords(self._kwargs, self._owner)

    def for_each(self) -> "Callable[[Any], EnvArguments]":
        """Returns a function from an element's index to a separate ``env`` for that element."""
        makers = [one.for_each() for one in self.resource]

        def of_element(index: Any) -> EnvArguments:
            own = [make(index) for make in makers]
            return EnvArguments(
                scalar=self._scalar,
                kwargs=self._kwargs,
                resource=own,
                owner=self._owner.removesuffix(": "),
            )

        return of_element

    def __repr__(self) -> str:
        scalar = [] if self._scalar is None else [f"scalar={self._scalar!r}"]
        kwargs = [] if self._kwargs is None else [f"kwargs={dict(self._kwargs)!r}"]
        resource = [f"resource={list(self.resource)!r}"] if self.resource else []
        return f"EnvArguments({', '.join([*scalar, *kwargs, *resource])})"


def requested(owner: str, requests: str | Sequence[str]) -> tuple[Request, ...]:
    """Validates the argument of ``set_resource_request``.

    Raises:
        ArgumentError: the resource does not exist.
    """
    listed = (requests,) if isinstance(requests, str) else tuple(requests)
    for one in listed:
        if one not in REQUESTS:
            raise ArgumentError(
                f"{owner}: a resource must be one of {', '.join(REQUESTS)}, got "
                f"{one!r}{nearest(one, REQUESTS)}"
            )
    return tuple(one for name in listed for one in REQUESTS if one == name)


def resources(
    owner: str, requests: Sequence[Request], key: Any, dtype: Any = float
) -> list[Resource]:
    """Returns the resources of one call, each source of random numbers with a separate key."""
    prefix = f"{owner}: " if owner else ""
    return [
        Resource(
            kind,
            None if key is None or kind != "random" else jax.random.fold_in(key, i),
            owner=prefix,
            dtype=dtype,
        )
        for i, kind in enumerate(requests)
    ]
