"""The state of training, which a step replaces in one operation of the interpreter."""

from collections.abc import Iterator
from operator import is_
from typing import Any, NamedTuple

import jax

from symop.runtime.donation import Cell
from symop.runtime.packing import Packed, is_traced, pack
from symop.training.placing import StatePlacement

Arrays = dict[str, Any]


class ScaleState(NamedTuple):
    """The state of loss scaling.

    Attributes:
        factor: the factor on the loss.
        good: the number of finite steps since it last changed.
    """

    factor: Any
    good: Any


class Parts(NamedTuple):
    """The parts of a training state."""

    params: Arrays
    states: Arrays
    opt_state: Any
    key: Any
    step: Any
    average: Arrays | None = None
    scale: ScaleState | None = None


class TrainState:
    """The state of training, which a step reads and replaces; a pytree.

    A step donates the arrays of the state and replaces them in one operation: after any exception,
    Ctrl-C included, it contains the state either before or after the step.

    Args:
        params: the trained arguments, by name.
        states: the auxiliary states, by name.
        opt_state: the state of the optimizer.
        key: the random key of the next step.
        step: the number of steps taken.
        average: the exponential moving averages of the parameters, by name; None without.
        scale: the state of loss scaling; None without.
    """

    __slots__ = ("__weakref__", "_cell", "_unpacked")
    _fields = Parts._fields

    def __init__(  # its parts
        self,
        params: Arrays,
        states: Arrays,
        opt_state: Any,
        key: Any,
        step: Any,
        average: Arrays | None = None,
        scale: ScaleState | None = None,
    ) -> None:
        """Creates a state from its parts."""
        # A step leaves the parts packed, and the first access unpacks them.
        self._cell = Cell([Parts(params, states, opt_state, key, step, average, scale)])
        self._unpacked: tuple[Any, Packed, list[Any]] | None = None

    def _parts(self) -> Parts:
        # A signal handler may take a step meanwhile, so the item is changed, not replaced.
        held = self._cell.last[0]
        parts: Any = held[0]
        if parts.__class__ is Packed:
            packed, parts = parts, parts()
            self._unpacked = parts, packed, jax.tree.leaves(parts)
            held[0] = parts
        assert isinstance(parts, Parts)
        return parts

    @property
    def params(self) -> Arrays:
        """The trained arguments, by name."""
        return self._parts().params

    @property
    def states(self) -> Arrays:
        """The auxiliary states, by name."""
        return self._parts().states

    @property
    def opt_state(self) -> Any:
        """The state of the optimizer."""
        return self._parts().opt_state

    @property
    def key(self) -> Any:
        """The random key of the next step."""
        return self._parts().key

    @property
    def step(self) -> Any:
        """The number of steps taken."""
        return self._parts().step

    @property
    def average(self) -> Arrays | None:
        """The exponential moving averages of the parameters, by name; None without."""
        return self._parts().average

    @property
    def scale(self) -> ScaleState | None:
        """The state of loss scaling; None without."""
        return self._parts().scale

    def become(self, other: "TrainState") -> None:
        """Replaces the parts by those of ``other``, which must not be used afterwards."""
        parts = other._parts()
        with self._cell.lock:
            self._cell.last.append([parts])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts())

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, index: Any) -> Any:
        return self._parts()[index]

    def _asdict(self) -> dict[str, Any]:
        return self._parts()._asdict()

    def _replace(self, **parts: Any) -> "TrainState":
        return TrainState(*self._parts()._replace(**parts))

    def __repr__(self) -> str:
        return repr(self._parts()).replace("Parts", "TrainState", 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return TrainState, tuple(self)

    def prepare(self, places: StatePlacement | None) -> None:
        """Prepares for a step: packs parts that were only read, and places what was set by hand.

        Raises:
            ArgumentError: a parameter or state cannot be split evenly.
        """
        last, unpacked, self._unpacked = list(self._cell.last), self._unpacked, None
        if not last or last[0][0].__class__ is Packed:
            return
        held = last[0]
        parts = held[0]
        if unpacked is not None and parts is unpacked[0]:
            _, packed, before = unpacked
            leaves, tree = jax.tree.flatten(parts)
            if packed.is_of(tree) and all(map(is_, leaves, before)):
                held[0] = packed
                return
        if places is not None:
            held[0] = places.put(parts)

    def packed(self, places: StatePlacement | None = None) -> Packed:
        """Returns the parts, packed and placed as a step takes them; see ``prepare``."""
        parts = self._cell.last[0][0]
        if parts.__class__ is Packed:
            if places is None or not parts.is_joined:
                return parts
            self._parts()  # a trainer without a mesh has packed it
            self._unpacked = None
        self.prepare(places)
        parts = self._cell.last[0][0]
        joins = places is None and not is_traced(parts)
        return parts if parts.__class__ is Packed else pack(parts, joins=joins)


_register: Any = jax.tree_util.register_pytree_with_keys
_register(
    TrainState,
    lambda state: (
        [(jax.tree_util.GetAttrKey(n), one) for n, one in state._asdict().items()],
        None,
    ),
    lambda _, parts: TrainState(*parts),
    lambda state: (tuple(state), None),
)
