"""``check_operator`` and ``symop check``: the proofs of one's own operators."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import registry
from registry import Array, case, misuse, op, register_simple_op
from registry.cases import integers
from symop import cli, testing
from symop.testing.discovery import declared_by

pytestmark = pytest.mark.usefixtures("temporary_operators")

CASE = case(x=(3,), order=1)
"""What is told of an operator is the same at every order."""


def declare(name="own_cube", factor=3.0, **options):
    @op(name=name, **options)
    def kernel(x: Array) -> Array:
        """``x ** 3``."""
        return x * x * x

    kernel.gradient(lambda x, d_out: {"x": factor * x * x * d_out})
    return kernel


class TestVerdict:
    def test_operator_without_cases_is_not_ok(self, capsys):
        verdict = testing.check_operator(declare())
        assert not verdict.ok
        assert "add" not in verdict.failures[0].proof
        assert "cases=[case(...)]" in capsys.readouterr().out

    def test_further_cases(self):
        operator = declare()
        assert testing.check_operator(operator, cases=[CASE]).ok
        verdict = testing.check_operator(operator, cases=[CASE, misuse("must be short", x=(99,))])
        assert [one.proof for one in verdict.failures] == ["misuse"]

    def test_failure_shows_the_entry_and_the_program(self):
        verdict = testing.check_operator(declare(factor=2.0, cases=[CASE]))
        shown = str(verdict)
        assert "entry (0,) must be" in shown
        assert "the gradient program of order 1:\n(x: float64[3]" in shown

    @pytest.mark.parametrize(
        ("name", "derivative", "audit"),
        [
            ("minus", "a gradient maker composes it", "every order; "),
            ("floor", "zero by definition (", "zero by definition: "),
            ("argmax", "undefined by definition (", "undefined by definition: "),
        ],
    )
    @pytest.mark.sampled(3)
    def test_tells_the_derivative(self, name, derivative, audit):
        verdict = testing.check_operator(name, cases=())
        assert verdict.derivative.startswith(derivative)
        assert verdict.audit.startswith(audit)
        assert f"derivative: {derivative}" in str(verdict)

    def test_tells_of_missing_derivatives_and_of_jax(self):
        def plain(x: Array) -> Array:
            """``2 x``."""
            return x * 2

        missing = op(name="own_missing", cases=[CASE])(plain)
        verdict = testing.check_operator(missing)
        assert verdict.derivative == "not implemented (no gradient maker is registered)"
        assert verdict.audit.startswith("GAP own_missing: ")
        by_jax = registry.differentiate_kernel(op(name="own_jax", cases=[CASE])(plain))
        verdict = testing.check_operator(by_jax)
        assert verdict.ok
        assert verdict.derivative == "JAX differentiates its kernel"
        assert "JAX differentiates the kernel of own_jax" in verdict.audit

    def test_kernel_that_jax_cannot_differentiate_should_be_declared_opaque(self):
        @op(name="own_host", cases=[CASE])
        def kernel(x: Array) -> Array:
            """``sin(x)``."""
            return jax.pure_callback(np.sin, jax.typeof(x), x, vmap_method="broadcast_all")

        kernel.gradient(lambda x, d_out: {"x": d_out * registry.get("cos")(x)})
        failures = testing.check_operator(kernel).failures
        assert any("be declared opaque=True" in one.failure for one in failures)

    @pytest.mark.parametrize(("function", "ok"), [(np.sign, True), (np.sin, False)])
    def test_opaque_zero(self, function, ok):
        @op(name="own_flat", opaque=True, cases=[CASE])
        def kernel(x: Array) -> Array:
            """Flat, or so they say."""
            like = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return jax.pure_callback(function, like, x, vmap_method="broadcast_all")

        kernel.zero_gradient("it is flat")
        assert testing.check_operator(kernel).ok is ok


class TestNothingToCompare:
    """What could not be compared does not hold."""

    def line(self, verdict, proof):
        return next(line for line in str(verdict).splitlines() if line.split()[0] == proof)

    def test_no_reference(self):
        operator = declare(cases=[CASE])
        verdict = testing.check_operator(operator)
        assert verdict.ok
        assert "nothing to compare: no reference= is declared" in self.line(verdict, "reference")
        assert "holds" in self.line(verdict, "kernel")
        operator.reference = lambda x: x**3
        assert "holds" in self.line(testing.check_operator(operator), "reference")

    def test_derivative_of_its_own(self):
        verdict = testing.check_operator(declare(factor=2.0, native=False, cases=[CASE]))
        assert verdict.ok
        assert "nothing to compare: native=False" in self.line(verdict, "kernel")
        assert "holds" in self.line(verdict, "linearity")

    def test_maker_that_is_not_linear(self):
        operator = op(name="own_bent", native=False, cases=[CASE])(lambda x: x)
        operator.gradient(lambda out, d_out: {"x": out})
        verdict = testing.check_operator(operator)
        assert verdict.ok
        assert "is not linear in the cotangent" in self.line(verdict, "adjoint")
        assert "holds" in self.line(verdict, "linearity")

    def test_zero_and_integers(self):
        verdict = testing.check_operator("floor")
        assert "holds" in self.line(verdict, "kernel")
        assert "nothing to compare: its derivative is zero" in self.line(verdict, "adjoint")
        whole = op(name="own_whole", cases=[case(x=integers(3, high=5), order=1)])(lambda x: x)
        whole.no_gradient("it is whole")
        verdict = testing.check_operator(whole)
        assert verdict.ok
        assert "no derivative flows" in self.line(verdict, "kernel")

    def test_one_case_of_two(self):
        whole = op(name="own_both", cases=[CASE, case(x=integers(3, high=5), order=1)])(lambda x: x)
        whole.gradient(lambda d_out: {"x": d_out})
        line = self.line(testing.check_operator(whole), "kernel")
        assert "1 cases  holds" in line

    def test_missing_derivative_is_not_ok(self):
        missing = op(name="own_missing", cases=[CASE])(lambda x: x)
        verdict = testing.check_operator(missing)
        assert not verdict.ok
        assert [one.proof for one in verdict.failures] == ["audit"]
        assert "nothing to compare: no gradient maker" in self.line(verdict, "kernel")

    def test_gap_is_not_ok(self):
        missing = op(name="own_missing")(lambda x: x)
        top = op(name="own_top", cases=[case(x=(3,), order=1)])(lambda x: x * x)
        top.gradient(lambda x, d_out: {"x": 2.0 * missing(x) * d_out})
        failures = testing.check_operator(top).failures
        assert failures[-1].failure == "own_top -> own_missing: no gradient maker is registered"

    def test_what_breaks_every_proof_is_told_once(self):
        verdict = testing.check_operator(declare(cases=[case(x=(3,), y=(3,))]))
        told = {one.proof for one in verdict.failures}
        assert told == testing.PROOFS.keys() - {"complex"}  # which needs a dtype rule
        assert str(verdict).count("'y'") <= 2
        every = ", ".join(name for name in testing.PROOFS if name != "complex")
        assert f"{every}, x=" in str(verdict)


PAIR = """
import jax.numpy as jnp
from registry import OperatorBase, OpProtoAndCheckerMaker, case, register_op, register_simple_op
from registry.cases import positive

class Logarithm(OperatorBase):
    def kernel(self, X, *, scale):
        return scale * jnp.log(X)

class LogarithmProto(OpProtoAndCheckerMaker):
    def make(self):
        self.add_input("X", "a positive array")
        self.add_output("Out", "its logarithm")
        self.add_attr("scale", float, "a factor").set_default(2.0)

class LogarithmGrad(OperatorBase):
    def kernel(self, X, d_Out, *, scale):
        return {factor} * scale * d_Out / X

register_op(
    "own_log", Logarithm, LogarithmProto, "own_log_grad", LogarithmGrad,
    cases=[case(X=positive(3), order=2), case(X=positive(2, 2), scale=3.0, order=2)],
)
(
    register_simple_op("own_times")
    .set_function(lambda lhs, rhs: lhs * rhs)
    .set_gradient(lambda out_grad, lhs, rhs: (out_grad * rhs, {factor} * out_grad * lhs))
    .add_cases(case(lhs=(3,), rhs=(3,), order=2))
)
"""


class TestGradientOperators:
    """They have no cases: the calls that the forward operator's gradients make are theirs."""

    def test_of_pairs_and_simple_operators(self, here, capsys):
        (here / "mine_pair.py").write_text(PAIR.format(factor=1))
        assert cli.main(["check", "mine_pair"]) == 0
        printed = capsys.readouterr().out
        assert "own_log_grad(X, d_Out, *, scale=2.0)\n  inference     2 cases  holds" in printed
        assert "_backward_own_times(d_out, lhs, rhs)\n  inference     1 cases" in printed
        assert printed.endswith("4 of 4 operators hold\n")

    @pytest.mark.thorough
    def test_of_a_wrong_gradient(self, here, capsys):
        (here / "mine_pair.py").write_text(PAIR.format(factor=2))
        assert cli.main(["check", "mine_pair"]) == 1
        end = "2 of 4 operators hold; own_log FAILS; own_times FAILS\n"
        assert capsys.readouterr().out.endswith(end)

    def test_one_case_for_each_way_of_calling(self, here):
        (here / "mine_pair.py").write_text(PAIR.format(factor=1))
        declared_by("mine_pair")
        found = testing.derived_cases(registry.get("own_log_grad"))
        assert list(map(str, found)) == [
            "X=computed(3,), d_Out=computed(3,), scale=2.0",
            "X=computed(2, 2), d_Out=computed(2, 2), scale=3.0",
        ]
        assert found[0].draw("X", np.dtype("float32")).dtype == np.float32
        assert found[0].draw("X", np.dtype("float32")).min() > 0

    @pytest.mark.thorough
    def test_random_keys_are_drawn_anew(self):
        def mask(like, env):
            return env.resource[0].get_random().bernoulli(0.5, like.shape).astype(like.dtype)

        dropped = (
            register_simple_op("own_dropped")
            .set_resource_request("random")
            .set_function(lambda a, env: a * mask(a, env))
            .set_gradient(lambda out_grad, env: out_grad * mask(out_grad, env))
            .add_cases(case(a=(3,)))
        )
        assert testing.check_operator(dropped.operator).ok
        assert testing.check_operator("_backward_own_dropped").ok

    def test_caller_that_fails(self):
        inner = op(name="own_inner")(lambda x: x)
        inner.gradient(lambda d_out: {"x": d_out})
        outer = op(name="own_outer", cases=[CASE, case(y=3)])(lambda x: x)
        outer.gradient(lambda x, d_out: {"x": inner(d_out) @ x})
        assert testing.derived_cases(inner) == []


# The command -------------------------------------------------------------------------------------

GOOD = """
from registry import Array, case, op

@op(cases=[case(x=(3,), order=1)])
def {name}(x: Array) -> Array:
    '''``x * x``.'''
    return x * x

@{name}.gradient
def gradient(x, d_out):
    return {{"x": {factor} * x * d_out}}
"""


def module(name, factor=2.0):
    return GOOD.format(name=name, factor=factor)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current directory; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("mine", "checked_")):
            del sys.modules[name]


def test_checks_a_module_line_by_line(here, capsys):
    (here / "mine_ops.py").write_text(module("own_good") + module("own_other"))
    assert cli.main(["check", "mine_ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["[1/2] own_good", "own_good(x)"]
    assert "[2/2] own_other" in lines
    assert lines[-1] == "2 of 2 operators hold"


def test_checks_a_file_and_fails(here, capsys):
    (here / "mine_ops.py").write_text(module("own_bad", 3.0) + module("own_good"))
    assert cli.main(["check", "./mine_ops.py"]) == 1
    printed = capsys.readouterr().out
    assert printed.endswith("1 of 2 operators hold; own_bad FAILS\n")
    assert "the gradient program of order 1" in printed


def test_checks_what_a_package_declares_and_registers(here, capsys):
    package = here / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("from mine import inner\nimport mine_else\n")
    (package / "inner.py").write_text(module("own_inner"))
    (here / "mine_else.py").write_text(module("own_else"))
    assert cli.main(["check", "mine"]) == 0
    assert "2 of 2 operators hold" in capsys.readouterr().out
    assert cli.main(["check", "mine"]) == 0
    assert "1 of 1 operators hold" in capsys.readouterr().out
    assert cli.main(["check", "mine.inner"]) == 0


def test_checks_one_operator(capsys):
    assert cli.main(["check", "floor"]) == 0
    assert "[1/1] floor\nfloor(x)\n" in capsys.readouterr().out


def test_nothing_to_check(here, capsys):
    (here / "mine_empty.py").write_text("import symop\n")
    assert cli.main(["check", "mine_empty"]) == 1
    assert capsys.readouterr().err == "symop: mine_empty declares no operator to check\n"


@pytest.mark.parametrize(
    "target", ["mine_absent", "mine.absent", "mine_absent.py", "sofmax", "..a"]
)
def test_no_such_module(here, capsys, target):
    assert cli.main(["check", target]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("symop: check: there must be a ")
    assert repr(target) in printed


@pytest.mark.parametrize("target", ["mine_broken", "mine_broken.py", "mine_user"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f():\n    return 1 / 0\nf()\n", "ZeroDivisionError"),
        ("import mine_absent", "ModuleNotFoundError: No module named 'mine_absent'"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_error_of_the_module(here, capsys, target, text, reason):
    (here / "mine_broken.py").write_text(text)
    (here / "mine_user.py").write_text("import mine_broken\n")
    assert cli.main(["check", target]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("Traceback" in printed.err) is (reason != "SyntaxError" or target == "mine_user")
    assert "mine_broken.py" in printed.err
    assert reason in printed.err
    assert "discovery.py" not in printed.err
    assert printed.err.endswith(f"symop: {target} failed while it was imported\n")


def test_as_a_process(here):
    (here / "mine_ops.py").write_text(module("own_good"))
    command = [sys.executable, "-m", "symop.cli", "check", "mine_ops"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("1 of 1 operators hold\n")


@pytest.mark.usefixtures("temporary_operators")
class TestReferences:
    def declare(self, reference):
        @registry.op(outputs=("out", "size"), hidden=("size",), cases=[registry.case(x=(3, 4))])
        def sized(x: registry.Array) -> tuple[registry.Array, registry.Array]:
            """``2 x`` and the sum of ``x``."""
            return 2 * x, x.sum()

        sized.reference = reference
        sized.no_gradient("it is a trial")
        return sized

    @pytest.mark.parametrize(
        "reference",
        [lambda x: 2 * x, lambda x: (2 * x,), lambda x: (2 * x, x.sum())],
    )
    def test_visible_outputs_or_all(self, reference):
        operator = self.declare(reference)
        assert testing.check_reference(operator, operator.cases[0]) is None

    @pytest.mark.parametrize(
        ("reference", "message"),
        [
            (lambda x: (), "must return the 1 visible outputs, or all 2, got 0"),
            (lambda x: (x, x, x), "must return the 1 visible outputs, or all 2, got 3"),
            (lambda x: 2 * x[:0], "output out against the reference"),
            (lambda x: (2 * x, x.sum() + 1), "output size against the reference"),
        ],
    )
    def test_anything_else_is_told(self, reference, message):
        operator = self.declare(reference)
        with pytest.raises(AssertionError, match=message):
            testing.check_reference(operator, operator.cases[0])
