"""Control flow of Paddle's programs, written as Paddle writes it, against plain JAX."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symop as so
from symop.graph.nodes import topological
from symop.interop.paddle import (
    ops,  # noqa: F401  # it fills the table of operators
    programs,
)
from symop.interop.paddle.arrays import Elements
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.executor import Executor, Scope
from symop.interop.paddle.framework import (
    BlockDesc,
    OpDesc,
    ProgramDesc,
    VarDesc,
    VarKind,
    parse,
)
from symop.interop.paddle.translating import Translation
from symop.interop.paddle.values import symbolic

ARRAY = VarKind.LOD_TENSOR_ARRAY
INT64, BOOL, INT32, FLOAT = 3, 0, 2, 5


class Program:
    """A program that is written by hand."""

    def __init__(self, version: int = 1_008_005) -> None:
        self.desc = ProgramDesc([BlockDesc(0, -1)], version=version)
        self.max_steps: int | None = None

    def block(self, *, parent: int = 0, forward: int = -1) -> "Writer":
        index = len(self.desc.blocks)
        self.desc.blocks.append(BlockDesc(index, parent, forward_block_idx=forward))
        return Writer(self.desc, index)

    @property
    def main(self) -> "Writer":
        return Writer(self.desc, 0)

    def environment(self, **values: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the environment after a run on variables, and the values of these."""
        arrays = {name: np.asarray(one) for name, one in values.items()}
        environment: dict[str, Any] = {
            name: so.var(name, one.shape, one.dtype) for name, one in arrays.items()
        }
        Translation(self.desc, self.max_steps).run(0, environment)
        return environment, arrays

    def run(self, fetch: str, **values: Any) -> list[np.ndarray]:
        """Returns the values of variables after a run."""
        environment, arrays = self.environment(**values)
        found = [environment[name] for name in fetch.split()]
        return evaluated(found, arrays)


def evaluated(values: Sequence[Any], arrays: Mapping[str, Any]) -> list[np.ndarray]:
    group = so.Group([symbolic(one) for one in values])
    given = {name: arrays[name] for name in group.list_inputs()}
    results = group.eval(given)
    return [
        np.asarray(one) for one in (results if isinstance(results, (list, tuple)) else [results])
    ]


class Writer:
    """Appends to a block."""

    def __init__(self, desc: ProgramDesc, index: int) -> None:
        self.desc, self.index = desc, index
        self.record = desc.blocks[index]

    def var(
        self, names: str, shape: Sequence[int] = (), dtype: str = "float32", **rest: Any
    ) -> None:
        for name in names.split():
            self.record.vars[name] = VarDesc(
                name, dtype=np.dtype(dtype), shape=tuple(shape), **rest
            )

    def op(self, type_: str, inputs: str = "", outputs: str = "", **attrs: Any) -> None:
        """Appends a call; slots are written as ``"X=a,b Y=c"``."""
        self.record.ops.append(OpDesc(type_, _slots(inputs), _slots(outputs), dict(attrs)))

    def constant(
        self, name: str, value: float, dtype: int = FLOAT, shape: Sequence[int] = (1,)
    ) -> None:
        self.op("fill_constant", "", f"Out={name}", shape=list(shape), value=value, dtype=dtype)


def _slots(text: str) -> dict[str, list[str]]:
    pairs = (one.split("=") for one in text.split())
    return {slot: [name for name in names.split(",") if name] for slot, names in pairs}


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 2)).astype(np.float32)
W = (RNG.normal(size=(2, 2)) * 0.7).astype(np.float32)


# Branches --------------------------------------------------------------------------------------


def branching() -> Program:
    """``cond(sum(x) > 0, lambda: tanh(x @ w), lambda: x * x)``, and the gradient of the sum."""
    program = Program()
    main = program.main
    main.var("x y yes no loss", (3, 2))
    main.var("w", (2, 2))
    main.op("reduce_sum", "X=x", "Out=s", reduce_all=True)
    main.constant("zero", 0.0)
    main.op("greater_than", "X=s Y=zero", "Out=p")
    main.op("cast", "X=p", "Out=mask", in_dtype=BOOL, out_dtype=INT32)
    true = program.block()
    true.var("h t", (3, 2))
    true.op("mul", "X=x Y=w", "Out=h")
    true.op("tanh", "X=h", "Out=t")
    true.op("assign", "X=t", "Out=yes")
    main.op(
        "conditional_block",
        "Cond=p Input=x,w",
        "Out=yes Scope=scope0",
        sub_block=true.index,
        is_scalar_condition=True,
    )
    main.op("logical_not", "X=p", "Out=np")
    false = program.block()
    false.var("q", (3, 2))
    false.op("elementwise_mul", "X=x Y=x", "Out=q")
    false.op("assign", "X=q", "Out=no")
    main.op(
        "conditional_block",
        "Cond=np Input=x",
        "Out=no Scope=scope1",
        sub_block=false.index,
        is_scalar_condition=True,
    )
    main.op("select_input", "X=no,yes Mask=mask", "Out=y")
    main.op("reduce_sum", "X=y", "Out=loss", reduce_all=True)
    main.constant("loss@GRAD", 1.0)
    main.op("reduce_sum_grad", "X=y Out@GRAD=loss@GRAD", "X@GRAD=y@GRAD", reduce_all=True)
    main.op("select_output", "X=y@GRAD Mask=mask", "Out=no@GRAD,yes@GRAD")
    back = program.block(forward=false.index)
    back.op("assign", "X=no@GRAD", "Out=q@GRAD")
    back.op("elementwise_mul_grad", "X=x Y=x Out@GRAD=q@GRAD", "X@GRAD=x@GRAD")
    main.op(
        "conditional_block_grad",
        "Cond=np Input=x Out=no Out@GRAD=no@GRAD Scope=scope1",
        "Input@GRAD=x@GRAD@RENAME@block0@0 Cond@GRAD=",
        sub_block=back.index,
        is_scalar_condition=True,
    )
    back = program.block(forward=true.index)
    back.op("assign", "X=yes@GRAD", "Out=t@GRAD")
    back.op("tanh_grad", "Out=t Out@GRAD=t@GRAD", "X@GRAD=h@GRAD")
    back.op("mul_grad", "X=x Y=w Out@GRAD=h@GRAD", "X@GRAD=x@GRAD Y@GRAD=w@GRAD")
    main.op(
        "conditional_block_grad",
        "Cond=p Input=x,w Out=yes Out@GRAD=yes@GRAD Scope=scope0",
        "Input@GRAD=x@GRAD@RENAME@block0@1,w@GRAD Cond@GRAD=",
        sub_block=back.index,
        is_scalar_condition=True,
    )
    main.op("sum", "X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1", "Out=x@GRAD")
    return program


def branching_in_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, jnp.tanh(x @ w), x * x).sum()


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_and_their_gradients(sign: int) -> None:
    x = np.abs(X) * sign
    loss, d_x, d_w = branching().run("loss x@GRAD w@GRAD", x=x, w=W)
    close(loss, branching_in_jax(x, W))
    wanted = jax.grad(branching_in_jax, (0, 1))(x, W)
    close(d_x, wanted[0])
    close(d_w, wanted[1])


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_of_branches_have_gradients(sign: int) -> None:
    x = np.abs(X) * sign
    environment, arrays = branching().environment(x=x, w=W)
    slope = environment["x@GRAD"]
    second = so.grad(so.sum(so.square(slope)), so.var("x", (3, 2), "float32"))
    wanted = jax.grad(lambda x: (jax.grad(branching_in_jax)(x, W) ** 2).sum())(x)
    close(evaluated([second], arrays)[0], wanted)


def test_a_branch_leaves_variables_as_they_were() -> None:
    program = Program()
    main = program.main
    main.var("rate other", (1,))
    main.constant("other", 3.0)
    block = program.block()
    block.constant("rate", 5.0)
    block.constant("other", 7.0)
    block.constant("new", 2.0, shape=(2,))
    main.op(
        "conditional_block",
        "Cond=p",
        "Out=rate,other,new Scope=scope",
        sub_block=block.index,
        is_scalar_condition=True,
    )
    one = np.float32([1.0])
    assert [float(v[0]) for v in program.run("rate other new", rate=one, p=[True])] == [5, 7, 2]
    assert [float(v[0]) for v in program.run("rate other new", rate=one, p=[False])] == [1, 3, 0]


def test_a_known_condition_chooses_while_translating() -> None:
    program = Program()
    main = program.main
    main.constant("a", 1.0)
    main.constant("b", 2.0)
    main.op("less_than", "X=a Y=b", "Out=p")
    block = program.block()
    block.op("elementwise_add", "X=x Y=x", "Out=y")
    main.op(
        "conditional_block",
        "Cond=p Input=x",
        "Out=y Scope=scope",
        sub_block=block.index,
        is_scalar_condition=True,
    )
    environment, arrays = program.environment(x=X)
    names = {getattr(node.op, "name", "") for node in topological([environment["y"].node])}
    assert "cond" not in names
    close(evaluated([environment["y"]], arrays)[0], 2 * X)


def test_a_learning_rate_that_depends_on_a_counter() -> None:
    """``piecewise_decay``: one branch for each interval writes the rate, a persistable variable."""
    program = Program()
    main = program.main
    main.var("counter", (1,), "int64", persistable=True)
    main.var("rate", (1,), persistable=True)
    main.var("w", (2,), persistable=True)
    main.var("g", (2,))
    main.op("increment", "X=counter", "Out=counter", step=1.0)
    main.op("cast", "X=counter", "Out=step", in_dtype=INT64, out_dtype=FLOAT)

    def branch(condition: str, number: int, rate: float) -> None:
        main.constant(f"v{number}", rate)
        block = program.block()
        block.op("assign", f"X=v{number}", "Out=rate")
        main.op(
            "conditional_block",
            f"Cond={condition} Input=v{number}",
            f"Out=rate Scope=scope{number}",
            sub_block=block.index,
            is_scalar_condition=True,
        )

    main.constant("b0", 1.0)
    main.op("less_than", "X=step Y=b0", "Out=c0")
    main.op("logical_not", "X=c0", "Out=n0")
    branch("c0", 0, 0.5)
    main.constant("b1", 2.0)
    main.op("less_than", "X=step Y=b1", "Out=c1")
    main.op("logical_not", "X=c1", "Out=n1")
    main.op("logical_and", "X=n0 Y=n1", "Out=rest")
    main.op("logical_and", "X=n0 Y=c1", "Out=middle")
    branch("middle", 1, 0.25)
    branch("rest", 2, 0.125)
    main.op("sgd", "Param=w Grad=g LearningRate=rate", "ParamOut=w")
    scope = Scope()
    scope["counter"], scope["rate"] = np.int32([-1]), np.float32([9.0])
    scope["w"] = np.zeros(2, np.float32)
    executor, fetched = Executor(), []
    loaded = programs.Program(program.desc)
    for _ in range(4):
        found = executor.run(loaded, {"g": np.float32([1, 2])}, ["rate"], scope=scope)
        fetched.append(float(found[0][0]))
    assert fetched == [0.5, 0.25, 0.125, 0.125]
    assert np.asarray(scope["counter"]).tolist() == [3]
    close(scope["w"], [-1.0, -2.0])


def test_a_loop_in_the_executor_with_constants_fetched() -> None:
    program = over_an_array()
    main = program.main
    main.var("w", (2, 2), persistable=True)
    scope = Scope()
    scope["w"] = W
    loaded = programs.Program(program.desc)
    loss, i, d_w = Executor().run(loaded, {"x": X}, ["loss", "i", "w@GRAD"], scope=scope)
    close(loss, over_an_array_in_jax(X, W))
    close(d_w, jax.grad(over_an_array_in_jax, 1)(X, W))
    assert i.tolist() == [0]


def test_without_a_scalar_condition_blocks_run_for_inputs_that_are_not_empty() -> None:
    program = Program()
    block = program.block()
    block.op("scale", "X=x", "Out=y", scale=2.0)
    program.main.op("conditional_block", "Cond=x Input=x", "Out=y Scope=s", sub_block=block.index)
    close(program.run("y", x=X)[0], 2 * X)


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_select_input_and_output(chosen: int) -> None:
    program = Program()
    program.main.op("select_input", "X=a,b,c Mask=m", "Out=y")
    program.main.op("select_output", "X=y Mask=m", "Out=p,q,r")
    values = dict(zip("abc", (X, 2 * X, 3 * X), strict=True))
    y, *parts = program.run("y p q r", m=np.int32([chosen]), **values)
    close(y, X * (chosen + 1))
    close(parts, [y if i == chosen else 0 * y for i in range(3)])


def test_branches_write_tensor_arrays() -> None:
    program = Program()
    main = program.main
    main.constant("i", 0, INT64)
    main.constant("j", 1, INT64)
    main.op("write_to_array", "X=x I=i", "Out=arr")
    block = program.block()
    block.op("scale", "X=x", "Out=twice", scale=2.0)
    block.var("twice", (3, 2))
    block.op("write_to_array", "X=twice I=j", "Out=arr")
    main.op(
        "conditional_block",
        "Cond=p Input=x,j",
        "Out=arr Scope=s",
        sub_block=block.index,
        is_scalar_condition=True,
    )
    main.op("lod_array_length", "X=arr", "Out=n")
    main.op("read_from_array", "X=arr I=i", "Out=y")
    for p, count in ((True, 2), (False, 1)):
        n, y = program.run("n y", x=X, p=[p])
        assert n.tolist() == [count]
        close(y, X)


@pytest.mark.parametrize("p", [True, False])
def test_branches_that_return_tensor_arrays(p: bool) -> None:
    """``cond`` copies the arrays of its branches by ``assign``; lengths may differ."""
    program = Program()
    main = program.main
    main.constant("i", 0, INT64)
    main.constant("j", 1, INT64)
    main.op("cast", "X=p", "Out=mask", in_dtype=BOOL, out_dtype=INT32)
    main.op("logical_not", "X=p", "Out=np")
    for condition, name, count in (("p", "yes", 2), ("np", "no", 1)):
        block = program.block()
        block.var(f"{name}_inner", (3, 2), kind=ARRAY)
        block.op("write_to_array", "X=x I=i", f"Out={name}_inner")
        if count > 1:
            block.op("write_to_array", "X=y I=j", f"Out={name}_inner")
        block.op("assign", f"X={name}_inner", f"Out={name}")
        main.op(
            "conditional_block",
            f"Cond={condition} Input=x,y,i,j",
            f"Out={name} Scope=s{name}",
            sub_block=block.index,
            is_scalar_condition=True,
        )
    main.op("select_input", "X=no,yes Mask=mask", "Out=arr")
    main.op("fill_zeros_like", "X=arr", "Out=zeros")
    main.op("sum", "X=arr,arr,zeros", "Out=twice")
    main.op("read_from_array", "X=twice I=i", "Out=first")
    main.op("read_from_array", "X=twice I=j", "Out=second")
    first, second = program.run("first second", x=X, y=3 * X, p=[p])
    close(first, 2 * X)
    close(second, 6 * X if p else 0 * X)


# Loops over tensor arrays ------------------------------------------------------------------------


def over_an_array(steps: int = 3, *, fed: bool = False) -> Program:
    """``h = tanh(h @ w) + h`` in a tensor array, as ``While`` of Paddle 1.8 writes it."""
    program = Program()
    main = program.main
    main.var("x last loss", (3, 2))
    main.var("arr", (3, 2), kind=ARRAY)
    main.var("i n", (1,), "int64")
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    if not fed:
        main.constant("n", steps, INT64)
    main.op("write_to_array", "X=x I=i", "Out=arr")
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("prev h t new", (3, 2))
    body.op("read_from_array", "X=arr I=i", "Out=prev")
    body.op("mul", "X=prev Y=w", "Out=h")
    body.op("tanh", "X=h", "Out=t")
    body.op("elementwise_add", "X=t Y=prev", "Out=new")
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("write_to_array", "X=new I=i", "Out=arr")
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op(
        "while",
        "X=arr,i,n,w Condition=c",
        "Out=arr,i,c StepScopes=scopes",
        sub_block=body.index,
        is_test=False,
    )
    main.op("read_from_array", "X=arr I=i", "Out=last")
    main.op("square", "X=last", "Out=sq")
    main.op("reduce_sum", "X=sq", "Out=loss", reduce_all=True)
    main.constant("loss@GRAD", 1.0)
    main.op("reduce_sum_grad", "X=sq Out@GRAD=loss@GRAD", "X@GRAD=sq@GRAD", reduce_all=True)
    main.op("square_grad", "X=last Out@GRAD=sq@GRAD", "X@GRAD=last@GRAD")
    main.op("write_to_array", "X=last@GRAD I=i", "Out=arr@GRAD")
    back = program.block(forward=body.index)
    back.op("read_from_array", "X=arr@GRAD I=i", "Out=new@GRAD")
    back.op("increment", "X=i", "Out=i", step=-1.0)
    back.op(
        "elementwise_add_grad",
        "X=t Y=prev Out@GRAD=new@GRAD",
        "X@GRAD=t@GRAD Y@GRAD=prev@GRAD@RENAME@block2@0",
    )
    back.op("tanh_grad", "Out=t Out@GRAD=t@GRAD", "X@GRAD=h@GRAD")
    back.op(
        "mul_grad", "X=prev Y=w Out@GRAD=h@GRAD", "X@GRAD=prev@GRAD@RENAME@block2@1 Y@GRAD=w@GRAD"
    )
    back.op("sum", "X=prev@GRAD@RENAME@block2@0,prev@GRAD@RENAME@block2@1", "Out=prev@GRAD")
    back.op("write_to_array", "X=prev@GRAD I=i", "Out=arr@GRAD")
    main.op(
        "while_grad",
        "X=arr,i,n,w Out=arr,i,c StepScopes=scopes Out@GRAD=arr@GRAD",
        "X@GRAD=arr@GRAD,@EMPTY@,@EMPTY@,w@GRAD",
        sub_block=back.index,
        is_test=False,
        original_output_grad=["arr@GRAD"],
    )
    main.op("read_from_array", "X=arr@GRAD I=i", "Out=x@GRAD")
    return program


def over_an_array_in_jax(x: Any, w: Any, steps: int = 3) -> Any:
    for _ in range(steps):
        x = jnp.tanh(x @ w) + x
    return (x**2).sum()


def check_over_an_array(program: Program, steps: int = 3, **fed: Any) -> None:
    loss, d_x, d_w = program.run("loss x@GRAD w@GRAD", x=X, w=W, **fed)
    close(loss, over_an_array_in_jax(X, W, steps))
    wanted = jax.grad(over_an_array_in_jax, (0, 1))(X, W, steps)
    close(d_x, wanted[0])
    close(d_w, wanted[1])


def test_a_loop_over_an_array_and_its_gradients() -> None:
    check_over_an_array(over_an_array())


def test_the_forward_loop_runs_once() -> None:
    environment, _ = over_an_array().environment(x=X, w=W)
    outputs = [environment[name].node for name in ("loss", "x@GRAD", "w@GRAD")]
    names = [getattr(node.op, "name", "") for node in topological(outputs)]
    assert names.count("scan") == 2


def test_counters_are_constants_after_a_loop() -> None:
    environment, _ = over_an_array().environment(x=X, w=W)
    assert not isinstance(environment["i"], so.Symbol)
    assert environment["i"].tolist() == [0]  # the gradient counts back


@pytest.mark.parametrize("steps", [0, 2, 4])
def test_a_fed_number_of_steps_is_bounded_by_max_steps(steps: int) -> None:
    program = over_an_array(fed=True)
    program.max_steps = 4
    if steps:
        check_over_an_array(program, steps, n=np.int32([steps]))
    else:
        close(program.run("last", x=X, w=W, n=np.int32([0]))[0], X)


def test_a_fed_number_of_steps_needs_a_bound_for_arrays() -> None:
    with pytest.raises(PaddleError, match="max_steps"):
        over_an_array(fed=True).environment(x=X, w=W, n=np.int32([3]))


def test_second_derivatives_of_loops() -> None:
    environment, arrays = over_an_array().environment(x=X, w=W)
    second = so.grad(so.sum(so.square(environment["w@GRAD"])), so.var("w", (2, 2), "float32"))
    wanted = jax.grad(lambda w: (jax.grad(over_an_array_in_jax, 1)(X, w) ** 2).sum())(W)
    np.testing.assert_allclose(evaluated([second], arrays)[0], wanted, rtol=2e-4)


def adding_up() -> Program:
    """The example of ``While`` in Paddle's documentation: a memory array over an array of data."""
    program = Program()
    main = program.main
    main.var("a b init loss last", (2,))
    main.var("data memory", (2,), kind=ARRAY)
    main.var("i j n", (1,), "int64")
    main.var("c", (1,), "bool")
    main.constant("j", 0, INT64)
    main.constant("init", 0.0, shape=(2,))
    main.op("write_to_array", "X=init I=j", "Out=memory")
    main.op("write_to_array", "X=a I=j", "Out=data")
    main.op("increment", "X=j", "Out=j", step=1.0)
    main.op("write_to_array", "X=b I=j", "Out=data")
    main.constant("i", 0, INT64)
    main.op("lod_array_length", "X=data", "Out=n")
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("d prev total t", (2,))
    body.op("read_from_array", "X=data I=i", "Out=d")
    body.op("read_from_array", "X=memory I=i", "Out=prev")
    body.op("sum", "X=d,prev", "Out=total")
    body.op("tanh", "X=total", "Out=t")
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("write_to_array", "X=t I=i", "Out=memory")
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op(
        "while",
        "X=data,i,memory,n Condition=c",
        "Out=memory,i,c StepScopes=scopes",
        sub_block=body.index,
        is_test=False,
    )
    main.op("read_from_array", "X=memory I=i", "Out=last")
    main.op("mean", "X=last", "Out=loss")
    main.constant("loss@GRAD", 1.0)
    main.op("mean_grad", "X=last Out@GRAD=loss@GRAD", "X@GRAD=last@GRAD")
    main.op("write_to_array", "X=last@GRAD I=i", "Out=memory@GRAD")
    back = program.block(forward=body.index)
    back.op("read_from_array", "X=memory@GRAD I=i", "Out=t@GRAD")
    back.op("increment", "X=i", "Out=i", step=-1.0)
    back.op("tanh_grad", "Out=t Out@GRAD=t@GRAD", "X@GRAD=total@GRAD")
    back.op("scale", "X=total@GRAD", "Out=d@GRAD", scale=1.0)
    back.op("scale", "X=total@GRAD", "Out=prev@GRAD", scale=1.0)
    back.op("write_to_array", "X=prev@GRAD I=i", "Out=memory@GRAD")
    back.op("write_to_array", "X=d@GRAD I=i", "Out=data@GRAD")
    main.op(
        "while_grad",
        "X=data,i,memory,n Out=memory,i,c StepScopes=scopes Out@GRAD=memory@GRAD",
        "X@GRAD=data@GRAD,@EMPTY@,memory@GRAD,@EMPTY@",
        sub_block=back.index,
        is_test=False,
        original_output_grad=["memory@GRAD"],
    )
    main.op("read_from_array", "X=data@GRAD I=j", "Out=b@GRAD")
    main.op("increment", "X=j", "Out=j", step=-1.0)
    main.op("read_from_array", "X=data@GRAD I=j", "Out=a@GRAD")
    main.op("read_from_array", "X=memory@GRAD I=j", "Out=init@GRAD")
    return program


def test_a_loop_over_an_array_of_data() -> None:
    def function(init: Any, a: Any, b: Any) -> Any:
        return jnp.tanh(jnp.tanh(init + a) + b).mean()

    loss, *slopes = adding_up().run("loss init@GRAD a@GRAD b@GRAD", a=X[0], b=X[1])
    close(loss[0], function(0 * X[0], X[0], X[1]))
    for slope, wanted in zip(
        slopes, jax.grad(function, (0, 1, 2))(0 * X[0], X[0], X[1]), strict=True
    ):
        close(slope, wanted)


# Loops over variables ----------------------------------------------------------------------------


def over_variables(condition: str = "constant") -> Program:
    """``while_loop`` of Paddle 2.6: variables of the loop are assigned at the end of its body."""
    program = Program(version=2_006_002)
    main = program.main
    main.var("x h loss", (3, 2))
    main.var("w", (2, 2))
    main.var("i n", (1,), "int64")
    main.var("limit s", ())
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 4, INT64)
    main.op("assign", "X=x", "Out=h")

    def holds(block: Writer) -> None:
        if condition == "constant":
            block.op("less_than", "X=i Y=n", "Out=c")
            return
        block.var("early small" if block.index else "", (1,), "bool")
        block.op("square", "X=h", "Out=hh")
        block.op("reduce_sum", "X=hh", "Out=s", reduce_all=True)
        if condition == "data":
            block.op("less_than", "X=s Y=limit", "Out=c")
        else:
            block.op("less_than", "X=s Y=limit", "Out=small")
            block.op("less_than", "X=i Y=n", "Out=early")
            block.op("logical_and", "X=early Y=small", "Out=c")

    holds(main)
    body = program.block()
    body.var("m e hh", (3, 2))
    body.var("j", (1,), "int64")
    body.op("matmul_v2", "X=h Y=w", "Out=m")
    body.op("exp", "X=m", "Out=e")
    body.op("scale", "X=i", "Out=j", scale=1.0, bias=1.0)
    body.op("assign", "X=j", "Out=i")
    body.op("assign", "X=e", "Out=h")
    holds(body)
    fed = {"constant": "n", "data": "limit", "both": "n,limit"}[condition]
    main.op(
        "while",
        f"X={fed},h,i,w Condition=c",
        f"Out=h,i,c{'' if condition == 'constant' else ',s'} StepScopes=scopes",
        sub_block=body.index,
        is_test=False,
    )
    main.op("reduce_mean", "X=h", "Out=loss", reduce_all=True)
    main.constant("loss@GRAD", 1.0, shape=())
    main.op("reduce_mean_grad", "X=h Out@GRAD=loss@GRAD", "X@GRAD=h@GRAD", reduce_all=True)
    back = program.block(forward=body.index)
    back.op("assign", "X=h@GRAD", "Out=e@GRAD")
    back.op("exp_grad", "Out=e Out@GRAD=e@GRAD", "X@GRAD=m@GRAD")
    back.op("matmul_v2_grad", "X=h Y=w Out@GRAD=m@GRAD", "X@GRAD=h@GRAD Y@GRAD=w@GRAD")
    empty = ",".join(["@EMPTY@"] * len(fed.split(",")))
    main.op(
        "while_grad",
        f"X={fed},h,i,w Out=h,i,c StepScopes=scopes Out@GRAD=h@GRAD",
        f"X@GRAD={empty},h@GRAD,@EMPTY@,w@GRAD",
        sub_block=back.index,
        is_test=False,
        original_output_grad=["h@GRAD"],
    )
    main.op("assign", "X=h@GRAD", "Out=x@GRAD")
    return program


SMALL = (W * 0.2).astype(np.float32)


def over_variables_in_jax(x: Any, w: Any, steps: int) -> Any:
    for _ in range(steps):
        x = jnp.exp(x @ w)
    return x.mean()


@pytest.mark.parametrize(
    ("condition", "limit", "steps"),
    [("constant", None, 4), ("both", 1e9, 4), ("both", 0.0, 0), ("both", 5.5, None)],
)
def test_a_loop_over_variables(condition: str, limit: float | None, steps: int | None) -> None:
    fed = {} if limit is None else {"limit": np.float32(limit)}
    x = X * 0.3
    found = over_variables(condition).run("i loss x@GRAD w@GRAD", x=x, w=SMALL, **fed)
    taken = int(found[0][0])
    assert taken == steps if steps is not None else 0 < taken < 4
    close(found[1], over_variables_in_jax(x, SMALL, taken))
    wanted = jax.grad(over_variables_in_jax, (0, 1))(x, SMALL, taken)
    close(found[2], wanted[0])
    close(found[3], wanted[1])


def test_a_loop_without_bound_runs_but_has_no_gradient() -> None:
    program = over_variables("data")
    with pytest.raises(PaddleError, match="while_grad: the number of steps must have a bound"):
        program.run("x@GRAD", x=X, w=SMALL, limit=np.float32(0.0))
    del program.main.record.ops[-2:]
    i, loss = program.run("i loss", x=X * 0.3, w=SMALL, limit=np.float32(5.5))
    close(loss, over_variables_in_jax(X * 0.3, SMALL, int(i[0])))


def test_a_variable_that_is_read_and_carried_has_two_gradients() -> None:
    """The first carry and a variable that the body reads are the same symbol."""
    program = Program()
    main = program.main
    main.var("h x t", (2,))
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 3, INT64)
    main.op("assign", "X=x", "Out=h")
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("t", (2,))
    body.op("elementwise_mul", "X=h Y=x", "Out=t")
    body.op("assign", "X=t", "Out=h")
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op("while", "X=h,x,i,n Condition=c", "Out=h,i,c StepScopes=s", sub_block=body.index)
    main.constant("h@GRAD", 1.0, shape=(2,))
    back = program.block(forward=body.index)
    back.op("assign", "X=h@GRAD", "Out=t@GRAD")
    back.op("increment", "X=i", "Out=i", step=-1.0)
    back.op("elementwise_mul_grad", "X=h Y=x Out@GRAD=t@GRAD", "X@GRAD=h@GRAD Y@GRAD=x@GRAD")
    main.op(
        "while_grad",
        "X=h,x,i,n Out=h,i,c StepScopes=s Out@GRAD=h@GRAD",
        "X@GRAD=h@GRAD,x@GRAD@RENAME@block0@0,@EMPTY@,@EMPTY@",
        sub_block=back.index,
        original_output_grad=["h@GRAD"],
    )
    main.op("assign", "X=h@GRAD", "Out=x@GRAD@RENAME@block0@1")
    main.op("sum", "X=x@GRAD@RENAME@block0@0,x@GRAD@RENAME@block0@1", "Out=x@GRAD")
    x = np.float32([1.5, -0.5])
    first, whole = program.run("h@GRAD x@GRAD", x=x)
    close(first, x**3)
    close(whole, 4 * x**3)


def test_no_gradient_flows_through_variables_without_one() -> None:
    """``t`` has ``stop_gradient``: the block of gradients has none for it."""
    program = Program()
    main = program.main
    main.var("h x", (2,))
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 2, INT64)
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("t u", (2,))
    body.op("tanh", "X=h", "Out=t")
    body.op("elementwise_mul", "X=h Y=t", "Out=u")
    body.op("assign", "X=u", "Out=h")
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op("while", "X=h,i,n Condition=c", "Out=h,i,c StepScopes=s", sub_block=body.index)
    main.constant("h@GRAD", 1.0, shape=(2,))
    back = program.block(forward=body.index)
    back.op("assign", "X=h@GRAD", "Out=u@GRAD")
    back.op("elementwise_mul_grad", "X=h Y=t Out@GRAD=u@GRAD", "X@GRAD=h@GRAD")
    main.op(
        "while_grad",
        "X=h,i,n Out=h,i,c StepScopes=s Out@GRAD=h@GRAD",
        "X@GRAD=h@GRAD,@EMPTY@,@EMPTY@",
        sub_block=back.index,
        original_output_grad=["h@GRAD"],
    )

    def function(h: Any) -> Any:
        for _ in range(2):
            h = h * jax.lax.stop_gradient(jnp.tanh(h))
        return h.sum()

    h = np.float32([0.8, -1.2])
    close(program.run("h@GRAD", h=h)[0], jax.grad(function)(h))


def test_a_loop_whose_variables_grow_is_unrolled() -> None:
    program = Program()
    main = program.main
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 3, INT64)
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("z", (1, 2))
    body.op("concat", "X=x,x", "Out=x", axis=0)
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op("while", "X=x,i,n Condition=c", "Out=x,i,c StepScopes=s", sub_block=body.index)
    close(program.run("x", x=X[:1])[0], np.repeat(X[:1], 8, 0))


def test_a_decoder_with_a_branch_in_its_loop() -> None:
    """A score of shape (1,) becomes one of each sentence; a branch changes the state."""
    program = Program(version=2_006_002)
    main = program.main
    main.var("h score", (3, 2))
    main.var("i n", (1,), "int64")
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 3, INT64)
    main.constant("score", 0.0)
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("m z t best s yes no out total", (3, 2))
    body.var("p np mask now j", (1,))
    body.op("matmul_v2", "X=h Y=w", "Out=m")
    body.op("reduce_max", "X=m", "Out=best", dim=[1])
    body.op("reduce_mean", "X=best", "Out=s", reduce_all=True)
    body.constant("z", 0.0)
    body.op("greater_than", "X=s Y=z", "Out=p")
    body.op("logical_not", "X=p", "Out=np")
    for condition, name, function in (("p", "yes", "tanh"), ("np", "no", "sigmoid")):
        branch = program.block(parent=body.index)
        branch.var("r", (3, 2))
        branch.op(function, "X=m", "Out=r")
        branch.op("assign", "X=r", f"Out={name}")
        body.op(
            "conditional_block",
            f"Cond={condition} Input=m",
            f"Out={name} Scope=s{name}",
            sub_block=branch.index,
            is_scalar_condition=True,
        )
    body.op("cast", "X=p", "Out=mask", in_dtype=BOOL, out_dtype=INT32)
    body.op("select_input", "X=no,yes Mask=mask", "Out=out")
    body.op("elementwise_add", "X=score Y=best", "Out=total", axis=-1)
    body.op("scale", "X=i", "Out=j", scale=1.0, bias=1.0)
    body.op("less_than", "X=j Y=n", "Out=now")
    body.op("assign", "X=out", "Out=h")
    body.op("assign", "X=total", "Out=score")
    body.op("assign", "X=j", "Out=i")
    body.op("assign", "X=now", "Out=c")
    main.op(
        "while",
        "X=h,i,n,score,w Condition=c",
        "Out=h,i,score,c StepScopes=s",
        sub_block=body.index,
        is_test=False,
    )

    def function(h: Any, w: Any) -> Any:
        score = 0.0
        for _ in range(3):
            m = h @ w
            best = m.max(1)
            h = jnp.where(best.mean() > 0, jnp.tanh(m), jax.nn.sigmoid(m))
            score = score + best
        return h, score

    environment, arrays = program.environment(h=X, w=W)
    h, score = function(X, W)
    found = evaluated([environment["h"], environment["score"]], arrays)
    close(found[0], h)
    close(found[1], score)
    total = so.sum(environment["h"]) + so.sum(environment["score"])
    slope = evaluated([so.grad(total, so.var("w", (2, 2), "float32"))], arrays)[0]
    wanted = jax.grad(lambda w: sum(one.sum() for one in function(X, w)))(W)
    np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-5)


def test_a_loop_whose_variables_change_their_type_tells_it() -> None:
    program = Program()
    main = program.main
    main.var("c", (1,), "bool")
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.op("concat", "X=x,x", "Out=x", axis=0)
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op("while", "X=x,i,n Condition=c", "Out=x,i,c StepScopes=s", sub_block=body.index)
    with pytest.raises(PaddleError, match=r"while: x: .* float32\[1, 2\], got float32\[2, 2\]"):
        program.run("x", x=X[:1], i=np.int32([0]), n=np.int32([2]))


def test_a_loop_in_a_loop() -> None:
    program = Program()
    main = program.main
    main.var("total", (2,))
    main.var("i n m", (1,), "int64")
    main.var("c d", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 3, INT64)
    main.constant("m", 2, INT64)
    main.op("less_than", "X=i Y=n", "Out=c")
    outer = program.block()
    outer.var("j", (1,), "int64")
    outer.var("d", (1,), "bool")
    outer.constant("j", 0, INT64)
    outer.op("less_than", "X=j Y=m", "Out=d")
    inner = program.block(parent=outer.index)
    inner.var("t", (2,))
    inner.op("elementwise_mul", "X=total Y=x", "Out=t")
    inner.op("tanh", "X=t", "Out=total")
    inner.op("increment", "X=j", "Out=j", step=1.0)
    inner.op("less_than", "X=j Y=m", "Out=d")
    outer.op(
        "while", "X=total,x,j,m Condition=d", "Out=total,j,d StepScopes=s1", sub_block=inner.index
    )
    outer.op("elementwise_add", "X=total Y=x", "Out=total")
    outer.op("increment", "X=i", "Out=i", step=1.0)
    outer.op("less_than", "X=i Y=n", "Out=c")
    main.op(
        "while", "X=total,x,i,n,m Condition=c", "Out=total,i,c StepScopes=s0", sub_block=outer.index
    )
    environment, arrays = program.environment(x=X[0], total=X[1])

    def function(x: Any, total: Any) -> Any:
        for _ in range(3):
            for _ in range(2):
                total = jnp.tanh(total * x)
            total = total + x
        return total.sum()

    x = so.var("x", (2,), "float32")
    total = environment["total"]
    found = evaluated([so.sum(total), so.grad(so.sum(total), x)], arrays)
    close(found[0], function(X[0], X[1]))
    close(found[1], jax.grad(function)(X[0], X[1]))


def test_outputs_collected_in_an_array_that_begins_in_the_loop() -> None:
    """The array has no element before the loop; a branch inside of it writes only some."""
    program = Program()
    main = program.main
    main.var("ys", (2,), kind=ARRAY)
    main.var("i n", (1,), "int64")
    main.var("c", (1,), "bool")
    main.constant("i", 0, INT64)
    main.constant("n", 4, INT64)
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("f y", (2,))
    body.var("p", (1,), "bool")
    body.op("cast", "X=i", "Out=f", in_dtype=INT64, out_dtype=FLOAT)
    body.op("elementwise_mul", "X=x Y=f", "Out=y")
    body.op("less_than", "X=i Y=three", "Out=p")
    branch = program.block(parent=body.index)
    branch.op("write_to_array", "X=y I=i", "Out=ys")
    body.op(
        "conditional_block",
        "Cond=p Input=y,i",
        "Out=ys Scope=s1",
        sub_block=branch.index,
        is_scalar_condition=True,
    )
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op("while", "X=x,i,n,three Condition=c", "Out=ys,i,c StepScopes=s0", sub_block=body.index)
    main.op("lod_array_length", "X=ys", "Out=count")
    main.op("tensor_array_to_tensor", "X=ys", "Out=all OutIndex=sizes", axis=0, use_stack=True)
    count, rows = program.run("count all", x=X[0], three=np.int32([3]))
    assert count.tolist() == [3]
    close(rows, [X[0] * k for k in (0, 1, 2, 0)])


def test_a_loop_reads_a_list_and_writes_counters_of_floats() -> None:
    program = Program()
    main = program.main
    main.var("i n total", (1,))
    main.var("k", (1,), "int64")
    main.var("c", (1,), "bool")
    main.constant("k", 0, INT64)
    main.op("write_to_array", "X=a I=k", "Out=list")
    main.constant("one", 1, INT64)
    main.op("write_to_array", "X=b I=one", "Out=list")
    main.constant("i", 0.0)
    main.constant("n", 2.0)
    main.constant("total", 0.0, shape=(2,))
    main.op("less_than", "X=i Y=n", "Out=c")
    body = program.block()
    body.var("v s", (2,))
    body.op("read_from_array", "X=list I=k", "Out=v")
    body.op("elementwise_add", "X=total Y=v", "Out=s")
    body.op("assign", "X=s", "Out=total")
    body.op("increment", "X=k", "Out=k", step=1.0)
    body.op("increment", "X=i", "Out=i", step=1.0)
    body.op("less_than", "X=i Y=n", "Out=c")
    main.op(
        "while",
        "X=list,k,i,n,total Condition=c",
        "Out=total,k,i,c StepScopes=s0",
        sub_block=body.index,
    )
    close(program.run("total", a=X[0], b=X[1])[0], X[0] + X[1])


# StaticRNN ---------------------------------------------------------------------------------------


def recurrence(*, reverse: bool = False) -> Program:
    """``h = tanh(x_t @ u + h @ w)`` as ``StaticRNN`` writes it, with two outputs."""
    program = Program()
    main = program.main
    main.var("x hs zs", (4, 3, 2))
    main.var("h0", (3, 2))
    main.var("u w", (2, 2))
    step = program.block()
    step.var("x pre a b s h mem hs z zs", (3, 2))
    step.op("mul", "X=x Y=u", "Out=a")
    step.op("mul", "X=pre Y=w", "Out=b")
    step.op("elementwise_add", "X=a Y=b", "Out=s")
    step.op("tanh", "X=s", "Out=h")
    step.op("rnn_memory_helper", "X=h", "Out=hs", dtype=FLOAT)
    step.op("elementwise_mul", "X=h Y=x", "Out=z")
    step.op("rnn_memory_helper", "X=z", "Out=zs", dtype=FLOAT)
    step.op("rnn_memory_helper", "X=h", "Out=mem", dtype=FLOAT)
    main.op(
        "recurrent",
        "inputs=x initial_states=h0 parameters=u,w",
        "outputs=hs,zs step_scopes=scopes",
        has_states=True,
        ex_states=["pre"],
        states=["mem"],
        sub_block=step.index,
        reverse=reverse,
        is_train=True,
    )
    main.op("elementwise_add", "X=hs Y=zs", "Out=y")
    main.op("square", "X=y", "Out=q")
    main.op("reduce_sum", "X=q", "Out=loss", reduce_all=True)
    main.constant("loss@GRAD", 1.0)
    main.op("reduce_sum_grad", "X=q Out@GRAD=loss@GRAD", "X@GRAD=q@GRAD", reduce_all=True)
    main.op("square_grad", "X=y Out@GRAD=q@GRAD", "X@GRAD=y@GRAD")
    main.op("elementwise_add_grad", "X=hs Y=zs Out@GRAD=y@GRAD", "X@GRAD=hs@GRAD Y@GRAD=zs@GRAD")
    back = program.block(forward=step.index)
    back.op("rnn_memory_helper_grad", "X=h Out=mem Out@GRAD=mem@GRAD", "X@GRAD=h@GRAD@RENAME@0")
    back.op("rnn_memory_helper_grad", "X=z Out=zs Out@GRAD=zs@GRAD", "X@GRAD=z@GRAD")
    back.op(
        "elementwise_mul_grad",
        "X=h Y=x Out@GRAD=z@GRAD",
        "X@GRAD=h@GRAD@RENAME@1 Y@GRAD=x@GRAD@RENAME@0",
    )
    back.op("rnn_memory_helper_grad", "X=h Out=hs Out@GRAD=hs@GRAD", "X@GRAD=h@GRAD@RENAME@2")
    back.op("sum", "X=h@GRAD@RENAME@0,h@GRAD@RENAME@1,h@GRAD@RENAME@2", "Out=h@GRAD")
    back.op("tanh_grad", "Out=h Out@GRAD=h@GRAD", "X@GRAD=s@GRAD")
    back.op("elementwise_add_grad", "X=a Y=b Out@GRAD=s@GRAD", "X@GRAD=a@GRAD Y@GRAD=b@GRAD")
    back.op("mul_grad", "X=pre Y=w Out@GRAD=b@GRAD", "X@GRAD=pre@GRAD Y@GRAD=w@GRAD")
    back.op("mul_grad", "X=x Y=u Out@GRAD=a@GRAD", "X@GRAD=x@GRAD@RENAME@1 Y@GRAD=u@GRAD")
    back.op("sum", "X=x@GRAD@RENAME@0,x@GRAD@RENAME@1", "Out=x@GRAD")
    main.op(
        "recurrent_grad",
        "inputs=x initial_states=h0 parameters=u,w outputs=hs,zs outputs@GRAD=hs@GRAD,zs@GRAD "
        "step_scopes=scopes step_scopes@GRAD=scopes",
        "inputs@GRAD=x@GRAD initial_states@GRAD=h0@GRAD parameters@GRAD=u@GRAD,w@GRAD",
        has_states=True,
        ex_states=["pre"],
        states=["mem"],
        sub_block=back.index,
        reverse=reverse,
        is_train=True,
    )
    return program


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent(reverse: bool) -> None:
    xs = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    u = (W.T + 0.1).astype(np.float32)

    def function(x: Any, h: Any, u: Any, w: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = jnp.tanh(x @ u + h @ w)
            return h, h + h * x

        return (jax.lax.scan(step, h, x, reverse=reverse)[1] ** 2).sum()

    found = recurrence(reverse=reverse).run(
        "loss x@GRAD h0@GRAD u@GRAD w@GRAD", x=xs, h0=X, u=u, w=W
    )
    close(found[0], function(xs, X, u, W))
    for one, wanted in zip(found[1:], jax.grad(function, (0, 1, 2, 3))(xs, X, u, W), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def test_recurrent_without_states() -> None:
    program = Program()
    step = program.block()
    step.var("x y", (3, 2))
    step.op("mul", "X=x Y=w", "Out=y")
    program.main.op(
        "recurrent",
        "inputs=x initial_states= parameters=w",
        "outputs=y step_scopes=s",
        has_states=False,
        ex_states=[],
        states=[],
        sub_block=step.index,
    )
    xs = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    close(program.run("y", x=xs, w=W)[0], xs @ W)


def test_a_first_state_that_is_constant_has_a_gradient() -> None:
    program = recurrence()
    program.main.record.ops.insert(0, OpDesc("fill_constant", {}, {"Out": ["h0"]}))
    program.main.record.ops[0].attrs.update(shape=[3, 2], value=0.0, dtype=FLOAT)
    xs = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    fed = {"x": xs, "u": W, "w": W}
    wanted = recurrence().run("hs h0@GRAD w@GRAD", h0=0 * X, **fed)
    for one, other in zip(program.run("hs h0@GRAD w@GRAD", **fed), wanted, strict=True):
        close(one, other)


# Tensor arrays -----------------------------------------------------------------------------------


def test_arrays_outside_of_loops_hold_anything_and_have_gradients() -> None:
    program = Program()
    main = program.main
    main.constant("i", 0, INT64)
    main.op("write_to_array", "X=a I=i", "Out=arr")
    main.op("increment", "X=i", "Out=i", step=1.0)
    main.op("write_to_array", "X=b I=i", "Out=arr")
    main.op("lod_array_length", "X=arr", "Out=n")
    main.op("tensor_array_to_tensor", "X=arr", "Out=y OutIndex=sizes", axis=0)
    main.op("square", "X=y", "Out=q")
    main.constant("q@GRAD", 1.0, shape=(4, 2))
    main.op("square_grad", "X=y Out@GRAD=q@GRAD", "X@GRAD=y@GRAD")
    main.op(
        "tensor_array_to_tensor_grad",
        "X=arr OutIndex=sizes Out@GRAD=y@GRAD",
        "X@GRAD=arr@GRAD",
        axis=0,
    )
    main.op("read_from_array", "X=arr@GRAD I=i", "Out=b@GRAD")
    main.op("increment", "X=i", "Out=i", step=-1.0)
    main.op("read_from_array", "X=arr@GRAD I=i", "Out=a@GRAD")
    fetch = "n y sizes a@GRAD b@GRAD"
    n, y, sizes, d_a, d_b = program.run(fetch, a=X, b=W[:1])
    assert (n.tolist(), sizes.tolist()) == ([2], [3, 1])
    close(y, np.concatenate([X, W[:1]]))
    close(d_a, 2 * X)
    close(d_b, 2 * W[:1])


def test_arrays_are_fetched_as_lists_or_stacked() -> None:
    program = adding_up()
    fed = {"a": X[0], "b": X[1]}
    data, memory = Executor().run(programs.Program(program.desc), fed, ["data", "memory"])
    assert isinstance(data, list)
    close(data, [X[0], X[1]])
    first = np.tanh(X[0])
    close(memory, [0 * first, first, np.tanh(first + X[1])])


def test_an_element_without_value() -> None:
    program = Program()
    program.main.constant("i", 2, INT64)
    program.main.constant("j", 1, INT64)
    program.main.op("write_to_array", "X=x I=i", "Out=arr")
    environment, _ = program.environment(x=X)
    assert isinstance(environment["arr"], Elements)
    assert [one is None for one in environment["arr"]] == [True, True, False]
    program.main.op("read_from_array", "X=arr I=j", "Out=y")
    with pytest.raises(PaddleError, match="read_from_array: an element must have been written"):
        program.environment(x=X)


# Counters and checks -----------------------------------------------------------------------------


def test_increment_keeps_large_integers() -> None:
    program = Program()
    program.main.op("increment", "X=i", "Out=i", step=1.0)
    assert program.run("i", i=np.int32([2**24 + 1]))[0].tolist() == [2**24 + 2]


@pytest.mark.parametrize(("version", "shape"), [(1_008_005, (1,)), (2_006_002, ())])
def test_is_empty(version: int, shape: tuple[int, ...]) -> None:
    program = Program(version)
    program.main.op("is_empty", "X=x", "Out=y")
    found = program.run("y", x=X)[0]
    assert (found.shape, bool(found.all())) == (shape, False)
    assert program.run("y", x=X[:0])[0].all()


def test_print_and_assert() -> None:
    program = Program()
    main = program.main
    main.op("print", "In=x", "Out=y", message="x is", first_n=-1, summarize=20)
    main.op("assert", "Cond=p Data=x", summarize=3)
    close(program.run("y", x=X, p=[False])[0], X)
    program = Program()
    program.main.constant("p", 0, BOOL)
    program.main.op("assert", "Cond=p Data=x", summarize=3)
    with pytest.raises(PaddleError, match="assert: the condition must hold"):
        program.run("y", x=X)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("c_allreduce_sum", "collective"), ("recv", "servers"), ("py_func", "Python functions")],
)
def test_operators_that_are_refused_tell_why(name: str, reason: str) -> None:
    program = Program()
    program.main.op(name, "X=x", "Out=y")
    with pytest.raises(PaddleError, match=f"{name}: .*{reason}"):
        program.environment(x=X)


# Optimizers in branches --------------------------------------------------------------------------


def test_optimizers_in_branches_update_as_in_paddle():
    """Paddle 1.8.5 ran five steps of a branch with SGD and one with Adam."""
    arrays = dict(np.load(Path(__file__).parent / "data/paddle/optimizers_in_branches.npz"))

    def part(name):
        return {
            key.partition("|")[2]: one for key, one in arrays.items() if key.startswith(f"{name}|")
        }

    program = programs.Program(parse(arrays["program"].tobytes()))
    scope, executor = Scope(), Executor()
    scope.update(part("first"))
    for i in range(5):
        ((loss, expected),) = part(f"loss{i}").items()
        (found,) = executor.run(program, part(f"feed{i}"), [loss], scope=scope)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    for name, expected in part("last").items():
        np.testing.assert_allclose(scope[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
