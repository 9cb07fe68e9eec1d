"""What a script gets wrong is an MXNetError, which names the operator, the node and the name."""

import json
import sys

import jax
import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError
from symop.interop.mxnet.errors import near

CPU = mx.cpu()
ARRAYS = {"data": mx.nd.ones((2, 4)), "fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones(3)}


def var(name="data", **told):
    return mx.sym.var(name, **told)


FC = mx.sym.FullyConnected(var(), num_hidden=3, name="fc")
NORM = mx.sym.BatchNorm(var(), name="bn")
NORMED = {"data": mx.nd.ones((2, 3)), "bn_gamma": mx.nd.ones(3), "bn_beta": mx.nd.ones(3)}


def having(**changed):
    return {**ARRAYS, **changed}


def refused(call, said):
    with pytest.raises(MXNetError) as error:
        call()
    assert said in str(error.value)


BINDS = {
    "nothing": ((), "args must be given for all, got none for data, fc_weight, fc_bias"),
    "a number": ((3,), "args must be a list or a dict, got int"),
    "too few": (([ARRAYS["data"]],), "got none for fc_weight, fc_bias"),
    "too many": (([ARRAYS["data"]] * 4,), "args must be at most 3, got 4"),
    "a misspelled name": (
        ({"data": 1, "fc_wieght": 1, "fc_bias": 1},),
        "got none for fc_weight; did you mean 'fc_wieght'?",
    ),
    "text": ((having(fc_bias="ones"),), "bind: fc_bias must be an array, got 'ones'"),
    "an object": ((having(fc_bias=[object()]),), "bind: fc_bias must be an array"),
    "None": ((having(fc_bias=None),), "got none for fc_bias"),
    "a shape": (
        (having(fc_bias=mx.nd.ones(5)),),
        "FullyConnected: shapes must agree, got (5,) and (3,) (node 'fc')",
    ),
    "a dtype": (
        (having(fc_bias=mx.nd.ones(3, dtype="int32")),),
        "FullyConnected: dtypes must agree, got float32 and int32 (node 'fc')",
    ),
    "a gradient's shape": (
        (ARRAYS, {"fc_bias": mx.nd.ones(4)}),
        "the gradient of 'fc_bias' must be of shape (3,) and dtype float32, got (4,) and float32",
    ),
    "a gradient's dtype": (
        (ARRAYS, {"fc_bias": mx.nd.ones(3, dtype="int32")}),
        "of shape (3,) and dtype float32, got (3,) and int32",
    ),
    "a request": (
        (ARRAYS, None, "rite"),
        "grad_req must be one of null, write, write_inplace, add, got 'rite' for 'data'",
    ),
    "a request by name": ((ARRAYS, ARRAYS, {"fc_bias": 1}), "got 1 for 'fc_bias'"),
    "too few requests": ((ARRAYS, ARRAYS, ["write"]), "grad_req must be one for each of 3, got 1"),
    "a number of requests": ((ARRAYS, ARRAYS, 3), "grad_req must be a str, a list or a dict"),
}


@pytest.mark.parametrize(("args", "said"), BINDS.values(), ids=BINDS)
def test_bind(args, said):
    refused(lambda: FC.bind(CPU, *args), said)


def test_bind_of_states():
    refused(lambda: NORM.bind(CPU, NORMED), "got none for bn_moving_mean, bn_moving_var")
    states = [mx.nd.ones(4), mx.nd.ones(3)]
    refused(
        lambda: NORM.bind(CPU, NORMED, aux_states=states),
        "BatchNorm: shapes must agree, got (4,) and (3,) (node 'bn')",
    )


def test_requests_of_unknown_names_are_warned_of():
    with pytest.warns(UserWarning, match="got 'fc_biass'; did you mean 'fc_bias'") as warned:
        FC.bind(CPU, ARRAYS, ARRAYS, {"fc_biass": "write"})
    assert warned[0].filename == __file__


SIMPLE_BINDS = {
    "nothing": ({}, "the shape of 'data' must be known or follow, got None"),
    "a misspelled name": ({"dta": (2, 3)}, "there is no 'dta'; did you mean 'data'?"),
    "a number": ({"data": 3}, "data: the shape must be a tuple of lengths, got 3"),
    "text": ({"data": "ab"}, "data: the shape must be a tuple of lengths, got 'ab'"),
    "a fraction": ({"data": (2.5, 3)}, "data: the shape must be a tuple of lengths, got (2.5, 3)"),
    "a negative length": ({"data": (-2, 3)}, "data: lengths must be at least 0, got (-2, 3)"),
    "a contradiction": (
        {"data": (2, 3), "fc_weight": (4, 4)},
        "FullyConnected: shapes must agree, got (4, 4) and (3, 3) (node 'fc')",
    ),
    "no dtype": (
        {"data": (2, 3), "type_dict": {"data": "float31"}},
        "data: dtype must be a dtype, got 'float31'",
    ),
    "a request": ({"data": (2, 3), "grad_req": "rite"}, "grad_req must be one of"),
    "no requests": ({"data": (2, 3), "grad_req": []}, "grad_req must be one for each of 3, got 0"),
}


@pytest.mark.parametrize(("given", "said"), SIMPLE_BINDS.values(), ids=SIMPLE_BINDS)
def test_simple_bind(given, said):
    refused(lambda: FC.simple_bind(CPU, **given), said)


def test_simple_bind_warns_of_names_that_no_variable_has():
    with pytest.warns(UserWarning, match="must be those of data, fc_weight, fc_bias, got 'label'"):
        bound = FC.simple_bind(CPU, data=(2, 4), label=(2,))
    assert bound.outputs[0].shape == (2, 3)
    with pytest.warns(UserWarning, match="got 'dat'; did you mean 'data'"):
        FC.simple_bind(CPU, data=(2, 4), type_dict={"dat": "float32"})


def test_eval():
    refused(lambda: FC.eval(data=ARRAYS["data"]), "got none for fc_weight, fc_bias")
    refused(lambda: FC.eval(**having(fc_bias="s")), "fc_bias must be an array, got 's'")
    refused(lambda: FC.eval(**having(fc_bias=mx.nd.ones(7))), "(node 'fc')")
    with pytest.warns(UserWarning, match="eval: arrays must be those of .*, got 'bogus'") as warned:
        assert FC.eval(**ARRAYS, bogus=ARRAYS["data"])[0].shape == (2, 3)
    assert warned[0].filename == __file__


def test_passes():
    bound = FC.simple_bind(CPU, data=(2, 4))
    refused(bound.backward, "out_grads must be given for 'fc_output'")
    refused(lambda: bound.forward(dta=ARRAYS["data"]), "got 'dta'; did you mean 'data'?")
    refused(lambda: bound.forward(data=mx.nd.ones((2, 5))), "must be (2, 4), got (2, 5)")
    refused(lambda: bound.forward(data="abc"), "data must be an array, got 'abc'")
    bound.forward(is_train=True)
    refused(lambda: bound.backward(mx.nd.ones((5, 5))), "must be of shape (2, 3), got (5, 5)")
    refused(lambda: bound.backward([None]), "out_grads must be given for 'fc_output'")
    refused(lambda: bound.backward("abc"), "cotangent 0 must be an array, got 'abc'")
    refused(lambda: bound.copy_params_from({"fc_bais": 1}), "did you mean 'fc_bias'?")
    refused(lambda: bound.reshape(dta=(2, 3)), "got 'dta'; did you mean 'data'?")
    refused(lambda: bound.reshape(data=3), "data: the shape must be a tuple of lengths, got 3")


def test_functions_of_arrays():
    function = FC.to_jax()
    refused(lambda: function(data=np.ones((2, 3))), "got none for fc_weight, fc_bias")
    refused(lambda: function(dta=np.ones((2, 3))), "got 'dta'; did you mean 'data'?")


def test_calls_and_compositions():
    refused(lambda: mx.sym.FullyConnected(var(), num_hiden=3), "did you mean 'num_hidden'?")
    refused(lambda: mx.nd.FullyConnected(data=1, num_hidden=3), "attributes must be among")
    refused(lambda: FC(dta=var()), "got 'dta'; did you mean 'data'?")
    refused(lambda: FC(data=3), "a symbol of one output must be given for 'data', got 3")


def test_only_near_names_are_proposed():
    assert near("FullyConected", ["FullyConnected", "Concat"]) == "; did you mean 'FullyConnected'?"
    assert near("batchnorm", ["BatchNorm", "batch_dot"]) == "; did you mean 'BatchNorm'?"
    assert near("_contrib_quantized_conv", ["_contrib_quadratic", "_contrib_index_copy"]) == ""
    assert near("attention", ["flatten"]) == ""
    assert near("sdg", ["sgd", "adam"]) == "; did you mean 'sgd'?"


# Sizes -------------------------------------------------------------------------------------------

HUGE = {
    "a variable": (var(shape=(10**10, 10**3)), "exp", {}),
    "a length": (var(), "exp", {"data": (10**25,)}),
}


@pytest.mark.parametrize(("data", "name", "shapes"), HUGE.values(), ids=HUGE)
def test_what_no_memory_holds_is_refused(data, name, shapes):
    net = getattr(mx.sym, name)(data, name="big")
    refused(lambda: net.simple_bind(CPU, **shapes), "exp: an array must have at most")
    refused(lambda: net.simple_bind(CPU, **shapes), "(node 'big')")
    refused(lambda: data.simple_bind(CPU, **shapes), "data: an array must have at most")


def test_a_file_may_not_ask_for_too_much():
    nodes = [{"op": "null", "name": "x", "attrs": {"__shape__": "(99999999999,9)"}, "inputs": []}]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[0, 0, 0]]})
    refused(lambda: mx.sym.load_json(text).simple_bind(CPU), "x: an array must have at most")


def test_what_memory_does_not_hold_is_an_error_of_mxnets(monkeypatch):
    def full(*args):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    bound = FC.simple_bind(CPU, data=(2, 3))
    monkeypatch.setattr(sys.modules["symop.interop.mxnet.arrays"], "filled", full)
    refused(lambda: FC.simple_bind(CPU, data=(2, 3)), "data: RESOURCE_EXHAUSTED")
    refused(lambda: bound.reshape(allow_up_sizing=True, data=(9, 3)), "data: RESOURCE_EXHAUSTED")


SIZES = {
    "tile": (lambda x, f: f.tile(x, reps=(10**11,)), "tile: an array must have at most"),
    "repeat": (lambda x, f: f.repeat(x, repeats=10**11), "repeat: an array must have at most"),
    "one_hot": (lambda x, f: f.one_hot(x, depth=10**11), "one_hot: an array must have at most"),
    "broadcast": (
        lambda x, f: f.broadcast_axis(f.slice_axis(x, axis=0, begin=0, end=1), 0, 10**11),
        "an array must have at most",
    ),
    "zeros": (lambda _, f: f.zeros((10**12,)), "_zeros: an array must have at most"),
    "arange": (lambda _, f: f.arange(10**12), "_arange: an array must have at most"),
    "no repetition": (lambda x, f: f.tile(x, reps=(0,)), "tile: reps must be at least 1, got (0,)"),
    "none repeated": (lambda x, f: f.repeat(x, repeats=0), "repeat: repeats must be at least 1"),
    "nothing of an axis": (
        lambda x, f: f.slice_axis(x, axis=0, begin=2, end=1),
        "slice_axis: something must be left, got 2 to 1 of 3",
    ),
    "nothing": (
        lambda x, f: f.slice(x, begin=(2,), end=(2,)),
        "slice: something must be left, got (2,) to (2,) of (3,)",
    ),
    "no scale": (
        lambda x, f: f.UpSampling(f.reshape(x, shape=(1, 1, 1, 3)), scale=0, sample_type="nearest"),
        "UpSampling: scale must be in [1, 1000], got 0",
    ),
}


@pytest.mark.parametrize(("call", "said"), SIZES.values(), ids=SIZES)
def test_sizes_that_make_no_sense(call, said):
    refused(lambda: call(mx.nd.ones(3), mx.nd), said)
    net = call(var(), mx.sym)
    shapes = dict.fromkeys(net.list_arguments(), (3,))
    refused(lambda: net.simple_bind(CPU, **shapes), said)
    with pytest.raises(MXNetError, match=r"\(node '\w+'\)"):
        net.infer_shape(**shapes)


def test_an_output_without_entries_is_refused():
    net = mx.sym.one_hot(var(), depth=0, name="hot")
    refused(lambda: net.infer_shape(data=(3,)), "one_hot: an output must have a length of at least")
    refused(lambda: net.infer_shape(data=(3,)), "got (3, 0) (node 'hot')")


def test_a_kernel_tells_the_number_of_axes():
    net = mx.sym.Convolution(var(), kernel=(3, 3), num_filter=2, name="conv")
    refused(lambda: net.infer_shape(data=(2, 3)), "Convolution: data must have 4 axes")
    refused(lambda: net.infer_shape(data=(2, 3)), "(node 'conv')")


DRAWS = {
    "normal": ((0, -1), "scale must be positive, got -1"),
    "uniform": ((5, 1), "high must be at least low, which is 5.0, got 1.0"),
    "gamma": ((-1, 1), "alpha must be positive, got -1"),
    "exponential": ((-1,), "lam must be positive, got -1"),
    "poisson": ((-1,), "lam must not be negative, got -1"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_that_do_not_exist_are_refused_and_all_else_goes_on(name):
    numbers, said = DRAWS[name]
    before = mx.nd.random.uniform(0, 1, (2, 2))
    refused(lambda: getattr(mx.nd.random, name)(*numbers, shape=(2, 2)), said)

    def run():
        net = mx.sym.dot(var(), getattr(mx.sym.random, name)(*numbers, shape=(2, 2)))
        return net.simple_bind(CPU, data=(2, 2)).forward()[0].asnumpy()

    for _ in range(2):
        refused(run, said)
    mx.nd.waitall()
    assert mx.nd.dot(before, mx.nd.ones((2, 2))).asnumpy().shape == (2, 2)
