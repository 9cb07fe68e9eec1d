"""Paddle's files: its own bytes come back, damage is told with its place, nothing is run."""

import pickle
import pickletools
import struct
import zlib
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from registry.errors import FormatError, MissingExtraError
from registry.lod import LoDTensor
from registry.values import SelectedRows
from symop.interop.paddle import files, messages, pickles
from symop.interop.paddle.errors import PaddleError, PaddleFormatError
from symop.interop.paddle.framework import (
    DTYPES,
    AttrType,
    BlockDesc,
    OpDesc,
    ProgramDesc,
    VarDesc,
    VarKind,
    attr_type,
    parse,
    serialize,
    verify,
)
from symop.interop.paddle.streams import Reader, read_rows, read_tensor, write_stream

DATA = Path(__file__).parent / "data" / "paddle" / "files"
PROGRAMS = sorted(DATA.glob("*.pb"))


def varint(number):
    number %= 1 << 64
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """A field in protobuf's format, written without protobuf."""
    if isinstance(value, (bytes, str)):
        raw = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(raw)) + raw
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def var(name, kind=7, detail=b"", *more):
    return field(1, name) + field(2, field(1, kind) + detail) + b"".join(more)


def tensor(code, *dims):
    return field(1, code) + b"".join(field(2, one) for one in dims)


def attr(name, code, *values):
    return field(4, field(1, name) + field(2, code) + b"".join(values))


def block(idx=0, parent=-1, *content):
    return field(1, field(1, idx) + field(2, parent) + b"".join(content))


def op(kind, *content):
    return field(4, b"".join([field(3, kind), *content]))


def refused(data, *words, name="a.pdmodel"):
    with pytest.raises(PaddleFormatError) as caught:
        parse(data, name)
    told = str(caught.value)
    assert told.startswith(f"{name}:"), told
    for word in words:
        assert word in told
    return told


# Programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_of_paddle_is_written_byte_for_byte(path):
    data = zlib.decompress(path.read_bytes())
    program = parse(data)
    assert serialize(program) == data
    again = parse(serialize(program))
    assert again == program


def test_the_records_of_a_program_of_paddle():
    program = parse(zlib.decompress((DATA / "textcnn_infer.pb").read_bytes()))
    assert program.version == 1_008_005
    assert program.op_compatible_map is not None
    first = program.global_block()
    assert first.vars["feed"].kind is VarKind.FEED_MINIBATCH
    assert first.vars["feed"].persistable
    assert first.vars["emb"] == VarDesc(
        "emb", VarKind.LOD_TENSOR, np.dtype("float32"), (60, 8), persistable=True
    )
    conv = next(one for one in first.ops if one.type == "sequence_conv")
    assert conv.input("Filter") == ["sequence_conv_0.w_0"]
    assert conv.input("Missing") == []
    assert conv.attr("contextStart") == -1
    assert conv.attr_types["contextStart"] is AttrType.INT
    assert "sequence_conv_0.w_0" in conv.input_arg_names
    assert conv.output_names == ["Out"]
    with pytest.raises(PaddleError, match=r"an attribute must be among .*, got 'stride'"):
        conv.attr("stride")


def test_a_sparse_gradient_and_an_attribute_that_comes_twice():
    train = parse(zlib.decompress((DATA / "recommender_train.pb").read_bytes())).global_block()
    kinds = {one.kind for name, one in train.vars.items() if name.endswith("_table@GRAD")}
    assert kinds == {VarKind.SELECTED_ROWS}
    other = parse(zlib.decompress((DATA / "transformer_train.pb").read_bytes()))
    reshape = next(one for one in other.global_block().ops if one.type == "reshape2")
    assert reshape.attr("use_mkldnn") is False
    reshape.attrs["use_mkldnn"] = True
    again = next(
        one for one in parse(serialize(other)).global_block().ops if one.type == "reshape2"
    )
    assert again.attr("use_mkldnn") is True


ATTRIBUTES = [
    (AttrType.INT, -3, field(3, -3)),
    (AttrType.FLOAT, 0.5, field(4, 0.5)),
    (AttrType.STRING, "a\udcff", field(5, b"a\xff")),
    (AttrType.INTS, [1, -1], field(6, 1) + field(6, -1)),
    (AttrType.FLOATS, [0.5, 2.0], field(7, 0.5) + field(7, 2.0)),
    (AttrType.STRINGS, ["a", ""], field(8, "a") + field(8, "")),
    (AttrType.BOOLEAN, False, field(10, 0)),
    (AttrType.BOOLEANS, [True, False], field(11, 1) + field(11, 0)),
    (AttrType.BLOCK, 1, field(12, 1)),
    (AttrType.LONG, 2**40, field(13, 2**40)),
    (AttrType.BLOCKS, [1], field(14, 1)),
    (AttrType.LONGS, [-(2**40)], field(15, -(2**40))),
    (AttrType.FLOAT64S, [0.1], varint(16 << 3 | 1) + struct.pack("<d", 0.1)),
    (AttrType.VAR, "v", field(17, "v")),
    (AttrType.VARS, ["v", "w"], field(18, "v") + field(18, "w")),
    (AttrType.FLOAT64, 0.1, varint(19 << 3 | 1) + struct.pack("<d", 0.1)),
    (AttrType.SCALAR, True, field(20, field(1, 1) + field(2, 1))),
    (AttrType.SCALAR, 7, field(20, field(1, 2) + field(3, 7))),
    (AttrType.SCALARS, [], b""),
    (AttrType.STRINGS, [], b""),
]


@pytest.mark.parametrize(("kind", "value", "raw"), ATTRIBUTES)
def test_attributes_of_every_type(kind, value, raw):
    data = block(0, -1, op("some", attr("a", kind, raw))) + block(1, 0)
    program = parse(data)
    call = program.global_block().ops[0]
    assert (call.attr("a"), type(call.attr("a")), call.attr_types["a"]) == (
        value,
        type(value),
        kind,
    )
    assert serialize(program) == data


def test_scalars_of_all_types_come_back():
    values = [True, -5, 0.1, 1 + 2j]
    call = OpDesc("full", attrs={"value": values}, attr_types={"value": AttrType.SCALARS})
    program = ProgramDesc([BlockDesc(0, -1, ops=[call])])
    found = parse(serialize(program)).global_block().ops[0].attr("value")
    assert (found, list(map(type, found))) == (values, [bool, int, float, complex])


def test_what_is_unknown_comes_back():
    levels = field(3, field(1, tensor(5, 2, -1)) + field(2, 0))
    data = block(
        0,
        -1,
        field(3, var("x", 7, levels, field(3, 0))),
        field(3, var("r", 15, field(5, field(1, field(1, tensor(5, 3)))), field(60, "new"))),
        op("some", attr("a", 0, field(3, 1), field(50, 9)), field(51, "kept")),
        field(5, -1),
        field(52, 1.5),
    )
    data += field(4, field(1, 2_006_002)) + field(
        5, field(1, field(1, "f") + field(2, field(1, 3)))
    )
    data += field(53, "more")
    program = parse(data)
    assert serialize(program) == data
    program.global_block().vars["x"].persistable = True
    program.global_block().vars["x"].kind = VarKind.SELECTED_ROWS
    changed = parse(serialize(program)).global_block()
    assert changed.vars["x"].persistable
    assert changed.vars["x"].shape == (2, -1)
    assert serialize(program).endswith(field(53, "more"))


def test_a_program_that_is_built():
    x = VarDesc("x", dtype=np.dtype(ml_dtypes.bfloat16), shape=(-1, 4), lod_level=1)
    call = OpDesc(
        "fill",
        {"X": ["x"], "Y": []},
        {"Out": ["x"]},
        {"i": 1, "l": 2**40, "f": 1, "s": "text", "many": [1.5, 2], "none": [], "on": True},
        {"f": AttrType.FLOAT},
        is_target=True,
    )
    program = ProgramDesc([BlockDesc(0, -1, {"x": x}, [call])], 1_008_005)
    again = parse(serialize(program))
    found = again.global_block().ops[0]
    assert again.global_block().vars == {"x": x}
    assert found.attrs == {**call.attrs, "f": 1.0}
    assert (found.inputs, found.outputs, found.is_target) == (call.inputs, call.outputs, True)
    names = [found.attr_types[name].name for name in call.attrs]
    assert names == ["INT", "LONG", "FLOAT", "STRING", "FLOATS", "INTS", "BOOLEAN"]


def test_every_dtype_and_kind_of_variables():
    made = [VarDesc(f"t{code}", dtype=dtype, shape=(2,)) for code, dtype in DTYPES.items()]
    made += [VarDesc(kind.name, kind) for kind in VarKind]
    program = ProgramDesc([BlockDesc(0, -1, {one.name: one for one in made})])
    assert parse(serialize(program)).global_block().vars == program.global_block().vars


@pytest.mark.parametrize(
    ("attrs", "types", "words"),
    [
        ({"a": "x"}, {"a": AttrType.INT}, "some: attribute 'a' must be of type INT, got 'x'"),
        ({"a": 2**40}, {"a": AttrType.INT}, "must be of type INT"),
        ({"a": 1e300}, {"a": AttrType.FLOAT}, "must be of type FLOAT"),
        ({"a": 3}, {"a": AttrType.STRINGS}, "must be of type STRINGS"),
        ({"a": 3}, {"a": AttrType.BOOLEAN}, "must be of type BOOLEAN"),
        ({"a": object()}, {}, "an attribute must be a number, a text or a list"),
        ({"a": [1, "x"]}, {}, "an attribute must be a number, a text or a list"),
        ({"a": 4}, {"a": AttrType.BLOCK}, "a block must be from 0 to 0"),
    ],
)
def test_attributes_that_cannot_be_written(attrs, types, words):
    program = ProgramDesc([BlockDesc(0, -1, ops=[OpDesc("some", attrs=attrs, attr_types=types)])])
    with pytest.raises(PaddleError, match=words):
        serialize(program)


def test_the_type_that_numbers_of_numpy_suggest():
    assert attr_type(np.float32(1)) is AttrType.FLOAT
    assert attr_type(np.int64(1)) is AttrType.INT
    assert attr_type((True,)) is AttrType.BOOLEANS
    assert attr_type(1j) is AttrType.SCALAR


def test_a_missing_protobuf_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "google.protobuf", None)
    messages._classes.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"symop-jax\[paddle\]"):
            parse(b"")
    finally:
        messages._classes.cache_clear()


# Programs that are damaged ---------------------------------------------------------------------


GOOD_VAR = field(3, var("x", 7, field(3, field(1, tensor(5, 2)))))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["a program must have a block"]),
        (b"\xff" * 12, ["a field's tag must be at most 10 bytes at byte 0"]),
        (block()[:-1], ["must be 13 bytes at byte 2", "until the end"]),
        (field(1, field(1, 0)), ["the Block must have the field parent_idx at byte 2"]),
        (block(1), ["blocks[0]: a block's index must be its place", "at byte 0, got 1"]),
        (block(0, 0), ["blocks[0]: it must have no parent", "got 0"]),
        (block() + block(1, 1), ["blocks[1]: a block's parent must be an earlier block at byte"]),
        (block() + block(1, -1), ["blocks[1]: a block's parent must be an earlier block"]),
        (block(0, -1, field(5, 7)), ["a forward block must be from -1 to 0", "got 7"]),
        (block(0, -1, GOOD_VAR, GOOD_VAR), ["blocks[0].vars[1]: a variable's name must be new"]),
        (block(0, -1, field(3, var("x", 5))), ["the kind of 'x' must be that of a variable"]),
        (block(0, -1, field(3, var("", 7))), ["a variable's name must not be empty"]),
        (block(0, -1, field(3, var(b"\xff", 7))), ["a variable's name must be UTF-8"]),
        (
            block(0, -1, field(3, var("x", 7, field(3, field(1, tensor(99, 2)))))),
            ["the dtype of 'x' must be one of Paddle's", "got 99"],
        ),
        (
            block(0, -1, field(3, var("x", 7, field(3, field(1, tensor(5)) + field(2, 999))))),
            ["the levels of 'x' must be from 0 to 64"],
        ),
        (block(0, -1, op("f", attr("a", 18))), ["ops[0].attrs[0]: f: the type of attribute 'a'"]),
        (
            block(0, -1, op("f", attr("a", 0, field(3, 1)), attr("a", 0, field(3, 2)))),
            ["ops[0].attrs[1]: f: attribute 'a' must have one value", "got 2 after 1"],
        ),
        (
            block(0, -1, op("f", field(1, field(1, "X")), field(1, field(1, "X")))),
            ["f: inputs must name a slot once", "got 'X'"],
        ),
        (block(0, -1, op("f", attr("b", 8, field(12, 3)))), ["f: a block must be from 0 to 0"]),
        (block(0, -1, op("f", attr("b", 10, field(14, -1)))), ["f: a block must be from 0 to 0"]),
        (block(0, -1, op("f", attr("b", 8, field(12, 0)))), ["a block must not run itself"]),
        (
            block(0, -1, op("f", attr("b", 8, field(12, 1))))
            + block(1, 0, op("f", attr("b", 8, field(12, 0)))),
            ["a block must not run itself"],
        ),
        (
            block(0, -1, op("f", attr("a", 16, field(20, field(1, 9))))),
            ["a scalar's type must be from 1 to 4"],
        ),
    ],
)
def test_a_damaged_program_is_told_with_its_place(data, words):
    told = refused(data, *words)
    assert "at byte" in told


def test_the_offset_is_that_of_the_damaged_part():
    start = block(0, -1, GOOD_VAR)
    bad = field(3, var("y", 5))
    data = block(0, -1, GOOD_VAR, bad)
    at = data.index(bad)
    assert f"at byte {at}," in refused(data, "vars[1]")
    assert len(start) < at + len(bad)


def test_every_cut_of_a_program_is_refused_or_read_whole():
    data = zlib.decompress((DATA / "mobile_infer.pb").read_bytes())
    for end in [*range(40), *range(100, len(data), 997)]:
        cut = data[:end]
        try:
            again = serialize(parse(cut, "cut"))
        except PaddleFormatError as error:
            again, told = cut, str(error)
        else:
            told = "cut:"
        assert (again, told[:4]) == (cut, "cut:")


def test_a_program_that_is_too_long():
    with pytest.raises(PaddleFormatError, match="at most 3 bytes long, got 15; pass limit="):
        parse(block(), limit=3)


def test_names_in_blocks_are_found_from_inside():
    x = VarDesc("x", dtype=np.dtype("float32"), shape=(1,))
    program = ProgramDesc([BlockDesc(0, -1, {"x": x}), BlockDesc(1, 0), BlockDesc(2, 1)])
    verify(program)
    assert program.find_var(program.block(2), "x") is x
    assert program.find_var(program.block(2), "y") is None


# Streams ---------------------------------------------------------------------------------------


def stream(code, dims, raw, levels=(), versions=(0, 0), packed=False):
    if packed:
        descriptor = field(1, code) + field(2, b"".join(map(varint, dims)))
    else:
        descriptor = tensor(code, *dims)
    lod = b"".join(
        struct.pack("<Q", len(one) * 8) + np.array(one, "<u8").tobytes() for one in levels
    )
    head = struct.pack("<IQ", versions[0], len(levels)) + lod
    return head + struct.pack("<Ii", versions[1], len(descriptor)) + descriptor + raw


def test_the_example_of_the_format():
    data = bytes.fromhex("00000000 0000000000000000 00000000 04000000 08051001 6666663f")
    found = read_tensor(Reader(data, "w"))
    assert found.tolist() == [np.float32(0.9)]
    assert b"".join(write_stream("w", found)) == data


@pytest.mark.parametrize("code", DTYPES)
def test_tensors_of_every_dtype(code):
    dtype = DTYPES[code]
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    data = stream(code, (2, 3), array.tobytes())
    for one in (data, stream(code, (2, 3), array.tobytes(), packed=True)):
        found = read_tensor(Reader(one, "w"))
        assert found.dtype == dtype
        assert found.tobytes() == array.tobytes()
    assert b"".join(write_stream("w", array)) == data


def test_a_tensor_with_levels():
    lod, array = [[0, 2, 3], [0, 1, 4, 6]], np.arange(12, dtype=np.float32).reshape(6, 2)
    data = stream(5, (6, 2), array.tobytes(), lod)
    found = read_tensor(Reader(data, "w"))
    assert isinstance(found, LoDTensor)
    assert [one.tolist() for one in found.lod] == lod
    np.testing.assert_array_equal(found.data, array)
    assert b"".join(write_stream("w", found)) == data


def test_selected_rows():
    rows, values = np.array([3, 1, 3]), np.arange(6, dtype=np.float32).reshape(3, 2)
    data = struct.pack("<IQ3qq", 0, 3, 3, 1, 3, 5) + stream(5, (3, 2), values.tobytes())[12:]
    found = read_rows(Reader(data, "w"))
    assert found.height == 5
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.values, values)
    assert b"".join(write_stream("w", SelectedRows(jnp.asarray(rows), values, 5))) == data


FLOATS = np.zeros(6, np.float32).tobytes()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the version of a LoD tensor must be 4 bytes at byte 0, got 0 until the end"),
        (stream(5, (6,), FLOATS, versions=(1, 0)), "the version of a LoD tensor must be one of 0"),
        (stream(5, (6,), FLOATS, versions=(0, 7)), "the version of a tensor must be one of 0"),
        (stream(5, (7,), FLOATS), "the entries must be 28 bytes at byte 24, got 24 until"),
        (stream(5, (2**62, 2**62), FLOATS), "fewer than 2"),
        (stream(5, (-1,), FLOATS), "none negative"),
        (stream(5, (1,) * 33, FLOATS), "the shape must be at most 32 lengths"),
        (stream(7, (6,), FLOATS), "the dtype must be one of Paddle's at byte 20, got 7"),
        (stream(0, (2,), b"\1\2"), "the entries must be 0 or 1 at byte 25, got 2"),
        (struct.pack("<IQ", 0, 2**63), "the number of levels must be at most 64"),
        (struct.pack("<IQQ", 0, 1, 2**62), "the offsets of level 0 must be"),
        (struct.pack("<IQQ", 0, 1, 7), "must be a positive multiple of 8 bytes at byte 12, got 7"),
        (struct.pack("<IQIi", 0, 0, 0, -1), "the size of the descriptor must be from 0 to 4096"),
        (struct.pack("<IQIi", 0, 0, 0, 2**31 - 1), "the size of the descriptor must be from"),
        (struct.pack("<IQIi", 0, 0, 0, 0), "the Tensor must have the field data_type at byte 20"),
        (stream(5, (6,), FLOATS, [[1, 6]]), "offsets must start with 0 at byte 20, got 1"),
        (stream(5, (6,), FLOATS, [[0, 4, 2, 6]]), "offsets must not decrease at byte 36, got 2"),
        (stream(5, (6,), FLOATS, [[0, 4]]), "the last offset must be 6"),
        (stream(5, (6,), FLOATS, [[0, 4], [0, 6]]), "the last offset must be 1"),
    ],
)
def test_a_damaged_stream_is_told_with_file_variable_and_offset(data, words):
    for read in (
        lambda: files.read_combined(data, {"w": VarDesc("w")}, "all"),
        lambda: read_tensor(with_part(Reader(data, "all"), "w: ")),
    ):
        with pytest.raises(FormatError, match=words) as caught:
            read()
        assert str(caught.value).startswith("all: w: ")
        assert "at byte" in str(caught.value)


def with_part(reader, part):
    reader.part = part
    return reader


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack("<IQ", 0, 2**60), "the number of rows must be at most 0"),
        (struct.pack("<IQqq", 0, 1, 0, -1), "the height must not be negative"),
        (struct.pack("<IQqq", 0, 1, 5, 5), "rows must be below 5 at byte 12, got 5"),
        (
            struct.pack("<IQqq", 0, 1, 0, 5) + stream(5, (6,), FLOATS)[12:],
            "the values must be of 1 rows",
        ),
    ],
)
def test_damaged_rows(data, words):
    with pytest.raises(PaddleFormatError, match=words):
        read_rows(Reader(data, "all"))


@pytest.mark.parametrize("value", ["text", np.array(["a"]), np.zeros(2, np.uint16), object()])
def test_what_is_no_tensor_is_not_written(value):
    with pytest.raises(PaddleError, match="w: "):
        b"".join(write_stream("w", value))


# Files of variables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "params"),
    [("mobile_infer", "mobile.pdiparams"), ("textcnn_infer", "textcnn.params")],
)
def test_a_combined_file_of_paddle_is_written_byte_for_byte(tmp_path, program, params):
    desc = parse(zlib.decompress((DATA / f"{program}.pb").read_bytes()))
    found = files.load_vars(DATA, desc, filename=params)
    assert list(found) == files.in_order(files.persistables(desc))
    files.save_vars(tmp_path, found, filename="again")
    assert (tmp_path / "again").read_bytes() == (DATA / params).read_bytes()
    files.save_vars(tmp_path / "each", found)
    again = files.load_vars(tmp_path / "each", desc)
    assert {name: one.tobytes() for name, one in again.items()} == {
        name: one.tobytes() for name, one in found.items()
    }


def test_a_combined_file_is_sorted_by_bytes_and_ends(tmp_path):
    values = {name: np.full(2, i, np.int64) for i, name in enumerate(["b", "fc_2", "fc_10", "A"])}
    files.save_vars(tmp_path, values, filename="all")
    data = (tmp_path / "all").read_bytes()
    parts = [b"".join(write_stream(name, values[name])) for name in ["A", "b", "fc_10", "fc_2"]]
    assert data == b"".join(parts)
    wanted = {name: VarDesc(name) for name in values}
    with pytest.raises(PaddleFormatError, match=rf"^all: the file must end at byte {len(data)}"):
        files.read_combined(data + b"x", wanted, "all")
    with pytest.raises(PaddleFormatError, match="all: fc_2: "):
        files.read_combined(data[:-1], wanted, "all")


def test_shapes_must_be_those_of_the_program(tmp_path):
    files.save_vars(tmp_path, {"w": np.zeros((2, 3)), "s": np.zeros(1)})
    float64 = np.dtype("float64")
    fits = [VarDesc("w", dtype=float64, shape=(-1, 3)), VarDesc("s", dtype=float64, shape=())]
    assert set(files.load_vars(tmp_path, fits)) == {"w", "s"}
    with pytest.raises(PaddleFormatError, match=r"w: the shape must be \(3, 2\) at byte 0, got"):
        files.load_vars(tmp_path, [VarDesc("w", dtype=float64, shape=(3, 2))])


@pytest.mark.parametrize("name", ["../w", "/w", "a/../../w", ".."])
def test_a_name_that_leads_out_of_the_folder(tmp_path, name):
    with pytest.raises(PaddleError, match="must be that of a file in its folder"):
        files.load_vars(tmp_path, [name])
    with pytest.raises(PaddleError, match="must be that of a file in its folder"):
        files.save_vars(tmp_path, {name: np.zeros(1)})


def test_a_name_may_contain_folders(tmp_path):
    files.save_vars(tmp_path, {"net/w": np.ones(2)})
    assert files.load_vars(tmp_path, ["net/w"])["net/w"].tolist() == [1, 1]


def test_nothing_is_saved_if_a_value_is_wrong(tmp_path):
    with pytest.raises(PaddleError, match="v: the dtype must be one of"):
        files.save_vars(tmp_path / "new", {"a": np.ones(2), "v": np.zeros(2, np.uint16)})
    assert not (tmp_path / "new").exists()


def test_selected_rows_in_a_file_of_a_program(tmp_path):
    table = VarDesc("t", VarKind.SELECTED_ROWS, np.dtype("float32"), (5, 2), persistable=True)
    program = ProgramDesc([BlockDesc(0, -1, {"t": table})])
    files.save_vars(tmp_path, {"t": SelectedRows(np.array([1]), np.ones((1, 2), np.float32), 5)})
    assert files.load_vars(tmp_path, program)["t"].height == 5
    array = VarDesc("a", VarKind.LOD_TENSOR_ARRAY)
    with pytest.raises(PaddleError, match="of kind LOD_TENSOR_ARRAY must not be in a file"):
        files.read_combined(b"", {"a": array})


def test_programs_are_files(tmp_path):
    data = zlib.decompress((DATA / "mobile_infer.pb").read_bytes())
    program = parse(data)
    files.write_program(tmp_path / "model.pdmodel", program)
    assert files.read_program(tmp_path / "model.pdmodel") == program
    with pytest.raises(PaddleFormatError, match="at most 10 bytes"):
        files.read_program(tmp_path / "model.pdmodel", limit=10)
    with pytest.raises(FileNotFoundError):
        files.read_program(tmp_path / "missing")


# Pickles ---------------------------------------------------------------------------------------


STATE = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "s": np.array(1.5),
    "e": np.zeros((0, 3), np.float16),
    "b": np.array([True, False]),
    "c": np.array([1 + 2j], np.complex64),
    "big": np.arange(3, dtype=">i4"),
}


def same(found, expected):
    assert set(found) == set(expected)
    for name, one in expected.items():
        assert found[name].dtype == one.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], one)


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_pickles_of_every_protocol_and_numpy(protocol, module):
    data = pickle.dumps(STATE, protocol)
    if protocol < 4:  # later ones write the length of the name, and that of the frame
        data = data.replace(b"numpy._core.multiarray", module)
    same(pickles.loads(data), STATE)


def test_pickles_of_paddle():
    found = files.load_pickled(DATA / "mobile.pdparams")
    expected = pickle.loads((DATA / "mobile.pdparams").read_bytes())
    same(found, expected)
    assert files.load_pickled(DATA / "digits.pdopt")["learning_rate_0"].shape == (1,)


def test_what_is_written_is_read_by_any_numpy(tmp_path):
    files.save_pickled(tmp_path / "m.pdparams", STATE)
    data = (tmp_path / "m.pdparams").read_bytes()
    same(pickle.loads(data), STATE)
    same(files.load_state(tmp_path / "m"), STATE)
    names = {one for code, one, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    assert names == {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"}


def test_a_state_dict_with_structured_names(tmp_path):
    state = {"body.w": np.ones(2), "StructuredToParameterName@@": {"body.w": "w_0"}, "lr": 0.5}
    (tmp_path / "m.pdparams").write_bytes(pickle.dumps(state, 4))
    (tmp_path / "m.pdopt").write_bytes(pickle.dumps({"w_0_moment": np.zeros(2)}, 2))
    assert set(files.load_state(tmp_path / "m")) == {"w_0", "w_0_moment"}
    assert set(files.load_state(tmp_path / "m.pdparams")) == {"w_0"}


def test_arrays_that_were_saved_in_parts_are_whole(tmp_path):
    whole = np.arange(6.0).reshape(2, 3)
    told = {"OriginShape": (2, 3), "slices": ["w@@.0", "w@@.1"]}
    parts = {"w@@.0": whole.ravel()[:4], "w@@.1": whole.ravel()[4:]}
    state = {"b": np.ones(1), **parts, "UnpackBigParamInfor@@": {"w": told}}
    (tmp_path / "m.pdparams").write_bytes(pickle.dumps(state, 2))
    found = files.load_state(tmp_path / "m")
    assert set(found) == {"b", "w"}
    np.testing.assert_array_equal(found["w"], whole)
    for wrong in ({**told, "OriginShape": (2, 2)}, {**told, "slices": ["w@@.2"]}, {}, "w"):
        damaged = {**state, "UnpackBigParamInfor@@": {"w": wrong}}
        (tmp_path / "m.pdparams").write_bytes(pickle.dumps(damaged, 2))
        with pytest.raises(PaddleFormatError, match="the parts of 'w' must make up an array"):
            files.load_state(tmp_path / "m")


def test_bfloat16_is_uint16_in_pickles(tmp_path):
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    files.save_pickled(tmp_path / "m.pdparams", {"w": array})
    assert files.load_state(tmp_path / "m")["w"].dtype == np.uint16
    var = VarDesc("w", dtype=array.dtype, shape=(2,), persistable=True)
    program = ProgramDesc([BlockDesc(0, -1, {"w": var})])
    np.testing.assert_array_equal(files.load_state(tmp_path / "m", program)["w"], array)
    var.shape = (3,)
    with pytest.raises(PaddleFormatError, match=r"w: the shape must be \(3,\)"):
        files.load_state(tmp_path / "m", program)


@pytest.mark.parametrize(
    "value", [SelectedRows(np.zeros(1, int), np.ones((1, 2)), 3), "x", np.zeros(2, "f8,f8")]
)
def test_what_is_no_array_is_not_pickled(tmp_path, value):
    with pytest.raises(PaddleError, match="w: "):
        files.save_pickled(tmp_path / "m.pdparams", {"w": value})


class Evil:
    def __reduce__(self):
        return print, ("run",)


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def array_pickle(shape=b"K\x02\x85", dtype=b"X\x02\0\0\0f4", raw=b"\0" * 8):
    """A dict with one array, instruction by instruction."""
    order = b"K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0"
    return b"".join(
        [
            b"\x80\x02}X\x01\0\0\0w",
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R",
            b"(K\x01" + shape + b"cnumpy\ndtype\n" + dtype + b"K\0K\x01\x87R(" + order + b"tb",
            b"\x89C" + bytes([len(raw)]) + raw + b"tbs.",
        ]
    )


def test_an_array_instruction_by_instruction():
    same(pickles.loads(array_pickle()), {"w": np.zeros(2, np.float32)})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there must be a pickle's instruction"),
        (pickle.dumps({"a": Evil()}, 2), "a name must be one of NumPy's arrays"),
        (pickle.dumps({"a": Evil()}, 4), "a name must be one of NumPy's arrays"),
        (pickle.dumps({"a": np.array([None])}, 2), "a dtype must be one of numbers"),
        (pickle.dumps({"a": np.zeros(1, "f4,f4")}, 2), "a dtype must be one of numbers"),
        (pickle.dumps({"a": {1, 2}}, 4), "an instruction must be one of arrays and dicts"),
        (pickle.dumps([1], 2), "the value must be a dict, got list|the value must be a dict"),
        (pickle.dumps({1: 2}, 2), "a name must be a text"),
        (pickle.dumps({"a": 1}, 0), "an instruction must be one of"),
        (pickle.dumps({"a": 1}, 2) + b"x", "the file must end"),
        (pickle.dumps({"a": 1}, 2)[:-1], "there must be a pickle's instruction"),
        (pickle.dumps(nested(40), 2), "nested at most 16 deep"),
        (array_pickle(raw=b"\0" * 7), "the entries must be 8 bytes at byte"),
        (array_pickle(shape=b"\x8a\x08" + b"\xff" * 7 + b"\x3f\x85"), "the entries must be"),
        (array_pickle(shape=b"J\xff\xff\xff\xff\x85"), "a shape must be lengths"),
        (array_pickle(dtype=b"X\x02\0\0\0b1", raw=b"\1\2"), "entries must be 0 or 1"),
        (array_pickle(dtype=b"X\x04\0\0\0S999"), "a dtype must be one of numbers"),
        (b"\x80\x02}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u.", "a key must be new"),
        (b"\x80\x02}X\x01\0\0\0acnumpy\nndarray\ns.", "a value must be an array"),
        (b"\x80\x02}X\x01\0\0\0a}q\0h\0\x86s.", "a value used twice must be a leaf"),
        (b"\x80\x02}q\0X\x01\0\0\0ah\0s.", "a value used twice must be a leaf"),
        (b"\x80\x02h\x05.", "an earlier value must be there"),
        (b"\x80\x02q\0.", "there must be a value"),
        (b"\x80\x02R.", "there must be 2 values"),
        (b"\x80\x02(R.", "there must be 2 values"),
        (b"\x80\x02t.", "there must be a mark"),
        (b"\x80\x02cnumpy\nndarray\nK\x01\x85R.", "a call must be that of an array"),
        (b"\x80\x04B\xff\xff\xff\xff.", "there must be a pickle's instruction"),
        (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.", "there must be a pickle's instruction"),
        (b"\x80\x02}X\x01\0\0\0a" + b"K\x01" + b"\x85" * 50_000 + b"s.", "nested at most"),
        (b"\x80\x02c_codecs\nencode\n" + b"K\x01" + b"\x85" * 50_000 + b"R.", "latin1"),
    ],
)
def test_other_pickles_are_refused_and_not_run(data, words, capsys):
    with pytest.raises(PaddleFormatError, match=words) as caught:
        pickles.loads(data, "m.pdparams")
    assert str(caught.value).startswith("m.pdparams: ")
    assert "at byte" in str(caught.value)
    assert len(str(caught.value)) < 600
    assert capsys.readouterr().out == ""
