"""Storage types of arrays: MXNet's numbers, the table of rules, and the fallback to dense arrays.

A rule says, for an operator and the storage types of its inputs, the storage type of its output and
how that is computed without making an input dense. Calls for which there is no rule run on dense
arrays, with a warning. ``RULES`` is the only table: array code, executors, ``infer_storage_type``
and the documentation read it.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from registry.types import VarKind
from symop.interop.mxnet.errors import MXNetError

DEFAULT, ROW_SPARSE, CSR = "default", "row_sparse", "csr"
NUMBERS = {DEFAULT: 0, ROW_SPARSE: 1, CSR: 2}
"""The storage types, with their numbers in files and attributes."""
Values = Mapping[str, Any]
Stypes = Sequence[str]


class StorageFallbackWarning(UserWarning):
    """An operator makes sparse arrays dense, since no rule computes it from them."""


def require_stype(what: str, stype: Any) -> str:
    """``stype`` if it is a storage type.

    Raises:
        MXNetError: it is not one.
    """
    if stype not in NUMBERS:
        raise MXNetError(f"{what}: stype must be one of {', '.join(NUMBERS)}, got {stype!r}")
    return str(stype)


def stype_of_number(name: str, text: str) -> str:
    """The storage type that the attribute ``__storage_type__`` of a variable names.

    Raises:
        MXNetError: there is no such storage type.
    """
    if text == "-1":
        return DEFAULT
    for stype, number in NUMBERS.items():
        if text in (str(number), stype):
            return stype
    raise MXNetError(f"{name}: __storage_type__ must be 0, 1 or 2, got {text!r:.80}")


# Rules -----------------------------------------------------------------------------------------


class When(NamedTuple):
    """A condition on the attributes of a call.

    Attributes:
        text: the condition in words, for the table.
        holds: whether attributes meet it.
    """

    text: str
    holds: Callable[[Values], bool]


EVERY = -1
"""The index in ``Rule.gradients`` of inputs that it does not name."""
ALWAYS = When("", lambda values: True)


class Rule(NamedTuple):
    """One case of an operator.

    Attributes:
        inputs: the storage types of the inputs, of which one at least is sparse, unless the rule
            is ``dense``; a ``|`` separates alternatives, and ``*`` at the end of the last one
            accepts any number of inputs.
        output: the storage type of the output, or a function of the attributes that returns it.
        compute: computes the outputs from arrays of these storage types and the attributes.
        when: the condition on the attributes.
        gradients: the storage types of gradients, by the index of the input, if they are not
            dense; ``"same"`` for that of the output's gradient; ``EVERY`` for all others.
        traced: whether the computation is recorded, so that gradients flow to all inputs but csr
            arrays; without it, calls that are recorded run on dense arrays.
        of_csr: whether gradients flow to csr arrays, too.
        dense: whether the rule is for dense inputs, too.
        in_place: computes the same in place of the first input, for ``out=``.
    """

    inputs: tuple[str, ...]
    output: str | Callable[[Values], str]
    compute: Callable[..., Any]
    when: When = ALWAYS
    gradients: Mapping[int, str] = {}
    traced: bool = True
    of_csr: bool = False
    dense: bool = False
    in_place: Callable[..., None] | None = None

    def accepts(self, stypes: Stypes, values: Values) -> bool:
        """Whether the rule is for inputs of these storage types and for these attributes."""
        patterns = self.inputs
        if patterns[-1].endswith("*"):
            rest = (patterns[-1][:-1],) * max(len(stypes) - len(patterns) + 1, 0)
            patterns = (*patterns[:-1], *rest)
        if len(patterns) != len(stypes) or not (self.dense or any(o != DEFAULT for o in stypes)):
            return False
        fits = all(one in told.split("|") for told, one in zip(patterns, stypes, strict=True))
        return fits and self.when.holds(values)

    def gradient(self, index: int) -> str:
        """The storage type of the gradient of an input, or ``"same"``."""
        return self.gradients.get(index, self.gradients.get(EVERY, DEFAULT))

    def stype(self, values: Values) -> str:
        """The storage type of the output."""
        return self.output if isinstance(self.output, str) else self.output(values)


RULES: dict[str, list[Rule]] = {}
"""The rules by the operator's own name; the first that accepts a call is used."""


def rule(
    names: str | Sequence[str], inputs: Sequence[str], output: Any, **how: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares the decorated function, of arrays and attributes, as a rule of operators.

    Args:
        names: the operators.
        inputs: see ``Rule``.
        output: see ``Rule``.
        **how: further fields of ``Rule``.
    """

    def declare(compute: Callable[..., Any]) -> Callable[..., Any]:
        for name in [names] if isinstance(names, str) else names:
            RULES.setdefault(name, []).append(Rule(tuple(inputs), output, compute, **how))
        return compute

    return declare


def chosen(name: str, stypes: Stypes, values: Values) -> Rule | None:
    """The rule for a call; None if it runs on dense arrays."""
    return next((one for one in RULES.get(name, ()) if one.accepts(stypes, values)), None)


def starts_dense(name: str) -> bool:
    """Whether a rule of the operator is for dense inputs alone, as that of ``cast_storage``."""
    return any(one.dense for one in RULES.get(name, ()))


def output_stype(name: str, stypes: Stypes, values: Values) -> str:
    """The storage type of the outputs of a call."""
    found = chosen(name, stypes, values)
    if found is not None:
        return found.stype(values)
    wanted = values.get("forward_stype") if name == "dot" else None
    return wanted or DEFAULT


# Fallback --------------------------------------------------------------------------------------

_told: set[str] = set()


def warn_fallback(what: str, stypes: Stypes, output: str = DEFAULT, level: int = 3) -> None:
    """Warns that ``what`` makes sparse arrays dense, once for each combination.

    The environment variable ``MXNET_STORAGE_FALLBACK_LOG_VERBOSE`` set to 0 silences it.
    """
    if os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE") == "0":
        return
    text = (
        f"{what}: no rule computes it from storage types [{', '.join(stypes)}] to {output}, so it "
        "runs on dense arrays; the result is right, time and memory are those of dense arrays"
    )
    if text not in _told:
        _told.add(text)
        warnings.warn(text, StorageFallbackWarning, stacklevel=level)


def warn_if_dense(gradient: Any, stype: str) -> None:
    """Warns if a gradient in a sparse array is dense: updates then change all entries."""
    if gradient.type.kind is not VarKind.SELECTED_ROWS:
        warn_fallback("the gradient of an array", [DEFAULT], stype, level=4)


def forget_warnings() -> None:
    """Makes each fallback warn again."""
    _told.clear()
