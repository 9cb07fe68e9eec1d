"""Roles of operators: forward, gradient, update; they are attributes of calls."""

from collections.abc import Sequence
from typing import NamedTuple

from symop.interop.paddle.framework import OpDesc

FORWARD = 0
BACKWARD = 1
OPTIMIZE = 2
SCHEDULE = 16
LOSS = 256

NAME = "op_role"
VARIABLES = "op_role_var"


def has_own_loss(ops: Sequence[OpDesc]) -> bool:
    """Returns whether gradient operators begin with the gradient of a loss.

    Those of a branch do if the branch itself asks for them; other blocks go on with the gradients
    of what is around them.
    """
    return bool(ops) and ops[0].attrs.get(NAME) == BACKWARD | LOSS


class Role(NamedTuple):
    """The role of a call.

    Attributes:
        number: a sum of the numbers above.
        variables: a parameter and its gradient, if the call is about these.
    """

    number: int
    variables: tuple[str, ...] = ()

    @classmethod
    def of(cls, op: OpDesc) -> "Role":
        """Returns the role of a call."""
        return cls(op.attrs.get(NAME, FORWARD), tuple(op.attrs.get(VARIABLES, ())))

    def mark(self, op: OpDesc) -> None:
        """Gives the role to a call."""
        op.attrs[NAME] = self.number
        if self.variables:
            op.attrs[VARIABLES] = list(self.variables)

    @property
    def is_forward(self) -> bool:
        """Whether the call belongs to inference."""
        return self.number in (FORWARD, LOSS)
