"""What differs between releases of Paddle."""

from typing import Any

import symop as so

_SCALARS = 2_005_000
"""The first release whose scalars have no axis."""
_ADAM = 2_000_000
"""The first release whose Adam scales epsilon with the correction of the second moment."""


def version_of(call: Any) -> int:
    """Returns the release that wrote a program, as a number; that of a new program is the latest."""
    written = call.translation.program.version
    return int(written) or 2_006_002


def scalar(call: Any, value: Any) -> Any:
    """Returns a scalar, with shape (1,) in releases before 2.5."""
    return (
        so.reshape(value, shape=(1,)) if version_of(call) < _SCALARS and not value.ndim else value
    )


def scales_epsilon(call: Any) -> bool:
    """Returns whether Adam adds ``epsilon * sqrt(1 - beta2^t)`` to the root of the second moment."""
    return version_of(call) >= _ADAM
