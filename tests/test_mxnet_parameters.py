"""MXNet's ``.params`` files: every version is read, damage is told, 1.9.1's bytes are written."""

import os
import random
import struct
import threading
import tracemalloc
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import symop as so
from registry.errors import FormatError
from registry.values import SelectedRows
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError
from symop.interop.mxnet.parameters import load_params, save_params, split_params
from symop.interop.mxnet.sparse import CSRArray

DATA = Path(__file__).parent / "data" / "mxnet"
SAMPLES = sorted(DATA.glob("*.params"))
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
CPU, GPU = struct.pack("<ii", 1, 0), struct.pack("<ii", 2, 3)
DTYPES = [*map(np.dtype, ["f4", "f8", "f2", "u1", "i4", "i1", "i8", "?", "i2", "u2", "u4", "u8"])]
DTYPES.append(np.dtype(ml_dtypes.bfloat16))


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def i32(*numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def i64(*numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


def shape(*lengths):
    return i32(len(lengths)) + i64(*lengths)


def content(*arrays, names=()):
    written = [u64(len(name)) + name.encode() for name in names]
    parts = [u64(0x112, 0, len(arrays)), *arrays, u64(len(names)), *written]
    return b"".join(parts)


def dense(array, device=CPU):
    return b"".join(
        [u32(V2), i32(0), shape(*array.shape), device, code(array.dtype), array.tobytes()]
    )


def code(dtype):
    return i32(DTYPES.index(dtype))


def rows(indices, values, lengths, index_dtype="int64", held=None):
    values, indices = np.asarray(values, "float32"), np.asarray(indices, index_dtype)
    return b"".join(
        [
            u32(V2) + i32(1) + shape(*(values.shape if held is None else held)),
            shape(*lengths) + CPU + code(values.dtype),
            code(indices.dtype) + shape(*indices.shape),
            values.tobytes() + indices.tobytes(),
        ]
    )


def csr(data, indices, indptr, lengths, held=None):
    data = np.asarray(data, "float32")
    indices, indptr = np.asarray(indices, "int64"), np.asarray(indptr, "int64")
    return b"".join(
        [
            u32(V2) + i32(2) + shape(*(data.shape if held is None else held)),
            shape(*lengths) + CPU + code(data.dtype),
            code(indptr.dtype) + shape(*indptr.shape),
            code(indices.dtype) + shape(*indices.shape),
            data.tobytes() + indptr.tobytes() + indices.tobytes(),
        ]
    )


SOME = np.arange(6, dtype="float32").reshape(2, 3)
ROWS = rows([0, 3], [[1, 2], [3, 4]], (5, 2))
CSR = csr([1, 2, 3], [0, 2, 1], [0, 2, 2, 3], (3, 4))
MIXED = content(dense(SOME), ROWS, CSR, names=("arg:a", "arg:r", "aux:c"))


# What MXNet wrote -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_what_is_loaded_is_saved_with_the_same_bytes(path, tmp_path):
    save_params(tmp_path / "again", load_params(path))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_each_dtype_is_as_mxnet_wrote_it():
    found = load_params(DATA / "dtypes.params")
    with np.load(DATA / "dtypes-expected.npz") as expected:
        assert [f"dtypes.params|{name}" for name in found] == expected.files
        for name, array in found.items():
            wanted = expected[f"dtypes.params|{name}"]
            assert array.dtype == wanted.dtype
            assert array.tobytes() == wanted.tobytes()
            assert array.shape == wanted.shape


def test_a_model_is_split_into_arguments_and_states():
    arguments, states = split_params(load_params(DATA / "bn_cnn-0000.params"))
    assert arguments["c0_weight"].shape == (8, 3, 3, 3)
    assert all(name.endswith(("moving_mean", "moving_var")) for name in states)
    assert len(arguments) == 8
    assert len(states) == 4


# Every version ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("device", [CPU, GPU], ids=["cpu", "gpu"])
def test_each_version_holds_each_dtype(dtype, device):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    rest = device + code(dtype) + array.tobytes()
    versions = [
        u32(2, 2, 3) + rest,
        u32(V1) + shape(2, 3) + rest,
        u32(V2) + i32(0) + shape(2, 3) + rest,
        u32(V3) + i32(0) + shape(2, 3) + rest,
    ]
    for found in load_params(content(*versions)):
        assert found.dtype == dtype
        assert found.tobytes() == array.tobytes()
        assert found.shape == array.shape
        assert found.flags.aligned
        assert found.flags.writeable


def test_arrays_that_were_never_filled_are_none():
    nones = [u32(0), u32(V1) + i32(0), u32(V2) + i32(-1, 0), u32(V2) + i32(0, 0)]
    nones += [u32(V2) + i32(1) + shape(0) + i32(0), u32(V3) + i32(-1, -1)]
    nones += [u32(V3) + i32(0) + shape(2, -1)]
    assert load_params(content(*nones)) == [None] * len(nones)


def test_numpy_shapes_have_no_axes_or_no_entries():
    scalar = u32(V3) + i32(0) + shape() + CPU + i32(1) + struct.pack("<d", 2.5)
    empty = u32(V3) + i32(0) + shape(0, 1 << 40) + CPU + i32(2)
    one, none = load_params(content(scalar, empty))
    assert one.shape == ()
    assert one == 2.5
    assert none.shape == (0, 1 << 40)


def test_row_sparse_arrays_are_selected_rows():
    (some,) = load_params(content(rows([3, 0], [[1, 2], [3, 4]], (5, 2), "int32")))
    assert isinstance(some, SelectedRows)
    assert some.height == 5
    assert some.rows.dtype == np.int32
    assert some.to_dense().tolist() == [[3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]


@pytest.mark.parametrize("held", [(0,), (0, 2)])
def test_row_sparse_arrays_may_hold_nothing(held):
    (some,) = load_params(content(rows([], np.zeros((0, 2)), (5, 2), held=held)))
    assert some.values.shape == (0, 2)
    assert not some.to_dense().any()


def test_csr_arrays():
    (found,) = load_params(content(CSR))
    assert isinstance(found, CSRArray)
    assert found.dtype == np.float32
    assert found.todense().tolist() == [[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]]


def test_csr_arrays_may_hold_nothing(tmp_path):
    empty = content(csr([], [], [], (3, 4)), csr([], [], [0] * 4, (3, 4)))
    for found in load_params(empty):
        assert found.todense().tolist() == [[0] * 4] * 3
    save_params(tmp_path / "again", load_params(empty))
    assert (tmp_path / "again").read_bytes() == empty


def test_bytes_of_every_kind_and_pipes_are_read(tmp_path):
    for kind in (bytes, bytearray, memoryview):
        assert list(load_params(kind(MIXED))) == ["arg:a", "arg:r", "aux:c"]
    assert load_params(memoryview(np.frombuffer(content(), "int64"))) == []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[MIXED])
    writer.start()
    assert list(load_params(pipe, limit=len(MIXED))) == ["arg:a", "arg:r", "aux:c"]
    writer.join()


# Damage -----------------------------------------------------------------------------------------

HEAD = len(u64(0x112, 0, 1))


def damaged(array, start, *, names=()):
    """A file whose array goes wrong ``start`` bytes behind its own start."""
    return content(array, names=names), HEAD + start


BROKEN = {
    "magic": (u64(0x113, 0, 0, 0), 0, "0x112"),
    "reserved": (u64(0x112, 1, 0, 0), 8, "0x0"),
    "count": (u64(0x112, 0, 1 << 62, 0), 16, "at most 2"),
    "no names": (u64(0x112, 0, 0), 24, "8 bytes"),
    "version": (*damaged(u32(77) + bytes(99), 0), "rank up to 32"),
    "rank": (*damaged(u32(V2) + i32(0, 33) + bytes(999), 8), "from 0 to 32"),
    "rank -1": (*damaged(u32(V2) + i32(0, -1) + bytes(999), 8), "from 0 to 32"),
    "rank -2": (*damaged(u32(V3) + i32(0, -2) + bytes(999), 8), "from -1 to 32"),
    "length": (*damaged(u32(V2) + i32(0) + shape(2, -3) + bytes(99), 12), r"\(2, -3\)"),
    "storage": (*damaged(u32(V2) + i32(3) + bytes(99), 4), "storage type"),
    "storage of V3": (*damaged(u32(V3) + ROWS[4:], 4), "-1, 0"),
    "undefined": (*damaged(u32(V2) + i32(-1) + dense(SOME)[8:], 4), "be known"),
    "device": (*damaged(dense(SOME, device=i32(9, 0)), 28), "device type"),
    "dtype": (*damaged(u32(1, 2) + CPU + i32(13) + bytes(99), 16), "dtype must be one of"),
    "too long": (*damaged(u32(1, 1 << 31) + CPU + i32(0), 20), f"{1 << 33} bytes"),
    "overflow": (*damaged(u32(2, 1 << 31, 1 << 31) + CPU + i32(1), 24), r"2\*\*63"),
    "overflow of none": (
        *damaged(u32(V3) + i32(0) + shape(0, 1 << 62, 4) + CPU + i32(1), 48),
        r"2\*\*63",
    ),
    "bool": (*damaged(u32(1, 3) + CPU + i32(7) + b"\1\0\2", 22), "0 or 1"),
    "rows outside": (*damaged(rows([0, 5], np.ones((2, 2)), (5, 2)), 92 + 8), "less than 5"),
    "rows below": (*damaged(rows([-1, 0], np.ones((2, 2)), (5, 2)), 92), "at least 0"),
    "rows held": (*damaged(rows([0], np.ones((2, 2)), (5, 2)), 8), r"\(1, 2\)"),
    "rows of rank 2": (*damaged(rows([[0]], [[1.0]], (5, 1)), 64), "one axis"),
    "row dtype": (*damaged(rows([0.0], [[1.0]], (5, 1), "float32"), 60), "4, 5, 6"),
    "rank of csr": (*damaged(csr([], [], [], (3,)), 20), "two axes"),
    "columns": (*damaged(csr([1, 2], [0, 4], [0, 2], (1, 4)), 108 + 8), "less than 4"),
    "indptr": (*damaged(csr([1, 2], [0, 1], [0, 2], (2, 4)), 56), r"\(3,\)"),
    "indptr start": (*damaged(csr([1], [0], [1, 1], (1, 4)), 88), "start with 0"),
    "indptr falls": (*damaged(csr([1], [0], [0, 1, 0], (2, 4)), 88 + 16), "1 or more"),
    "indptr end": (*damaged(csr([1], [0], [0, 0], (1, 4)), 88 + 8), "end with 1"),
    "csr held": (*damaged(csr([1, 2], [0], [0, 1], (1, 4)), 8), r"\(1,\)"),
    "number of names": (content(u32(0), u32(0), names=("a",)), 32, "0 or 2"),
    "name": (content(u32(0), names=("a",))[:-9] + u64(1 << 63) + b"a", 44, f"{1 << 63} bytes"),
    "name's bytes": (content(u32(0), names=("ab",))[:-1] + b"\xff", 45, "UTF-8"),
    "names twice": (content(u32(0), u32(0), names=("a", "a")), 57, "no earlier name"),
    "more": (MIXED + b"\0\0", len(MIXED), "2 more bytes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_damage_is_told_with_its_place(case, tmp_path):
    data, at, text = BROKEN[case]
    path = tmp_path / "broken.params"
    path.write_bytes(data)
    with pytest.raises(MXNetFormatError, match=text) as caught:
        load_params(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert f" at byte {at}, got " in str(caught.value)
    assert isinstance(caught.value, FormatError)


@pytest.mark.parametrize("data", [MIXED, (DATA / "dtypes.params").read_bytes()])
def test_no_truncated_file_is_read(data):
    for length in range(len(data)):
        with pytest.raises(MXNetFormatError):
            load_params(data[:length])


@pytest.mark.parametrize("data", [MIXED, (DATA / "dtypes.params").read_bytes()])
def test_damaged_bytes_give_an_error_or_a_result_and_need_no_memory(data):
    generator = random.Random(0)
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(3000):
            changed = bytearray(data)
            for _ in range(generator.choice([1, 1, 2, 8])):
                changed[generator.randrange(len(data))] = generator.choice(
                    [0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)]
                )
            try:
                load_params(changed)
            except MXNetFormatError:
                refused += 1
        assert tracemalloc.get_traced_memory()[1] < 20 * len(data) + 20_000
    finally:
        tracemalloc.stop()
    assert refused > 300


@pytest.mark.parametrize("huge", [1 << 31, 1 << 40, (1 << 63) - 1])
def test_claimed_lengths_take_no_memory(huge, tmp_path):
    path = tmp_path / "huge.params"
    claims = [
        u64(0x112, 0, huge) + bytes(64),
        content(u32(V2) + i32(0) + shape(huge) + CPU + i32(0)),
        content(u32(V2) + i32(0, 0), names=("a",))[:-9] + u64(huge) + b"a",
        content(u32(V2) + i32(1) + shape(huge, 1) + shape(huge, 1) + CPU + i32(0, 6) + shape(huge)),
        b"",
    ]
    for data in claims:
        path.write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(MXNetFormatError):
                load_params(path)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


def test_a_limit_on_the_length(tmp_path):
    path = tmp_path / "some.params"
    path.write_bytes(MIXED)
    assert len(load_params(path, limit=len(MIXED))) == 3
    for source in (path, MIXED):
        with pytest.raises(MXNetFormatError, match=f"at most {len(MIXED) - 1} bytes"):
            load_params(source, limit=len(MIXED) - 1)
    with pytest.raises(FileNotFoundError):
        load_params(tmp_path / "none")


# Saving -----------------------------------------------------------------------------------------


def saved(tmp_path, params):
    path = tmp_path / "saved.params"
    save_params(path, params)
    return path.read_bytes()


def test_the_bytes_are_mxnets(tmp_path):
    assert saved(tmp_path, load_params(MIXED)) == MIXED
    assert saved(tmp_path, [SOME]) == content(dense(SOME))
    assert saved(tmp_path, {}) == saved(tmp_path, []) == content()
    assert saved(tmp_path, [None]) == content(u32(V2) + i32(0, 0))


def test_the_third_version_is_written_where_it_is_needed(tmp_path):
    pair = u32(V3) + i32(0) + shape(2) + CPU + i32(3) + b"\1\2"
    one = u32(V3) + i32(0) + shape() + CPU + i32(3) + b"\5"
    empty = u32(V3) + i32(0) + shape(2, 0) + CPU + i32(3)
    never = u32(V3) + i32(0) + shape(-1)
    arrays = [np.array([1, 2], "u1"), np.array(5, "u1"), np.zeros((2, 0), "u1"), None]
    data = saved(tmp_path, arrays)
    assert data == content(pair, one, empty, never)
    assert load_params(data)[3] is None
    assert saved(tmp_path, [arrays[0], arrays[2]]) == content(pair, empty)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_dtype_is_saved(dtype, tmp_path):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    assert saved(tmp_path, (array,)) == content(dense(array))


def test_arrays_of_every_kind_are_saved(tmp_path):
    swapped = SOME.astype(">f4")
    kinds = [SOME, jnp.asarray(SOME), so.NDArray(SOME), np.asfortranarray(SOME), swapped]
    kinds += [np.float32([[9] * 3, *SOME])[1:], SOME[:, ::-1][:, ::-1], list(SOME)]
    assert saved(tmp_path, kinds) == content(*[dense(SOME)] * len(kinds))
    low = jnp.asarray(SOME, jnp.bfloat16)
    assert saved(tmp_path, [low, so.NDArray(low)]) == content(*[dense(np.asarray(low))] * 2)


def test_rows_are_saved_once_each_and_in_order(tmp_path):
    some = SelectedRows(jnp.array([3, 0, 3, 7, -1]), jnp.arange(10.0).reshape(5, 2), 5)
    expected = content(rows([0, 3], [[2, 3], [4, 6]], (5, 2)))
    assert saved(tmp_path, [some]) == saved(tmp_path, [so.NDArray(some)]) == expected
    (found,) = load_params(expected)
    np.testing.assert_array_equal(found.to_dense(), some.to_dense())
    half = some.mapped(lambda values: np.asarray(values, ml_dtypes.bfloat16))
    (found,) = load_params(saved(tmp_path, [half]))
    assert found.values.tolist() == [[2, 3], [4, 6]]


def test_columns_are_saved_in_order(tmp_path):
    given = CSRArray(jnp.array([2.0, 1, 3]), jnp.array([2, 0, 1]), jnp.array([0, 2, 2, 3]), (3, 4))
    assert saved(tmp_path, [given]) == content(CSR)


def csr_array(data=(1.0,), indices=(0,), indptr=(0, 1), shape=(1, 2), dtype="int64"):
    return CSRArray(np.array(data), np.array(indices, dtype), np.array(indptr, dtype), shape)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"w": np.zeros(2, "complex64")}, "'w'.*float32.*complex64"),
        ({"w": "text"}, "dtype"),
        ({"w": [[1], [2, 3]]}, "'w'"),
        ({"w": np.zeros((1,) * 33)}, "32 axes, got 33"),
        ([object()], "array 0"),
        ({3: SOME}, "name must be a text.*3"),
        ({"a\0b": SOME}, "null"),
        ({"\ud800": SOME}, "name must be a text"),
        (SOME, "dict or a list"),
        ([np.array(1.0), csr_array()], "array 0.*array 1"),
        ([SelectedRows(np.zeros(2, "int32"), np.zeros((3, 2)), 5)], "array 0.*one value"),
        ([SelectedRows(np.zeros(3), np.zeros((3, 2)), 5)], "integers"),
        ([csr_array(indices=(2,))], "array 0.*less than 2"),
        ([csr_array(indices=(-1,))], "at least 0"),
        ([csr_array(indices=(0, 1))], r"shape \(1,\)"),
        ([csr_array(data=((1.0,),))], "must be a list"),
        ([csr_array(indptr=(0, 0))], "end with 1"),
        ([csr_array(indptr=(1, 1))], "start with 0"),
        ([csr_array(indptr=(0, 1, 1))], r"\(2,\)"),
        ([csr_array(indptr=(0, 1, 0), shape=(2, 2))], "1 or more"),
        ([csr_array(shape=(1,))], r"\(rows, columns\)"),
        ([csr_array(dtype="float32")], "must be integers"),
    ],
)
def test_what_mxnet_could_not_read_is_not_saved(params, text, tmp_path):
    path = tmp_path / "some.params"
    path.write_bytes(b"as it was")
    with pytest.raises(MXNetError, match=text):
        save_params(path, params)
    assert path.read_bytes() == b"as it was"
    assert os.listdir(tmp_path) == ["some.params"]


def test_a_matrix_with_a_wrong_part_is_not_made_dense():
    with pytest.raises(MXNetError, match="less than 2"):
        csr_array(indices=(5,)).todense()


# Arguments and auxiliary states -----------------------------------------------------------------


def test_names_are_split_as_mxnet_splits_them():
    params = {"arg:a:b": 1, "aux:a:b": 2, "other:c": 3, "arg:": 4}
    assert split_params(params) == ({"a:b": 1, "": 4}, {"a:b": 2})
    assert split_params([]) == split_params({}) == ({}, {})


def test_names_without_prefix_are_told():
    with pytest.raises(MXNetError, match="'arg:' or 'aux:', got 'fc1_weight'"):
        split_params({"fc1_weight": 1})
    with pytest.raises(MXNetError, match="a list of 1"):
        split_params([SOME])
