"""Work-arounds for XLA: that they apply where they should, and that they are still needed."""

import contextlib
import os
import re

import jax
import jax.numpy as jnp
import jaxlib.version
import ml_dtypes
import numpy as np
import optax
import pytest

import symop as so
from registry import Array, Var, op
from registry.errors import ArgumentError
from registry.tuning import present, tune
from registry.types import VarType
from registry.xla.barrier import barrier
from registry.xla.canonical_layouts import convolved as run_convolution
from registry.xla.canonical_layouts import looping
from registry.xla.unstack import transposing
from symop import train
from symop.eager.programs import kernel_of
from symop.eager.segments import Shared, State
from symop.planning import activations
from symop.xla import chain_barriers
from symop.xla.compiling import (
    QUICK,
    UNFUSED,
    in_turn,
    options_for,
    quick_options,
    thread_settings,
)

pytestmark = pytest.mark.usefixtures("temporary_operators", "optimized")


def primitives(function, *args):
    """The names of the primitives in a function's jaxpr, and in those inside it."""
    return [one.primitive.name for one in equations(jax.make_jaxpr(function)(*args).jaxpr)]


def equations(jaxpr):
    for one in jaxpr.eqns:
        yield one
        inner = jax.tree.leaves(list(one.params.values()), is_leaf=lambda x: hasattr(x, "eqns"))
        for each in inner:
            if hasattr(each, "eqns"):  # also those of a closed jaxpr
                yield from equations(each)


# Scopes are part of the key of JAX's caches ------------------------------------------------------


def convolved(x, weight):
    return so.convolution(x, weight, channels=2, kernel=3, use_bias=False)


CONVOLVED = (convolved, np.ones((1, 2, 8), np.float32), np.ones((2, 2, 3), np.float32))
UNSTACKED = (lambda x: so.unstack(x, axis=0), np.ones((6, 2), np.float32))


@pytest.mark.parametrize(
    ("scope", "given"), [(looping, CONVOLVED), (transposing, UNSTACKED)], ids=["loop", "transpose"]
)
def test_one_jitted_function_is_traced_for_each_scope(scope, given):
    function, *args = given
    jitted = jax.jit(function)

    def within(context):
        with context:
            return primitives(jitted, *args), jitted.lower(*args).as_text(), jitted(*args)

    outside, inside, again = map(within, [contextlib.nullcontext(), scope(), scope()])
    assert outside[0] != inside[0]
    assert outside[1] != inside[1]
    assert inside[:2] == again[:2]
    assert within(contextlib.nullcontext())[:2] == outside[:2]
    jax.tree.map(np.testing.assert_array_equal, outside[2], inside[2])


def test_a_loop_has_its_own_trace_of_a_jitted_kernel():
    """A kernel that ran outside a loop is traced again inside, in the layout for loops."""
    jitted = jax.jit(lambda x, weight: convolved(x, weight)[:, :, 1:-1])

    @op
    def shrunk(x: Array, weight: Array) -> Array:
        """A convolution."""
        return jnp.pad(jitted(x, weight), ((0, 0), (0, 0), (2, 2)))

    shrunk.zero_gradient("the test needs none")
    _, x, weight = CONVOLVED
    assert "transpose" not in primitives(shrunk.__call__, x, weight)
    h, w = so.var("h", shape=x.shape), so.var("w", shape=weight.shape)

    def step(_: Var, carry: Var) -> tuple[Var, Var]:
        return carry, shrunk(carry, w)

    _, found = so.foreach(step, so.var("xs", shape=(3,)), h)
    looped = found.to_jax()
    names = primitives(lambda h, w: looped(h=h, w=w, xs=np.zeros(3, np.float32)), x, weight)
    assert "transpose" in names


# Symptoms that the work-arounds are for ----------------------------------------------------------
#
# These tests fail when XLA has mended a symptom: the work-around that is named can go then. What
# only time shows is in ``benchmarks/workarounds.py``.


def compiled(function, *args, **options):
    """The text of a compiled function."""
    return jax.jit(function).lower(*args).compile(**options).as_text()


def count(text, *names):
    """The number of instructions of a compiled program with these names."""
    return len(re.findall(rf" ({'|'.join(names)})\(", text))


def test_xla_fuses_across_its_own_barrier():
    """``registry/xla/barrier.py``: jaxlib 0.12 honors the barrier."""
    x = np.ones((8, 8), np.float32)
    fusions = 1 if jaxlib.version.__version_info__ < (0, 12) else 2
    own = compiled(lambda x: jnp.exp(jax.lax.optimization_barrier(jnp.sin(x))), x)
    assert (count(own, "fusion"), count(own, "opt-barrier")) == (fusions, 0)
    assert "call(" in compiled(lambda x: jnp.exp(barrier(jnp.sin(x))), x)
    assert "call(" not in own


def layouts(text):
    return re.findall(r"dim_labels=([^\s,}]+)", text)


def test_xla_leaves_convolutions_in_loops_in_a_slow_layout():
    """``registry/xla/canonical_layouts.py``, and ``transposes_slowly`` of ``symop/xla``."""
    image, weight = np.ones((2, 3, 8, 8), np.float32), np.ones((3, 3, 3, 3), np.float32)

    def convolve(x, weight):
        return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME")

    def looped(step):
        return lambda x, weight: jax.lax.fori_loop(0, 3, lambda _, held: step(held, weight), x)

    def within(x, weight):
        with looping():
            return run_convolution(convolve, x, weight)

    fast = layouts(compiled(convolve, image, weight))
    assert layouts(compiled(looped(convolve), image, weight)) != fast
    assert layouts(compiled(looped(within), image, weight)) == fast


def test_xla_holds_an_activation_too_long(monkeypatch):
    """``symop/xla/shared_operands.py``."""
    x, y = so.var("x", (2048, 32)), so.var("y", (2048,), "int32")
    hidden = so.relu(so.fully_connected(x, units=64, name="first"))
    loss = so.mean(so.softmax_cross_entropy(so.fully_connected(hidden, units=8, name="last"), y))
    batch = {"x": np.ones((2048, 32), np.float32), "y": np.zeros(2048, np.int32)}

    def held():
        trainer = train.Trainer(loss, optax.sgd(0.1), inputs=["x", "y"])
        lowered = jax.jit(trainer._run).lower(trainer.init(0).packed(), batch)
        return lowered.compile().memory_analysis().temp_size_in_bytes

    activation = 2048 * 64 * 4
    assert held() < 2.5 * activation
    monkeypatch.setattr(activations, "shared_operands", lambda order: set())
    assert held() > 3 * activation


def test_xla_computes_crowded_results_from_the_inputs():
    """``options_for`` of ``symop/xla/compiling.py``."""

    def chain(x):
        found = [x]
        for i in range(16):
            found.append(found[-1] * 1.5 + i)
        return found[1:]

    x = np.ones((8, 8), np.float32)
    fused, apart = (
        count(compiled(chain, x, compiler_options=options), "multiply", "add")
        for options in ({}, UNFUSED)
    )
    assert fused > 3 * apart


def test_xla_copies_operators_into_each_fusion_of_a_chain(monkeypatch):
    """``symop/xla/chain_barriers.py``."""

    def instructions(length, name):
        with so.rolling(False):
            x = y = so.var(name, (4, 3))
            for i in range(length):
                steps = (so.sin(y * (1 + i / 100)), so.exp(-so.square(y)), y / (2 + i + y * y))
                y = 0.5 * (y + steps[i % 3])
            gradient = so.grad(so.sum(y), x).to_jax()
        return count(compiled(gradient, np.ones((4, 3), np.float32)), "multiply", "add")

    cut = instructions(36, "x")
    monkeypatch.setattr(chain_barriers, "LONG", 1000)
    whole = [instructions(length, "y") for length in (9, 18, 36)]
    assert whole[1] > 3 * whole[0]
    assert whole[2] > 3 * whole[1]
    assert whole[2] > 1.5 * cut


# What is tuned -----------------------------------------------------------------------------------


@pytest.fixture
def tuned():
    before = present.tuning
    yield tune
    present.tuning = before


def test_the_order_of_operators_follows_the_number_of_cores(tuned, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert primitives(lambda x: in_turn(x) + 1, 1.0) == ["add"]
    tuned(few_cores=4)
    assert primitives(lambda x: in_turn(x) + 1, 1.0) == ["symop_barrier", "add"]


def test_crowded_programs_are_set(tuned):
    assert options_for(7) is None
    tuned(crowded=7)
    assert options_for(7) == UNFUSED


def test_small_programs_are_compiled_quickly(tuned):
    small, large = VarType((16384,), np.dtype("float32")), VarType((129, 128), np.dtype("float32"))
    assert quick_options(32, [small, None]) == QUICK
    assert quick_options(33, [small]) is quick_options(1, [small, large]) is None
    tuned(quick_operators=33, quick_entries=20_000)
    assert quick_options(33, [large]) == QUICK


def test_only_programs_of_known_dtypes_are_compiled_quickly():
    assert quick_options(1, [VarType((2,), np.dtype(ml_dtypes.float8_e5m2))]) is None


@pytest.mark.skipif(QUICK is None, reason="later versions of jaxlib have no older emitters")
def test_only_threads_that_ask_for_it_compile_quickly(monkeypatch):
    def options():
        return kernel_of(so.sin, (), (VarType((2,), np.dtype("float32")),))[0]._options

    assert options()["compiler_options"] is None
    monkeypatch.setattr(thread_settings, "quick", True)
    assert options()["compiler_options"] == QUICK


@pytest.mark.skipif(QUICK is None, reason="later versions of jaxlib have no older emitters")
def test_quick_programs_compute_the_same():
    x = np.random.default_rng(0).random((32, 32), np.float32)
    for function in (jnp.tanh, jnp.exp, lambda x: x @ x, lambda x: jnp.sum(x, 1), jnp.sort):
        results = [jax.jit(function, compiler_options=one)(x) for one in (None, QUICK)]
        np.testing.assert_array_max_ulp(*map(np.asarray, results), maxulp=2)


def test_segments_run_after_as_many_calls_as_are_set(tuned):
    tuned(segment=3)
    assert State(Shared()).open_segment().room == 2


def test_patience_is_set(tuned):
    tuned(patience=2, rest=5, longest_rest=7)
    state = State(Shared())
    for _ in range(3):
        state.count_program(new=True)
    assert (state.rest, state.next_rest) == (5, 7)


@pytest.mark.parametrize("given", [{"speed": 1}, {"segment": 0}, {"rest": -1}, {"packed": 1.5}])
def test_tuning_is_checked(tuned, given):
    with pytest.raises(ArgumentError, match="tune: "):
        tuned(**given)
