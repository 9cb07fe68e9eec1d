"""Every primitive of the installed JAX has a translation, or is opaque for a reason."""

from collections.abc import Iterator
from typing import Any

import jax
import pytest
from jax import lax
from jax.extend.core import Primitive, primitives

import symop as so
from registry.ops.lax.primitive import BINDINGS
from registry.primitives import inner_jaxprs
from symop.jaxprs.reading import TRANSLATIONS
from tests.jax_calls import CALLS

DEVICES = "combines what devices hold, as only JAX types it"
FUNCTION = "its parameters contain a function"
REFERENCE = "reads or writes a mutable array"
TOKEN = "its values are no arrays"
OPAQUE = {
    **dict.fromkeys(
        ("all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index",
         "pmax", "pmin", "ppermute", "psum", "psum_invariant", "ragged_all_to_all",
         "reduce_scatter", "shard_map", "unreduced_psum"), DEVICES),
    **dict.fromkeys(("reduce", "reduce_window", "select_and_scatter"), FUNCTION),
    **dict.fromkeys(("get", "swap", "addupdate", "empty2"), REFERENCE),
    **dict.fromkeys(("after_all", "create_token"), TOKEN),
    "custom_lin": "stands for a tangent, inside a transformation of JAX alone",
    "dce_sink": "keeps a value alive, and has no result",
    "sharding_constraint": "names devices of the process",
    "stage": "marks a stage of compilation, and contains a function",
}  # fmt: skip
"""The primitives that become ``jax_function``, with the reason."""
NEEDED = (
    "add", "cond", "conv_general_dilated", "custom_jvp_call", "custom_vjp_call", "dot_general",
    "gather", "jit", "scan", "scatter-add", "sort", "while",
)  # fmt: skip


def registered() -> set[str]:
    """The names of the primitives that JAX makes public."""
    places = (primitives, lax, lax.linalg)
    return {
        one.name for place in places for one in vars(place).values() if isinstance(one, Primitive)
    }


def equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_jaxprs(equation):
            yield from equations(inner)


def reached() -> set[str]:
    """The names of the primitives in the functions of ``jax_calls``."""
    traced = [jax.make_jaxpr(one.function)(*one.args) for one in CALLS]
    return {one.primitive.name for program in traced for one in equations(program.jaxpr)}


def test_every_primitive_of_jax_is_in_a_table() -> None:
    assert so.from_jax  # loads the tables
    names = registered() | reached()
    assert names.issuperset(NEEDED)
    assert names - set(TRANSLATIONS) - set(BINDINGS) - set(OPAQUE) == set()


@pytest.mark.parametrize("name", OPAQUE)
def test_opaque_primitives_are_in_no_table(name: str) -> None:
    assert so.from_jax  # loads the tables
    assert name not in TRANSLATIONS
    assert name not in BINDINGS
