"""The stub files: of ``symop``, ``symop.sym`` and ``symop.nd``, and of methods."""

import ast
import dataclasses
import re
from inspect import Parameter
from pathlib import Path

import numpy as np

import registry
import symop as so
from registry.var import Var
from stubs import calls
from stubs.text import docstring, first_paragraph, overloaded
from symop.eager import array_api
from symop.public import MODULES

ROOT = Path(__file__).parents[2]
CHECKS = """
# `make golden` writes this file from the registry.
# Of overloads, and of the methods of a class and its base, the first one that fits counts.
# mypy: disable-error-code="assignment,overload-overlap,override"
# pyright: reportIncompatibleMethodOverride=false, reportOverlappingOverload=false

"""
TYPES = """from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, overload

import jax
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from registry.operator.bodies import Body
from registry.values import ArrayInput, SelectedRows, TensorArray
from registry.var import Value, Var
"""


def files():
    """The text of each stub, by its path."""
    return {
        "symop/__init__.pyi": package(),
        "symop/sym.pyi": symbols(),
        "symop/nd.pyi": arrays(),
        "registry/method_types.pyi": methods(),
        "symop/symbol/method_types.pyi": methods_of_symbols(),
    }


def operators(but=()):
    """The operators in alphabetical order, with the aliases of each that are not in ``but``."""
    for operator in registry.operators():
        if operator.catalogued:
            names = [operator.name, *sorted(operator.aliases)]
            yield operator, [name for name in names if name not in but]


def defined(names, operator_calls, page, indent=""):
    """An operator under its names: a function, and aliases of it."""
    if not names:
        return ""
    first, *others = names
    text = overloaded(first, operator_calls, page, indent)
    return text + "".join(f"{indent}{one} = {first}\n" for one in others)


# Modules --------------------------------------------------------------------------------------


def package():
    """The stub of ``symop``: the names of ``symop.public``, and operators."""
    modules = [f"from symop import {one} as {one}\n" for one in sorted(MODULES)]
    own = "".join(
        defined(names, calls.overloads(operator), operator.comment)
        for operator, names in operators(so.__all__)
    )
    return "".join(
        [
            head(tree("symop/__init__.py")),
            *imports("symop/public.py", so.__all__),
            *modules,
            "\n__version__: str\n\n",
            own,
        ]
    )


def symbols():
    """The stub of ``symop.sym``: its functions, and operators that return symbols."""
    path = "symop/sym.py"
    own, sources, shared = tree(path), [], []
    for operator, names in operators(so.sym.__all__):
        if all(slot.optional for slot in operator.positional):
            kind = dataclasses.replace(calls.SYMBOL, beside="complex")
            text = defined(names, calls.overloads(operator, [kind]), first_paragraph(operator))
            sources.append(text)
        else:
            shared += names
    lines = [f"from symop import {name} as {name}\n" for name in shared]
    return "".join(
        [
            head(own),
            *imports(path, so.sym.__all__),
            *lines,
            "\n",
            *functions(own, so.sym.__all__),
            "".join(sources),
        ]
    )


def arrays():
    """The stub of ``symop.nd``: its functions, those of the array API, and operators on arrays."""
    path = "symop/nd.py"
    own = tree(path)
    api = sorted(array_api.FUNCTIONS - {*array_api.DTYPES})
    taken = {*so.nd.__all__, *array_api.FUNCTIONS}
    return "".join(
        [
            head(own),
            *imports(path, so.nd.__all__),
            *(f"from symop.eager.array_api import {name} as {name}\n" for name in api),
            PLACES,
            *(f"{name} = np.{np.dtype(name).type.__name__}\n" for name in array_api.DTYPES),
            *functions(own, so.nd.__all__, WithoutBool()),
            *(
                defined(names, calls_on_arrays(operator), first_paragraph(operator))
                for operator, names in operators(taken)
            ),
        ]
    )


PLACES = """
# The namespace has a dtype of this name.
from builtins import bool as _bool
from typing import TypeVar

_Out = TypeVar("_Out")
_Request = OpReqType | str | Sequence[OpReqType | str] | None

"""
ARRAYS = calls.Kind("NDArray | ArrayInput", "NDArray", beside="")
JAX_ARRAYS = calls.Kind("jax.Array | np.ndarray", "jax.Array", beside="complex", leads=True)


def calls_on_arrays(operator):
    """The calls of ``nd``: with an output argument, on JAX's arrays, on eager arrays."""
    needed = operator.positional and not operator.positional[0].optional
    jax_arrays = [JAX_ARRAYS] if needed else []
    for parameters, _ in calls.overloads(operator, [ARRAYS]):
        yield with_place(parameters, "_Out"), "_Out"
    for kind in (*jax_arrays, ARRAYS):
        for parameters, result in calls.overloads(operator, [kind]):
            yield with_place(parameters, "None", " = None"), result


def with_place(parameters, out, default=""):
    """Parameters with those of the output, for a namespace in which ``bool`` is a dtype."""
    added = (f"out: {out}{default}", "req: _Request = None")
    own = [calls.Shown(one.kind, re.sub(r"\bbool\b", "_bool", one.text)) for one in parameters]
    return [*own, *(calls.Shown(Parameter.KEYWORD_ONLY, one) for one in added)]


def tree(path):
    """The statements of a module."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def imports(path, names):
    """The imports of a module that bring ``names``, and those of private names."""
    for node in tree(path).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            for one in node.names:
                own = one.asname or one.name
                if own in names or own.startswith("_"):
                    yield f"{start}import {one.name} as {own}\n"


class WithoutBool(ast.NodeTransformer):
    """Replaces ``bool``, which is a dtype in ``nd``."""

    def visit_Name(self, node):  # of the base class
        return ast.Name("_bool") if node.id == "bool" else node


def functions(module, names, visitor=None):
    """The functions of a module without their bodies, other names for them, and private types."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            page = ast.get_docstring(node) or ""
            node.body = [ast.Expr(ast.Constant(...))]
            shown = ast.unparse(visitor.visit(node) if visitor else node)
            yield shown.removesuffix("    ...") + docstring(page, "    ") + "\n"
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            own = node.targets[0].id
            if own in names or (own.startswith("_") and isinstance(node.value, ast.Subscript)):
                yield ast.unparse(node) + "\n"


# Methods --------------------------------------------------------------------------------------

SELF = calls.Kind("Var", "Self", omits=True)


def methods():
    """The stub of ``OperatorMethods``: every operator as a method of its first input."""
    own = "".join(
        defined(names, [method_call(operator, SELF)], first_paragraph(operator), "    ")
        for operator, names in operators({*dir(Var), *dir(so.Variable)})
        if is_method(operator)
    )
    return methods_file("registry/method_types.py", own)


def methods_of_symbols():
    """The stub of ``SymbolMethods``: operators whose results differ from those on other values.

    A name that variables of programs use otherwise is listed here, too.
    """
    single = dataclasses.replace(SELF, single=True)
    only = {*dir(so.Variable)} - {*dir(so.Symbol)}
    own = ""
    for operator, names in operators({*dir(Var)}):
        several = calls.count(operator) != 1
        kept = [name for name in names if name in only or (several and name not in dir(so.Symbol))]
        if kept and is_method(operator):
            call = method_call(operator, single)
            own += defined(kept, [call], first_paragraph(operator), "    ")
    return methods_file("symop/symbol/method_types.py", own)


def is_method(operator):
    """Whether a value can be the first argument of a call."""
    slots = operator.positional
    return bool(slots) and not operator.leading and (not slots[0].variadic or operator.spreads)


def method_call(operator, kind):
    """The parameters and the result of a method."""
    parameters, result = next(iter(calls.overloads(operator, [kind])))
    first = operator.positional[0]
    return ["self", *parameters[0 if first.variadic else 1 :]], result


def methods_file(path, own):
    """A stub of the only class of a module."""
    module = tree(path)
    (declared,) = [node for node in module.body if isinstance(node, ast.ClassDef)]
    bases = "".join(f"({ast.unparse(one)})" for one in declared.bases)
    page = docstring(ast.get_docstring(declared), "    ")
    return f"{head(module)}\nclass {declared.name}{bases}:\n{page}\n\n{own}"


def head(module):
    """The docstring of a module, and the imports of annotations."""
    return docstring(ast.get_docstring(module), "") + "\n" + CHECKS + TYPES
