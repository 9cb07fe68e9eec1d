"""Attention on a GPU: which calls cuDNN computes, and that it computes their gradients, too.

cuDNN needs a device. Here XLA's implementation of the same function takes its place, or a program
is lowered for a GPU and not run.
"""

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.cudnn import fused_attention_stablehlo as jax_cudnn

import symop as so
from registry.ops.nn import attention, attention_cudnn, attention_derivatives
from registry.ops.nn.attention_blocks import Form, attend, call_of

GENERATOR = np.random.default_rng(0)
SEED = np.array([5, 2**31 + 3], np.uint32)
HOW = {"scale": None, "causal": True, "window": None, "dropout": 0.0}
FORWARD, BACKWARD = "__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"


def half(*shape):
    """A normal draw of this shape in bfloat16."""
    return jnp.asarray(GENERATOR.standard_normal(shape), jnp.bfloat16)


QUERY, KEYS, VALUES = half(2, 4, 16, 8), half(2, 2, 16, 8), half(2, 2, 16, 8)
OPERANDS = (QUERY, KEYS, VALUES)


def single(x):
    """``x`` in float32, for comparisons."""
    return np.asarray(x, np.float32)


def close(result, expected, tolerance=2e-2):
    """Asserts that arrays differ by roundings of bfloat16."""
    np.testing.assert_allclose(single(result), single(expected), tolerance, tolerance)


@pytest.fixture
def cudnn(monkeypatch):
    """Makes cuDNN's calls those of XLA, and lists them."""
    calls, own = [], jax.nn.dot_product_attention

    def attend_by_xla(*arrays, implementation, **how):
        calls.append(how)
        assert implementation == "cudnn"
        return own(*arrays, implementation="xla", **how)

    monkeypatch.setattr(jax.nn, "dot_product_attention", attend_by_xla)
    monkeypatch.setattr(attention_cudnn, "has_cuda", lambda: True)
    return calls


def on_blocks(*operands, **how):
    """The call's results by the kernel of all platforms."""
    out, logsumexp = attend(call_of(*operands, *[None] * 5, Form(**how)))
    rows = operands[0].shape[:-1]
    return out.reshape(*rows, -1), logsumexp.reshape(rows)


class TestValues:
    def test_cudnn_computes_them_where_it_takes_the_call(self, cudnn):
        out, logsumexp = attention.attention_on_gpu(*OPERANDS, **HOW)
        assert cudnn == [{"scale": None, "is_causal": True, "local_window_size": None}]
        expected = on_blocks(*OPERANDS, causal=True)
        close(out, expected[0])
        close(logsumexp, expected[1], 1e-5)

    @pytest.mark.parametrize(
        "changes", [{"window": 3, "causal": False}, {"causal": False, "dropout": 0.5}]
    )
    def test_other_calls_run_as_elsewhere(self, cudnn, changes):
        seed = SEED if "dropout" in changes else None
        attention.attention_on_gpu(*OPERANDS, dropout_seed=seed, **HOW | changes)
        attention.attention_on_gpu(*[one.astype(np.float32) for one in OPERANDS], **HOW)
        assert not cudnn

    def test_a_refusal_of_jax_is_no_error(self, monkeypatch):
        monkeypatch.setattr(attention_cudnn, "has_cuda", lambda: True)
        out, _ = attention.attention_on_gpu(*OPERANDS, **HOW)
        assert out.shape == QUERY.shape

    def test_the_choice_is_made_for_the_platform(self, cudnn):
        variables = [so.var(n, shape=(2, 4, 16, 8), dtype="bfloat16") for n in ("q", "k", "v")]
        function = jax.jit(so.scaled_dot_product_attention(*variables).to_jax())
        lowered = function.trace(QUERY, QUERY, QUERY).lower(lowering_platforms=("cpu", "cuda"))
        assert "platform_index" in lowered.as_text()
        assert cudnn


class TestGradients:
    COTANGENT = half(2, 4, 16, 8)

    def gradients(self, **changes):
        """The gradients for the cotangent by the kernel of a GPU."""
        how = {**HOW, "of_bias": False} | changes
        form = {name: how[name] for name in ("scale", "causal", "window", "dropout")}
        out, logsumexp = on_blocks(*OPERANDS, **form)
        return attention_derivatives.attention_gradient_on_gpu(
            *OPERANDS, out, logsumexp, self.COTANGENT, how.pop("logsumexp_cotangent", None), **how
        )

    @pytest.mark.parametrize(
        "changes", [{}, {"causal": False}, {"scale": 0.3}, {"window": 3}], ids=str
    )
    def test_cudnn_computes_them_where_it_takes_the_call(self, cudnn, changes):
        parts = self.gradients(**changes)
        assert len(cudnn) == 1
        form = {name: one for name, one in (HOW | changes).items() if name != "dropout"}

        def by_blocks(*operands):
            return on_blocks(*operands, **form)[0]

        operands = [one.astype(jnp.float32) for one in OPERANDS]
        expected = jax.vjp(by_blocks, *operands)[1](self.COTANGENT.astype(jnp.float32))
        for part, one, operand in zip(parts, expected, OPERANDS, strict=True):
            assert (part.shape, part.dtype) == (operand.shape, operand.dtype)
            close(part, one, 5e-2)

    def test_a_cotangent_of_the_logsumexp_runs_as_elsewhere(self, cudnn):
        parts = self.gradients(logsumexp_cotangent=jnp.ones((2, 4, 16)))
        assert not cudnn
        plain = self.gradients()
        assert cudnn
        assert not np.allclose(single(parts[0]), single(plain[0]), atol=1e-2)
        close(parts[2], plain[2])

    def test_other_calls_run_as_elsewhere(self, cudnn):
        self.gradients(window=3, causal=False)
        assert not cudnn

    def test_a_refusal_of_jax_is_no_error(self, monkeypatch, cudnn):
        by_cudnn = self.gradients()
        monkeypatch.undo()
        monkeypatch.setattr(attention_cudnn, "has_cuda", lambda: True)
        for one, other in zip(self.gradients(), by_cudnn, strict=True):
            close(one, other)

    def test_nothing_else_computes_scores(self, cudnn):
        """XLA drops the logsumexp of the kernel of all platforms, which no gradient reads."""

        def products(function):
            compiled = jax.jit(function).lower(*OPERANDS, self.COTANGENT).compile()
            return len(re.findall(r" dot\(", compiled.as_text()))

        def step(*given):
            *operands, cotangent = given
            out, logsumexp = attention.attention_on_gpu(*operands, **HOW)
            return out, attention_derivatives.attention_gradient_on_gpu(
                *operands, out, logsumexp, cotangent, **HOW, of_bias=False
            )

        def of_jax(*given):
            *operands, cotangent = given
            turned = [jnp.swapaxes(one, 1, 2) for one in operands]

            def attended(*arrays):
                return jax.nn.dot_product_attention(*arrays, is_causal=True, implementation="cudnn")

            out, pull = jax.vjp(attended, *turned)
            return out, pull(jnp.swapaxes(cotangent, 1, 2))

        assert products(step) == products(of_jax)


class TestPrograms:
    """What programs call on a GPU, read from their lowered text."""

    @pytest.fixture(autouse=True)
    def lowered_for_cuda(self, monkeypatch):
        installed = SimpleNamespace(cudnn_get_version=lambda: 91000)
        monkeypatch.setattr(jax_cudnn, "cuda_versions", installed)
        monkeypatch.setattr(attention_cudnn, "has_cuda", lambda: True)

    @staticmethod
    def calls(function, *arrays):
        """The calls of cuDNN in the order of the program for a GPU."""
        traced = jax.jit(function).trace(*arrays)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        return re.findall(r"custom_call @(__cudnn[^(]*)", text)

    @staticmethod
    def loss(*operands):
        out = so.scaled_dot_product_attention(*operands, causal=True)
        return so.sum(so.square(so.cast(out, dtype="float32")))

    def test_gradients_of_a_graph(self):
        variables = [
            so.var(name, shape=one.shape, dtype="bfloat16")
            for name, one in zip("qkv", OPERANDS, strict=True)
        ]
        loss = self.loss(*variables)
        step = so.Group([loss, *so.grad(loss, variables)]).to_jax()
        # XLA merges the two calls of the forward pass, which are equal.
        assert self.calls(step, *OPERANDS) == [FORWARD, FORWARD, BACKWARD]

    def test_gradients_by_jax(self):
        step = jax.value_and_grad(self.loss, (0, 1, 2))
        assert self.calls(step, *OPERANDS) == [FORWARD, FORWARD, BACKWARD]
        batched = [jnp.stack([one] * 3) for one in OPERANDS]
        assert self.calls(jax.vmap(step), *batched) == [FORWARD, FORWARD, BACKWARD]

    def test_second_derivatives_are_those_of_all_platforms(self):
        def along(scale, *operands):
            return self.loss(operands[0] * scale, *operands[1:])

        found = self.calls(jax.grad(jax.grad(along)), jnp.bfloat16(1), *OPERANDS)
        assert BACKWARD not in found
