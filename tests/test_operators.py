"""The proofs of every operator, driven by the cases that stand beside it; no operator is named."""

import contextlib
import dataclasses
import functools
from pathlib import Path

import chex
import jax
import numpy as np
import pytest

import registry
from registry.errors import SymopError
from registry.operator.attributes import REQUIRED
from registry.operator.bodies import BodySample, drawn
from registry.operator.operator import Derivative
from symop import testing
from symop.testing import PROOFS
from symop.testing.derived import derivatives
from symop.testing.trial import trials

GOLDEN = Path(__file__).parent / "golden" / "gradients"
OPERATORS = list(registry.operators())
FIRST_CASES = [(one, one.cases[0]) for one in OPERATORS if one.cases]
TO_SECOND_ORDER = {operator.name for operator in OPERATORS[::8]}
"""Each order takes as long as those below it together; ``make proofs`` has all of all operators."""
FURTHER_CASES = [(operator, case) for operator in OPERATORS for case in operator.cases[1:]]
MISUSES = [(operator, misuse) for operator in OPERATORS for misuse in operator.misuses]
LONG = ("half", "complex", "vmap", "linearity", "differences")
"""Proofs that compile everything once more, in other dtypes or for other inputs."""
OF_GRADIENTS = ("kernel", "rules", "adjoint")
DIFFERENTIABLE = [one for one in OPERATORS if one.derivative is Derivative.MAKER]

every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)


@functools.cache  # what proofs compile is kept by the case
def shortened(operator, case, place):
    """The case to first or second order, in one of its dtypes."""
    order = min(case.order, 2 if operator.name in TO_SECOND_ORDER else 1)
    return dataclasses.replace(case, order=order, dtypes=(case.dtypes[place],))


def identify(value):
    return value.name if isinstance(value, registry.Operator) else str(value)


def cases(argvalues):
    """The scope keeps the proofs of one case together: they share what they compile."""
    return pytest.mark.parametrize(("operator", "case"), argvalues, ids=identify, scope="class")


@cases(FIRST_CASES)
@pytest.mark.sampled(6, by="operator")
class TestFirstCase:
    """``make proofs`` runs every proof on every case; ``test_sheets`` sees that it was done."""

    @pytest.mark.parametrize("proof", [one for one in PROOFS if one not in LONG], scope="class")
    def test_proof(self, operator, case, proof):
        in_double = proof in OF_GRADIENTS
        PROOFS[proof](operator, shortened(operator, case, -1 if in_double else 0))


@cases(FURTHER_CASES)
@pytest.mark.sampled(24)
def test_kernel_equals_reference(operator, case):
    testing.check_reference(operator, shortened(operator, case, 0))


@pytest.mark.parametrize(("operator", "misuse"), MISUSES, ids=identify)
def test_misuse_is_refused(operator, misuse):
    testing.check_misuse(operator, misuse)


@every_operator
@pytest.mark.sampled(8)  # compiled, the proof of the doors has them
def test_rules_leave_the_value_as_it_is(operator):
    trial = trials(operator, operator.cases[0], "float32")[0]
    places = [i for i, one in enumerate(trial.inputs) if isinstance(one, jax.Array)]
    arrays = [trial.inputs[i] for i in places]
    result = trial.function("rules", places)(*arrays)
    expected = trial.function("kernel", places)(*arrays)
    chex.assert_trees_all_equal_shapes_and_dtypes(result, expected)
    chex.assert_trees_all_close(result, expected, rtol=1e-5, atol=1e-6)


def bodies_in(case):
    """The bodies among the values of a case."""
    return [one for one in case.values.values() if isinstance(one, BodySample)]


@every_operator
class TestDeclaration:
    def test_derivative_is_declared(self, operator):
        assert operator.derivative is not Derivative.MISSING

    def test_cases_reach_every_attribute(self, operator):
        assert operator.cases, "it has no case"
        # Whether a key is used follows from the bodies that operators of control flow run.
        flags = {operator.attributes[i].name for i in operator.use_flags.values()}
        follows = flags if any(map(bodies_in, operator.cases)) else set()
        for attribute in operator.attributes:
            if attribute.name in follows:
                continue
            values = [
                attribute.canonical(
                    drawn(case.values[attribute.name], np.dtype("float32")), operator.name
                )
                for case in operator.cases
                if attribute.name in case.values
            ]
            usual = None if attribute.default is REQUIRED else attribute.default
            assert [one for one in values if one != usual], f"no case gives {attribute.name}"

    def test_some_call_is_refused(self, operator):
        assert operator.misuses

    def test_page_shows_a_call_or_a_formula(self, operator):
        page = operator.__doc__
        assert page, "it has no docstring"
        assert "Example:" in page or "``" in page, "it has neither example nor formula"
        assert page.strip().splitlines()[0].endswith((".", ";", ":")), "it starts mid-sentence"


# What is wrong is said when the call is made -----------------------------------------------------


def changed(value):
    """An attribute's value with a whole number in it replaced by one that may be illegal."""
    if isinstance(value, tuple):
        for i, one in enumerate(value):
            yield from ((*value[:i], other, *value[i + 1 :]) for other in changed(one))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (-1, 0, value + 1)


def changed_calls(trial):
    """Calls of a trial in which one attribute is changed: the operator, and its attributes."""
    given = trial.operator.attribute_dict(trial.attributes)
    for name, value in given.items():
        for one in changed(value):
            with contextlib.suppress(SymopError):
                attributes = trial.operator._canonical({**given, name: one}, {})
                called = (trial.operator.family or trial.operator).resolved(
                    trial.inputs, attributes
                )
                yield called, attributes, f"{name}={one}"


@every_operator
def test_what_inference_accepts_the_kernel_accepts(operator):
    trial = trials(operator, operator.cases[0], "float32")[0]
    for called, attributes, what in changed_calls(trial):
        if not called.inference.told:
            continue  # the kernel is traced to infer
        try:
            told = called.infer(trial.types, attributes)
        except SymopError:
            continue
        traced = called.inference._traced(trial.types, attributes)
        assert [one.shape for one in traced] == [one.shape for one in told], what


@pytest.mark.golden
@pytest.mark.parametrize("operator", DIFFERENTIABLE, ids=lambda one: one.name)
def test_gradient_program(operator, golden):
    tried = [trials(operator, case, "float32") for case in operator.cases]
    first = next(each for each in tried if each[0].differentiable)
    shown = [f"# {trial}\n{derivatives(trial).graph.program(1)}" for trial in first]
    golden(GOLDEN / f"{operator.name}.txt", "\n".join(shown))


# The proofs themselves find what they are for --------------------------------------------------


def declare(maker, **options):
    @registry.op(name="wrong_cube", cases=[registry.case(x=(3,))], **options)
    def kernel(x: registry.Array) -> registry.Array:
        """``x ** 3``."""
        return x * x * x

    kernel.gradient(maker)
    return kernel


@pytest.mark.usefixtures("temporary_operators")
class TestProofsFindFaults:
    def test_wrong_factor(self):
        operator = declare(lambda x, d_out: {"x": 2.0 * x * x * d_out})
        with pytest.raises(AssertionError, match=r"order 1, .*(?s:.*)must be .*(?s:.*)multiply"):
            testing.check_gradient(operator, operator.cases[0])

    def test_output_that_is_taken_for_a_constant(self):
        operator = declare(
            lambda x, d_out: {"x": registry.get("stop_gradient")(3.0 * x * x) * d_out}
        )
        testing.check_gradient(operator, operator.cases[0], order=1)
        with pytest.raises(AssertionError, match="order 2, "):
            testing.check_gradient(operator, operator.cases[0])

    def test_maker_that_ignores_its_cotangent(self):
        operator = declare(lambda x, d_out: {"x": 3.0 * x * x})
        with pytest.raises(AssertionError, match="not linear in the cotangent"):
            testing.check_linearity(operator, operator.cases[0])

    def test_maker_that_squares_its_cotangent(self):
        operator = declare(lambda x, d_out: {"x": 3.0 * x * x * d_out * d_out})
        with pytest.raises(AssertionError, match="not linear in the cotangent"):
            testing.check_linearity(operator, operator.cases[0])

    def test_wrong_reference(self):
        operator = declare(lambda x, d_out: {"x": None}, reference=lambda x: x * x)
        with pytest.raises(AssertionError, match="against the reference: entry \\(0,\\)"):
            testing.check_reference(operator, operator.cases[0])

    def test_wrong_types(self):
        operator = declare(
            lambda x, d_out: {"x": None}, shape=lambda x: (), dtype=lambda x: x.dtype
        )
        with pytest.raises(AssertionError, match="inferred types must be those of the kernel"):
            testing.check_inference(operator, operator.cases[0])

    def test_misuse_that_goes_through(self):
        operator = declare(lambda x, d_out: {"x": None})
        with pytest.raises(AssertionError, match="must be refused"):
            testing.check_misuse(operator, registry.misuse("x must be short", x=(99,)))

    def test_wrong_zero(self):
        @registry.op(name="wrong_zero", cases=[registry.case(x=(3,))])
        def kernel(x: registry.Array) -> registry.Array:
            """``x * x``."""
            return x * x

        kernel.zero_gradient("someone thought so")
        with pytest.raises(AssertionError, match="declared zero"):
            testing.check_gradient(kernel, kernel.cases[0])

    def test_verdict_tells_what_fails(self, capsys):
        operator = declare(lambda x, d_out: {"x": 2.0 * x * x * d_out})
        verdict = testing.check_operator(operator.name)
        assert not verdict.ok
        assert {one.proof for one in verdict.failures} >= {"kernel", "adjoint"}
        assert "kernel        1 cases  FAILS on 1" in capsys.readouterr().out


def square(x):
    """A square, declared with that sample."""

    @registry.op(name="infinite_square", cases=[registry.case(x=x, order=2)], native=True)
    def kernel(x: registry.Array) -> registry.Array:
        """``x ** 2``."""
        return x * x

    return kernel


HALF_INFINITE = np.array([np.inf, 1.0, 2.0])


@pytest.mark.usefixtures("temporary_operators")
class TestWhereValuesAreInfinite:
    """Sums are taken over what is finite; where nothing is, no proof says that it holds."""

    def test_differences_see_what_is_finite(self):
        operator = square(HALF_INFINITE)
        operator.gradient(lambda x, d_out: {"x": 3.0 * x * d_out})
        with pytest.raises(AssertionError, match=r"order 1, .* against finite differences"):
            testing.check_differences(operator, operator.cases[0])

    def test_differences_hold_for_what_is_finite(self):
        operator = square(HALF_INFINITE)
        operator.gradient(lambda x, d_out: {"x": 2.0 * x * d_out})
        assert testing.check_differences(operator, operator.cases[0]) is None
        assert testing.check_adjoint(operator, operator.cases[0]) is None

    def test_nothing_finite_is_nothing_compared(self):
        operator = square(np.array([np.inf, -np.inf]))
        operator.gradient(lambda x, d_out: {"x": 2.0 * x * d_out})
        case = dataclasses.replace(operator.cases[0], order=1)
        assert testing.check_differences(operator, case) == "nothing finite to compare"
        assert testing.check_adjoint(operator, case) == "nothing finite to compare"

    def test_reverse_mode_that_is_not_the_adjoint_of_forward_mode(self):
        def doubled(x):
            """``2 x``, which is turned round as if it were ``5 x``."""
            return jax.custom_derivatives.linear_call(
                lambda _, x: 2.0 * x, lambda _, d: 5.0 * d, (), x
            )

        @registry.op(name="infinite_linear", cases=[registry.case(x=HALF_INFINITE)], native=True)
        def kernel(x: registry.Array) -> registry.Array:
            """``4 x ** 2``."""
            return doubled(x) ** 2

        kernel.gradient(lambda x, d_out: {"x": 8.0 * x * d_out})
        with pytest.raises(AssertionError, match="must be the adjoint of reverse mode"):
            testing.check_adjoint(kernel, kernel.cases[0])


def test_verdict_of_a_sound_operator(capsys):
    assert testing.check_operator(registry.get("floor")).ok
    assert "holds" in capsys.readouterr().out
