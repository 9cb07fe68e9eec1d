"""Stubs: they are up to date, and say what calls accept and return."""

import inspect
import re
from pathlib import Path

import jax
import pytest
from stubs import calls
from stubs.files import files

import registry
import symop as so
from registry.operator.call_signature import call_signature
from symop.eager import array_methods
from symop.eager.method_types import ArrayMethods
from symop.testing.trial import Trial

ROOT = Path(__file__).parents[1]
FILES = (
    "symop/__init__.pyi", "symop/sym.pyi", "symop/nd.pyi", "registry/method_types.pyi",
    "symop/symbol/method_types.pyi",
)  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("path", FILES)
def test_up_to_date(golden, path):
    golden(ROOT / path, files()[path])


def test_every_stub_is_compared():
    assert set(files()) == set(FILES)


def test_methods_of_arrays_are_listed():
    """The stub that is written by hand."""
    stub = (ROOT / "symop/eager/method_types.pyi").read_text()
    listed = set(re.findall(r"    def (\w+)\(", stub))
    defined = {*array_methods.METHODS.split(), *array_methods.REDUCTIONS, "reshape", "transpose"}
    assert defined <= listed
    assert all(hasattr(so.NDArray, name) or registry.get(name) for name in listed)
    assert issubclass(so.NDArray, ArrayMethods)


class TestIntrospection:
    def test_signatures(self):
        signature = inspect.signature(so.softmax)
        assert str(signature) == (
            "(x, axis: int | tuple[int, ...] = -1, temperature: float = 1.0, *, "
            "name: str | None = None)"
        )
        assert str(inspect.signature(so.fully_connected)).startswith(
            "(data, weight=LEFT_OUT, bias=LEFT_OUT, *, units: int, use_bias: bool = True"
        )
        assert str(inspect.signature(so.einsum)).startswith("(equation: str, *operands")
        assert "kernel" in inspect.signature(registry.Operator).parameters

    def test_cases_are_calls(self):
        for operator in registry.operators():
            parameters = call_signature(operator, eager=True).parameters
            for case in operator.cases:
                assert set(case.values) <= set(parameters), operator

    def test_names_and_pages(self):
        assert (so.softmax.__name__, so.softmax.__qualname__) == ("softmax", "softmax")
        assert so.softmax.__module__ == "registry.ops.nn.softmax"
        assert so.softmax.__doc__.startswith("Softmax along ``axis``")

    def test_dir(self):
        listed = dir(so.softmax)
        assert {"gradient", "cases", "name", "signature", "__call__"} <= set(listed)
        assert not [one for one in listed if one.startswith("_") and not one.endswith("__")]


@pytest.mark.parametrize("make", [lambda: so.var("x", shape=(2,)), lambda: so.nd.ones(2)])
def test_values_list_their_methods(make):
    value = make()
    assert {"softmax", "sum", "shape", "T"} <= set(dir(value))
    assert all(callable(getattr(value, name)) for name in ("softmax", "sum"))


def test_completion():
    from IPython.core.completer import provisionalcompleter  # noqa: PLC0415  # seldom needed
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415

    shell = InteractiveShell()
    shell.user_ns["so"] = so
    with provisionalcompleter():
        found = {one.text.lstrip(".") for one in shell.Completer.completions("so.soft", 7)}
    assert {"softmax", "softplus", "softsign"} <= found


# Results ---------------------------------------------------------------------------------------


def shape_of(result):
    """The type of a result as a stub writes it."""
    if isinstance(result, (tuple, list)):
        return f"tuple[{', '.join(map(shape_of, result))}]"
    return "jax.Array" if isinstance(result, jax.ShapeDtypeStruct) else type(result).__name__


def agrees(stated, result):
    """Whether a result has the stated type; ``tuple[X, ...]`` states no number."""
    shown = shape_of(result)
    if stated.endswith(", ...]"):
        one = stated.removeprefix("tuple[").removesuffix(", ...]")
        return set(shown.removeprefix("tuple[").removesuffix("]").split(", ")) <= {one}
    return stated in (shown, "Any")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", registry.names())
def test_results(name):
    """Calls on arrays and on symbols return what the stub of their operator says."""
    operator = registry.get(name)
    trial = Trial(operator, operator.cases[0], "float32")
    if any(isinstance(one, registry.SelectedRows) for one in trial.inputs):
        return
    arrays = [i for i, one in enumerate(trial.inputs) if isinstance(one, jax.Array)]

    def call(*values):
        placed = dict(zip(arrays, values, strict=True))
        inputs = [placed.get(i, one) for i, one in enumerate(trial.inputs)]
        return applied(operator, inputs, operator.attribute_dict(trial.attributes))

    values = [trial.inputs[i] for i in arrays]
    result = jax.eval_shape(call, *values)
    assert agrees(calls.result(operator, calls.ARRAYS), result), shape_of(result)
    if values and not any(slot.implicit for slot in operator.slots):
        result = call(*(so.var(f"x{i}", x.shape, x.dtype) for i, x in enumerate(values)))
        lone = operator.variadic_output and isinstance(result, tuple)
        assert lone or agrees(calls.result(operator, calls.SYMBOL), result), shape_of(result)


def applied(operator, inputs, attributes):
    """Calls an operator with a value for each slot."""
    slots = [operator.slot_of(i) for i in range(len(inputs))]
    pairs = list(zip(slots, inputs, strict=True))
    unused = {slot.name for slot in slots if attributes.get(f"use_{slot.name}") is False}
    named = {s.name: one for s, one in pairs if not (s.variadic or one is None)}
    named = {key: one for key, one in named.items() if key not in unused}
    rest = [one for slot, one in pairs if slot.variadic]
    lists = {operator.slots[-1].name: rest} if rest else {}
    return operator(**named, **lists, **attributes)
