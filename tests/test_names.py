"""Names of other systems: aliases, and the hints in the errors for names that are no alias."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry.errors import UnknownOperatorError
from registry.foreign_names import FOREIGN, foreign, known_elsewhere
from symop.io.parsing import parse

PAGE = Path(__file__).parents[1] / "docs" / "names.md"
ENTRIES = [
    (system, name, *found) for system, names in FOREIGN.items() for name, found in names.items()
]
SHORT = (
    "FullyConnected: no operator has this name; MXNet's FullyConnected is fully_connected here "
    "(num_hidden is units, no_bias=True is use_bias=False)"
)


def is_phrase(text):
    """Whether a text reads well in parentheses behind a sentence."""
    closed = text.count("(") == text.count(")")
    return text == text.strip() and closed and len(text) <= 130 and not text.endswith(tuple(".;,"))


class TestTable:
    def test_targets_are_operators(self):
        own = set(registry.names())
        assert [one for one in ENTRIES if one[2] not in own] == []

    def test_names_are_free(self):
        taken = set(registry.names(aliases=True))
        assert [one for one in ENTRIES if one[1] in taken] == []

    def test_differences_are_phrases(self):
        assert [one for one in ENTRIES if not is_phrase(one[3])] == []

    def test_a_name_that_needs_no_change_would_be_an_alias(self):
        """Unless it is internal to its system, or other systems mean something else by it."""

        def may_be_bare(name):
            return name.startswith("_") or name.endswith("_v2") or len(foreign(name)) > 1

        assert [one for one in ENTRIES if not one[3] and not may_be_bare(one[1])] == []


class TestErrors:
    def test_get(self):
        with pytest.raises(UnknownOperatorError) as caught:
            registry.get("FullyConnected")
        assert str(caught.value) == SHORT

    @pytest.mark.parametrize(
        ("door", "before"), [(so, "symop: "), (so.nd, "nd: "), (so.sym, "sym: ")]
    )
    def test_doors(self, door, before):
        with pytest.raises(AttributeError) as caught:
            _ = door.FullyConnected
        assert str(caught.value) == before + SHORT

    @pytest.mark.parametrize("door", [so, so.nd, so.sym])
    def test_internal_names(self, door):
        message = r"; MXNet's _plus_scalar is add here \(either input may be a number\)$"
        with pytest.raises(AttributeError, match=message):
            _ = door._plus_scalar

    def test_methods(self):
        with pytest.raises(AttributeError, match="; PyTorch's view is reshape here"):
            so.var("x", shape=(2,)).view(1, 2)

    def test_distributions(self):
        with pytest.raises(
            AttributeError, match="; MXNet's and PyTorch's multinomial is random_cat"
        ):
            _ = so.random.multinomial

    def test_a_name_of_several_systems(self):
        assert known_elsewhere("mul") == (
            "; Paddle's mul is matmul here (the inputs are matrices: reshape others)"
            "; PyTorch's and JAX's mul is multiply here"
        )

    def test_a_name_of_none(self):
        assert known_elsewhere("softmaxx") == ""
        with pytest.raises(UnknownOperatorError, match="did you mean 'softmax'"):
            registry.get("softmaxx")

    def test_a_text(self):
        with pytest.raises(so.SymopError, match=r"line 2, .*; NumPy's ravel is reshape here"):
            parse("(x) {\n  y = ravel(x)\n} -> y")


X, Y = np.array([[1.0, -2.0], [3.0, 0.5]]), np.array([[2.0, 2.0], [-1.0, 4.0]])
SAME_CALLS = {
    "absolute": (np.absolute, X),
    "amax": (np.amax, X),
    "amin": (np.amin, X),
    "around": (np.around, X),
    "broadcast_minus": (np.subtract, X, Y),
    "broadcast_plus": (np.add, X, Y),
    "div": (np.true_divide, X, Y),
    "elementwise_mod": (np.mod, X, Y),
    "elementwise_mul": (np.multiply, X, Y),
    "eq": (np.equal, X, X),
    "ge": (np.greater_equal, X, Y),
    "ger": (np.outer, X[0], Y[0]),
    "gt": (np.greater, X, Y),
    "invert": (np.invert, np.array([1, 5])),
    "le": (np.less_equal, X, Y),
    "lt": (np.less, X, Y),
    "mm": (np.matmul, X, Y),
    "mv": (np.matmul, X, Y[0]),
    "ne": (np.not_equal, X, Y),
    "neg": (np.negative, X),
    "pinverse": (np.linalg.pinv, X),
    "pow": (np.power, X, 2.0),
    "reduce_all": (np.all, X > 0),
    "reduce_any": (np.any, X > 0),
    "shift_left": (np.left_shift, np.array([1, 5]), np.array([2, 1])),
    "square_error_cost": (lambda x, y: (x - y) ** 2, X, Y),
    "sub": (np.subtract, X, Y),
    "true_divide": (np.true_divide, X, Y),
}


class TestAliases:
    @pytest.mark.parametrize("name", SAME_CALLS)
    def test_the_call_is_the_same(self, name):
        wanted, *inputs = SAME_CALLS[name]
        found = getattr(so, name)(*[jnp.asarray(one) for one in inputs])
        np.testing.assert_allclose(found, wanted(*inputs), rtol=1e-6)


X3, NAN = np.arange(12.0).reshape(2, 3, 2), np.array([1.0, np.nan])
AS_TOLD = {
    "dstack": (np.dstack([X3, X3]), lambda: so.concat(X3, X3, axis=2)),
    "fliplr": (np.fliplr(X), lambda: so.flip(X, axis=1)),
    "flipud": (np.flipud(X), lambda: so.flip(X, axis=0)),
    "hstack": (np.hstack([X, Y]), lambda: so.concat(X, Y, axis=1)),
    "inner": (np.inner(X, Y), lambda: so.tensordot(X, Y, axes=((-1,), (-1,)))),
    "matrix_transpose": (X3.mT, lambda: so.swapaxes(X3, axis1=-2, axis2=-1)),
    "nan_to_num": (np.nan_to_num(NAN), lambda: so.where(so.isnan(NAN), 0.0, NAN)),
    "ravel": (np.ravel(X), lambda: so.reshape(X, shape=(-1,))),
    "rollaxis": (np.rollaxis(X3, 2, 0), lambda: so.moveaxis(X3, source=2, destination=0)),
    "vdot": (np.vdot(X[0], Y[0]), lambda: so.vecdot(X[0], Y[0])),
    "vstack": (np.vstack([X, Y]), lambda: so.concat(X, Y, axis=0)),
}


@pytest.mark.parametrize("name", AS_TOLD)
def test_what_the_table_tells_of_numpy(name):
    wanted, call = AS_TOLD[name]
    assert name in FOREIGN["NumPy"]
    np.testing.assert_allclose(call(), wanted, rtol=1e-6)


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def link(operator):
    return f"[`{operator}`](operators/{operator}.md)"


def page():
    """The page of all names that are no operator's own."""
    lines = [
        "# Names of other systems",
        "",
        "`make golden` writes this page. A name of the first table is an alias: the call is the",
        "same, and `so.arcsin(x)` is `so.asin(x)`. A name of the other tables is unknown here, and",
        "the error for it says what these tables say.",
        "",
        "## Aliases",
        "",
        row("here", "also called"),
        "|---|---|",
    ]
    for one in registry.operators():
        if one.catalogued and one.aliases:
            lines.append(row(link(one.name), ", ".join(f"`{name}`" for name in one.aliases)))
    for system, names in FOREIGN.items():
        lines += ["", f"## {system}", "", row(system, "here", "what differs"), "|---|---|---|"]
        lines += [
            row(f"`{name}`", link(operator), differs)
            for name, (operator, differs) in sorted(names.items())
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.golden
def test_page(golden):
    golden(PAGE, page())
