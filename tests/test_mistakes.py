"""Mistakes of newcomers: each error says what to do, and shows no lines but the user's."""

import contextlib
import math
import pickle
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import symop as so
from registry import Array, get, op
from registry.table import unregister
from registry.tracebacks import SETTING, is_own_file
from symop import autograd, checkpoint, nd, optim, train

SYMBOLS = {
    "jnp.sin(x)": ("NotComputedError", "so.sin(x) for jnp.sin(x)", "x.eval(x=...)"),
    "jnp.add(jnp.ones(3), x)": ("NotComputedError", "a Symbol has no numbers before it runs"),
    "jax.jit(lambda v: v)(x)": ("NotComputedError", "a Symbol has no numbers"),
    "np.exp(x)": ("ArgumentError", "np.exp: a Symbol", "call so.exp(x), or", "x.eval(x=...)"),
    "np.mean(x)": ("ArgumentError", "np.mean: ", "call so.mean(x)"),
    "np.concatenate([x, x])": ("ArgumentError", "np.concatenate: "),
    "np.asarray(x)": ("ArgumentError", "np.asarray(x): ", "compute it by x.eval(x=...)"),
    "np.array([x, x])": ("ArgumentError", "compute it by x.eval(x=...)"),
    "float(x)": ("ArgumentError", "float(x): ", "compute it by x.eval(x=...)"),
    "int(x)": ("ArgumentError", "int(x): ", "x.eval(x=...)"),
    "complex(x)": ("ArgumentError", "complex(x): "),
    "round(x)": ("ArgumentError", "round(x): "),
    "math.sin(so.sum(x))": ("ArgumentError", "float(x): "),
    "x.item()": ("ArgumentError", "x.item(): ", "x.eval(x=...)"),
    "x.tolist()": ("ArgumentError", "x.tolist(): "),
    "f'{x:.3f}'": ("ArgumentError", "format(x, '.3f'): "),
    "if x > 0: pass": ("ArgumentError", "truth of a value", "so.where(x, a, b)", "so.cond"),
    "0 < x < 1": ("ArgumentError", "truth of a value that is not computed", "x.eval(x=...)"),
    "max(x, 0)": ("ArgumentError", "truth"),
    "len(so.sum(x))": ("ArgumentError", "len(x): a value of shape () has no axis"),
    "list(so.sum(x))": ("ArgumentError", "no axis to count or iterate over"),
    "list(so.var('q'))": ("UnknownTypeError", "give so.var(..., shape=...) one", "built at"),
    "so.var('q').shape": ("UnknownTypeError", "q: its shape and dtype must be known"),
    "range(x)": ("TypeError", "cannot be interpreted as an integer"),
    "x[0] = 1.0": ("ArgumentError", "cannot be changed", "x = x.at[...].set(value)"),
    "x[x > 0]": ("InvalidIndexError", "use where(mask, x, other)", "boolean_mask"),
    "x[5]": ("BoundsError", "must be in [-3, 3), got 5"),
    "x['y']": ("ArgumentError", "no output is called 'y'"),
    "x + so.var('m', shape=(2,))": ("ShapeError", "must broadcast", "(3,) and (2,)", "built at"),
    "x + 'a'": ("ArgumentError", "add: an input must be a symbol, an array or a number", "'a'"),
    "x ** '2'": ("ArgumentError", "power: an input must be"),
    "x + nd.ones(3)": ("ArgumentError", "add: ", "feed eager arrays, or pass x.asjax()"),
    "nd.ones(3) + x": ("ArgumentError", "arrays and symbols must not be mixed"),
    "x.reshape(4, 2)": ("ShapeError", "shape (4, 2) must have as many entries as x, got (3,)"),
    "x.transpose(0, 1)": ("AttributeValueError", "axes must name each of 1 axes once, got (0, 1)"),
    "x.softmx()": ("UnknownMemberError", "'softmx'", "did you mean 'softmax'"),
    "x.unsqueeze(0)": ("UnknownMemberError", "PyTorch's unsqueeze is expand_dims here"),
    "x.backward()": ("UnknownMemberError", "so.grad(loss, x) of symbols here"),
    "x.grad": ("UnknownMemberError", "so.grad(loss, x) of symbols here"),
    "so.Generator(so.sin(x), length=3)": ("FeedError", "tokens= must name the variable", "of x,"),
    "x.numpy()": ("UnknownMemberError", "eval(x=...) of a symbol"),
    "so.sigmod(x)": ("UnknownMemberError", "did you mean 'sigmoid'"),
    "so.vra('x')": ("UnknownMemberError", "did you mean 'var'?"),
    "so.softmax(x, dim=0)": ("ArgumentError", "got 'dim'; did you mean 'axis'?"),
    "so.sum(x, keepdim=True)": ("ArgumentError", "did you mean 'keepdims'?"),
    "so.sum(x, axis=3)": ("AxisError", "axis must be in [-1, 1), got 3"),
    "so.sin('x')": ("ArgumentError", "slot 'x' must hold an array, a number or a symbol", "str"),
    "so.cast(x, dtype='flot32')": ("AttributeTypeError", "did you mean 'float32'"),
    "so.fully_connected(image, 10)": (
        *("ArgumentError", "attribute 'units' must be given"),
        *("10 in the slot 'weight'", "write fully_connected(data, units=10)"),
    ),
    "so.fully_connected(image, num_hidden=10)": ("ArgumentError", "did you mean 'units'?"),
    "so.fully_connected(np.ones((2, 3)), units=4)": ("ArgumentError", "only a call on symbols"),
    "so.var('x', (None, 3))": ("ArgumentError", "lengths of axes", "leave it out if"),
    "so.var('x', dtype='flot32')": ("ArgumentError", "did you mean 'float32'"),
    "so.var((2, 3))": ("ArgumentError", "the name must be a non-empty str, got (2, 3)"),
    "so.Group(x, x)": ("ArgumentError", "Group([x, y]), got 2 arguments"),
    "so.sin(so.Group([x, -x]))": ("ArgumentError", "one value must be chosen, got 2 outputs"),
    "x.eval(np.ones(3))": ("ArgumentError", "by name", "eval(x=...)", "got ndarray"),
    "x.eval({'x': [1.0, 2.0, 3.0]}, x=1)": ("FeedError", "given once, got 'x' twice"),
    "so.sin(x).eval(xx=1.0)": ("FeedError", "did you mean 'x'?"),
    "x.eval(x=np.ones(4, 'float32'))": ("FeedError", "shape (3,) must be fed, got (4,)"),
    "x.eval(x=np.ones(3, 'int32'))": ("FeedError", "got int32", "'float32') converts"),
    "x.eval(x=so.var('q', shape=(3,)))": ("FeedError", "got Symbol; replace() composes"),
    "x.eval(x=[[1], [1, 2]])": ("FeedError", "x: numbers must be fed, got [[1], [1, 2]]"),
    "x(np.ones(3))": ("ArgumentError", "replaces variables by keyword", "eval(x=array)"),
    "x.with_types(x='a')": ("ArgumentError", "with_types: a shape must hold lengths", "'a'"),
    "so.scan(lambda c, v: c + v, x, image)": ("ArgumentError", "a pair (carries, results)"),
    "so.grad(so.sum(x))": ("ArgumentError", "grad: xs must be given"),
    "so.grad(so.sum(x), 'xx')": ("FeedError", "did you mean 'x'?"),
    "so.grad(np.ones(3), x)": ("ArgumentError", "got an array, which depends on nothing"),
    "so.grad(nd.ones(3), x)": ("ArgumentError", "call backward() on it, or so.autograd.grad"),
    "so.grad(lambda v: v * v, x)": ("ArgumentError", "call the function on symbols"),
    "so.grad(lambda v: v * v, 3)": ("DTypeError", "x 0 must be floating to move, got int32"),
    "so.hessian(lambda v: v * v, 1.0)": ("ArgumentError", "so.grad and so.jvp differentiate"),
    "so.value_and_grad(lambda v: v)": ("ArgumentError", "the loss must be a symbol"),
    "so.sin(x).to_jax()()": ("FeedError", "x must be given"),
    "so.from_jax(jnp.sin)": ("ArgumentError", "as from_jax(function, x), got 0"),
    "so.from_jax(1.0)": ("ArgumentError", "from_jax: a function must be given, got a float"),
    "so.from_jax(lambda v: v if v > 0 else -v, 1.0)": ("DataDependentError", "Use jnp.where"),
    "so.from_jax(lambda v: v @ jnp.ones((4, 2)), jnp.ones(3))": ("TypeError", "dot_general"),
}  # fmt: skip
ARRAYS = {
    "nd.array('abc')": ("ArgumentError", "array: an array must be made of numbers", "'abc'"),
    "nd.array([[1, 2], [3]])": ("ArgumentError", "in rows of one length, got [[1, 2], [3]]"),
    "nd.sin(x)": ("ArgumentError", "so.nd takes arrays, and so.sym.sin symbols"),
    "a + nd.ones(3)": ("ShapeError", "must broadcast together, got (2,) and (3,)"),
    "nd.softmax(a, axes=0)": ("ArgumentError", "did you mean 'axis'?"),
    "a.reshape(3)": ("ShapeError", "as many entries as x, got (2,)"),
    "a.astype('flot32')": ("DTypeError", "no dtype is called 'flot32'; did you mean 'float32'"),
    "a.cuda()": ("UnknownMemberError", "it is to_device('gpu') here"),
    "a.requires_grad_()": ("UnknownMemberError", "it is attach_grad() of an eager array here"),
    "a.to_device('gpu:7')": ("ArgumentError", "device: it must be one of", "'gpu:7'"),
    "a += nd.ones((2, 2))": ("ArgumentError", "the result must have the type of x, float32[2]"),
    "a[5]": ("BoundsError", "index 5 is out of bounds for axis 0 with size 2"),
    "a.at[0, 0].set(1.0)": ("BoundsError", "x.at[...]: too many indices"),
    "a.at[[0, 0]].multiply(2.0)": ("ArgumentError", "must be different", "use set or add"),
    "a.backward()": ("GradientError", "attach_grad() inside autograd.record()"),
    "nd.array([1, 2]).attach_grad()": ("GradientError", "must be floating, got int32"),
    "so.jvp(lambda v: v, a, 'b')": ("ArgumentError", "tangent 0", "must be an array, got str"),
    "so.grad(lambda v: v, a, [1.0])": ("ArgumentError", "head_grads must be nested as the result"),
}  # fmt: skip
PROGRAMS = {
    "float(so.sum(p))": ("ArgumentError", "a Variable has no numbers", "fetch=['sum0']"),
    "jnp.sin(p)": ("NotComputedError", "program.run(..., fetch=['p'])"),
    "if so.sum(p) > 0: pass": ("ArgumentError", "truth of a value that is not computed yet"),
    "p[0] = 1.0": ("ArgumentError", "a Variable cannot be changed"),
    "p.eval(p=1.0)": ("UnknownMemberError", "it is program.run(feed, fetch=[x])"),
    "p + x": ("ArgumentError", "variables of a program and other values must not be mixed"),
    "program.run({'pp': 1.0}, [p])": ("FeedError", "did you mean 'p'?"),
    "program.run({'p': np.ones((2, 2))}, [p * 2.0])": ("FeedError", "shape (4, 3) must be fed"),
    "optim.SGD('0.1')": ("ArgumentError", "learning_rate: it must be a number", "'0.1'"),
    "optim.SGD(0.1).minimize(x)": ("ArgumentError", "train.Trainer minimizes symbols"),
    "train.Trainer(loss, optax.adam, inputs=['x'])": ("ArgumentError", "call it, as optax.adam("),
    "train.Trainer(loss, optax.adam(0.1), inputs='x')": ("ArgumentError", "a list of names"),
    "train.Trainer(x, optax.adam(0.1), inputs=['x'])": ("ArgumentError", "so.mean(loss)"),
    "train.Trainer(lambda: 0, optax.adam(0.1), inputs=[])": ("ArgumentError", "must be a symbol"),
    "train.Trainer(loss, 'adam', inputs=['x'], metrics=[loss])": (
        *("ArgumentError", "metrics must be a dict of symbols by name", "got a list"),
    ),
    "train.Trainer(loss, 'adam', inputs=['x'], metrics={'a': 1})": (
        *("ArgumentError", "the metric 'a' must be a symbol, got"),
    ),
    "train.Precision('float4')": ("ArgumentError", "compute must be one of float8, bfloat16"),
    "train.LossScale(initial=-1)": ("ArgumentError", "loss_scale: it must be 0 < lowest"),
    "train.EarlyStopping('loss', mode='low')": ("ArgumentError", "mode must be 'min' or 'max'"),
    "so.lstm(so.var('q'))": ("AttributeValueError", "lstm: hidden_size must be positive", "built"),
    "so.multi_head_attention(x.reshape(1, 3), heads=2)": (
        "ArgumentError",
        "multi_head_attention: heads must divide 3, got 2",
    ),
    "train.optimizer('adam', lr=0.1)": ("ArgumentError", "did you mean 'learning_rate'?"),
    "train.initialize(x, 'a')": ("ArgumentError", "initialize: seed must be an integer or"),
    "trainer.step({'x': np.ones(3)}, trainer.init())": (
        *("ArgumentError", "as step(state, batch), got a dict"),
    ),
    "trainer.init('a')": ("ArgumentError", "an integer or a random key (jax.random.key(0))"),
    "trainer.step(trainer.init(), ([1.0],))": ("ArgumentError", "a dict of arrays by name (x)"),
    "trainer.step(trainer.init(), {})": ("FeedError", "the batch must hold x, got no x"),
    "train.Trainer(loss, optax.sgd(0.1), inputs=['x'], mesh=2)": ("ArgumentError", "jax.make_mesh"),
    "so.sin(x).to_jax(remat='all')": ("ArgumentError", "such as so.remat.segments()"),
    "so.var('w', (4,), sharding=('a', 'b'))": ("ArgumentError", "at most 1 entries"),
}  # fmt: skip
FILES = {
    "so.load(parameters)": ("FormatError", "got arrays (safetensors), which so.load_parameters"),
    "so.Program.load(parameters)": ("FormatError", "got arrays (safetensors)"),
    "so.load_parameters(model)": ("FormatError", "got JSON, as of a graph or a program, which"),
    "so.load_parameters(archive)": ("FormatError", "a zip archive, as numpy.load"),
    "so.load(archive)": ("FormatError", "must hold the JSON of a graph, got a zip archive"),
    "so.load(folder / 'none.json')": ("FileNotFoundError", "none.json"),
    "x.save(folder / 'none' / 'x.json')": ("FileNotFoundError", "the folder must exist"),
    "so.save_parameters({}, folder / 'p')": ("ArgumentError", "a dict of arrays by name, after"),
    "so.load_json('hello')": ("FormatError", "line 1, column 1"),
    "checkpoint.load(parameters, {'v': np.ones(2)})": ("FormatError", "v"),
}  # fmt: skip
OPERATORS = {
    "square(x, dim=1)": ("ArgumentError", "mine_square: ", "got 'dim'"),
    "so.grad(so.sum(square(x)), x)": (
        *("NotDifferentiableError", "mine_square: ", "not implemented"),
        *("declare @mine_square.gradient", "registry.differentiate_kernel"),
    ),
    "so.grad(so.sum(total(x)), x)": (
        *("GradientError", "gradient of slot 'x' must be of type float32[3], got float32[]"),
        *("gradient maker at ", "test_mistakes.py:", "built at "),
    ),
    "so.grad(so.sum(bare(x)), x)": (
        *("GradientError", "must return gradients by slot, {'x': ...}, got a Node"),
        *("gradient maker at ", "test_mistakes.py:"),
    ),
    "so.grad(so.sum(numeric(x)), x)": (
        *("NotComputedError", "so.sin(x) for jnp.sin(x)", "in the gradient maker of mine_numeric"),
        *("gradient maker at ", "test_mistakes.py:"),
    ),
    "jax.grad(lambda v: jnp.sum(total(v)))(jnp.ones(2))": ("GradientError", "test_mistakes.py:"),
    "broken(x)": ("ShapeError", "mine_broken: the inputs must fit together", "built at"),
    "op(nmae='own')(square.kernel)": ("DeclarationError", "did you mean 'name'"),
    "op(name='sin')(square.kernel)": ("RegistrationError", "sin: ", "choose another"),
    "op(name='mine_square')(square.kernel)": ("RegistrationError", "pass replace=True"),
    "op(name='for')(square.kernel)": ("RegistrationError", "must be a Python name"),
    "total.gradient(lambda x, d_out: None)": ("DeclarationError", "declared twice", "again first"),
    "square.gradient(lambda x, dout: None)": ("DeclarationError", "did you mean 'd_out'"),
}  # fmt: skip
MISTAKES = SYMBOLS | ARRAYS | PROGRAMS | FILES | OPERATORS


def declared(name, kernel, maker=None):
    def run(x: Array) -> Array:
        """An operator of a user."""
        return kernel(x)

    operator = op(name=f"mine_{name}")(run)
    if maker is not None:
        operator.gradient(maker)
    return operator


@pytest.fixture(scope="module")
def operators():
    made = {
        "square": declared("square", lambda x: x * x),
        "total": declared("total", lambda x: x * x, lambda x, d_out: {"x": so.sum(d_out)}),
        "bare": declared("bare", lambda x: x * x, lambda x, d_out: 2.0 * x * d_out),
        "numeric": declared("numeric", jnp.sin, lambda x, d_out: {"x": jnp.cos(x) * d_out}),
        "broken": declared("broken", lambda x: jnp.dot(x, jnp.ones(7))),
    }
    yield made
    for one in made.values():
        unregister(one.name)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    so.save_parameters(folder / "parameters", {"w": np.ones(2, np.float32)})
    so.sin(so.var("x", shape=(3,))).save(folder / "model")
    with (folder / "archive").open("wb") as file:
        np.savez(file, w=np.ones(2))
    return {"folder": folder} | {one: folder / one for one in ("parameters", "model", "archive")}


@pytest.fixture
def names(operators, files):
    """What a script has when it makes the mistake."""
    x, w, program = so.var("x", shape=(3,)), so.var("w", shape=(3,)), so.Program()
    loss = so.mean(so.square(x * w))
    return {
        **{"so": so, "np": np, "jnp": jnp, "jax": jax, "nd": nd, "optax": optax, "op": op},
        **{"train": train, "optim": optim, "checkpoint": checkpoint, "math": math},
        **{"x": x, "image": so.var("image", shape=(4, 3)), "loss": loss},
        **{"a": nd.array([1.0, 2.0]), "program": program, "p": program.data("p", (4, 3))},
        "trainer": train.Trainer(loss, optax.sgd(0.1), inputs=["x"]),
        **operators,
        **files,
    }


def caught(code, names):
    """The error of a script, and its traceback as the user sees it.

    What was being handled before, in a test that an interrupt has left, is no part of it.
    """
    outside = sys.exception()
    with pytest.raises(Exception) as info:  # noqa: PT011  # each mistake tells its own class
        exec(compile(code, "script.py", "exec"), dict(names))
    error = inner = info.value
    while inner.__context__ not in (None, outside):
        inner = inner.__context__
    inner.__context__ = None
    notes = [one for one in getattr(error, "__notes__", ()) if "JAX" not in one]
    return error, "\n".join([str(error), *notes])


def own_frames(error):
    """The frames of symop in the tracebacks of an error and its causes."""
    frames = []
    while error is not None:
        frames += [f for f in traceback.extract_tb(error.__traceback__) if is_own_file(f.filename)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [one for one in frames if "/jax/" not in one.filename]


@pytest.mark.parametrize("code", MISTAKES)
def test_message(code, names):
    kind, *parts = MISTAKES[code]
    error, message = caught(code, names)
    assert type(error).__name__ == kind, message
    for part in parts:
        assert part in message
    assert len(message) < 600
    assert not own_frames(error)


def test_there_are_many():
    assert len(MISTAKES) >= 80


class TestTracebacks:
    def test_all_frames_on_demand(self, monkeypatch):
        monkeypatch.setenv(SETTING, "full")
        error, _ = caught("so.matmul(x, x.T, x)", {"so": so, "x": so.var("x", shape=(3,))})
        assert own_frames(error)

    def test_all_frames_as_in_jax(self):
        with unfiltered():
            error, _ = caught("so.sin()", {"so": so})
        assert own_frames(error)

    def test_a_user_function_stays(self, operators):
        x = so.var("x", shape=(3,))
        error, _ = caught("so.grad(so.sum(f(x)), x)", {"so": so, "x": x, "f": operators["numeric"]})
        lines = [one.name for one in traceback.extract_tb(error.__traceback__)]
        assert lines[-1] == "<lambda>"

    def test_a_defect_of_symop_keeps_its_frames(self, monkeypatch):
        x = so.var("x", shape=(3,))
        monkeypatch.setattr("symop.symbol.symbol.evaluate", None)
        error, _ = caught("x.eval(x=1.0)", {"x": x})
        assert isinstance(error, TypeError)
        assert own_frames(error)

    def test_an_interrupt_passes(self):
        def stop(v):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            so.grad(stop, 1.0)


@contextlib.contextmanager
def unfiltered():
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        yield
    finally:
        jax.config.update("jax_traceback_filtering", before)


def test_recorded_arrays():
    a = nd.array([1.0, 2.0])
    a.attach_grad()
    with autograd.record():
        error, message = caught("so.grad(lambda v: v * v, a)", {"so": so, "a": a})
    assert type(error).__name__ == "GradientError"
    assert "must not be recorded" in message


def test_the_reflected_operators_still_work():
    x = so.var("x", shape=(2,))
    ones = np.ones(2, np.float32)
    for left in (ones, jnp.ones(2), np.float32(1.0), 1.0):
        for make in (
            lambda a, b: a + b,
            lambda a, b: a - b,
            lambda a, b: a / b,
            lambda a, b: a < b,
        ):
            expected = make(np.asarray(left), np.asarray([2.0, 4.0], np.float32))
            np.testing.assert_allclose(make(left, x).eval(x=[2.0, 4.0]), expected)
    np.testing.assert_allclose((np.eye(2, dtype=np.float32) @ x).eval(x=[2.0, 4.0]), [2.0, 4.0])
    assert np.shape(x) == (2,)
    assert np.ndim(x) == 1


def test_an_unknown_member_is_an_attribute_error():
    x = so.var("x")
    assert not hasattr(x, "softmx")
    assert getattr(x, "softmx", 1) == 1
    with pytest.raises(so.SymopError) as info:
        _ = x.softmx
    assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)
    assert get("softmax")  # the names were only listed
