"""Checkpoints: training state in one file, or in a folder of steps, restored bit for bit.

``save`` and ``load`` write and read one safetensors file, the format of one machine. ``Folder``
holds a checkpoint for each saved step, sharded and written asynchronously; ``on_preemption`` saves
before a process is killed.

Example:
    >>> import tempfile, symop as so
    >>> with so.program_guard(so.Program()) as program:
    ...     w = so.parameter("w", (2,), initial=1.0)
    ...     loss = so.sum(w * w)
    >>> pairs = so.optim.Adam(0.1).minimize(loss)
    >>> first = program.run(fetch=loss)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/state.safetensors"
    ...     so.checkpoint.save(path, program)
    ...     then = program.run(fetch=loss)
    ...     so.checkpoint.load(path, program)
    >>> bool(program.run(fetch=loss) == then)
    True
"""

from symop.checkpoint.file import load, save
from symop.checkpoint.folder import Folder
from symop.checkpoint.preemption import EXIT_CODE, on_preemption

__all__ = ["EXIT_CODE", "Folder", "load", "on_preemption", "save"]
