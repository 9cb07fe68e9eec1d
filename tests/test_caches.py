"""Caches: bounded, the least recently used first, and what is dropped is made anew."""

import gc
import itertools

import jax
import numpy as np
import pytest

import registry
import symop as so
from registry import caches
from registry.caches import Jitted, Memo, memoized, weight_of
from registry.errors import ArgumentError
from symop import autograd, nd
from symop.eager.segments import local
from symop.eager.trace_cache import PROGRAM, InternedCall, tree


@pytest.fixture(autouse=True)
def usual_limits():
    caches.clear()
    before = caches.limits()
    yield
    caches.set_limits(*before)


class TestMemos:
    def test_the_least_recently_used_goes_first(self):
        memo = Memo(3)
        for i in range(3):
            memo.put(i, str(i))
        memo.get(0)
        memo.put(3, "3")
        assert [memo.get(i) for i in range(4)] == ["0", None, "2", "3"]

    def test_what_is_there_stays(self):
        memo = Memo(3)
        assert memo.put(0, "first") == "first"
        assert memo.put(0, "second") == "first"

    def test_functions(self):
        calls = []

        @memoized(2)
        def doubled(x):
            """Twice ``x``."""
            calls.append(x)
            return 2 * x

        assert [doubled(x) for x in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
        assert calls == [1, 2, 3, 2]
        assert (doubled.__doc__, doubled.cache_info().currsize) == ("Twice ``x``.", 2)

    def test_a_smaller_bound(self):
        memo = Memo(100)
        for i in range(100):
            memo.put(i, i)
        caches.set_limits(entries=10)
        assert len(memo) == 10
        assert memo.get(99) == 99
        caches.set_limits(entries=1000)
        for i in range(200):
            memo.put(i, i)
        assert len(memo) == 100

    def test_all_are_cleared(self):
        memo = Memo()
        memo.put(1, 1)
        caches.clear()
        assert (len(memo), caches.info().programs) == (0, 0)

    def test_misuse(self):
        with pytest.raises(ArgumentError, match="a bound must not be negative"):
            caches.set_limits(programs=-1)


class TestPrograms:
    def test_weights_count_each_compiled_type(self):
        jitted = Jitted(lambda x: x + 1, operators=3)
        assert jitted.weight() == 0
        for n in (2, 3, 4):
            jitted(np.zeros(n))
        assert (jitted.count(), jitted.weight()) == (3, 3 * weight_of(3))

    def test_the_least_recently_used_goes_first(self):
        made = [Jitted(lambda x, i=i: x + i) for i in range(12)]
        for one in made:
            one(np.zeros(3))
            made[0](np.zeros(3))
        caches.set_limits(programs=4 * weight_of(1))
        held = [one.count() for one in made]
        assert held[0] == held[-1] == 1
        assert sum(held) <= 4
        assert float(made[5](np.zeros(3))[0]) == 5

    def test_a_forgotten_program_is_gone(self):
        """JAX keeps a program by its function, so that a new ``jax.jit`` would find it again."""
        jitted = Jitted(lambda x: x + 1)
        for n in (2, 3, 4):
            jitted(np.zeros(n))
        jitted.forget()
        jitted(np.zeros(5))
        assert jitted.count() == 1

    def test_a_forgotten_call_is_gone(self):
        call = InternedCall(registry.get("sin"), {}, nd.NDArray)
        for n in (2, 3, 4):
            call.alone(np.zeros(n))
        call.forget()
        call.alone(np.zeros(5))
        assert call.count() == 1

    @pytest.mark.thorough
    def test_eager_programs_level_off(self):
        limit = 40 * weight_of(1)
        caches.set_limits(programs=limit)
        w = nd.ones((3,))
        w.attach_grad()
        for n in range(1, 50):
            with autograd.record():
                loss = nd.sum(nd.tanh(nd.ones((n, 3)) * w))
            loss.backward()
            expected = n * (1 - np.tanh(1.0) ** 2)
            np.testing.assert_allclose(w.grad.asnumpy(), expected, rtol=1e-5)
            nd.add(nd.ones((n,)), nd.ones((n,))).wait_to_read()
        gc.collect()
        assert caches.info().bytes <= limit + caches.OFTEN * weight_of(8)
        assert caches.info().programs > 10

    @pytest.mark.thorough
    def test_calls_one_by_one_level_off(self):
        caches.set_limits(programs=40 * weight_of(1))
        with nd.direct():
            for n in range(1, 80):
                y = nd.add(nd.ones((n,)), nd.ones((n,)))
                assert y.asnumpy().tolist() == [2.0] * n
        assert caches.info().programs <= 40 + caches.OFTEN
        for n in range(1, 60):
            assert np.asarray(so.sin(np.zeros(n))).tolist() == [0.0] * n
        assert caches.info().programs <= 40 + caches.OFTEN


class TestTree:
    """The order in which calls follow each other."""

    def walk(self, choices):
        y = nd.ones((3,))
        for choice in choices:
            y = (nd.sin, nd.cos, nd.tanh)[choice](y)
        return y.asnumpy()

    def test_it_levels_off_and_keeps_what_is_used(self):
        caches.set_limits(steps=30 * PROGRAM)
        generator = np.random.default_rng(0)
        usual = [0, 1, 2, 0, 0]
        expected = self.walk(usual)
        for _ in range(60):
            local.state.rest = local.state.surprise = 0
            self.walk(generator.integers(0, 3, 12))
            count = tree.count
            np.testing.assert_array_equal(self.walk(usual), expected)
            assert tree.count - count < PROGRAM  # its program is known
            assert tree.count <= 30 * PROGRAM + 3 * PROGRAM
        local.state.rest = local.state.surprise = 0


# The x64 flag ------------------------------------------------------------------------------------


def _of_a_symbol():
    x, w = so.var("x", shape=2), so.var("w", shape=2, dtype="float16")
    gradient = so.grad(so.sum(x * x * w + so.log(x) * 2.0), x)
    return [gradient.eval(x=np.ones(2), w=np.ones(2, np.float16))]


def _of_arrays():
    a = nd.array([1.0, 2.0])
    a.attach_grad()
    with autograd.record():
        y = (a * a).sum()
    y.backward()
    return [a.grad, a.grad.asnumpy(), y.asjax(), _second_derivative(a)]


def _second_derivative(a):
    with autograd.record():
        y = (a * a).sum()
        (slope,) = autograd.grad(y, a, create_graph=True)
    return autograd.grad(slope, a)[0].asjax()


def _of_mixed_dtypes():
    """Promotion looks at operators in double precision, whatever the flag is."""
    a, b = nd.array([1.0, 2.0]), nd.array([1.0, 2.0], dtype="float16")
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        y = (a * b + nd.log(b) * 1.5).sum()
    y.backward()
    assert b.grad.asnumpy().dtype == np.float16
    return [a.grad.asnumpy(), y.asnumpy()]


@pytest.mark.parametrize("flags", [(False, True, False), (True, False, True)])
@pytest.mark.parametrize(
    "doors", list(itertools.permutations([_of_a_symbol, _of_arrays, _of_mixed_dtypes]))
)
@pytest.mark.filterwarnings("error:Explicitly requested dtype")
@pytest.mark.sampled(4)
def test_dtypes_follow_the_flag_whatever_ran_before(doors, flags):
    for flag in flags:
        with jax.enable_x64(flag):
            for door in doors:
                assert {str(one.dtype) for one in door()} == {"float64" if flag else "float32"}
            assert jax.config.jax_enable_x64 is flag
