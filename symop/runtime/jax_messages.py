"""Errors of JAX that only their texts distinguish.

The texts were seen in JAX 0.10.2 and 0.12.0. ``tests/test_jax_contracts.py`` provokes each error,
and fails if an installed version of JAX words it otherwise.
"""

from typing import NamedTuple


class Message(NamedTuple):
    """An error of JAX.

    Attributes:
        text: A part of its text.
        types: The types that it is raised as.
    """

    text: str
    types: tuple[type[Exception], ...]

    def is_in(self, error: BaseException) -> bool:
        """Whether ``error`` is this one."""
        return isinstance(error, self.types) and self.text in str(error)


DONATED = Message("has been deleted", (ValueError, RuntimeError))
"""A compiled function was called with an array whose buffer is donated."""
IN_ITSELF = Message("Recursively calling jit", (RecursionError,))
"""JAX looks up the executable of a function in the midst of looking it up."""

ALONE = Message("coordinator_address should be defined", (ValueError,))
"""JAX is to join a job, and neither the arguments nor the environment name one."""


def raised_on_host(error: BaseException, type: type[Exception]) -> str | None:
    """Returns the message of the error of ``type`` that a host callback raised, or None.

    JAX reports it as an error of its own, whose text ends with the callback's traceback.
    """
    _, mark, message = str(error).rpartition(f"{type.__name__}: ")
    return message if mark else None
