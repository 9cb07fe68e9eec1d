"""Properties that a package declares for the kernels of all its operators.

The catalogue declares its own here, and so may any other package whose tests establish them. An
operator's own declaration takes precedence.
"""

from typing import NamedTuple

from registry.errors import DeclarationError


class Package(NamedTuple):
    """The defaults of the operators that a package declares.

    Attributes:
        native: Whether JAX's derivative of a kernel is the declared one.
        transposable: Whether JAX has forward mode for a kernel, and its transpose where the kernel
            is linear, for all inputs, so that this need not be tried.
        takes_numbers: Whether a kernel accepts Python numbers where it expects arrays.
        catalogue: Whether the operators belong to symop itself. No result depends on it: it
            separates names of the catalogue from other systems' names.
    """

    native: bool = False
    transposable: bool = False
    takes_numbers: bool = False
    catalogue: bool = False


_packages: dict[str, Package] = {}
_OTHER = Package()


def declare_package(
    name: str,
    *,
    native: bool = False,
    transposable: bool = False,
    takes_numbers: bool = False,
) -> None:
    """Declares properties of the kernels of all operators that a package declares from now on.

    Call it before the operators are declared, in the package's ``__init__``. It also applies to
    packages and modules inside; their own declarations take precedence.

    Args:
        name: the package, usually ``__name__``.
        native: whether JAX's derivative of each kernel is the declared one, as in ``op``.
        transposable: whether JAX has both modes for each kernel, as in ``op``.
        takes_numbers: whether each kernel accepts Python numbers, as in ``op``.

    Raises:
        DeclarationError: ``name`` is not the name of a module.

    Example:
        >>> from registry import declare_package
        >>> declare_package("doc_package.operators", native=True, transposable=True)
    """
    put(name, Package(native, transposable, takes_numbers))


def put(name: str, package: Package) -> None:
    """Adds the declaration of a package."""
    if not isinstance(name, str) or not all(map(str.isidentifier, name.split("."))):
        raise DeclarationError(f"declare_package: name must be that of a module, got {name!r}")
    _packages[name] = package


def package_of(module: str | None) -> Package:
    """Returns the declaration of the innermost package that contains ``module``."""
    name = module or ""
    while name:
        package = _packages.get(name)
        if package is not None:
            return package
        name = name.rpartition(".")[0]
    return _OTHER
