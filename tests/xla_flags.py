"""Flags with which tests and proofs compile in half the time.

XLA's older emitters of fusions compile faster than the default ones, and most of the time of tests
is compilation. The flag that selects them exists in jaxlib before 0.12 only, and later versions
abort the process for it. Running this file prints ``XLA_FLAGS`` with the flag.
"""

import os
from importlib.metadata import version


def with_quick_compilation(flags: str) -> str:
    """Returns ``flags``, followed by the flag if jaxlib knows it."""
    major, minor = map(int, version("jaxlib").split(".")[:2])
    quick = "--xla_cpu_use_fusion_emitters=false" if (major, minor) < (0, 12) else ""
    return f"{flags} {quick}".strip()


if __name__ == "__main__":
    print(with_quick_compilation(os.environ.get("XLA_FLAGS", "")))
