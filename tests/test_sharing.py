"""Numbers as operands: programs that differ in them alone are compiled once."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_eager_catalogue import OPERATORS, check

import symop as so
from registry import Array, caches, op, operators
from registry.errors import AttributeValueError, DTypeError, SymopError
from registry.operator.binding import LEFT_OUT
from registry.types import TRAINING_TYPE
from symop import autograd, nd
from symop.eager.ndarray import NDArray
from symop.eager.trace_cache import tree
from symop.lowering import sharing
from symop.lowering.sharing import number_places, reading_of, with_numbers
from symop.lowering.steps import type_of
from symop.testing.compare import eps, expect_close
from symop.testing.trial import compiled as compiled_quickly
from symop.testing.trial import trials

WITH_NUMBERS = [one for one in operators() if one.number_indices and one.cases]
compiled = []
ROUNDING = 16
"""The error of operands in rounding errors: XLA divides by a constant in another way."""


@pytest.fixture(autouse=True, scope="module")
def listening():
    """Count what JAX compiles."""

    def note(event, _seconds, **_more):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield
    jax.monitoring.unregister_event_duration_listener(note)


def compilations(run):
    before = len(compiled)
    run()
    return len(compiled) - before


# The rule ---------------------------------------------------------------------------------------


def types_of(trial):
    found = [None if one is None else type_of(one) for one in trial.inputs]
    if trial.operator.training_index is not None:
        found[trial.operator.training_index] = TRAINING_TYPE
    return tuple(found)


def calls(operator, dtype):
    """The calls of the cases, and the places of the attributes that are numbers in them."""
    for case in operator.cases:
        for trial in trials(operator, case, dtype) if dtype in case.dtypes else ():
            yield trial, number_places(operator, trial.attributes)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("operator", WITH_NUMBERS, ids=lambda one: one.name)
def test_operands_compute_what_attributes_do(operator):
    for trial, places in calls(operator, "float32"):
        types, given = types_of(trial), trial.attributes
        reading, numbers = reading_of(operator, places, given, types)
        arrays = [i for i, one in enumerate(trial.inputs) if isinstance(one, jax.Array)]

        def run(numbers, *values, trial=trial, reading=reading, arrays=arrays):
            inputs = trial.replaced(arrays, values)
            attributes = trial.operator.attribute_dict(trial.attributes)
            attributes |= reading.arguments(trial.attributes, numbers)
            return jax.tree.leaves(trial.operator.kernel(*inputs, **attributes))

        def constant(*values, trial=trial, arrays=arrays):
            return jax.tree.leaves(
                trial.operator.run(trial.replaced(arrays, values), trial.attributes)
            )

        if numbers:
            values = [trial.inputs[i] for i in arrays]
            expected = jitted(constant, *values)
            for mine, theirs in zip(jitted(run, numbers, *values), expected, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), str(trial)
                expect_close(mine, theirs, ROUNDING * eps(theirs.dtype), f"{trial}: operands")


def jitted(function, *arguments):
    return compiled_quickly(function, *arguments)(*arguments)


DIFFERENTIABLE = [one for one in OPERATORS if one.number_indices]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("operator", DIFFERENTIABLE, ids=lambda one: one.name)
@pytest.mark.parametrize("at_once", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_gradients_with_operands_are_those_of_the_graph(operator, at_once, monkeypatch):
    """From the first call on every number that may be an operand is one, also in makers."""
    monkeypatch.setattr(sharing, "VARIETY", 0)
    caches.clear()
    check(operator, 2, at_once)


# The catalogue ------------------------------------------------------------------------------------


COMPILED_ANEW = {
    ("arange", "start"): "it determines the length",
    ("arange", "stop"): "it determines the length",
    ("arange", "step"): "it determines the length",
    ("boolean_mask", "fill_value"): "the gather of XLA holds the fill value",
    ("gather_nd", "fill_value"): "the gather of XLA holds the fill value",
    ("piecewise_decay", "values"): "it is a tuple",
    ("sequence_pad", "pad_value"): "the gather of XLA holds the fill value",
    ("take", "fill_value"): "the gather of XLA holds the fill value",
    ("take_along_axis", "fill_value"): "the gather of XLA holds the fill value",
}
"""The numbers for each of which a program is compiled, and why."""


def changing(trial, places, count):
    """Attributes that differ at ``places`` and are valid in a call; None if there are none."""
    for factor in (-0.0071, 0.0071):
        rows = [
            with_numbers(
                trial.attributes,
                places,
                [trial.attributes[i] * (1 + factor * k) or abs(factor) * k for i in places],
            )
            for k in range(count)
        ]
        if all(map(functools.partial(is_valid, trial), rows)):
            return rows
    return None


def is_valid(trial, attributes):
    try:
        trial.operator.infer(trial.types, attributes)
        for attribute, one in zip(trial.operator.attributes, attributes, strict=True):
            attribute.convert(one)
    except SymopError:
        return False
    return True


def trials_of_all_numbers(operator, backward):
    """Trials in which each number varies once, and the numbers that do."""
    seen = set()
    for trial, places in calls(operator, "float32"):
        free = [
            i
            for i in places
            if (operator.name, operator.attributes[i].name) not in COMPILED_ANEW
            and changing(trial, [i], 2)  # a rate of dropout without a seed is zero
        ]
        if not seen.issuperset(free) and (trial.differentiable or not backward):
            seen |= set(free)
            yield trial, free


def run_each(trial, rows, backward):
    for attributes in rows:
        run_eagerly(trial, attributes, backward)


def run_eagerly(trial, attributes, backward):
    operator = trial.operator
    arrays = [nd.array(one) if isinstance(one, jax.Array) else one for one in trial.inputs]
    inputs = tuple(
        LEFT_OUT if operator.slot_of(i).implicit else one for i, one in enumerate(arrays)
    )
    primals = [arrays[i] for i in trial.active] if backward else []
    for one in primals:
        one.attach_grad()
    mode = autograd.train_mode() if trial.training else autograd.predict_mode()
    with autograd.record(bool(trial.training)) if backward else mode:
        made = NDArray.emitter.emit(operator, inputs, attributes, None)
    made = made if isinstance(made, tuple) else (made,)
    if backward:
        autograd.backward([one for one in made if one.type.differentiable])
    for one in [*made, *[one.grad for one in primals]]:
        one.wait_to_read()


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("operator", WITH_NUMBERS, ids=lambda one: one.name)
@pytest.mark.sampled(24)
def test_new_numbers_compile_nothing(operator, backward):
    """After the first ones, whatever becomes of them in the kernel and in gradient makers."""
    known = 24
    for trial, places in trials_of_all_numbers(operator, backward):
        rows = changing(trial, places, known + 6)
        assert rows, f"{trial}: no other numbers are valid"
        run_each(trial, rows[:known], backward)
        later = functools.partial(run_each, trial, rows[known:], backward)
        assert compilations(later) == 0, str(trial)


def test_each_number_changes_or_is_listed():
    declared = {(one, one.attributes[i].name) for one in WITH_NUMBERS for i in one.number_indices}
    varied = {
        (one, one.attributes[i].name)
        for one in WITH_NUMBERS
        for _, places in trials_of_all_numbers(one, backward=False)
        for i in places
    }
    listed = {(one, name) for one, name in declared if (one.name, name) in COMPILED_ANEW}
    assert len(listed) == len(COMPILED_ANEW)
    assert declared == varied | listed


# Programs ---------------------------------------------------------------------------------------


@pytest.fixture
def x():
    return nd.array(np.linspace(-1.0, 1.0, 7, dtype=np.float32))


class TestNumbersThatChange:
    """Steps with ever new numbers compile no more than the first few."""

    STEPS = 60

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(
        "call",
        [
            lambda x, t: nd.clip(x, -t, t),
            lambda x, t: nd.clip(x, -1, t),
            lambda x, t: nd.leaky_relu(x, slope=t),
            lambda x, t: nd.elu(x, alpha=t),
            lambda x, t: nd.softmax(x, temperature=t),
            lambda x, t: nd.layer_norm(x, nd.ones(7), nd.zeros(7), eps=t),
        ],
    )
    def test_one_call(self, call, x, way):
        def run():
            found = [call(x, (i + 1) / self.STEPS).asnumpy() for i in range(self.STEPS)]
            assert len({one.tobytes() for one in found}) > self.STEPS / 2

        assert compilations(run) < 20
        one = call(x, 0.7123)
        with nd.direct():
            caches.clear()
            np.testing.assert_allclose(one.asnumpy(), call(x, 0.7123).asnumpy(), rtol=1e-6)

    def test_calls_on_arrays_of_jax(self, x):
        given = x.asjax()

        def run():
            for i in range(self.STEPS):
                alpha = 0.5 + i / 100
                found = np.asarray(so.elu(given, alpha=alpha))
                bent = np.where(given > 0, given, alpha * np.expm1(given))
                np.testing.assert_allclose(found, bent, rtol=1e-5)

        assert compilations(run) < 20
        with pytest.raises(DTypeError, match="elu: "):
            so.elu(np.arange(3), alpha=0.123)

    def test_what_is_an_operand_depends_on_the_types(self, x, way):
        """A bound of floats may be traced, one of integers is rounded by Python."""
        whole = nd.array(np.arange(-3, 4))
        for i in range(12):
            t = (i + 1) / 5
            np.testing.assert_allclose(nd.clip(x, -t, t), np.clip(x.asnumpy(), -t, t), rtol=1e-6)
            bounds = np.ceil(-t), np.floor(t)
            np.testing.assert_array_equal(nd.clip(whole, -t, t), np.clip(np.arange(-3, 4), *bounds))

    def test_values_are_those_of_the_numbers(self, x, way):
        for i in range(20):
            slope = i / 10 - 0.5
            found = nd.leaky_relu(x, slope=slope).asnumpy()
            given = x.asnumpy()
            np.testing.assert_allclose(found, np.where(given > 0, given, slope * given), rtol=1e-6)

    def test_new_numbers_leave_no_steps(self, x):
        """Outside recording; an error is that of the call."""
        for i in range(40):
            if i == 20:
                before = tree.count
            nd.clip(x, -i - 1, i + 1).wait_to_read()
        assert tree.count == before
        with pytest.raises(AttributeValueError, match="clip: low must be at most high"):
            nd.clip(x, 50.5, -50.5)
        found = jax.jit(lambda value: nd.clip(nd.array(value), -60.5, 0.25).asjax())(x.asjax())
        np.testing.assert_array_equal(found, np.minimum(x.asnumpy(), 0.25))

    def test_steps_of_training(self, x):
        x.attach_grad()

        def step(i):
            slope = i / 100
            with autograd.record():
                loss = nd.sum(nd.leaky_relu(x * 2, slope=slope) ** 2)
            loss.backward()
            given = x.asnumpy()
            slopes = np.where(given > 0, 1.0, slope)
            np.testing.assert_allclose(x.grad.asnumpy(), 8 * given * slopes**2, rtol=1e-5)

        assert compilations(lambda: [step(i) for i in range(self.STEPS)]) < 30

    def test_gradients_of_second_order(self, x):
        x.attach_grad()

        def step(i):
            alpha = 0.5 + i / 100
            with autograd.record():
                y = nd.elu(x, alpha=alpha)
                (slope,) = autograd.grad(y, x, create_graph=True, retain_graph=True)
            slope.backward()
            given = x.asnumpy()
            bent = np.where(given > 0, 0.0, alpha * np.exp(given))
            np.testing.assert_allclose(x.grad.asnumpy(), bent, rtol=1e-5)

        assert compilations(lambda: [step(i) for i in range(self.STEPS)]) < 40

    def test_what_python_branches_on_stays_an_attribute(self, x):
        def run():
            for i in range(10):
                with autograd.train_mode():
                    nd.dropout(x, rate=i / 10).asnumpy()

        run()
        assert nd.dropout(x, rate=0.3).asnumpy().tolist() == x.asnumpy().tolist()

    def test_symbols_of_records_name_the_numbers(self, x):
        x.attach_grad()
        for i in range(10):
            with autograd.record():
                y = nd.leaky_relu(x, slope=i / 100 + 0.002)
            y.wait_to_read()
            assert f"slope={i / 100 + 0.002}" in str(autograd.get_symbol(y))

    def test_digits_stay(self):
        """Python subtracts in double precision, and what it computes is the operand."""
        (operator,) = [one for one in WITH_NUMBERS if one.name == "rmsprop"]
        trial, places = next(calls(operator, "float32"))
        attributes = with_numbers(trial.attributes, places[:1], [0.9990001])
        reading, numbers = reading_of(operator, places, attributes, types_of(trial))
        assert [operator.attributes[i].name for i in reading.places] == ["decay", "eps"]
        assert 1 - 0.9990001 in numbers


class TestPaths:
    """A comparison in a kernel divides the numbers into those of one path and of another."""

    @pytest.mark.usefixtures("temporary_operators")
    def test_a_comparison_of_two_numbers(self):
        @op
        def doc_between(x: Array, *, low: float = 0.0, high: float = 1.0) -> Array:
            """``x`` times the larger number."""
            return x * (high if high > 2 * low else low)

        types = (type_of(jnp.zeros(3)),)
        for low, high in ((0.1, 0.2), (0.3, 0.4), (0.25, 0.7)):
            reading, numbers = reading_of(doc_between, (0, 1), (low, high), types)
            assert (reading.places, numbers) == ((0, 1), (high if high > 2 * low else low,))

    @pytest.mark.usefixtures("temporary_operators")
    def test_a_number_whose_value_is_needed(self):
        """It is a constant of the program, and the others remain operands."""

        @op
        def doc_rounded(x: Array, *, slope: float = 0.0, shift: float = 0.0) -> Array:
            """``slope x`` plus the rounded shift."""
            return slope * x + round(float(shift))

        types = (type_of(jnp.zeros(3)),)
        for i in range(3 * sharing._PATHS):
            reading, numbers = reading_of(doc_rounded, (0, 1), (i / 10, 1.0 * i), types)
            assert (reading.places, numbers) == ((0,), (i / 10,))

    @pytest.mark.usefixtures("temporary_operators")
    def test_values_on_both_paths(self, x, way):
        @op
        def doc_raised(x: Array, *, slope: float = 0.0, power: float = 1.0) -> Array:
            """``slope x``, squared if ``power`` says so."""
            return slope * (x * x if power == 2 else x)

        types = (type_of(jnp.zeros(3)),)
        assert reading_of(doc_raised, (0, 1), (0.1, 2.0), types)[1] == (0.1,)
        for i in range(12):
            slope, power = i / 10, 1.0 + i % 3
            found = doc_raised(x, slope=slope, power=power).asnumpy()
            given = x.asnumpy()
            expected = slope * (given**2 if power == 2 else given)
            np.testing.assert_allclose(found, expected, rtol=1e-6)


class TestShapesThatChange:
    """As many programs as ``jit(grad)`` has, and none in the second pass."""

    COUNT = 12

    def test_with_backward(self):
        w = nd.ones((3, 2))
        w.attach_grad()

        def walk():
            for n in range(2, 2 + self.COUNT):
                x = nd.array(np.ones((n, 3), np.float32))
                with autograd.record():
                    loss = nd.mean((nd.tanh(x @ w) * 2 - 1) ** 2)
                loss.backward()
                w.grad.wait_to_read()

        walk()  # with it what others compiled before does not count
        caches.clear()
        jax.clear_caches()
        parts = 20
        assert compilations(walk) <= 2 * self.COUNT + parts
        assert compilations(walk) <= 1
        assert compilations(walk) == 0

    def test_few_new_parts_do_not_compile_the_whole(self, x):
        def step(rate):
            y = x
            for _ in range(30):
                y = nd.tanh(y) + 1
            with autograd.train_mode():
                nd.sum(nd.dropout(y, rate=rate)).wait_to_read()

        step(0.1)
        step(0.2)
        assert compilations(lambda: step(0.3)) < 5
