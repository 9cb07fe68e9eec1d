"""Platform-specific kernels, chosen at compilation."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax

from registry.errors import DeclarationError, nearest

Kernel = Callable[..., Any]
_PLATFORMS = {
    "cpu": ("cpu",),
    "gpu": ("cuda", "rocm"),
    "cuda": ("cuda",),
    "rocm": ("rocm",),
    "tpu": ("tpu",),
}


def added(
    owner: str, kernels: Mapping[str, Kernel], platform: str, kernel: Kernel
) -> dict[str, Kernel]:
    """Returns ``kernels`` by JAX's platform names, extended by ``kernel`` for ``platform``.

    Raises:
        DeclarationError: the platform is unknown, or it has a kernel already.
    """
    if platform not in _PLATFORMS:
        raise DeclarationError(
            f"{owner}: the platform of a kernel must be one of {', '.join(_PLATFORMS)}, got "
            f"{platform!r}{nearest(platform, _PLATFORMS)}"
        )
    names = _PLATFORMS[platform]
    if any(name in kernels for name in names):
        raise DeclarationError(f"{owner}: the kernel for {platform!r} is declared twice")
    return {**kernels, **dict.fromkeys(names, kernel)}


def dispatched(default: Kernel, kernels: Mapping[str, Kernel]) -> Kernel:
    """Returns a kernel that runs the one declared for the platform, or else ``default``."""

    @functools.wraps(default)
    def kernel(*inputs: Any, **attributes: Any) -> Any:
        # Static arguments of a kernel (absent inputs, the training flag) must remain static.
        places = [i for i, one in enumerate(inputs) if not (one is None or type(one) is bool)]

        def bound(chosen: Kernel) -> Kernel:
            def run(*arrays: Any) -> Any:
                values = list(inputs)
                for i, array in zip(places, arrays, strict=True):
                    values[i] = array
                return chosen(*values, **attributes)

            return run

        return jax.lax.platform_dependent(
            *[inputs[i] for i in places],
            default=bound(default),
            **{name: bound(one) for name, one in kernels.items()},
        )

    return kernel
