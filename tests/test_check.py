"""``check_operator`` and ``symop check``: the proofs of one's own operators."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import registry
from registry import Array, case, misuse, op
from symop import cli, testing

pytestmark = pytest.mark.usefixtures("temporary_operators")


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
        assert testing.check_operator(operator, cases=[case(x=(3,))]).ok
        verdict = testing.check_operator(
            operator, cases=[case(x=(3,)), misuse("must be short", x=(99,))]
        )
        assert [one.proof for one in verdict.failures] == ["misuse"]

    def test_failure_shows_the_entry_and_the_program(self):
        verdict = testing.check_operator(declare(factor=2.0, cases=[case(x=(3,))]))
        shown = str(verdict)
        assert "entry (0,) must be" in shown
        assert "the gradient program of order 1:\n(x: float64[3]" in shown

    @pytest.mark.parametrize(
        ("name", "derivative", "audit"),
        [
            ("sin", "a gradient maker composes it", "every order; "),
            ("sign", "zero by definition (", "zero by definition: "),
            ("argmax", "undefined by definition (", "undefined by definition: "),
        ],
    )
    def test_tells_the_derivative(self, name, derivative, audit):
        verdict = testing.check_operator(name, cases=())
        assert verdict.derivative.startswith(derivative)
        assert verdict.audit.startswith(audit)
        assert f"derivative: {derivative}" in str(verdict)

    def test_tells_of_missing_derivatives_and_of_jax(self):
        def plain(x: Array) -> Array:
            """``2 x``."""
            return x * 2

        missing = op(name="own_missing", cases=[case(x=(3,))])(plain)
        verdict = testing.check_operator(missing)
        assert verdict.derivative == "not implemented (no gradient maker is registered)"
        assert verdict.audit.startswith("GAP own_missing: ")
        by_jax = registry.differentiate_kernel(op(name="own_jax", cases=[case(x=(3,))])(plain))
        verdict = testing.check_operator(by_jax)
        assert verdict.ok
        assert verdict.derivative == "JAX differentiates its kernel"
        assert "JAX differentiates the kernel of own_jax" in verdict.audit

    def test_kernel_that_jax_cannot_differentiate_should_be_declared_opaque(self):
        @op(name="own_host", cases=[case(x=(3,))])
        def kernel(x: Array) -> Array:
            """``sin(x)``."""
            return jax.pure_callback(np.sin, jax.typeof(x), x, vmap_method="broadcast_all")

        kernel.gradient(lambda x, d_out: {"x": d_out * registry.get("cos")(x)})
        failures = testing.check_operator(kernel).failures
        assert any("be declared opaque=True" in one.failure for one in failures)

    @pytest.mark.parametrize(("function", "ok"), [(np.sign, True), (np.sin, False)])
    def test_opaque_zero(self, function, ok):
        @op(name="own_flat", opaque=True, cases=[case(x=(3,))])
        def kernel(x: Array) -> Array:
            """Flat, or so they say."""
            like = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return jax.pure_callback(function, like, x, vmap_method="broadcast_all")

        kernel.zero_gradient("it is flat")
        assert testing.check_operator(kernel).ok is ok


# The command -------------------------------------------------------------------------------------

GOOD = """
from registry import Array, case, op

@op(cases=[case(x=(3,))])
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
    assert cli.main(["check", "sign"]) == 0
    assert "[1/1] sign\nsign(x)\n" in capsys.readouterr().out


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
