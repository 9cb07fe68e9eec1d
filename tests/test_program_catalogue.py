"""Every operator on variables of a program: the node as on symbols, read back, differentiated."""

import jax
import numpy as np
import pytest

import registry
import symop as so
from registry import SelectedRows, VarKind
from symop.io.serialize import decode
from symop.testing import trials
from symop.testing.trial import drawn_arguments
from symop.testing.values import symbol_of

FLOAT = np.dtype("float64")

CALLS = [
    pytest.param(one, case, id=one.name)
    for one in registry.operators()
    for case in one.cases[:1]
    if one.slots
]


def declared(program, slot, name, value):
    """The variable of a program that is fed, or kept, as ``value``."""
    if slot.role == "state":
        return program.state(name, value.shape, value.dtype)
    kind = "selected_rows" if isinstance(value, SelectedRows) else "lod_tensor"
    return program.data(name, value.shape, value.dtype, kind=kind)


def recorded(trial):
    """A program of one call, the variables that are differentiated, and what the call gives."""
    program, active = so.Program(), []
    operator = trial.operator
    arguments = drawn_arguments(operator, trial.case, FLOAT)
    inputs, attributes, _ = operator.bind((), arguments)
    made = []
    for i, value in enumerate(inputs):
        slot = operator.slot_of(i)
        array = isinstance(trial.inputs[i], (jax.Array, SelectedRows)) and not slot.implicit
        name = f"{slot.name}{i}"
        made.append(declared(program, slot, name, trial.inputs[i]) if array else value)
        active += made[-1:] if i in trial.active else []
    if not any(isinstance(one, so.Variable) for one in made):
        result = program.append_op(operator.name, arguments)
        return program, [], result if isinstance(result, tuple) else (result,)
    result = so.Variable.emitter.emit(operator, tuple(made), attributes, None)
    return program, active, result if isinstance(result, tuple) else (result,)


def is_comparable(trial):
    """Whether a symbol of the call is the same node.

    No random key is another, a state of a program has its initial value, and rows are not fed.
    """
    apart = any(slot.role in ("key", "state") for slot in trial.operator.slots)
    return not apart and not any(isinstance(one, SelectedRows) for one in trial.inputs)


def assert_is_read_back(program):
    assert so.Program.parse(str(program)) == program
    assert so.Program.from_desc(decode(program.tojson())) == program


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("operator", "case"), CALLS)
def test_a_call_on_variables(operator, case):
    with jax.enable_x64(True):
        trial = trials(operator, case)[0]
        program, active, made = recorded(trial)
        assert_is_read_back(program)
        if is_comparable(trial):
            symbol, _ = symbol_of(trial)
            assert [one.node for one in made] == list(symbol.nodes)
        dense = [one for one in made if one.kind is not VarKind.LOD_TENSOR_ARRAY]
        carrying = [one for one in dense if one.type.differentiable]
        if not (trial.differentiable and carrying):
            return
        head = so.ones_like(carrying[0])
        pairs = so.append_backward(carrying[0], active, head_grads=head)
        assert all(slope.type.shape == one.type.shape for one, slope in pairs)
        assert_is_read_back(program)
