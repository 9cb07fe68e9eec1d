"""Creation of symbols: variables, groups, and calls of operators by MXNet's names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symop.interop.mxnet.attributes import DTYPES, is_hidden, written
from symop.interop.mxnet.calls import bound
from symop.interop.mxnet.errors import MXNetError
from symop.interop.mxnet.graph import Entry, Node, describe_initial
from symop.interop.mxnet.operators import Operator, find
from symop.interop.mxnet.scopes import current_attributes, current_names
from symop.interop.mxnet.storage import NUMBERS, require_stype
from symop.interop.mxnet.symbol_json import HIDDEN
from symop.interop.mxnet.symbols import Symbol


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: int | Sequence[int] | None = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    **kwargs: Any,
) -> Symbol:
    """Creates a variable.

    Args:
        name: its name.
        attr: strings to attach.
        shape: its shape; 0 for an unknown length.
        lr_mult: a factor of the learning rate.
        wd_mult: a factor of the weight decay.
        dtype: its dtype.
        init: its initializer, or the description of one.
        **kwargs: further attributes, between double underscores; ``stype``, the storage type.

    Raises:
        MXNetError: the name is not a str, or an attribute is not between double underscores.
    """
    if not isinstance(name, str):
        raise MXNetError(f"var: name must be a str, got {name!r}")
    stype = kwargs.pop("stype", None)
    for key in kwargs:
        if not is_hidden(key):
            raise MXNetError(f"var: attributes must be called __{key}__, got {key!r}")
    told = {
        "__shape__": None if shape is None else _lengths(shape),
        "__lr_mult__": lr_mult,
        "__wd_mult__": wd_mult,
        "__dtype__": None if dtype is None else _dtype_number(dtype),
        "__init__": init if init is None or isinstance(init, str) else init.dumps(),
        "__storage_type__": None if stype is None else NUMBERS[require_stype("var", stype)],
    }
    own = {key: written(one) for key, one in {**told, **kwargs}.items() if one is not None}
    given = {_hidden(key): one for key, one in current_attributes().get(dict(attr or {})).items()}
    return Symbol([(Node(None, name, {**given, **own}), 0)])


Variable = var


def _lengths(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _dtype_number(dtype: Any) -> int:
    return DTYPES.index(np.dtype(dtype))


def _hidden(key: str) -> str:
    return f"__{key}__" if key in HIDDEN else key


def Group(symbols: Sequence[Symbol]) -> Symbol:  # noqa: N802  # MXNet's name
    """One symbol with all outputs of ``symbols``."""
    if not symbols or not all(isinstance(one, Symbol) for one in symbols):
        raise MXNetError(f"Group: symbols must be given, got {symbols!r}")
    return Symbol([entry for one in symbols for entry in one.heads])


def call(operator: Operator, called: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Symbol:
    """A call of ``operator`` under the name ``called``; missing inputs become variables."""
    options = dict(kwargs)
    options.pop("out", None)  # which MXNet ignores, too
    name, attr = options.pop("name", None), dict(options.pop("attr", None) or {})
    attr.update({key: written(options.pop(key)) for key in HIDDEN if key in options})
    given = bound(operator, args, options, lambda one: isinstance(one, Symbol))
    name = current_names().get(name, called.lower())
    scope = current_attributes().get(attr)
    attributes = {**{_hidden(key): one for key, one in scope.items()}, **given.attributes}
    inputs: list[Entry] = []
    for slot in given.names:
        one = given.inputs.get(slot)
        if one is None:
            inputs.append((Node(None, f"{name}_{slot}", attributes), 0))
        elif len(one) == 1:
            inputs.append(one.heads[0])
        else:
            raise MXNetError(f"{operator.name}: {slot} must have one output, got {one!r}")
    describe_initial(operator, given.names, inputs)
    node = Node(operator, name, attributes, inputs)
    return Symbol([(node, i) for i in range(node.visible)])


def function_of(called: str) -> Callable[..., Symbol]:
    """The operator ``called``, as a function of symbols and attributes.

    Raises:
        MXNetError: there is no such operator.
    """
    operator = find(called)

    def function(*args: Any, **kwargs: Any) -> Symbol:
        return call(operator, called, args, kwargs)

    function.__name__ = function.__qualname__ = called
    function.__doc__ = operator.function.__doc__
    return function
