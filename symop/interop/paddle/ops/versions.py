"""What differs between releases of Paddle."""

from typing import Any

import symop as so

_SCALARS = 2_005_000
"""The first release whose scalars have no axis."""
_SECOND = 2_000_000
"""The first release whose optimizers compute what they do in Paddle 2."""


def version_of(call: Any) -> int:
    """Returns the release that wrote a program, as a number; 2.6.2 if the program is new."""
    written = call.translation.program.version
    return int(written) or 2_006_002


def keeps_axis(call: Any) -> bool:
    """Returns whether a reduction of the last axis leaves an axis of length one: before 2.5."""
    return version_of(call) < _SCALARS


def scalar(call: Any, value: Any) -> Any:
    """Returns a scalar, with shape (1,) in releases before 2.5."""
    return so.reshape(value, shape=(1,)) if keeps_axis(call) and not value.ndim else value


def corrects_lamb(call: Any) -> bool:
    """Returns whether LAMB corrects its averages for their start at zero."""
    return version_of(call) >= _SECOND


def adadelta_reads_new_average(call: Any) -> bool:
    """Returns whether Adadelta's step reads the average of squared steps after its update.

    Paddle 1.8 updates the average in place before it computes the step.
    """
    names = [call.op.input("AvgSquaredUpdate"), call.op.output("AvgSquaredUpdateOut")]
    return version_of(call) < _SECOND and names[0] == names[1]


def scales_epsilon(call: Any) -> bool:
    """Returns whether Adam adds ``epsilon * sqrt(1 - beta2^t)`` to the root."""
    return version_of(call) >= _SECOND
