"""Names of places and of compiled programs: JAX chooses the device, and compiles every program."""

from collections.abc import Sequence
from typing import Any

from symop.interop.paddle.programs import Program


class CPUPlace:
    """The processor; accepted as in Paddle."""


class CUDAPlace:
    """A graphics processor; accepted as in Paddle.

    Attributes:
        index: its number.
    """

    def __init__(self, index: int = 0) -> None:
        """Names graphics processor ``index``."""
        self.index = index


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Returns places, one for each of ``device_count``."""
    return [CPUPlace() for _ in range(device_count or 1)]


def cuda_places(device_ids: Sequence[int] | None = None) -> list[CUDAPlace]:
    """Returns places, one for each of ``device_ids``."""
    return [CUDAPlace(i) for i in device_ids or (0,)]


def is_compiled_with_cuda() -> bool:
    """Returns False: scripts then take ``CPUPlace``, and JAX its default device."""
    return False


class CompiledProgram:
    """A program that ``Executor.run`` takes as the program itself.

    Attributes:
        program: the program.
    """

    def __init__(self, program_or_graph: Program, build_strategy: Any = None) -> None:
        """Wraps a program; it is compiled when it runs, as every program is."""
        del build_strategy
        self.program = program_or_graph

    def with_data_parallel(self, *args: Any, **kwargs: Any) -> "CompiledProgram":
        """Returns itself: the default device of JAX runs the whole batch."""
        del args, kwargs
        return self
