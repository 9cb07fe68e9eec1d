"""8-bit integers and images of MXNet's interface, against definitions in NumPy."""

import numpy as np
import pytest

import symop.interop.mxnet as mx
from symop.interop.mxnet import MXNetError, nd

X = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
LOW, HIGH = float(X.min()), float(X.max())


def numpy(arrays):
    return [one.asnumpy() for one in arrays]


def centered(x, farthest):
    return (np.sign(x) * np.minimum(np.abs(x) * (127 / farthest) + 0.5, 127)).astype(np.int8)


def shifted(x, low, high):
    return ((x - low) * (255 / (high - low)) + 0.5).astype(np.uint8)


@pytest.mark.parametrize("own", [True, False])
def test_signed_integers_are_centered(own):
    low, high = (LOW, HIGH) if own else (-1.0, 1.5)
    if own:
        found = numpy(nd.contrib.quantize_v2(nd.array(X)))
    else:
        how = {"min_calib_range": low, "max_calib_range": high, "out_type": "auto"}
        found = numpy(nd.contrib.quantize_v2(nd.array(X), **how))
    farthest = np.float32(max(-low, high))
    assert found[0].dtype == np.int8
    assert np.abs(found[0].astype(int) - centered(X, farthest)).max() <= 1
    assert (found[1], found[2]) == (-farthest, farthest)
    ranges = nd.array([low]), nd.array([high])
    given = numpy(nd.contrib.quantize(nd.array(X), *ranges, out_type="int8"))
    assert (given[0] == found[0]).all()


def test_unsigned_integers_begin_at_the_least_number():
    found = nd.contrib.quantize_v2(nd.array(X), out_type="uint8")
    numbers, low, high = numpy(found)
    assert numbers.dtype == np.uint8
    assert np.abs(numbers.astype(int) - shifted(X, LOW, HIGH)).max() <= 1
    np.testing.assert_allclose((low, high), ([LOW], [HIGH]))
    step = (HIGH - LOW) / 255
    assert np.abs(nd.contrib.dequantize(*found).asnumpy() - X).max() <= 0.51 * step
    assert nd.contrib.quantize_v2(nd.array([0, 1]), min_calib_range=0, max_calib_range=1,
                                  out_type="auto")[0].dtype is np.uint8  # fmt: skip


def test_integers_stand_for_numbers():
    back = nd.contrib.dequantize(*nd.contrib.quantize_v2(nd.array(X))).asnumpy()
    assert np.abs(back - X).max() <= 0.51 * max(-LOW, HIGH) / 127
    again = nd.contrib.quantize_v2(nd.array([-3, 5], dtype="int8"))
    assert [one.asnumpy().tolist() for one in again] == [[-3, 5], [-127], [127]]
    with pytest.raises(MXNetError, match="int8 or uint8"):
        nd.contrib.dequantize(nd.ones(2), nd.zeros(1), nd.ones(1))


def test_wide_integers_become_narrow():
    whole = np.array([1_000_000, -2_000_000, 500], np.int32)
    numbers = whole * (100 / (2**31 - 1))
    wide = nd.array(whole, dtype="int32"), nd.array([-100]), nd.array([50])
    found, low, high = numpy(nd.contrib.requantize(*wide))
    assert (found == centered(numbers, np.abs(numbers).max())).all()
    np.testing.assert_allclose((low, high), ([numbers.min()], [-numbers.min()]), rtol=1e-5)
    how = {"min_calib_range": -0.2, "max_calib_range": 0.1}
    assert (nd.contrib.requantize(*wide, **how)[0].asnumpy() == centered(numbers, 0.2)).all()
    with pytest.raises(MXNetError, match="int32"):
        nd.contrib.requantize(nd.ones(2), nd.zeros(1), nd.ones(1))


def test_integers_in_a_symbol():
    net = mx.sym.contrib.quantize(*map(mx.sym.var, "xab"), out_type="int8", name="q")
    assert net.list_outputs() == ["q_output", "q_min_output", "q_max_output"]
    assert net.infer_shape(x=(2, 3))[0] == [(2, 3), (1,), (1,)]
    outs = mx.sym.contrib.dequantize(net[0], net[1], net[2]).eval(
        x=nd.array(X), a=nd.array([LOW]), b=nd.array([HIGH])
    )
    assert np.abs(outs[0].asnumpy() - X).max() <= 0.51 * max(-LOW, HIGH) / 127


# Images


def test_channels_are_normalized():
    images = np.random.default_rng(0).random((2, 3, 4, 5), np.float32)
    mean, std = (0.5, 0.25, 1.0), (2.0, 0.5, 4.0)
    expected = (images - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    net = mx.sym.image.normalize(mx.sym.var("x"), mean=mean, std=std)
    executor = net.simple_bind(mx.cpu(), x=images.shape)
    (out,) = executor.forward(is_train=True, x=nd.array(images))
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5)
    executor.backward(nd.ones(images.shape))
    slopes = np.broadcast_to(1 / np.reshape(std, (3, 1, 1)), images.shape)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), slopes)
    one = nd.image.normalize(nd.array(images[0]), mean=1.0, std=2.0).asnumpy()
    np.testing.assert_allclose(one, (images[0] - 1) / 2)
    for wrong in (lambda: nd.image.normalize(nd.ones(3)),
                  lambda: nd.image.normalize(nd.ones((3, 2, 2)), mean=(1, 2))):  # fmt: skip
        with pytest.raises(MXNetError, match="_image_normalize"):
            wrong()


def test_pixels_become_numbers():
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    found = nd.image.to_tensor(nd.array(pixels, dtype="uint8"))
    np.testing.assert_allclose(found.asnumpy(), pixels.transpose(0, 3, 1, 2) / 255, rtol=1e-6)
    assert mx.sym.image.to_tensor(mx.sym.var("x")).infer_shape(x=(4, 5, 3))[1] == [(3, 4, 5)]
