"""Graphs as text: what a reader sees, and that the text is the graph."""

import contextlib
import gc
import os

import numpy as np
import pytest
from saved_graphs import (
    ATTRIBUTES,
    ATTRS,
    CONSTANTS,
    JOIN,
    NAMES,
    NOISE,
    ODD,
    array_nodes,
    constant_nodes,
    network,
    nodes_of,
    noisy,
    normed,
    probes,  # noqa: F401  # registers the operators of this module's graphs
    random_graph,
    registered,
)

import symop as so
from registry.errors import FormatError
from registry.types import VarKind, VarType
from symop.graph.emission import alike, apply
from symop.graph.nodes import array, constant, topological, variable
from symop.io.parsing import parse
from symop.io.serialize import decode, dumps, to_desc
from symop.io.text import text

DEPTH = 20_000
SEEDS = range(40)


def without_sites(nodes):
    desc = to_desc(nodes)
    for op in desc.blocks[0].ops:
        op.site = None
    return desc


def assert_reads_back(nodes, *, same=True):
    """The text is the graph: equal records, the same text and, with ``same``, equal calls.

    User calls are the same nodes. Calls of a gradient belong to a line, which the text does not
    hold, so they are equal calls and not the same nodes.
    """
    shown = text(nodes)
    back = parse(shown)
    assert text(back) == shown
    assert without_sites(back) == without_sites(nodes)
    derived = any(node.derived for node in topological(nodes))
    for read in [back, parse(text(nodes, types=False))] if same else []:
        assert alike(read, nodes) if derived else read == nodes


class TestPrinting:
    def test_program(self):
        x = so.var("x", shape=(32, 64), dtype="float32")
        w = so.var("w", shape=(64,), dtype="float32")
        scaled = so.multiply(x, w, name="scaled")
        loss = so.sum(so.tanh(scaled) - 1.0, axis=-1)
        assert text(nodes_of(loss)) == (
            "(x: float32[32,64], w: float32[64]) {\n"
            "  scaled: float32[32,64] = multiply(x, w)\n"
            "  tanh0: float32[32,64] = tanh(scaled)\n"
            "  subtract0: float32[32,64] = subtract(tanh0, 1.0)\n"
            "  sum0: float32[32] = sum(subtract0, axis=-1)\n"
            "} -> sum0\n"
        )

    def test_gradient_stands_under_its_forward_operator(self):
        x = so.var("x", shape=(3,), dtype="float32")
        y = so.sin(so.exp(x))
        shown = text(nodes_of(y, so.grad(y, x, so.var("head", shape=(3,), dtype="float32"))))
        assert shown == (
            "(x: float32[3], head: float32[3]) {\n"
            "  exp0: float32[3] = exp(x)\n"
            "  sin0: float32[3] = sin(exp0)\n"
            "\n"
            "  # gradient of sin\n"
            "  cos0: float32[3] = cos(exp0)\n"
            "  multiply0: float32[3] = multiply(head, cos0)\n"
            "\n"
            "  # gradient of exp\n"
            "  multiply1: float32[3] = multiply(multiply0, exp0)\n"
            "} -> sin0, multiply1\n"
        )

    def test_without_types(self):
        x = so.var("x", shape=(2,))
        assert text(nodes_of(so.sin(x)), types=False) == (
            "(x: float[2]) {\n  sin0 = sin(x)\n} -> sin0\n"
        )

    def test_what_is_unknown_is_left_out(self):
        nodes = nodes_of(so.sin(so.var("a")) + so.var("b", dtype="float32"))
        assert text(nodes) == (
            "(a, b: float32[?]) {\n  sin0 = sin(a)\n  add0 = add(sin0, b)\n} -> add0\n"
        )

    def test_states_attributes_and_all_outputs(self):
        out, _ = normed()
        assert text([out], types=False) == (
            "(x: float[2,3], gamma: float[3], state mean: float[3]) {\n"
            "  bn.out, bn.shifted, bn.new_mean = saved_norm(x, gamma, None, mean, training,"
            " use_beta=False)\n"
            "} -> bn.out\n"
        )

    def test_keys_constants_and_arrays(self):
        x = variable("x", (2,), np.dtype("float32"), extra=(("lr_mult", "2"),))
        typed = constant(0.0, x.type)
        nodes = [NOISE(JOIN(x, typed, 2, np.asarray([0.1, 2.0], np.float32)))]
        assert text(nodes) == (
            '(x: float32[2] {lr_mult="2"}) {\n'
            "  array0: float32[2] = array(float32[2], 0.1, 2.0)\n"
            "  saved_join0: float32[2] = saved_join(x, float32[2](0.0), 2, array0)\n"
            "  random_key0 = random_key(rank=0)\n"
            "  saved_noise0: float32[2] = saved_noise(saved_join0, random_key0, training)\n"
            "} -> saved_noise0\n"
        )

    def test_a_users_name_that_looks_automatic_is_quoted(self):
        x = so.var("x", shape=(2,))
        nodes = nodes_of(so.sin(so.sin(x, name="sin0"), name="other") + so.sin(so.cos(x)))
        assert text(nodes, types=False) == (
            "(x: float[2]) {\n"
            '  "sin0" = sin(x)\n'
            "  other = sin(sin0)\n"
            "  cos0 = cos(x)\n"
            "  sin1 = sin(cos0)\n"
            "  add0 = add(other, sin1)\n"
            "} -> add0\n"
        )

    def test_large_arrays_are_left_out(self):
        node = array(np.zeros((10, 10), np.float32))
        assert text([node]) == (
            "() {\n  array0: float32[10,10] = array(float32[10,10], ...)\n} -> array0\n"
        )
        with pytest.raises(FormatError, match="line 2, column 3: the array's entries were left"):
            parse(text([node]))

    def test_many_variables_stand_on_their_own_lines(self):
        total = so.add_n(*[so.var(f"variable_number_{i}", shape=(3,)) for i in range(9)])
        lines = text(nodes_of(total)).splitlines()
        assert lines[:2] == ["(", "  variable_number_0: float[3],"]
        assert lines[10] == ") {"
        assert_reads_back(nodes_of(total))

    def test_nothing(self):
        assert text([]) == "() {\n} ->\n"
        assert parse(text([])) == []
        assert text([variable("x"), constant(2.0)]) == "(x) {\n} -> x, 2.0\n"

    def test_holds_no_path(self):
        assert os.sep not in text(nodes_of(so.sin(so.var("path_x"))))

    def test_follows_from_the_graph_alone(self):
        first = text(nodes_of(*network()))
        gc.collect()
        assert text(nodes_of(*network())) == first


class TestRoundTrip:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_random_graphs(self, seed):
        nodes = random_graph(seed)
        deferred = any(op.type == "deferred" for op in to_desc(nodes).blocks[0].ops)
        assert_reads_back(nodes, same=not deferred)

    def test_network(self):
        assert_reads_back(nodes_of(*network()))

    def test_text_made_anew(self):
        shown = text(nodes_of(*network()))
        gc.collect()
        assert text(parse(shown)) == shown

    @pytest.mark.parametrize("given", ATTRIBUTES, ids=repr)
    def test_attributes(self, given):
        assert_reads_back([ATTRS(variable("x", (2,)), **given)])

    def test_empty_slots(self):
        x = variable("x", (2,))
        assert_reads_back([ATTRS(x, None, x), ATTRS(x, x), ATTRS(x, x, None, count=3)])

    @pytest.mark.parametrize("value", CONSTANTS, ids=repr)
    def test_constants(self, value):
        dtype = np.dtype("complex64" if isinstance(value, complex) else "float32")
        small = np.dtype("int8") if value in (0, 1, -7) else dtype
        kind = VarType((2,), dtype, VarKind.SELECTED_ROWS)
        types = [None, VarType((), dtype), VarType((2, 0), small), kind]
        assert_reads_back([constant(value, of) for of in types])

    def test_constants_in_calls(self):
        assert_reads_back(constant_nodes())

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_names(self, name):
        x, role = variable(name, (2,)), variable(f"{name}2", (2,), None, "state", ((name, name),))
        first = JOIN(x, role, 2.0, name=f"{name} too")
        assert_reads_back([JOIN(first, x, name=f"{name}3"), x])

    @pytest.mark.parametrize("name", [n for n in NAMES if n != "saved_norm0.out"], ids=ascii)
    def test_names_of_calls_with_several_outputs(self, name):
        assert_reads_back(normed(name), same=False)
        assert_reads_back(normed("saved_norm0"), same=False)

    def test_an_output_beside_a_users_name(self):
        out, _ = normed(name=None)
        assert_reads_back([JOIN(out, variable("saved_norm0.out", (2, 3)))], same=False)

    def test_arrays(self):
        nodes = array_nodes()
        assert_reads_back(nodes, same=False)

    def test_float32_bit_for_bit(self):
        bits = np.random.default_rng(0).integers(0, 2**32, 3000, dtype=np.uint32)
        values = bits.view(np.float32)
        values = values[np.isfinite(values)]
        for i in range(0, len(values) - 30, 30):
            (back,) = parse(text([array(values[i : i + 30])]))
            held = back.attributes[0].value
            assert held.tobytes() == values[i : i + 30].tobytes()

    def test_keys_states_and_deferred(self):
        x = so.var("dx")
        grads = so.grad(so.sum(so.sin(x) * so.var("dy")), [x, so.var("dy")])
        assert_reads_back([*noisy()], same=False)
        assert_reads_back(nodes_of(grads[1]), same=False)
        assert "deferred0.1 = deferred[1](" in text(nodes_of(grads[1]))

    def test_operators_of_odd_names(self):
        with registered(ODD):
            assert_reads_back([ODD(variable("x", (2,)))])

    def test_through_the_saved_form(self):
        nodes = nodes_of(*network())
        desc = decode(dumps(parse(text(nodes))))
        assert {op.site for op in desc.blocks[0].ops} >= {None}

    @pytest.mark.thorough
    def test_chain(self):
        sin = so.sin(so.var("x")).node.op
        node = variable("x", (3,))
        for _ in range(DEPTH):
            node = apply(sin, (node,), ())
        shown = text([node])
        assert parse(shown) == [node]


class TestLenience:
    """What a person may write otherwise."""

    def test_layout_and_comments(self):
        x = so.var("x", shape=(2,), dtype="float32")
        expected = nodes_of(so.sum(so.sin(x), axis=(0,)))
        written = """
        # A program.
        (x  # The input.
         : float32[2,],
        ) {

          # Nothing special.
          s=sin( x , )   # the sine
          "sin1" = sin(s)

          total: float32[] = sum(
            s,  # of this
            axis =(0,),
          )
        } -> s
        """
        (sine,) = parse(written)
        assert sine.name == "s"
        unnamed = parse(
            written.replace("s=sin", "sin9=sin")
            .replace("s,", "sin9,")
            .replace("sin(s)", "sin(sin9)")
            .replace("total", "sum0")
            .replace("-> s", "-> sum0")
        )
        assert unnamed == expected

    def test_outputs_that_nothing_uses(self):
        shown = text(normed()[:1], types=False).replace("bn.shifted", "_")
        assert "_, bn.new_mean" in shown
        assert text(parse(shown)) == text(normed()[:1])

    def test_origin_is_the_line_of_the_text(self):
        (node,) = parse("(origin_z) {\n  y = sin(origin_z)\n} -> y")
        assert (node.origin.file, node.origin.line) == ("<text>", 2)


WRONG = [
    ("", "line 1, column 1: '(' must stand here, got the end of the text"),
    ("(x {\n} -> x", "line 2, column 3: ')' must stand here, got '->'"),
    ("(x) {\n} -> y", "line 2, column 6: 'y' is not defined"),
    ("(x) {\n} -> x 1", "line 2, column 8: the end of the text must stand here, got '1'"),
    ("(x, x) {\n} -> x", "line 1, column 5: the name 'x' must be given once"),
    ("(x: float33[2]) {\n} -> x", "line 1, column 2: no dtype is called 'float33'; did you"),
    ("(x: [2]) {\n} -> x", "line 1, column 5: a dtype must stand here, got '['"),
    ("(x: float[-2]) {\n} -> x", "line 1, column 11: a whole number must stand here, got '-2'"),
    ("(x: float[2.5]) {\n} -> x", "a whole number must stand here, got '2.5'"),
    ("(x) {\n  y = sinn(x)\n} -> y", "line 2, column 7: sinn: no operator has this name; did"),
    ("(x) {\n  y = sin(z)\n} -> y", "line 2, column 3: 'z' is not defined"),
    (
        "(x) {\n  y = sin(z)\n  z = sin(x)\n} -> y",
        "'z' must be defined before it is used, but line 3",
    ),
    ("(x) {\n  x = sin(x)\n} -> x", "line 2, column 3: "),
    ("(x) {\n  y = sin(x, x)\n} -> y", "line 2, column 7: sin must have at most 1 inputs, got 2"),
    ("(x) {\n  y = sin()\n} -> y", "line 2, column 3: sin: the inputs must be (x), got 0"),
    ("(x) {\n  y = sin(x, axs=1)\n} -> y", "line 2, column 3: the attributes are none, got 'axs'"),
    ("(x) {\n  y = sum(x, axs=1)\n} -> y", "got 'axs'; did you mean 'axis'"),
    ("(x) {\n  y = sum(x, axis=1, axis=2)\n} -> y", "line 2, column 22: the attribute 'axis'"),
    ("(x) {\n  y = sum(axis=1, x)\n} -> y", "line 2, column 19: an input must stand before"),
    ("(x) {\n  y = sum(x, axis=)\n} -> y", "'complex' must stand here, got ')'"),
    ("(x) {\n  y, z = sin(x)\n} -> y", "line 2, column 3: sin must have 1 outputs, got 2 names"),
    ("(x) {\n  y = sin(x) z\n} -> y", "line 2, column 14: the end of the line must stand here"),
    ("(x) {\n  y = sin(x\n} -> y", "line 3, column 1: ')' must stand here, got '}'"),
    ("(x) {\n  y sin(x)\n} -> y", "line 2, column 5: '=' must stand here, got 'sin'"),
    ("(x) {\n  1 = sin(x)\n} -> y", "line 2, column 3: a name must stand here, got '1'"),
    ("(x) {\n  nan = sin(x)\n} -> y", "a name must stand here, got 'nan'"),
    ("(x) {\n  y = sin(x) ;\n} -> y", "line 2, column 14: ';' has no meaning here"),
    ('(x) {\n  y = sin("x)\n} -> y', "line 2, column 11: '\"' has no meaning here"),
    ('("\\q") {\n} -> x', "line 1, column 2: the string has an escape"),
    (
        "(x: float32[2]) {\n  y: float32[3] = sin(x)\n} -> y",
        "line 2, column 6: 'y' must be of the type that is written, float32[3], got float32[2]",
    ),
    (
        "(x) {\n  y: float32[3] = sin(x)\n} -> y",
        "float32[3], got a type that is not known yet",
    ),
    (
        "(x: float[2], y: float[3]) {\n\n  z = add(x, y)\n} -> z",
        "line 3, column 3: add: ",
    ),
    ("() {\n  a = array(float32[2], 1.0)\n} -> a", "must be 8 bytes long, got 4"),
    (
        "() {\n  a = array(float33[2], 1.0)\n} -> a",
        "line 2, column 13: no dtype is called 'float33'",
    ),
    ("() {\n  a = array(int8[1], 1000)\n} -> a", "the entries must be of dtype int8"),
    ("() {\n  a = array(int8[1], x)\n} -> a", "'complex' must stand here, got 'x'"),
    ("() {\n} -> complex(1.0)", "a complex number must have two parts"),
    ("() {\n} -> " + "complex(" * 3000, "a real number must stand here, got 'complex'"),
    ("() {\n} -> complex(1" + "0" * 400 + ", 0.0)", "the number is too large"),
    ("() {\n} -> float32[2](x)", "'complex' must stand here, got 'x'"),
    ("() {\n} -> 1" + "0" * 5000, "line 2, column 6: the number is too long"),
    ("(x) {\n  y = sum(x, axis=" + "(" * 1000 + ")" * 1000 + ")\n} -> y", "nests too deeply"),
    ('(x) {\n  y = deferred[0](x, name="no")\n} -> y', "no deferred value is called 'no'"),
    ("(x) {\n  y = deferred(x)\n} -> y", "no deferred value is called None"),
]


class TestErrors:
    @pytest.mark.parametrize(("written", "message"), WRONG)
    def test_says_what_and_where(self, written, message):
        with pytest.raises(FormatError) as caught:
            parse(written)
        assert message in str(caught.value)

    def test_every_prefix_is_refused(self):
        shown = text([*nodes_of(*network()[1:]), *nodes_of(so.sin(so.var("é z", shape=(1,))))])
        end = shown.rindex("->")
        for length in range(end + 2):
            with pytest.raises(FormatError):
                parse(shown[:length])

    def test_every_changed_character_is_refused_or_read(self):
        shown = text([*nodes_of(*network()), array([0.5, True])])
        alphabet = '()[]{},:=->#"\\ \n.0123abcxyz_\0é'
        rng = np.random.default_rng(0)
        for _ in range(1500):
            letters = list(shown)
            for place in rng.integers(len(shown), size=2):
                letters[place] = alphabet[rng.integers(len(alphabet))]
            with contextlib.suppress(FormatError):
                parse("".join(letters))
