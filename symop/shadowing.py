"""A check that no other module shadows the package ``registry``.

``registry`` and ``symop`` are installed next to each other. Python prefers a ``registry.py`` next
to the running script, and the resulting errors about missing names would not state the cause.
"""

from importlib.util import find_spec
from pathlib import Path


def require_registry() -> None:
    """Checks that ``import registry`` finds the package installed with this one.

    Raises:
        ImportError: it finds another file, which the message names, or none.
    """
    spec = find_spec("registry")
    path = spec.origin if spec is not None else None
    if path is None or Path(path).parent != Path(__file__).parents[1] / "registry":
        raise ImportError(
            "symop: 'registry' must be the package that is installed with symop, got "
            f"{path or 'no module of that name'}, which comes first on sys.path; rename it or "
            "remove it from there",
            name="registry",
            path=path,
        )


require_registry()
