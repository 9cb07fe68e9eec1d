"""entrywise: what follows from the declaration of an operator that maps a function over entries."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import Array
from registry.cases import case, positive
from registry.errors import DeclarationError
from registry.operator.operator import Derivative
from registry.ops.core.entrywise import entrywise
from registry.shapes import promote, real_inexact
from symop.testing import check_operator

pytestmark = pytest.mark.usefixtures("temporary_operators")


def scaled(x: Array, y: Array) -> Array:
    """``x * y``."""
    return jnp.multiply(x, y)


def declare_scaled(**options):
    rules = {"d_x": lambda y, d_out: d_out * y, "d_y": lambda x, d_out: d_out * x}
    return entrywise(np.multiply, **{"name": "entry_scaled", **rules, **options})(scaled)


def shown(cases):
    return [str(one) for one in cases]


class TestCases:
    def test_of_one_input(self):
        @entrywise(np.log2, samples=positive, d_x=lambda x, d_out: d_out / (x * np.log(2.0)))
        def entry_log(x: Array) -> Array:
            """Logarithm."""
            return jnp.log2(x)

        wanted = ["positive(3, 4)", "positive()", "positive(0, 2)", "integers(3, low=1, high=4)"]
        assert shown(entry_log.cases) == [f"x={one}" for one in wanted]
        assert shown(entry_log.misuses) == ["x=(3,), axis=0"]

    def test_of_two_inputs_they_broadcast(self):
        operator = declare_scaled(samples={"y": (-0.5, 0.5)}, dtype=real_inexact, rtol=128)
        assert shown(operator.cases) == [
            "x=(3, 4), y=uniform(3, 4, low=-0.5, high=0.5)",
            "x=(3, 1), y=uniform(4, low=-0.5, high=0.5)",
            "x=(), y=uniform(low=-0.5, high=0.5)",
            "x=(0, 2), y=uniform(low=-0.5, high=0.5)",
        ]
        assert {one.rtol for one in operator.cases} == {128}
        assert [one.message.split(",")[0] for one in operator.misuses] == [
            "the inputs must be floating",
            "the inputs must be real",
            "the inputs must be floating",
            "must broadcast together",
        ]

    def test_integers_lie_within_the_samples(self):
        operator = declare_scaled(samples={"x": (-2.5, 1.5), "y": None}, dtype=promote)
        assert (
            shown(operator.cases)[-1]
            == "x=integers(3, low=-2, high=2), y=integers(3, low=0, high=4)"
        )
        operator = declare_scaled(samples=(0.5, 1.5), dtype=promote, replace=True)
        assert not any("integers" in one for one in shown(operator.cases))

    def test_a_required_attribute_has_its_value_in_all(self):
        @entrywise(
            lambda x, *, n: x * n,
            dtype=real_inexact,
            samples={"n": 2},
            cases=[case(x=(3,), n=3)],
            d_x=lambda d_out, *, n: d_out * float(n),
        )
        def entry_times(x: Array, *, n: int) -> Array:
            """``n x``."""
            return jnp.multiply(x, float(n))

        assert [one.values["n"] for one in entry_times.cases] == [2, 2, 2, 3]
        assert check_operator(entry_times).ok


class TestGradient:
    def test_it_is_summed_over_broadcast_axes_and_cast(self):
        declare_scaled()
        x, y = so.var("x", shape=(4,), dtype="float16"), so.var("y", shape=(3, 1))
        grads = so.grad(so.sum(so.entry_scaled(x, y)), [x, y])
        assert [(one.shape, one.dtype.name) for one in grads] == [
            ((4,), "float16"),
            ((3, 1), "float32"),
        ]

    def test_only_what_is_wanted_is_composed(self):
        def refused(d_out):
            raise AssertionError("nobody wants the gradient of y")

        declare_scaled(d_y=refused)
        x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
        assert so.grad(so.sum(so.entry_scaled(x, y)), x).same_as(y)

    def test_integers_have_none(self):
        declare_scaled()
        x, n = so.var("x", shape=(3,)), so.var("n", shape=(3,), dtype="int32")
        assert so.grad(so.sum(so.entry_scaled(n, x)), x).dtype == np.float32

    def test_a_rule_of_none_is_zero(self):
        declare_scaled(d_y=None, native=False)
        x, y = so.var("x", shape=(3,)), so.var("y", shape=(3,))
        assert so.grad(so.sum(so.entry_scaled(x, y)), y).constant == 0.0

    def test_the_maker_names_what_its_rules_name(self):
        maker = declare_scaled().gradient_rule.function
        assert list(inspect.signature(maker).parameters) == ["y", "d_out", "x"]
        assert list(inspect.signature(registry.get("exp").gradient_rule.function).parameters) == [
            "out",
            "d_out",
        ]

    def test_a_slot_without_a_rule_is_named(self):
        with pytest.raises(DeclarationError, match="must be given for each of x, y, or for none"):
            entrywise(np.multiply, name="entry_scaled", d_x=lambda y, d_out: d_out * y)(scaled)

    def test_a_rule_for_no_slot_is_named(self):
        with pytest.raises(DeclarationError, match="each of x, y, or for none, got x, y, z"):
            declare_scaled(d_z=lambda d_out: d_out)

    def test_it_may_be_zero_for_a_reason(self):
        @entrywise(np.floor, zero_gradient="it is constant between the jumps")
        def entry_floor(x: Array) -> Array:
            """Floor."""
            return jnp.floor(x)

        assert entry_floor.derivative is Derivative.ZERO
        assert entry_floor.reason == "it is constant between the jumps"
