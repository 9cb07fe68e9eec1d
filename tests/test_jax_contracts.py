"""What symop relies on in JAX beyond its documentation; a failure here says what JAX changed."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir

import symop as so
from registry import Array
from registry import primitives as known
from registry.jax_derivatives import zeros
from registry.operator.operator import Operator
from symop.runtime import jax_messages
from symop.runtime.donation import DonatingStep
from symop.xla.chain_barriers import is_fused

NAMES = [
    *(known.ENTRYWISE_NAMES, known.REARRANGING_NAMES, known.CALL_NAMES),
    *(known.CONVOLUTION_NAMES, known.REVERSE_ONLY_NAMES),
]


# Primitives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [one for names in NAMES for one in names])
def test_jax_has_each_primitive(name):
    assert known.primitives_named(name)


def test_zeros_follow_primitives_that_jax_has():
    names = [*zeros._SUMS, *zeros._CHOICES, *zeros._ENTRIES, *zeros._SHAPES, *zeros._PARTS]
    assert [one for one in names if not known.primitives_named(one)] == []


def called(kernel):
    """A call of an operator with this kernel."""

    def function(x: Array) -> Array:
        """Of ``x``."""
        return kernel(x)

    return Operator(function)(so.var("x", (3,))).nodes[0]


def test_a_primitive_is_not_taken_for_another_of_its_name():
    other = Primitive("mul")
    other.def_abstract_eval(lambda x: x)
    assert is_fused(called(lambda x: x * x))
    assert not is_fused(called(other.bind))


def test_what_jax_calls_is_followed():
    def sine(x):
        return jnp.sin(x)

    custom = jax.custom_jvp(sine)
    custom.defjvp(lambda primals, tangents: (sine(*primals), tangents[0]))
    for function in (jax.jit(sine), jax.checkpoint(sine), custom):
        assert is_fused(called(function))
    assert not is_fused(called(jax.checkpoint(jnp.sort)))


KIND = jax.ShapeDtypeStruct((), np.float32)
CALLING = {
    "pure": lambda x: jax.pure_callback(lambda value: value, KIND, x),
    "io": lambda x: io_callback(lambda value: value, KIND, x),
    "ordered io": lambda x: io_callback(lambda value: value, KIND, x, ordered=True),
    "debug": lambda x: (jax.debug.callback(lambda value: None, x), x)[1],
    "print": lambda x: (jax.debug.print("{}", x), x)[1],
    "ordered print": lambda x: (jax.debug.print("{}", x, ordered=True), x)[1],
}


@pytest.mark.parametrize("name", CALLING)
def test_a_step_that_calls_the_host_does_not_donate(name):
    step = DonatingStep(lambda state, x: jax.lax.map(jax.jit(CALLING[name]), state + x))
    state = jnp.arange(3, dtype=np.float32)
    found = step.into(list, ([state][0], np.float32(1)))
    np.testing.assert_array_equal(found[0], [1, 2, 3])
    np.testing.assert_array_equal(state, [0, 1, 2])


def test_a_primitive_of_that_name_lets_a_step_donate():
    harmless = Primitive("pure_callback")
    harmless.def_abstract_eval(lambda x: x)
    mlir.register_lowering(harmless, lambda _, x: [x])
    state = jnp.zeros(3)
    DonatingStep(lambda state: harmless.bind(state) + 1).into(list, (state,))
    assert state.is_deleted()


# Texts of errors ---------------------------------------------------------------------------------


def raised(function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the message is what is tested
        function(*args)
    return caught.value


def test_a_donated_array_is_told():
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    donating(x)
    error = raised(donating, x)
    assert jax_messages.DONATED.is_in(error)
    assert not jax_messages.IN_ITSELF.is_in(error)


def test_a_lookup_within_itself_is_told():
    class Function:
        __name__ = __qualname__ = "function"

        def __call__(self, x):
            return x

        def __eq__(self, other):
            return self is other

        def __hash__(self):
            return hash(compiled(jnp.ones(3)))

    compiled = jax.jit(Function())
    assert jax_messages.IN_ITSELF.is_in(raised(compiled, jnp.ones(3)))


def test_the_message_of_a_callback_is_told():
    class OwnError(RuntimeError):
        pass

    def fail(_):
        raise OwnError("my words: 3")

    function = jax.jit(lambda x: jax.pure_callback(fail, KIND, x))
    error = raised(lambda: jax.block_until_ready(function(np.float32(1))))
    assert isinstance(error, jax.errors.JaxRuntimeError)
    assert jax_messages.raised_on_host(error, OwnError) == "my words: 3"
    assert jax_messages.raised_on_host(error, ZeroDivisionError) is None


# Processes ---------------------------------------------------------------------------------------

ALONE = """
import jax
from symop.runtime import jax_messages
from symop.training import joining

assert not joining._is_late()
try:
    jax.distributed.initialize()
except ValueError as error:
    assert jax_messages.ALONE.is_in(error)
else:
    raise AssertionError
assert not jax.distributed.is_initialized()
assert jax.device_count() == 1
assert joining._is_late()
"""


def test_a_process_without_a_job_is_told_apart_and_keeps_its_devices():
    launched = ("JAX_", "SLURM_", "OMPI_", "KUBERNETES_", "XLA_")
    own = {name: one for name, one in os.environ.items() if not name.startswith(launched)}
    environment = {**own, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", ALONE], check=True, env=environment, timeout=120)
