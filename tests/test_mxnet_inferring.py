"""Dtypes of MXNet's graphs: they follow in both directions, and contradictions name the node."""

import numpy as np
import pytest
from mxnet_samples import SAMPLES

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError
from symop.interop.mxnet.operators import TABLE

HALF, SINGLE, INT = np.float16, np.float32, np.int32


@pytest.fixture(autouse=True)
def _names():
    with mx.name.NameManager():
        yield


def var(name="x", **told):
    return mx.sym.var(name, **told)


def dense(data=None, **options):
    return mx.sym.FullyConnected(
        var() if data is None else data, num_hidden=3, name="fc", **options
    )


def test_weights_follow_from_data():
    assert dense().infer_type(x="float16") == ([HALF] * 3, [HALF], [])


def test_a_length_of_zero_is_not_yet_known():
    cast = mx.sym.Cast(var(), dtype="float16")
    assert cast.infer_shape_partial(x=(1, 0, 0, 0))[1] == [(1, 0, 0, 0)]
    beside = mx.sym.elemwise_add(cast, var("y"))
    assert beside.infer_shape(x=(1, 0, 0, 0), y=(0, 3, 4, 5))[0] == [(1, 3, 4, 5)] * 2
    net = mx.sym.Convolution(var(), num_filter=6, kernel=(3, 3), pad=(1, 1), name="conv")
    shapes, outputs, _ = net.infer_shape_partial(x=(1, 0, 0, 0))
    assert shapes[0] == (1, 0, 0, 0)
    assert outputs == [(1, 6, 0, 0)]
    shapes, outputs, _ = net.infer_shape_partial(x=(1, 3, 0, 8))
    assert shapes[1] == (6, 3, 3, 3)
    assert outputs == [(1, 6, 0, 8)]


def test_data_follow_from_a_weight():
    assert dense().infer_type(fc_bias="float16") == ([HALF] * 3, [HALF], [])


def test_inputs_follow_from_outputs():
    beside = var("y", dtype="float16")
    net = mx.sym.transpose(mx.sym.exp(var())) + beside
    assert net.infer_type() == ([HALF, HALF], [HALF], [])


def test_what_nothing_tells_stays_open():
    net = mx.sym.SoftmaxOutput(dense(mx.sym.Cast(var(), dtype="float32")), name="softmax")
    assert net.infer_type_partial() == ([None, SINGLE, SINGLE, SINGLE], [SINGLE], [])
    with pytest.warns(UserWarning, match="infer_type: more types must be given to tell those of x"):
        assert net.infer_type() == (None, None, None)
    assert net.infer_type(x="float16") == ([HALF, SINGLE, SINGLE, SINGLE], [SINGLE], [])
    assert net.infer_type("float16") == net.infer_type(x="float16")


def test_what_nothing_tells_is_float32_once_it_is_bound():
    bound = mx.sym.where(var("c"), var("a"), var("b")).simple_bind(
        mx.cpu(), type_dict={"a": "float16"}, a=(2,), c=(2,)
    )
    assert [one.dtype for one in bound.arg_arrays] == [SINGLE, HALF, HALF]


ALIKE = {
    "where": (lambda: mx.sym.where(var("c"), var("a"), var("b")), {"b": HALF, "c": INT}),
    "take": (lambda: mx.sym.take(var("a"), var("i")), {"a": HALF, "i": INT}),
    "pick": (lambda: mx.sym.pick(var("a"), var("i")), {"a": HALF, "i": INT}),
    "gather_nd": (lambda: mx.sym.gather_nd(var("a"), var("i")), {"a": HALF, "i": INT}),
    "slice_like": (lambda: mx.sym.slice_like(var("a"), var("i")), {"a": HALF, "i": INT}),
    "concat": (lambda: mx.sym.concat(var("a"), var("b")), {"b": HALF}),
    "embedding": (
        lambda: mx.sym.Embedding(var("i"), input_dim=2, output_dim=3, dtype="float16"),
        {"i": INT},
    ),
    "embedding of known rows": (
        lambda: mx.sym.Embedding(var("i"), var("w"), input_dim=2, output_dim=3),
        {"i": INT, "w": HALF},
    ),
    "one_hot": (lambda: mx.sym.one_hot(var("i"), depth=2, dtype="float16"), {"i": INT}),
    "softmax": (lambda: mx.sym.softmax(var("a"), dtype="float16"), {"a": SINGLE}),
    "sum of squares": (lambda: mx.sym.norm(var("a"), out_dtype="float16"), {"a": SINGLE}),
    "RNN": (
        lambda: mx.sym.RNN(
            var("a"), var("p"), var("s"), state_size=2, num_layers=1, mode="rnn_tanh"
        ),
        {"s": HALF},
    ),
}


@pytest.mark.parametrize(("make", "given"), ALIKE.values(), ids=ALIKE)
def test_operators_tell_dtypes(make, given):
    net = make()
    arguments, outputs, _ = net.infer_type(**given)
    assert outputs == [HALF]
    for name, found in zip(net.list_arguments(), arguments, strict=True):
        assert found == given.get(name, HALF)


@pytest.mark.parametrize("name", ["SoftmaxOutput", "LinearRegressionOutput", "SVMOutput"])
def test_labels_are_of_the_dtype_of_data(name):
    net = getattr(mx.sym, name)(var(), name="out")
    assert net.infer_type(x="float16") == ([HALF, HALF], [HALF], [])
    assert net.infer_type(x="float16", out_label="int32")[0] == [HALF, INT]


def test_numbers_of_entries_are_whole():
    taken = mx.sym.batch_take(var("a"), var("i"))
    assert taken.infer_type(a="float16") == ([HALF, INT], [HALF], [])
    names = "lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time"
    process = mx.sym.contrib.hawkesll(*map(var, names))
    assert process.infer_type(lda="float32")[0] == [SINGLE] * 5 + [INT] + [SINGLE] * 2


def test_statistics_of_half_precision_are_single():
    net = mx.sym.BatchNorm(var(), name="bn")
    assert net.infer_type(x="float16") == ([HALF, SINGLE, SINGLE], [HALF], [SINGLE, SINGLE])
    bound = net.simple_bind(mx.cpu(), type_dict={"x": "float16"}, x=(2, 3))
    assert [one.dtype for one in bound.aux_arrays] == [SINGLE, SINGLE]
    assert bound.forward(is_train=True)[0].dtype == HALF


def test_positions_have_the_dtype_that_is_asked_for():
    both = mx.sym.topk(var(), ret_typ="both", k=1, dtype="int32")
    assert both.infer_type(x="float16")[1] == [HALF, INT]
    assert mx.sym.argsort(var(), dtype="int32").infer_type(x="float16")[1] == [INT]


def test_integers_beside_fractions_become_real():
    assert (var() + 2).infer_type(x="int32")[1] == [INT]
    half = mx.sym._plus_scalar(var(), scalar=0.5, is_int=False)
    assert half.infer_type(x="int32")[1] == [SINGLE]


CONTRADICTIONS = {
    "inputs": (
        lambda: mx.sym.elemwise_add(var("a"), var("b"), name="plus"),
        {"a": HALF, "b": SINGLE},
        "elemwise_add: dtypes must agree, got float16 and float32 (node 'plus')",
    ),
    "output": (
        lambda: dense(mx.sym.Cast(var(), dtype="float16")),
        {"x": SINGLE, "fc_weight": SINGLE},
        "FullyConnected: dtypes must agree, got float16 and float32 (node 'fc')",
    ),
    "choices": (
        lambda: mx.sym.where(var("c"), var("a"), var("b"), name="which"),
        {"a": HALF, "b": SINGLE},
        "where: dtypes must agree, got float16 and float32 (node 'which')",
    ),
    "an attribute": (
        lambda: mx.sym.exp(var(dtype="int32")) + mx.sym.zeros((2,), name="zero"),
        {},
        "elemwise_add: dtypes must agree, got int32 and float32 (node '_plus0')",
    ),
}


@pytest.mark.parametrize(("make", "given", "said"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions_name_operator_and_node(make, given, said):
    with pytest.raises(MXNetError) as error:
        make().infer_type(**given)
    assert str(error.value) == said


def test_contradictions_are_seen_when_binding():
    net = mx.sym.elemwise_add(var("a"), var("b"), name="plus")
    said = r"elemwise_add: dtypes must agree.* \(node 'plus'\)"
    with pytest.raises(MXNetError, match=said):
        net.simple_bind(mx.cpu(), type_dict={"a": "float16", "b": "int32"}, a=(2,))
    with pytest.raises(MXNetError, match=said):
        net.bind(mx.cpu(), {"a": mx.nd.ones(2), "b": mx.nd.ones(2, dtype="int32")})


def test_what_is_told_must_be_a_dtype_of_a_variable():
    with pytest.raises(MXNetError, match="x: dtype must be a dtype, got 'float31'"):
        var().infer_type(x="float31")
    with pytest.raises(MXNetError, match=r"infer_type: names must be among .* mean 'weight'"):
        var("weight").infer_type(wieght="float32")


BY_ENTRIES = "_contrib_boolean_mask"  # in a symbol its shape would depend on entries
FIRST = list({TABLE[one.op]: one for one in SAMPLES if one.op != BY_ENTRIES}.values())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("sample", FIRST, ids=[one.op for one in FIRST])
def test_dtypes_are_those_of_the_graph(sample, dtype):
    arrays = sample.arrays(dtype)
    symbol = sample.symbol(arrays)
    told = {name: one.dtype for name, one in arrays.items()}
    shapes = {name: one.shape for name, one in arrays.items()}
    arguments, outputs, _ = symbol.infer_type_partial(**told)
    assert None not in arguments
    made = [one.type.dtype for one in symbol.to_graph(told, **shapes).nodes]
    assert [np.dtype(one) for one in outputs] == made
