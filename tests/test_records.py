"""OpDescs of gradient makers, inserted into the records of a program."""

import jax
import numpy as np
import pytest

import registry
import symop as so
from registry import (
    BlockDesc,
    OpDesc,
    OperatorBase,
    OpProtoAndCheckerMaker,
    ProgramDesc,
    SelectedRows,
    VarDesc,
    VarKind,
    VarTypeInferer,
    create,
    get,
    register_op,
    register_operator,
)
from registry.errors import (
    ArgumentError,
    FeedError,
    FormatError,
    GradientError,
    KindError,
    UnknownTypeError,
)
from registry.operator.attributes import to_plain
from symop.testing.trial import trials

pytestmark = pytest.mark.usefixtures("temporary_operators")

DOORS = {"program": so.Program.from_desc, "symbol": so.from_desc}


class MinusOp(OperatorBase):
    def kernel(self, X, Y):
        return X - Y


class MinusProto(OpProtoAndCheckerMaker):
    def make(self):
        self.add_input("X")
        self.add_input("Y")
        self.add_output("Out")


class MinusGradOp(OperatorBase):
    def kernel(self, d_Out):
        return d_Out, -d_Out


class SquareOp(OperatorBase):
    def kernel(self, X):
        return X * X


def square_grad(op_desc):
    return [
        OpDesc("scale", {"x": op_desc.inputs["X"]}, {"out": ["doubled"]}, {"scale": 2.0}),
        OpDesc("multiply", {"x": ["doubled"], "y": ["Out@GRAD"]}, {"out": ["X@GRAD"]}),
    ]


def fed(name, shape=(2,)):
    return VarDesc(name, list(shape), "float32", role="argument")


def program(given, ops, fetch):
    return ProgramDesc(blocks=[BlockDesc([fed(name) for name in given], list(ops))], fetch=fetch)


FORWARD = OpDesc("m", {"X": ["a"], "Y": ["b"]}, {"Out": ["c"]})


class TestInsertion:
    """Slots of records are matched alike wherever they are read."""

    @pytest.mark.parametrize("door", DOORS)
    def test_a_pair_of_operators(self, door):
        register_op("m", MinusOp, MinusProto, "m_grad", MinusGradOp)
        ops = [FORWARD, *get("m").grad_op_maker(FORWARD)]
        made = DOORS[door](program(["a", "b", "c@GRAD"], ops, ["a@GRAD", "b@GRAD"]))
        feed = {"a": [1.0, 2.0], "b": [0.0, 1.0], "c@GRAD": [3.0, 4.0]}
        found = made.run(feed) if door == "program" else made.eval(**feed)
        assert np.asarray(found).tolist() == [[3.0, 4.0], [-3.0, -4.0]]

    @pytest.mark.parametrize("door", DOORS)
    def test_records_of_other_systems(self, door):
        ops = [
            OpDesc("sin", {"X": ["a"]}, {"Out": ["b"]}),
            OpDesc("add_n", {"Xs": ["a", "b"]}, {"OUT": ["c"]}),
        ]
        given = program(["a"], ops, ["c"])
        made = DOORS[door](given)
        assert given.blocks[0].ops == ops, "the records are the caller's own"
        again = DOORS[door](made.desc() if door == "program" else made.to_desc())
        assert str(again) == str(made)
        if door == "program":
            assert made.desc().blocks[0].ops[0].inputs == {"x": ["a"]}
            assert so.Program.parse(str(made)) == made

    def test_append_op(self):
        one = so.Program()
        w, x = one.parameter("w", (2,), initial="1"), one.data("x", (2,))
        one.append_op("subtract", {"X": w, "Y": x}, {"Out": w})
        one.run({"x": [1.0, 2.0]}, [])
        assert one.scope["w"].tolist() == [0.0, -1.0]

    def test_a_slot_twice(self):
        twice = OpDesc("sin", {"x": ["a"], "X": ["a"]}, {"out": ["b"]})
        with pytest.raises(FormatError, match="slot 'X' must be given once, got it twice"):
            so.from_desc(program(["a"], [twice], ["b"]))

    def test_an_unknown_slot(self):
        wrong = OpDesc("sin", {"y": ["a"]}, {"out": ["b"]})
        with pytest.raises(FormatError, match="the slots are x, got 'y'"):
            so.from_desc(program(["a"], [wrong], ["b"]))


class TestEmptyPlaces:
    def test_what_is_excluded_is_no_variable(self):
        register_op("m", MinusOp, MinusProto, "m_grad", MinusGradOp)
        other = OpDesc("m", {"X": ["c"], "Y": ["b"]}, {"Out": ["d"]})
        maker = get("m").grad_op_maker
        ops = [FORWARD, other, *maker(other, {"b"}), *maker(FORWARD, {"b"})]
        one = so.Program.from_desc(program(["a", "b", "d@GRAD"], ops, ["a@GRAD"]))
        feed = {"a": [0.0, 0.0], "b": [0.0, 0.0], "d@GRAD": [1.0, 2.0]}
        assert np.asarray(one.run(feed)).tolist() == [[1.0, 2.0]]
        assert so.Program.parse(str(one)) == one

    @pytest.mark.parametrize("outputs", [{"A": ["@EMPTY@"], "B": ["p"]}, {"B": ["p"]}])
    def test_a_gradient_that_an_operator_reads_must_be_named(self, outputs):
        class TwoOp(OperatorBase):
            def kernel(self, X):
                return 2 * X, 3 * X

        class TwoProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("A")
                self.add_output("B")

        class TwoGradOp(OperatorBase):
            outputs = ("X@GRAD",)

            def kernel(self, d_A, d_B):
                return 2 * d_A + 3 * d_B

        register_op("two", TwoOp, TwoProto, "two_grad", TwoGradOp)
        with pytest.raises(ArgumentError, match="two: output 'A' must be named"):
            get("two").grad_op_maker(OpDesc("two", {"X": ["a"]}, outputs))

    def test_no_variable_is_called_so(self):
        for declare in (so.var, so.Program().data, so.Program().parameter):
            with pytest.raises(ArgumentError, match="the name must not be '@EMPTY@'"):
                declare("@EMPTY@", (2,))

    def test_two_operators_that_write_the_empty_name(self):
        dropped = [OpDesc(one, {"x": ["a"]}, {"out": ["@EMPTY@"]}) for one in ("sin", "cos")]
        kept = OpDesc("exp", {"x": ["a"]}, {"out": ["b"]})
        one = so.Program.from_desc(program(["a"], [*dropped, kept], ["b"]))
        assert [op.type for op in one.ops] == ["exp"]
        assert "@EMPTY@" not in one

    @pytest.mark.parametrize("door", DOORS)
    def test_an_operator_without_a_wanted_output(self, door):
        ops = [
            OpDesc("sin", {"x": ["a"]}, {"out": []}),
            OpDesc("cos", {"x": ["a"]}, {"out": ["b"]}),
        ]
        made = DOORS[door](program(["a"], ops, ["b"]))
        assert "sin" not in str(made)

    def test_places_among_several_outputs(self):
        (stem,) = get("split").outputs
        pieces = OpDesc("split", {"x": ["a"]}, {stem: ["@EMPTY@", "b"]}, {"sections": 2})
        one = so.Program.from_desc(program(["a"], [pieces], ["b"]))
        assert np.asarray(one.run({"a": [1.0, 2.0]})).tolist() == [[2.0]]
        assert so.Program.parse(str(one)) == one

    def test_an_empty_place_of_an_input(self):
        total = OpDesc("add_n", {"xs": ["a", "@EMPTY@"]}, {"out": ["b"]})
        one = so.Program.from_desc(program(["a"], [total], ["b"]))
        assert one.desc().blocks[0].ops[0].inputs == {"xs": ["a"]}


class TestFunctionsOfAnOpDesc:
    """A function that names slots gives records of the call's own variables."""

    def test_they_name_variables(self):
        def grad(op_desc):
            del op_desc
            return [
                OpDesc("identity", {"x": ["Out@GRAD"]}, {"out": ["X@GRAD"]}),
                OpDesc("scale", {"x": ["Out@GRAD"]}, {"out": ["Y@GRAD"]}, {"scale": -1.0}),
            ]

        made = register_operator("m", MinusOp, MinusProto, grad).grad_op_maker(FORWARD)
        assert [one.inputs for one in made] == [{"x": ["c@GRAD"]}] * 2
        assert [one.outputs for one in made] == [{"out": ["a@GRAD"]}, {"out": ["b@GRAD"]}]

    def test_temporaries_of_two_calls_differ(self):
        maker = register_operator("sq", SquareOp, square_grad).grad_op_maker
        first = OpDesc("sq", {"X": ["a"]}, {"Out": ["b"]})
        second = OpDesc("sq", {"X": ["b"]}, {"Out": ["c"]})
        ops = [first, second, *maker(second), *maker(first)]
        one = so.Program.from_desc(program(["a", "c@GRAD"], ops, ["a@GRAD"]))
        found = one.run({"a": [2.0, 3.0], "c@GRAD": [1.0, 1.0]})
        assert np.asarray(found).tolist() == [[32.0, 108.0]]

    @pytest.mark.parametrize("names", [("Out", "X"), ("Y", "Out"), ("X", "Out"), ("Out@GRAD", "X")])
    def test_variables_that_are_called_like_slots(self, names):
        maker = register_operator("sq", SquareOp, square_grad).grad_op_maker
        x, y = names
        made = maker(OpDesc("sq", {"X": [x]}, {"Out": [y]}))
        values = {x: 3.0, y: 9.0, f"{y}@GRAD": 1.0}
        for one in made:
            values |= create(one).run(values)
        assert values[f"{x}@GRAD"] == 6.0

    @pytest.mark.parametrize("name", ["twice", "narrow"])
    def test_variables_that_are_called_like_temporaries(self, name):
        def grad(op_desc):
            del op_desc
            return [
                OpDesc("scale", {"x": ["X"]}, {"out": ["twice"]}, {"scale": 2.0}),
                OpDesc("multiply", {"x": ["twice"], "y": ["Out@GRAD"]}, {"out": ["X@GRAD"]}),
            ]

        made = register_operator("sq", SquareOp, grad).grad_op_maker(
            OpDesc("sq", {"X": [name]}, {"Out": ["b"]})
        )
        values = {name: 3.0, "b": 9.0, "b@GRAD": 1.0}
        for one in made:
            assert values.keys().isdisjoint(*one.outputs.values())
            values |= create(one).run(values)
        assert values[f"{name}@GRAD"] == 6.0

    @pytest.mark.parametrize(
        ("read", "written", "message"),
        [
            ("out@GRAD", "X@GRAD", "must use variables .* got 'out@GRAD'; did you mean 'Out@GRAD'"),
            ("Out@GRAD", "Y@GRAD", "must give gradients of inputs, got 'Y@GRAD'; did you mean 'a@"),
        ],
    )
    def test_names_that_nothing_defines(self, read, written, message):
        def grad(op_desc):
            del op_desc
            return OpDesc("scale", {"x": [read]}, {"out": [written]}, {"scale": 5.0})

        operator = register_operator("sq", SquareOp, grad)
        with pytest.raises(GradientError, match=message):
            operator.grad_op_maker(OpDesc("sq", {"X": ["a"]}, {"Out": ["b"]}))

    def test_a_variable_in_two_slots(self):
        def grad(op_desc):
            del op_desc
            return [
                OpDesc("identity", {"x": ["Out@GRAD"]}, {"out": ["X@GRAD"]}),
                OpDesc("scale", {"x": ["X@GRAD"]}, {"out": ["Y@GRAD"]}, {"scale": -3.0}),
            ]

        maker = register_operator("m", MinusOp, MinusProto, grad).grad_op_maker
        made = maker(OpDesc("m", {"X": ["a"], "Y": ["a"]}, {"Out": ["c"]}))
        values = {"a": 1.0, "c@GRAD": 1.0}
        for one in made:
            values |= create(one).run(values)
        assert values["a@GRAD"] == -2.0

    def test_the_no_grad_set(self):
        maker = register_operator("sq", SquareOp, square_grad).grad_op_maker
        made = maker(OpDesc("sq", {"X": ["a"]}, {"Out": ["b"]}), {"a"})
        assert made[-1].outputs == {"out": ["@EMPTY@"]}


class TestUnnamedOutputs:
    """An OpDesc names each output of which the gradient reads the value or the gradient."""

    @pytest.mark.parametrize("outputs", [{}, {"Out": []}, {"Out": ["@EMPTY@"]}], ids=str)
    def test_one_rule(self, outputs):
        register_op("m", MinusOp, MinusProto, "m_grad", MinusGradOp)
        with pytest.raises(ArgumentError, match="m: output 'Out' must be named, because"):
            get("m").grad_op_maker(OpDesc("m", {"X": ["a"], "Y": ["b"]}, outputs))
        with pytest.raises(ArgumentError, match="sin: output 'out' must be named, because"):
            get("sin").grad_op_maker(OpDesc("sin", {"x": ["a"]}, outputs))
        with pytest.raises(ArgumentError, match="sq: output 'Out' must be named, because"):
            register_operator("sq", SquareOp, square_grad).grad_op_maker(
                OpDesc("sq", {"X": ["a"]}, outputs)
            )

    def test_one_of_two(self):
        class Both(OperatorBase):
            outputs = ("A", "B")

            def kernel(self, X):
                return 2 * X, 3 * X

        class BothGrad(OperatorBase):
            outputs = ("X@GRAD",)

            def kernel(self, d_A, d_B):
                return 2 * d_A + 3 * d_B

        register_op("both", Both, None, "both_grad", BothGrad)
        with pytest.raises(ArgumentError, match="both: output 'B' must be named"):
            get("both").grad_op_maker(OpDesc("both", {"X": ["a"]}, {"A": ["b"]}))

    def test_what_the_gradient_reads(self):
        block = BlockDesc([fed("a", (3, 3))])
        values = OpDesc("topk", {"x": ["a"]}, {"values": ["b"]}, {"k": 2})
        with pytest.raises(ArgumentError, match="topk: output 'indices' must be named"):
            get("topk").grad_op_maker(values, (), block)
        values.outputs["indices"] = ["i"]
        assert get("topk").grad_op_maker(values, (), block)[-1].outputs == {"out": ["a@GRAD"]}

    def test_what_the_gradient_does_not_read_needs_no_name(self):
        @registry.op(outputs=("first", "second"))
        def both(x: registry.Array) -> tuple[registry.Array, registry.Array]:
            """``2 x`` and ``3 x``."""
            return 2 * x, 3 * x

        @both.gradient
        def both_gradient(
            d_first: registry.Var | None, d_second: registry.Var | None
        ) -> registry.Grads:
            found = [(d_first, 2.0), (d_second, 3.0)]
            (part, *others) = [so.scale(d, scale=by) for d, by in found if d is not None]
            return {"x": sum(others, part)}

        (made,) = both.grad_op_maker(OpDesc("both", {"x": ["a"]}, {"second": ["b"]}))
        assert made.inputs == {"x": ["b@GRAD"]}
        assert made.attrs == {"scale": 3.0}


def test_a_block_of_a_program_is_no_attribute_of_a_record():
    one = so.Program()
    xs = one.data("xs", (3, 2))
    _, ys = so.scan(lambda c, x: (c + x, c * x), one.data("c", (2,)), xs)
    del ys
    desc = one.desc()
    record = next(op for op in desc.blocks[0].ops if op.type == "scan")
    with pytest.raises(ArgumentError, match=r"scan: attribute 'body' must be known .* got block 1"):
        registry.get("scan").grad_op_maker(record, set(), desc.blocks[0])
    with pytest.raises(ArgumentError, match="scan: attribute 'body'"):
        create(record)


def composed():
    """Each operator whose gradient a maker composes, with the OpDesc of its first case."""
    with jax.enable_x64(True):
        for operator in registry.operators():
            found = [one for each in operator.cases for one in trials(operator, each)]
            trial = next((one for one in found if one.differentiable), None)
            bodies = any(isinstance(one, registry.Body) for one in trial.attributes) if trial else 1
            if operator.derivative is not registry.Derivative.MAKER or bodies:
                continue
            groups = operator.input_groups([f"v{i}" for i in range(len(trial.inputs))])
            present = {f"v{i}" for i, value in enumerate(trial.inputs) if value is not None}
            filled = {slot.name: [one for one in ns if one in present] for slot, ns in groups}
            plain = {k: to_plain(v) for k, v in operator.attribute_dict(trial.attributes).items()}
            outputs = {name: [name] for name in trial.operator.outputs}
            inputs = {key: names for key, names in filled.items() if names}
            yield operator, trial, OpDesc(operator.name, inputs, outputs, plain)


class TestTypes:
    """Types are asked for where a gradient cannot be told without them, and nowhere else."""

    def test_records_of_a_program_tell_the_types_of_numbers(self):
        one = so.Program()
        x, w = one.data("x", (3,)), one.parameter("w", (3,))
        y = (
            x * 2.0
            + 1 / x
            + x**3.0
            + so.maximum(x, 0.0)
            + so.where(x > 0, w, np.ones(3, "float32"))
        )
        so.sum(so.dropout(y, rate=0.5))
        block = one.desc().blocks[0]
        for op in block.ops:
            made = get(op.type).grad_op_maker(op, set(), block)
            targets = {n for each in made for ns in each.outputs.values() for n in ns}
            assert not any(n.startswith(("constant", "array")) for n in targets), op
        by_number = next(op for op in block.ops if op.type == "multiply")
        (only,) = get("multiply").grad_op_maker(by_number, set(), block)
        assert only.inputs == {"x": ["multiply0@GRAD"], "y": ["constant0"]}

    def test_leaves_are_operators_of_their_own(self):
        number = OpDesc("constant", {}, {"out": ["c"]}, {"value": 2.0})
        assert create(number).run({}) == {"c": 2.0}
        assert get("constant").grad_op_maker(number) == []
        assert "constant" not in registry.names()
        assert not hasattr(so, "constant")

    def test_what_an_incomplete_block_lacks(self):
        desc = OpDesc("softmax_output", {"data": ["a"], "label": ["b"]}, {"out": ["c"]})
        with pytest.raises(UnknownTypeError, match="pass block="):
            get("softmax_output").grad_op_maker(desc)
        with pytest.raises(UnknownTypeError, match="tell those of a, b, got none of b"):
            get("softmax_output").grad_op_maker(desc, (), BlockDesc([fed("a", (2, 3))]))

    @pytest.mark.thorough
    def test_makers_that_need_types(self):
        """Those of which JAX's derivative of the kernel is another one, or does not exist: few."""
        named, needing = set(), set()
        for operator, _, desc in composed():
            named.add(operator.name)
            try:
                operator.grad_op_maker(desc)
            except UnknownTypeError:
                assert not operator.derives_by_kernel
                needing.add(operator.name)
        assert 20 * len(needing) <= len(named), sorted(needing)

    NAMES = ("add", "sum", "reshape", "matmul", "take", "concat", "layer_norm", "where", "topk")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.sampled(8)
    def test_without_types_the_kernel_derives(self, name):
        with jax.enable_x64(True):
            _, trial, desc = next(one for one in composed_named(name))
            block = BlockDesc(
                [VarDesc(f"v{i}", list(v.shape), v.dtype.name) for i, v in enumerate(trial.inputs)]
            )
            results = trial.operator.run(trial.inputs, trial.attributes)
            results = results if isinstance(results, tuple) else (results,)
            values = {f"v{i}": value for i, value in enumerate(trial.inputs)}
            values |= dict(zip(trial.operator.outputs, results, strict=True))
            pairs = zip(trial.operator.outputs, results, strict=True)
            heads = {f"{n}@GRAD": np.cos(v) for n, v in pairs}
            found = []
            for made in (get(name).grad_op_maker(desc), get(name).grad_op_maker(desc, (), block)):
                known = values | heads
                for one in made:
                    known |= create(one).run(known)
                found.append({k: v for k, v in known.items() if k not in values | heads})
            derived, exact = found
            wanted = {f"v{i}@GRAD" for i in trial.active}
            assert wanted
            for key in wanted:
                np.testing.assert_allclose(derived[key], exact[key], rtol=1e-9, atol=1e-9)

    def test_it_is_a_record_as_others(self):
        desc = OpDesc("matmul", {"x": ["a"], "y": ["a"]}, {"out": ["c"]})
        (derived, total) = get("matmul").grad_op_maker(desc)
        given = [fed("a", (2, 2)), fed("c@GRAD", (2, 2))]
        block = BlockDesc(given, [desc, derived, total])
        one = so.Program.from_desc(ProgramDesc(blocks=[block], fetch=["a@GRAD"]))
        again = so.Program.parse(str(one))
        assert again == one
        a, head = np.array([[1.0, 2.0], [3.0, 4.0]], "float32"), np.ones((2, 2), "float32")
        (found,) = again.run({"a": a, "c@GRAD": head})
        assert found.tolist() == (head @ a.T + a.T @ head).tolist()
        ((_, slope),) = so.append_backward(so.sum(again["a@GRAD"]), ["a"])
        assert again.run({"a": a, "c@GRAD": head}, slope).tolist() == [[4.0, 4.0], [4.0, 4.0]]

    def test_rows_need_their_types(self):
        desc = OpDesc(
            "lookup_table", {"table": ["t"], "ids": ["i"]}, {"out": ["o"]}, {"sparse": True}
        )
        with pytest.raises(UnknownTypeError, match="lookup_table"):
            get("lookup_table").grad_op_maker(desc)


def composed_named(name):
    return [one for one in composed() if one[0].name == name]


class TestInferVarType:
    def test_every_operator_has_it(self):
        block = BlockDesc([fed("a"), fed("b")])
        get("add").infer_var_type(OpDesc("add", {"X": ["a"], "Y": ["b"]}, {"Out": ["c"]}), block)
        assert block.var("c").kind == "lod_tensor"

    def test_kinds_follow_from_those_of_the_block(self):
        block = BlockDesc([VarDesc("a", kind="selected_rows"), VarDesc("b", kind="selected_rows")])
        desc = OpDesc("add_n", {"xs": ["a", "b"]}, {"out": ["c"]})
        get("add_n").infer_var_type(desc, block)
        assert block.var("c").kind == "selected_rows"
        block.var("b").kind = "lod_tensor"
        get("add_n").infer_var_type(desc, block)
        assert block.var("c").kind == "lod_tensor"

    def test_an_inferer_sees_the_block_itself(self):
        seen = []

        class Inferer(VarTypeInferer):
            def __call__(self, op_desc, block):
                seen.append((op_desc, block))
                self.set_output_kind(op_desc, block, "Out", VarKind(block.var("other").kind))

        operator = register_operator("sq", SquareOp, square_grad)
        assert operator.infer_var_type is not None
        operator = register_operator("sq", SquareOp, Inferer, replace=True)
        block = BlockDesc([fed("a"), VarDesc("other", kind="selected_rows")])
        desc = OpDesc("sq", {"X": ["a"]}, {"Out": ["b"]})
        operator.infer_var_type(desc, block)
        assert (seen[-1][0], seen[-1][1]) == (desc, block)
        assert seen[-1][1] is block
        assert block.var("b").kind == "selected_rows"
        block.var("other").kind = "bogus"
        with pytest.raises(KindError, match="sq: Inferer must set a VarKind"):
            operator.infer_var_type(desc, block)

    def test_what_does_not_fit(self):
        desc = OpDesc("sin", {"x": ["a"]}, {"out": ["b"]})
        with pytest.raises(ArgumentError, match="sin: the block must declare the variable 'a'"):
            get("sin").infer_var_type(desc, BlockDesc())
        rows = BlockDesc([VarDesc("a", kind="selected_rows")])
        with pytest.raises(KindError, match="cos: slot 'x' must hold a dense array"):
            get("cos").infer_var_type(OpDesc("cos", {"x": ["a"]}, {"out": ["b"]}), rows)

    def test_the_records_of_a_program(self):
        one = so.Program()
        rows = one.data("r", (4, 2), kind="selected_rows")
        so.sum(so.split(so.get_tensor_from_selected_rows(rows * 2.0), sections=2)[0])
        block = one.desc().blocks[0]
        kinds = {var.name: var.kind for var in block.vars}
        for var in block.vars:
            var.kind = var.kind if var.role == "argument" else "lod_tensor"
        for op in block.ops:
            get(op.type).infer_var_type(op, block)
        assert {var.name: var.kind for var in block.vars if var.name in kinds} == kinds


class TestSymbolsOfRows:
    ROWS = SelectedRows(np.array([1, 1]), np.array([[1.0, 2.0], [3.0, 4.0]], "float32"), 4)

    def test_they_are_fed_rows(self):
        rows = so.var("r", shape=(4, 2), kind="selected_rows")
        total = so.sum(so.get_tensor_from_selected_rows(rows * 2.0))
        assert rows.kind is VarKind.SELECTED_ROWS
        for symbol in (total, so.load_json(total.tojson())):
            assert symbol.eval(r=self.ROWS) == 20.0
            assert jax.jit(symbol.to_jax())(self.ROWS) == 20.0
        with pytest.raises(FeedError, match="r: rows must be fed, got shape"):
            total.eval(r=np.ones((4, 2), "float32"))
        for bind in (lambda: total.bind({"r": self.ROWS}), total.simple_bind):
            with pytest.raises(FeedError, match="bind: 'r' must be dense, got selected_rows"):
                bind()
        with pytest.raises(FeedError, match="x: a dense array must be fed, got selected_rows"):
            so.sin(so.var("x", shape=(4, 2))).eval(x=self.ROWS)

    def test_programs_and_symbols(self):
        one = so.Program()
        rows = one.data("r", (4, 2), kind="selected_rows")
        total = so.sum(so.get_tensor_from_selected_rows(rows))
        symbol = one.to_symbol(total)
        assert symbol.eval(r=self.ROWS) == 10.0
        assert np.asarray(symbol.to_program().run({"r": self.ROWS})).tolist() == [10.0]

    def test_what_cannot_be_fed(self):
        array = VarDesc("a", [2], "float32", "lod_tensor_array", "argument")
        for door in DOORS.values():
            with pytest.raises(FormatError) as caught:
                door(ProgramDesc(blocks=[BlockDesc([array])], fetch=["a"]))
            assert "cannot be fed to a graph, lod_tensor and selected_rows can" in str(caught.value)
            assert "did you mean" not in str(caught.value)
        with pytest.raises(ArgumentError, match="the shape of selected_rows must be given"):
            so.var("r", kind="selected_rows")
        with pytest.raises(ArgumentError, match="kind must be lod_tensor or selected_rows, got"):
            so.var("r", shape=2, kind="selected_row")


def test_makers_see_what_append_backward_excludes():
    seen = []

    def grad(op_desc, no_grad_set):
        seen.append(set(no_grad_set))
        return [
            OpDesc("multiply", {"x": ["Out@GRAD"], "y": ["Y"]}, {"out": ["X@GRAD"]}),
            OpDesc("multiply", {"x": ["Out@GRAD"], "y": ["X"]}, {"out": ["Y@GRAD"]}),
        ]

    class Product(OperatorBase):
        def kernel(self, X, Y):
            return X * Y

    product = register_operator("product", Product, grad)
    one = so.Program()
    u, v = one.parameter("u", (2,), initial="2"), one.parameter("v", (2,), initial="3")
    ((_, slope),) = so.append_backward(so.sum(product(u, v)), no_grad_set=["v"])
    assert seen[-1] == {"Y"}
    assert one.run({}, slope).tolist() == [3.0, 3.0]
    so.append_backward(so.sum(product(u, v)))
    assert seen[-1] == set()
