"""Namespaces of operators that share a name prefix, and of further functions."""

import types
from collections.abc import Callable, Mapping
from typing import Any

from symop.interop.mxnet.operators import TABLE, Operator

Make = Callable[[Operator, str], Callable[..., Any]]


class Namespace(types.ModuleType):
    """A namespace such as ``mx.nd.linalg``: the operator ``_linalg_gemm`` is ``linalg.gemm``."""

    def __init__(
        self, name: str, prefix: str, make: Make, functions: Mapping[str, Any] | None = None
    ) -> None:
        """Creates a namespace.

        Args:
            name: its full name.
            prefix: the common prefix of the operators' names.
            make: returns the function that calls an operator.
            functions: further functions by name.
        """
        super().__init__(name, f"Operators of MXNet by the names that they have in ``{name}``.")
        self._prefix, self._make = prefix, make
        vars(self).update(functions or {})

    def __getattr__(self, name: str) -> Any:
        operator = None if name.startswith("__") else TABLE.get(self._prefix + name)
        if operator is None:
            raise AttributeError(f"{self.__name__} has no operator {name!r}")
        function = vars(self)[name] = self._make(operator, name)
        return function

    def __dir__(self) -> list[str]:
        count = len(self._prefix)
        names = [name[count:] for name in TABLE if name.startswith(self._prefix)]
        own = [name for name in vars(self) if not name.startswith("_")]
        return sorted({*names, *own})
