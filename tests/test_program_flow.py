"""Control flow in programs: recorded as sub-blocks, differentiated in them, saved and run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import symop as so
from registry.errors import FormatError, ProgramError

RNG = np.random.default_rng(0)
XS = RNG.normal(size=(6, 3)).astype(np.float32)


def recurrent():
    """A recurrent network over a scan, and its loss."""
    program = so.Program()
    xs, w, u = (
        program.data("xs", (6, 3)),
        program.parameter("w", (3, 4)),
        program.parameter("u", (4, 4)),
    )

    def step(h, x):
        h = so.tanh(so.matmul(so.expand_dims(x, axis=0), w) + so.matmul(h, u))
        return h, so.sum(h)

    _, sums = so.scan(step, so.zeros(shape=(1, 4)), xs)
    return program, so.mean(so.square(sums))


def by_hand(w, u):
    def step(h, x):
        h = jnp.tanh(x[None] @ w + h @ u)
        return h, jnp.sum(h)

    return jnp.mean(lax.scan(step, jnp.zeros((1, 4)), XS)[1] ** 2)


def test_a_scan_has_a_block_of_its_own():
    program, _ = recurrent()
    types = [op.type for op in program.ops]
    assert types.count("scan") == 1
    assert "tanh" not in types
    blocks = program.desc().blocks
    assert len(blocks) == 2
    assert "tanh" in [op.type for op in blocks[1].ops]
    assert "@1 (x0: float32[1,4]" in str(program)


def test_gradients_are_those_of_jax_and_lie_in_blocks():
    program, loss = recurrent()
    pairs = so.append_backward(loss)
    program.initialize(0)
    expected = jax.grad(by_hand, (0, 1))(program.scope["w"], program.scope["u"])
    found = program.run({"xs": XS}, [slope for _, slope in pairs])
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    assert len(program.desc().blocks) > 2
    assert "tanh" not in [op.type for op in program.ops]


def test_it_is_differentiated_again_after_loading(tmp_path):
    program, loss = recurrent()
    ((_, slope), _) = so.append_backward(loss)
    so.sum(so.square(slope), name="steepness")
    program.save(tmp_path / "program.json")
    again = so.Program.load(tmp_path / "program.json")
    assert again == program
    assert so.Program.parse(str(program)) == program
    ((_, second),) = so.append_backward(again["steepness"], ["w"])
    again.initialize(0)
    w, u = again.scope["w"], again.scope["u"]
    expected = jax.grad(lambda w: jnp.sum(jax.grad(by_hand)(w, u) ** 2))(w)
    np.testing.assert_allclose(again.run({"xs": XS}, second), expected, rtol=1e-3, atol=1e-6)


def test_a_branch_that_is_not_taken_is_not_computed():
    program = so.Program()
    x = program.data("x", ())
    y = so.cond(x > 0, lambda: so.log(x), lambda: x * 2.0)
    ((_, slope),) = so.append_backward(y, [x])
    for given, value, derivative in ((4.0, np.log(4.0), 0.25), (-3.0, -6.0, 2.0)):
        found = program.run({"x": given}, [y, slope])
        np.testing.assert_allclose(found, [value, derivative], rtol=1e-6)


def test_a_loop_of_values():
    program = so.Program()
    x = program.data("x", ())
    y, n = so.while_loop(
        lambda carry: carry[0] < 100, lambda carry: (carry[0] * carry[0], carry[1] + 1), (x, 0),
        max_steps=10,
    )  # fmt: skip
    ((_, slope),) = so.append_backward(y, [x])
    np.testing.assert_allclose(program.run({"x": 3.0}, [y, n, slope]), [6561, 3, 17496], rtol=1e-6)
    assert so.Program.parse(str(program)) == program


def test_training_with_control_flow():
    program, loss = recurrent()
    so.optim.Adam(0.05).minimize(loss)
    losses = [float(program.run({"xs": XS}, loss)) for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0]


def test_foreach_and_nesting():
    program = so.Program()
    x, s = program.data("x", (4,)), program.parameter("s", (), initial=2.0)

    def step(one, state):
        held = so.cond(one > 0, lambda: state * one, lambda: state)
        return held, held

    outputs, _ = so.foreach(step, x, s)
    given = np.array([1.0, -1.0, 3.0, 0.5], np.float32)
    np.testing.assert_allclose(program.run({"x": given}, outputs), [2, 2, 6, 3])
    assert len(program.desc().blocks) == 4


def test_variables_of_two_programs_are_refused():
    first, second = so.Program(), so.Program()
    x, y = first.data("x", ()), second.data("y", ())
    with pytest.raises(ProgramError, match="of one program"):
        so.cond(x > 0, lambda a, b: a, lambda a, b: b, x, y)
    with pytest.raises(ProgramError, match="same program"):
        so.cond(x > 0, lambda: x, lambda: y)
    assert str(second) == "(y: float32[]) {\n} ->"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda blocks: blocks.pop(), "block 1 is not there"),
        (lambda blocks: blocks[1].fetch.append("nowhere"), "block 1: 'nowhere' is not defined"),
        (lambda blocks: blocks[1].updates.update(x0="x0"), "only the first block may update"),
        (lambda blocks: setattr(blocks[1].vars[0], "dtype", "float12"), "no dtype 'float12'"),
        (lambda blocks: setattr(blocks[1].vars[0], "shape", None), "an argument of known type"),
        (lambda blocks: blocks[1].fetch.clear(), "at least one value must be returned"),
        (lambda blocks: blocks[0].ops[-1].attrs.update(true_body={"block": 0}), "block 0 is not"),
        (lambda blocks: blocks[0].ops[-1].attrs.update(true_body={"block": "x"}), "by its number"),
    ],
)  # fmt: skip
def test_the_verifier_refuses(change, message):
    program = so.Program()
    x = program.data("x", ())
    so.cond(x > 0, lambda: x * 2.0, lambda: x * 2.0)
    desc = program.desc()
    change(desc.blocks)
    with pytest.raises(FormatError, match=message):
        so.Program.from_desc(desc)


def test_a_block_that_contains_itself_is_refused():
    program = so.Program()
    x = program.data("x", ())
    so.cond(x > 0, lambda: so.cond(x > 1, lambda: x, lambda: -x), lambda: x * 2.0)
    desc = program.desc()
    (call,) = [op for op in desc.blocks[1].ops if op.type == "cond"]
    call.attrs["true_body"] = {"block": 1}
    with pytest.raises(FormatError, match="contains itself"):
        so.Program.from_desc(desc)
