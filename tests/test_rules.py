"""What the rules of an operator receive."""

import pytest

from registry.errors import DeclarationError
from registry.operator.rule import Rule
from registry.operator.signature import read_signature


def kernel(x, y=None, *, axis: int = 0, scale: float = 1.0, keep: bool = False):
    return x, y, axis, scale, keep


SLOTS, ATTRIBUTES = read_signature(kernel)


def received(function, *inputs, attributes=(1, 2.0, True)):
    return Rule("mine", function, SLOTS, ATTRIBUTES)(inputs, attributes)


class TestAttributes:
    def test_those_that_are_named(self):
        assert received(lambda y, *, scale: (y, scale), "a", "b") == ("b", 2.0)

    def test_the_others_follow_in_their_order(self):
        found = received(lambda x, *, scale, **others: (x, scale, [*others.items()]), "a", "b")
        assert found == ("a", 2.0, [("axis", 1), ("keep", True)])

    def test_all_of_them(self):
        found = received(lambda **others: others, "a", "b")
        assert found == {"axis": 1, "scale": 2.0, "keep": True}

    def test_none_are_left(self):
        def named(*, axis, scale, keep, **others):
            return others

        assert received(named, "a", "b") == {}

    def test_a_name_that_is_none(self):
        with pytest.raises(DeclarationError, match=r"must name a attribute .* got 'axes'"):
            received(lambda x, *, axes, **others: (x, axes, others), "a", "b")
