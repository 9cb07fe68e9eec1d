"""What ``make mutants`` tells: the proofs must hold on a maker before they can see its mutants."""

import mutants
import pytest

import registry
from registry.ops.core.entrywise import entrywise
from registry.shapes import real_inexact

WORK = ("mutated_cube", None, ["mutated_cube"])


def declare(factor):
    @registry.op(name="mutated_cube", cases=[registry.case(x=(2,), order=1)])
    def kernel(x: registry.Array) -> registry.Array:
        """``x ** 3``."""
        return x * x * x

    def maker(x, d_out):
        return {"x": factor * x * x * d_out}

    kernel.gradient(maker)


@pytest.mark.usefixtures("temporary_operators")
class TestMutants:
    def test_every_mutant_of_a_sound_maker_is_seen(self):
        declare(3.0)
        assert mutants.outcome_of(WORK) == mutants.Outcome("mutated_cube", 1, [])

    def test_every_sign_of_the_rule_of_a_slot_is_seen(self):
        @entrywise(
            lambda x, y: x * (y - x),
            name="mutated_parabola",
            dtype=real_inexact,
            d_x=lambda x, y, d_out: d_out * (y - 2.0 * x),
            d_y=lambda x, d_out: d_out * x,
        )
        def kernel(x: registry.Array, y: registry.Array) -> registry.Array:
            """``x (y - x)``."""
            return x * (y - x)

        kernel.cases = [registry.case(x=(2,), y=(2,), order=1)]
        work = ("mutated_parabola", None, ["mutated_parabola"])
        assert mutants.outcome_of(work) == mutants.Outcome("mutated_parabola", 3, [])

    def test_a_maker_on_which_a_proof_fails_is_named(self):
        declare(2.0)
        outcome = mutants.outcome_of(WORK)
        assert outcome.unproved is not None
        assert outcome.unproved.startswith("mutated_cube: the proofs must hold on the maker as it")
        assert "must be" in outcome.unproved
        assert outcome.count == 0

    def test_a_mutant_that_no_proof_sees_is_listed(self, monkeypatch):
        declare(3.0)
        monkeypatch.setattr(mutants, "check_gradient", lambda operator, case: None)
        monkeypatch.setattr(mutants, "returned", lambda operator: {"x"})
        assert mutants.outcome_of(WORK).survivors == ["the gradient of x"]

    def test_a_maker_that_is_not_proved_makes_the_run_fail(self, monkeypatch, capsys):
        found = mutants.Outcome("relu", 0, [], "relu: the proofs must hold")
        monkeypatch.setattr(mutants, "all_work", lambda operators: [WORK])
        monkeypatch.setattr(mutants, "outcomes", lambda work, workers: [found])
        monkeypatch.setattr("sys.argv", ["mutants.py", "relu"])
        assert mutants.main() == 1
        assert "relu: the proofs must hold" in capsys.readouterr().out
