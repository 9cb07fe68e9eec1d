"""Operators put together from components: protos, OpDesc gradient makers, kinds, hints."""

import functools
import re
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import (
    BlockDesc,
    DefaultGradOpDescMaker,
    EmptyGradOpDescMaker,
    GradOpDescMaker,
    InplaceHint,
    OpDesc,
    OperatorBase,
    OpProtoAndCheckerMaker,
    SelectedRows,
    ShapeInferer,
    SingleGradOpDescMaker,
    VarDesc,
    VarKind,
    VarTypeInferer,
    case,
    create,
    get,
    register_op,
    register_operator,
)
from registry.errors import (
    ArgumentError,
    AttributeTypeError,
    AttributeValueError,
    DeclarationError,
    DTypeError,
    FormatError,
    GradientError,
    KindError,
    NotDifferentiableError,
    RegistrationError,
    ShapeError,
    UnknownOperatorError,
    UnknownTypeError,
)
from registry.operator.operator import Derivative
from symop.lowering.guarding import on_arrays
from symop.testing import check_operator, check_reference
from symop.testing.trial import compiled, trials

pytestmark = pytest.mark.usefixtures("temporary_operators")


class MinusOp(OperatorBase):
    def infer_shape(self, X, Y): ...

    def kernel(self, X, Y):
        return X - Y


class MinusProto(OpProtoAndCheckerMaker):
    def make(self):
        self.add_input("X", "left operand")
        self.add_input("Y", "right operand")
        self.add_output("Out", "X - Y")
        self.add_comment("Entry-wise difference.")


class MinusGradMaker(GradOpDescMaker):
    def __call__(self):
        return [
            OpDesc("identity", {"X": self.output_grad("Out")}, {"Out": self.input_grad("X")}, {}),
            OpDesc(
                "scale",
                {"X": self.output_grad("Out")},
                {"Out": self.input_grad("Y")},
                {"scale": -1.0},
            ),
        ]


MINUS = OpDesc("my_minus", {"X": ["a"], "Y": ["b"]}, {"Out": ["c"]})


def minus(*components, **options):
    return register_operator("my_minus", MinusOp, MinusProto, *components, **options)


def names(descs, which="outputs"):
    return [name for one in descs for slot in getattr(one, which).values() for name in slot]


class TestFromRegistrationToFiles:
    """One operator by its OpDesc maker: registered, called, composed, differentiated, saved."""

    @pytest.fixture
    def operator(self):
        cases = [case(X=(3,), Y=(3,)), case(X=(), Y=())]
        return minus(MinusGradMaker, cases=cases, reference=np.subtract)

    def test_it_is_one_operator_like_any_other(self, operator):
        assert operator is get("my_minus") is so.my_minus is so.sym.my_minus
        assert operator.proto.inputs[0].comment == "left operand"
        assert operator.proto.comment == "Entry-wise difference." == operator.__doc__

    def test_grad_op_maker_gives_what_the_maker_gives(self, operator):
        first, second = operator.grad_op_maker(MINUS)
        assert first == OpDesc("identity", {"X": ["c@GRAD"]}, {"Out": ["a@GRAD"]}, {})
        assert second == OpDesc("scale", {"X": ["c@GRAD"]}, {"Out": ["b@GRAD"]}, {"scale": -1.0})

    def test_eager(self, operator):
        assert operator(jnp.array([3.0, 1.0]), 1.0).tolist() == [2.0, 0.0]
        assert operator(X=2.0, Y=0.5) == 1.5

    def test_a_maker_that_fails_does_not_hinder_the_value(self, operator):
        with pytest.raises(GradientError, match="the gradient of slot 'Y' must be of type"):
            jax.grad(lambda y: operator(jnp.ones(2), y).sum())(1.0)

    def test_jax(self, operator):
        assert jax.grad(lambda y: operator(2.0, y) ** 2)(5.0) == 6.0
        assert jax.jvp(operator, (1.0, 2.0), (1.0, 0.25))[1] == 0.75
        assert jax.hessian(lambda y: operator(2.0, y) ** 3)(1.0) == 6.0

    def test_graph(self, operator):
        x, y = so.var("x", shape=(2,)), so.var("y", shape=(2,))
        value = so.sum(operator(x, y) * operator(x, y) * y)
        first = so.grad(value, y)  # (x - y)^2 - 2 y (x - y)
        second = so.grad(so.sum(first), y)  # -4 (x - y) + 2 y
        assert "scale" in str(first)
        arrays = {"x": [3.0, 1.0], "y": [1.0, 2.0]}
        assert first.eval(**arrays).tolist() == [0.0, 5.0]
        assert second.eval(**arrays).tolist() == [-6.0, 8.0]
        loaded = so.load_json(second.tojson())
        assert loaded.same_as(second)
        assert so.grad(so.sum(loaded), loaded.list_arguments() and y).eval(**arrays).tolist() == [
            6.0,
            6.0,
        ]
        moved = so.jvp(value, [y], [so.var("t", shape=(2,))])
        assert moved.eval(t=[1.0, 0.0], **arrays) == 0.0

    def test_proofs_and_audit(self, operator, capsys):
        assert check_operator(operator).ok
        assert "gradient" in capsys.readouterr().out
        entry = registry.audit()["my_minus"]
        assert entry.every_order
        assert {"identity", "scale"} <= set(entry.reaches)

    def test_unknown_slots_and_attributes_are_refused(self, operator):
        with pytest.raises(ArgumentError, match=r"my_minus: slots must be among X, Y.*got 'Z'"):
            operator(X=1.0, Z=2.0)
        with pytest.raises(ArgumentError, match=r"my_minus: .*attributes among none, got 'scale'"):
            operator(1.0, 2.0, scale=2)


class TestComponents:
    def test_any_order(self):
        made = register_operator("my_minus", MinusGradMaker, MinusProto, MinusOp)
        assert made.derivative is Derivative.MAKER

    def test_two_of_a_kind(self):
        class Other(MinusGradMaker):
            pass

        with pytest.raises(
            RegistrationError, match="one gradient maker must be given, got MinusGradMaker and Oth"
        ):
            minus(MinusGradMaker, Other)
        with pytest.raises(RegistrationError, match="one operator must be given, got MinusOp and"):
            minus(type("Second", (MinusOp,), {}))
        assert registry.table.find("my_minus") is None

    def test_a_name_is_registered_once(self):
        old = minus(MinusGradMaker)
        with pytest.raises(RegistrationError, match="my_minus: an operator must be registered onc"):
            minus(MinusGradMaker)
        assert get("my_minus") is old
        assert minus(MinusGradMaker, replace=True) is get("my_minus") is not old

    def test_what_is_no_component(self):
        with pytest.raises(RegistrationError, match="a component must be a class derived from Ope"):
            minus(42)
        with pytest.raises(RegistrationError, match=r"a component must be a class .*got dict"):
            minus(dict)
        with pytest.raises(RegistrationError, match=r"one component must be an operator .*none"):
            register_operator("my_minus", MinusProto)

    def test_operator_without_kernel(self):
        with pytest.raises(DeclarationError, match=r"Bare must define kernel\(self, ...\)"):
            register_operator("bare", type("Bare", (OperatorBase,), {}))

    def test_kernel_that_names_an_unknown_slot(self):
        class Wrong(OperatorBase):
            def kernel(self, X, Z):
                return X - Z

        with pytest.raises(DeclarationError, match=r"Wrong.kernel must name slots .* got 'Z'"):
            register_operator("wrong", Wrong, MinusProto)

    def test_kernel_that_names_an_unknown_attribute(self):
        class Wrong(OperatorBase):
            def kernel(self, X, Y, *, slope):
                return X - slope * Y

        with pytest.raises(DeclarationError, match=r"must name attributes .* got 'slope'"):
            register_operator("wrong", Wrong, MinusProto)

    def test_without_a_proto_the_kernel_declares(self):
        class Line(OperatorBase):
            """``slope * X + Y``."""

            def kernel(self, X, Y=None, *, slope: float = 2.0):
                return slope * X if Y is None else slope * X + Y

        line = register_operator("line", Line)
        assert line.signature() == "line(X, Y, *, slope=2.0)"
        assert line.proto.inputs[1].dispensable
        assert line.proto.outputs[0].name == "Out"
        assert (line(3.0), line(3.0, 1.0, slope=1)) == (6.0, 4.0)

    def test_attributes_through_the_operator_itself(self):
        class Power(OperatorBase):
            def infer_shape(self, X):
                assert self.attr("power") > 0
                return X

            def kernel(self, X):
                return X ** self.attr("power")

        class PowerProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out")
                self.add_attr("power", int, "the exponent")

        power = register_operator("raised", Power, PowerProto)
        assert power(3.0, power=2) == 9.0
        with pytest.raises(ArgumentError, match="attributes must be among power, got 'pwer'"):
            Power({"power": 2}).attr("pwer")

    def test_several_outputs_by_name_or_in_order(self):
        class Parts(OperatorBase):
            outputs = ("Big", "Small")

            def infer_shape(self, X):
                return {"Small": X, "Big": X}

            def kernel(self, X):
                return {"Small": jnp.minimum(X, 0), "Big": jnp.maximum(X, 0)}

        parts = register_operator("parts", Parts)
        assert [float(one) for one in parts(-2.0)] == [0.0, -2.0]
        x = so.var("x", shape=(3,))
        assert parts(x).list_outputs() == ["parts0_Big", "parts0_Small"]

    def test_outputs_that_are_not_returned(self):
        class Wrong(OperatorBase):
            outputs = ("Big", "Small")

            def kernel(self, X):
                return {"Big": X}

        wrong = register_operator("wrong", Wrong)
        with pytest.raises(DeclarationError, match="the outputs Big, Small must be returned, got"):
            wrong(1.0)


class TestShapes:
    def test_the_kernel_decides_where_the_rule_says_nothing(self):
        assert minus()(so.var("x", shape=(3, 1)), so.var("y", shape=(2,))).shape == (3, 2)

    def test_a_rule_refuses(self):
        class Strict(MinusOp):
            def infer_shape(self, X, Y):
                if X != Y:
                    raise ShapeError(f"X and Y must have one shape, got {X} and {Y}")
                return X

        strict = register_operator("strict", Strict, MinusProto)
        with pytest.raises(ShapeError, match=r"strict: X and Y must have one shape, got \(3,\) an"):
            strict(so.var("x", shape=(3,)), so.var("y", shape=(2,)))

    def test_a_rule_that_contradicts_the_kernel(self):
        class Wrong(MinusOp):
            def infer_shape(self, X, Y):
                return ()

        wrong = register_operator("wrong", Wrong, MinusProto)
        with pytest.raises(ShapeError, match=r"must be of the shape that the shape rule returns"):
            wrong(so.var("x", shape=(3,)), so.var("y", shape=(3,)))

    def test_a_component_of_its_own(self):
        class Same(ShapeInferer):
            def __call__(self, X, Y):
                if X != Y:
                    raise ShapeError("X and Y must have one shape")
                return X

        class Plain(OperatorBase):
            def kernel(self, X, Y):
                return X - Y

        plain = register_operator("plain", Plain, Same)
        with pytest.raises(ShapeError, match="plain: X and Y must have one shape"):
            plain(jnp.ones(2), jnp.ones(3))
        with pytest.raises(RegistrationError, match=r"got MinusOp\.infer_shape and Same"):
            minus(Same)


class TestHelpers:
    def maker(self, op_desc=MINUS, no_grad_set=()):
        minus()
        return MinusGradMaker(op_desc, no_grad_set)

    def test_names(self):
        maker = self.maker()
        assert (maker.input("X"), maker.output("Out")) == (["a"], ["c"])
        assert (maker.input_grad("X"), maker.output_grad("Out")) == (["a@GRAD"], ["c@GRAD"])
        assert (maker.input_names(), maker.output_names()) == (["X", "Y"], ["Out"])
        assert maker.forward_op_type == "my_minus"
        assert maker.grad_to_var == {"a@GRAD": "a", "c@GRAD": "c"}

    def test_a_slot_that_is_left_out(self):
        maker = self.maker(OpDesc("my_minus", {"X": ["a"]}, {"Out": ["c"]}))
        assert maker.has_input("X")
        assert not maker.has_input("Y")
        assert maker.input("Y") == maker.input_grad("Y") == []
        assert maker.has_output("Out")

    def test_unknown_slots(self):
        with pytest.raises(ArgumentError, match="my_minus: the slots must be among X, Y, got 'Z'"):
            self.maker().input("Z")
        with pytest.raises(ArgumentError, match="the outputs must be among Out, got 'Output'"):
            MinusGradMaker(MINUS).output_grad("Output")

    @pytest.mark.parametrize("excluded", ["a", "a@GRAD"])
    def test_the_no_grad_set(self, excluded):
        maker = self.maker(no_grad_set={excluded})
        assert maker.input_grad("X") == []
        assert maker.input_grad("X", drop_empty=False) == ["@EMPTY@"]
        assert maker.input_grad("Y") == ["b@GRAD"]
        assert maker.output_grad("Out") == ["c@GRAD"]

    def test_nothing_is_dropped_from_a_slot_of_several(self):
        desc = OpDesc("add_n", {"xs": ["a", "b"]}, {"out": ["c"]})
        maker = MinusGradMaker(desc, {"a"})
        with pytest.raises(
            GradientError, match=r"input_grad\('xs'\) must be called with drop_empt"
        ):
            maker.input_grad("xs")
        assert maker.input_grad("xs", drop_empty=False) == ["@EMPTY@", "b@GRAD"]

    def test_attributes(self):
        desc = OpDesc("softmax", {"x": ["a"]}, {"out": ["b"]}, {})
        maker = MinusGradMaker(desc)
        assert maker.attr("axis") == -1
        assert maker.attrs == {}
        with pytest.raises(
            ArgumentError, match="attributes must be among axis, temperature, got 'axes'"
        ):
            maker.attr("axes")

    def test_components_must_define_what_they_are_for(self):
        wrong = {
            "GradOpDescMaker must define __call__()": GradOpDescMaker,
            "SingleGradOpDescMaker must define apply()": SingleGradOpDescMaker,
            "OpProtoAndCheckerMaker must define make()": OpProtoAndCheckerMaker,
            "ShapeInferer must define __call__()": ShapeInferer,
            "InplaceHint must define __call__()": InplaceHint,
        }
        for message, component in wrong.items():
            with pytest.raises(DeclarationError, match=re.escape(f"squared: {message}")):
                register_operator("squared", Square, component)


class Square(OperatorBase):
    def kernel(self, X):
        return X * X


class TestMakers:
    def test_a_function(self):
        def square_grad(op_desc):
            (x,), (out,) = op_desc.inputs["X"], op_desc.outputs["Out"]
            return [
                OpDesc("multiply", {"x": [x], "y": [f"{out}@GRAD"]}, {"out": ["product"]}),
                OpDesc("scale", {"x": ["product"]}, {"out": [f"{x}@GRAD"]}, {"scale": 2.0}),
            ]

        square = register_operator("squared", Square, square_grad)
        assert jax.grad(jax.grad(square))(3.0) == 2.0
        assert len(square.grad_op_maker(OpDesc("squared", {"X": ["x"]}, {"Out": ["y"]}))) == 2

    def test_a_single_operator_of_the_output(self):
        class Exp(OperatorBase):
            def kernel(self, X):
                return jnp.exp(X)

        class ExpGrad(SingleGradOpDescMaker):
            def apply(self):
                inputs = {"x": self.output("Out"), "y": self.output_grad("Out")}
                return OpDesc("multiply", inputs, {"out": self.input_grad("X")})

        exp = register_operator("my_exp", Exp, ExpGrad)
        assert jax.grad(jax.grad(jax.grad(exp)))(1.0) == pytest.approx(np.e)
        x = so.var("x", shape=())
        third = so.grad(so.grad(so.grad(exp(x), x), x), x)
        assert third.eval(x=1.0) == pytest.approx(np.e)

    def test_the_default_maker_calls_the_operator_with_grad_behind_its_name(self):
        class SquareGrad(OperatorBase):
            outputs = ("X@GRAD",)

            def kernel(self, X, Out, d_Out):
                return 2 * X * d_Out

        register_operator("squared", Square, DefaultGradOpDescMaker)
        registry.differentiate_kernel(register_operator("squared_grad", SquareGrad), ["d_Out"])
        desc = OpDesc("squared", {"X": ["x"]}, {"Out": ["y"]})
        assert get("squared").grad_op_maker(desc) == [
            OpDesc(
                "squared_grad",
                {"X": ["x"], "Out": ["y"], "Out@GRAD": ["y@GRAD"]},
                {"X@GRAD": ["x@GRAD"]},
            )
        ]
        assert jax.grad(jax.grad(so.squared))(3.0) == 2.0

    def test_no_gradient_by_definition_is_not_a_missing_one(self):
        class Zero(EmptyGradOpDescMaker):
            zero = True
            reason = "it counts"

        none = register_operator("a", Square)
        undefined = register_operator("b", Square, EmptyGradOpDescMaker)
        zero = register_operator("c", Square, Zero)
        inputs, outputs = {"X": ["x"]}, {"Out": ["y"]}
        assert none.grad_op_maker is None
        assert undefined.grad_op_maker(OpDesc("b", inputs, outputs)) == []
        assert zero.grad_op_maker(OpDesc("c", inputs, outputs)) == []
        kinds = [Derivative.MISSING, Derivative.UNDEFINED, Derivative.ZERO]
        assert [one.derivative for one in (none, undefined, zero)] == kinds
        x = so.var("x", shape=())
        with pytest.raises(NotDifferentiableError, match="not implemented"):
            so.grad(none(x), x)
        with pytest.raises(NotDifferentiableError, match="it has no gradient by definition"):
            so.grad(undefined(x), x)
        assert so.grad(zero(x), x).eval(x=2.0) == 0.0

    def test_a_cotangent_that_does_not_arrive_is_zero(self):
        class Both(OperatorBase):
            outputs = ("A", "B")

            def kernel(self, X):
                return X * 2, X * 3

        def both_grad(op_desc):
            del op_desc
            return [
                OpDesc("scale", {"x": ["A@GRAD"]}, {"out": ["a"]}, {"scale": 2.0}),
                OpDesc("scale", {"x": ["B@GRAD"]}, {"out": ["b"]}, {"scale": 3.0}),
                OpDesc("add_n", {"xs": ["a", "b"]}, {"out": ["X@GRAD"]}),
            ]

        both = register_operator("both", Both, both_grad)
        x = so.var("x", shape=(2,))
        assert so.grad(so.sum(both(x)[1]), x).eval(x=[1.0, 2.0]).tolist() == [3.0, 3.0]
        assert so.grad(so.sum(both(x)[0] + both(x)[1]), x).eval(x=[1.0, 2.0]).tolist() == [5, 5]

    def test_an_operator_of_several_inputs(self):
        class Product(OperatorBase):
            def kernel(self, *Xs):
                return functools.reduce(jnp.multiply, Xs)

        class ProductGrad(GradOpDescMaker):
            def __call__(self):
                descs = []
                for i, target in enumerate(self.input_grad("Xs", drop_empty=False)):
                    others = [name for j, name in enumerate(self.input("Xs")) if j != i]
                    inputs = {"Xs": [*others, *self.output_grad("Out")]}
                    descs.append(OpDesc("product", inputs, {"Out": [target]}))
                return descs

        product = register_operator("product", Product, ProductGrad, cases=[case(Xs=[(3,)] * 3)])
        assert check_operator(product).ok
        a, b = so.var("a", shape=()), so.var("b", shape=())
        assert so.grad(product(a, b, a), a).eval(a=3.0, b=5.0) == 30.0
        desc = OpDesc("product", {"Xs": ["a", "b"]}, {"Out": ["c"]})
        assert names(product.grad_op_maker(desc, {"a"})) == ["@EMPTY@", "b@GRAD"]

    def test_several_outputs_of_one_name(self):
        class Split(OperatorBase):
            def kernel(self, X, *, num):
                return list(jnp.split(X, num))

        class SplitProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out", "the parts").as_duplicable(count="num")
                self.add_attr("num", int, "how many parts").greater_than(0)

        def split_grad(op_desc):
            inputs = {"xs": [f"{name}@GRAD" for name in op_desc.outputs["Out"]]}
            return OpDesc("concat", inputs, {"out": ["X@GRAD"]}, {"axis": 0})

        cases = [case(X=(4,), num=2), case(X=(4, 2), num=4), case(X=(3,), num=1)]
        split = register_operator("parts", Split, SplitProto, split_grad, cases=cases)
        assert [one.tolist() for one in split(jnp.arange(4), num=2)] == [[0, 1], [2, 3]]
        assert split.proto.outputs[0].duplicable
        x = so.var("x", shape=(4,))
        first, second = split(x, num=2)
        gradient = so.grad(so.sum(first * second), x)
        assert gradient.eval(x=[1.0, 2.0, 3.0, 4.0]).tolist() == [3.0, 4.0, 1.0, 2.0]
        assert so.load_json(gradient.tojson()).same_as(gradient)
        assert check_operator(split).ok

    @pytest.mark.parametrize(
        ("descs", "message"),
        [
            ([OpDesc("nothing", {}, {})], "nothing: no operator has this name"),
            ([OpDesc("sin", {"z": ["X"]}, {"out": ["t"]})], "sin: the slots must be among x, got"),
            ([OpDesc("sin", {"x": ["X"]}, {"y": ["t"]})], "sin: the outputs must be among out"),
            ([OpDesc("sin", {"x": ["t"]}, {"out": ["X@GRAD"]})], "or temporaries .* got 't'"),
            ([OpDesc("sin", {"x": ["X"]}, {"out": ["X"]})], "must define 'X' once"),
            ([OpDesc("sin", {"x": ["X"]}, {"out": ["Y@GRAD"]})], "gradients of inputs, got 'Y@GRA"),
            ([OpDesc("sin", {"x": ["X"]}, {"out": ["t"]}, {"a": 1})], "attributes among none, got"),
            ([OpDesc("sin", {"x": "X"}, {"out": ["t"]})], "'x' must hold a list of variable names"),
            ([OpDesc("sin", {"x": ["X", "X"]}, {"out": ["t"]})], "'x' must hold one variable, got"),
            (
                [OpDesc("sin", {"x": ["X"]}, {"out": ["t"]})],
                "must use the gradient of the output 'Out'",
            ),
            ([OpDesc("sin", {"x": ["Out@GRAD"]}, {"out": ["t"]})], "must return a gradient .*'X'"),
            ("nonsense", "its gradient maker must return OpDescs, got 'nonsense'"),
        ],
    )
    def test_what_is_wrong_is_named(self, descs, message):
        square = register_operator("squared", Square, lambda op_desc: descs)
        x = so.var("x", shape=())
        expected = (GradientError, ArgumentError, UnknownOperatorError)
        with pytest.raises(expected, match=message) as raised:
            so.grad(square(x), x)
        assert "squared" in str(raised.value)


class TestProto:
    def declared(self, make):
        class Proto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out")
                make(self)

        return Proto

    def attribute(self, make, **given):
        class Read(OperatorBase):
            def kernel(self, X):
                return X + 0 * len(self.attrs)

        proto = self.declared(make)
        return register_operator("read", Read, proto, replace=True)(1.0, **given)

    def test_a_required_attribute(self):
        with pytest.raises(ArgumentError, match="read: attribute 'n' must be given, got none"):
            self.attribute(lambda proto: proto.add_attr("n", int))

    @pytest.mark.parametrize(
        ("type", "good", "bad"),
        [
            (int, 3, 2.5),
            (float, 2, "2"),
            (bool, True, 1),
            (str, "a", 1),
            (list[int], [1, 2], [1, 0.5]),
            (np.dtype, "float32", "float31"),
        ],
    )
    def test_types(self, type, good, bad):
        self.attribute(lambda proto: proto.add_attr("v", type), v=good)
        with pytest.raises(AttributeTypeError, match="read: attribute 'v' must be a"):
            self.attribute(lambda proto: proto.add_attr("v", type), v=bad)

    @pytest.mark.parametrize(
        ("declare", "good", "bad", "message"),
        [
            (lambda a: a.in_enum([1, 2]), 2, 3, "must be one of 1, 2, got 3"),
            (lambda a: a.greater_than(0), 1, 0, "must be greater than 0, got 0"),
            (lambda a: a.equal_greater_than(0), 0, -1, "must be at least 0, got -1"),
            (
                lambda a: a.add_custom_checker(lambda v: v % 2 == 0),
                4,
                3,
                "must satisfy lambda, got",
            ),
        ],
    )
    def test_checks(self, declare, good, bad, message):
        self.attribute(lambda proto: declare(proto.add_attr("n", int)), n=good)
        with pytest.raises(AttributeValueError, match=f"read: attribute 'n' {message}"):
            self.attribute(lambda proto: declare(proto.add_attr("n", int)), n=bad)

    def test_a_checker_that_raises(self):
        def even(value):
            if value % 2:
                raise ValueError(f"{value} is odd")

        with pytest.raises(AttributeValueError, match=r"satisfy even \(3 is odd\), got 3"):
            self.attribute(lambda proto: proto.add_attr("n", int).add_custom_checker(even), n=3)
        self.attribute(lambda proto: proto.add_attr("n", int).add_custom_checker(even), n=2)

    def test_checks_go_on_in_a_chain(self):
        def declare(proto):
            proto.add_attr("n", int).set_default(4).greater_than(0).in_enum([2, 4])

        self.attribute(declare)
        with pytest.raises(AttributeValueError, match="one of 2, 4, got 3"):
            self.attribute(declare, n=3)

    def test_a_default_must_pass_the_checks(self):
        with pytest.raises(DeclarationError, match="attribute 'n': must be greater than 0, got 0"):
            self.attribute(lambda proto: proto.add_attr("n", int).set_default(0).greater_than(0))
        with pytest.raises(DeclarationError, match="must have one default, got a second one"):
            self.attribute(lambda proto: proto.add_attr("n", int).set_default(0).set_default(1))

    def test_the_record(self):
        def declare(proto):
            proto.add_input("Bias", "added").as_dispensable()
            proto.add_output("Mask", "kept").as_intermediate().as_dispensable()
            proto.add_attr("n", list[int], "sizes").set_default([1])
            proto.add_comment("""
                Adds.

                And more.
            """)

        class Read(OperatorBase):
            def kernel(self, X, Bias):
                return X if Bias is None else X + Bias, X

        made = register_operator("read", Read, self.declared(declare))
        proto = made.proto
        assert [(v.name, v.dispensable) for v in proto.inputs] == [("X", False), ("Bias", True)]
        assert (proto.outputs[1].intermediate, proto.outputs[1].dispensable) == (True, True)
        attr = proto.attrs[0]
        assert (attr.name, attr.comment, attr.required) == ("n", "sizes", False)
        assert (attr.type, attr.default) == ("list[int]", [1])
        assert proto.comment == "Adds.\n\nAnd more."
        assert (made(1.0), made(1.0, 2.0)) == (1.0, 3.0)

    def test_every_operator_has_one(self):
        for operator in registry.operators():
            proto = operator.proto
            assert proto.type == operator.name
            assert [one.name for one in proto.inputs] == list(operator.slot_names)
        assert get("softmax").proto.attrs[0].name == "axis"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda p: p.add_input("X"), "must have different names, got 'X' twice"),
            (lambda p: p.add_attr("Out", int), "must have different names, got 'Out' twice"),
            (lambda p: p.add_input("a b"), "a slot's name must be a Python name, got 'a b'"),
            (lambda p: p.add_input("Y").as_intermediate(), "only an output can be intermediate"),
            (lambda p: p.add_input("Y").as_duplicable(count=2), "must have no count="),
            (
                lambda p: [p.add_input(n).as_duplicable() for n in "YZ"],
                r"at most one input must be duplicable, got \['Y', 'Z'\]",
            ),
            (
                lambda p: p.add_output("Parts").as_duplicable(),
                r"as_duplicable\(count=\) must tell how many values output 'Parts' has",
            ),
        ],
    )
    def test_contradictions(self, make, message):
        with pytest.raises(DeclarationError, match=f"read: .*{message}"):
            self.attribute(make)

    def test_a_duplicable_slot_is_a_list(self):
        class Proto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("Xs").as_duplicable()
                self.add_input("Weight")
                self.add_output("Out").as_duplicable()

        class Weigh(OperatorBase):
            def kernel(self, Weight, Xs):
                return [Weight * one for one in Xs]

        weigh = register_operator(
            "weigh",
            Weigh,
            Proto,
            cases=[case(Xs=[(2,), (3,)], Weight=())],
            reference=lambda Xs, Weight: tuple(Weight * one for one in Xs),
        )
        assert weigh.signature() == "weigh(Xs, Weight)"
        assert check_reference(weigh, weigh.cases[0]) is None
        assert [float(one) for one in weigh([3.0, 4.0], 2.0)] == [6.0, 8.0]
        assert [float(one) for one in weigh(Weight=2.0, Xs=[5.0])] == [10.0]
        with pytest.raises(ArgumentError, match="slot 'Xs' must be filled with a list, got float"):
            weigh(2.0, 3.0)


class TestGradientOperators:
    def test_both_are_registered(self, capsys):
        class PowerProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X", "the base")
                self.add_output("Out", "the power")
                self.add_attr("power", int, "the exponent").set_default(3)

        class Power(OperatorBase):
            def kernel(self, X, *, power):
                return X**power

        class PowerGrad(OperatorBase):
            def kernel(self, X, d_Out):
                power = self.attr("power")
                return power * X ** (power - 1) * d_Out

        cases = [case(X=(3,)), case(X=(2, 2), power=4)]
        power = register_op("raised", Power, PowerProto, "raised_grad", PowerGrad, cases=cases)
        assert check_operator(power).ok
        desc = OpDesc("raised", {"X": ["x"]}, {"Out": ["y"]}, {"power": 2})
        assert power.grad_op_maker(desc) == [
            OpDesc(
                "raised_grad",
                {"X": ["x"], "Out@GRAD": ["y@GRAD"]},
                {"X@GRAD": ["x@GRAD"]},
                {"power": 2},
            )
        ]
        entry = registry.audit()["raised"]
        assert entry.every_order
        assert entry.by_jax == ("raised_grad",)
        assert "JAX differentiates the kernel of raised_grad" in str(entry)
        assert jax.grad(jax.grad(jax.grad(power)))(2.0) == 6.0
        assert jax.jvp(jax.grad(power), (2.0,), (1.0,))[1] == 12.0
        capsys.readouterr()

    def test_only_some_inputs_have_gradients(self):
        class Take(OperatorBase):
            def kernel(self, W, Ids):
                return W[Ids]

        class TakeProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("W")
                self.add_input("Ids")
                self.add_output("Out")

        class TakeGrad(OperatorBase):
            outputs = ("W@GRAD",)

            def kernel(self, W, Ids, d_Out):
                return jnp.zeros_like(W).at[Ids].add(d_Out)

        take = register_op("picked", Take, TakeProto, "picked_grad", TakeGrad)
        w, ids = so.var("w", shape=(3,)), so.var("ids", shape=(2,), dtype="int32")
        gradient = so.grad(so.sum(take(w, ids) * take(w, ids)), w)
        arrays = {"w": [1.0, 2.0, 3.0], "ids": [2, 2]}
        assert gradient.eval(**arrays).tolist() == [0.0, 0.0, 12.0]
        assert so.grad(so.sum(gradient), w).eval(**arrays).tolist() == [0.0, 0.0, 4.0]

    def test_several_inputs_in_one_slot(self):
        class Sum(OperatorBase):
            def kernel(self, Xs):
                return sum(one * one for one in Xs)

        class SumProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("Xs").as_duplicable()
                self.add_output("Out")

        class SumGrad(OperatorBase):
            def kernel(self, Xs, d_Out):
                return [2 * one * d_Out for one in Xs]

        cases = [case(Xs=[(3,), (3,)]), case(Xs=[(2,)])]
        total = register_op("squares", Sum, SumProto, "squares_grad", SumGrad, cases=cases)
        assert check_operator(total).ok

    def test_a_maker_of_its_own(self):
        class CubeProto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out")

        class Cube(OperatorBase):
            def kernel(self, X):
                return X * X * X

        class CubeGrad(OperatorBase):
            def kernel(self, X, d_Out):
                return 3 * X * X * d_Out

        def cube_grad_grad(op_desc):
            del op_desc
            return [
                OpDesc("cubed_grad", {"X": ["X"], "d_Out": ["d_X@GRAD"]}, {"d_X": ["d_Out@GRAD"]}),
                OpDesc("multiply", {"x": ["X"], "y": ["d_Out"]}, {"out": ["s"]}),
                OpDesc("multiply", {"x": ["s"], "y": ["d_X@GRAD"]}, {"out": ["t"]}),
                OpDesc("scale", {"x": ["t"]}, {"out": ["X@GRAD"]}, {"scale": 6.0}),
            ]

        cube = register_op(
            "cubed",
            Cube,
            CubeProto,
            "cubed_grad",
            CubeGrad,
            grad_components=[cube_grad_grad],
            cases=[case(X=(3,))],
        )
        assert get("cubed_grad").derivative is Derivative.MAKER
        assert check_operator(cube).ok
        assert registry.audit()["cubed"].by_jax == ()

    def test_two_operators_of_one_name(self):
        with pytest.raises(RegistrationError, match="my_minus: two operators must have different"):
            register_op("my_minus", MinusOp, MinusProto, "my_minus", Square)
        assert registry.table.find("my_minus") is None

    def test_without_a_proto(self):
        class SquareGrad(OperatorBase):
            def kernel(self, X, d_Out):
                return 2 * X * d_Out

        square = register_op("squared", Square, None, "squared_grad", SquareGrad)
        assert jax.grad(square)(3.0) == 6.0

    def test_nothing_is_half_done(self):
        minus()
        with pytest.raises(RegistrationError, match="my_minus: an operator must be registered onc"):
            register_op("my_minus", MinusOp, MinusProto, "my_minus_grad", Square)
        assert registry.table.find("my_minus_grad") is None

    def test_a_gradient_of_nothing(self):
        class Wrong(OperatorBase):
            outputs = ("Z@GRAD",)

            def kernel(self, X, d_Out):
                return d_Out

        with pytest.raises(DeclarationError, match=r"gradients of inputs of my_minus, got \['d_Z'"):
            register_op("my_minus", MinusOp, MinusProto, "my_minus_grad", Wrong)


class TestRecordedGradients:
    def test_a_composition_without_types(self):
        softmax = OpDesc("softmax", {"x": ["a"]}, {"out": ["b"]}, {"axis": 0})
        descs = get("softmax").grad_op_maker(softmax)
        assert [one.type for one in descs] == ["multiply", "sum", "subtract", "multiply"]
        assert descs[1].attrs == {"axis": 0, "keepdims": True}
        assert names(descs)[-1] == "a@GRAD"
        assert {"b", "b@GRAD"} == set(names(descs, "inputs")) - set(names(descs))

    @pytest.mark.parametrize("name", ["sin", "exp", "minus", "sqrt", "add_n", "tanh"])
    def test_types_are_not_needed_where_they_make_no_difference(self, name):
        operator = get(name)
        inputs = {slot.name: [f"v_{slot.name}"] for slot in operator.slots}
        (*_, last) = operator.grad_op_maker(OpDesc(name, inputs, {"out": ["b"]}))
        assert names([last])[0].endswith("@GRAD")

    def test_slots_as_other_systems_write_them(self):
        desc = OpDesc("softmax", {"X": ["a"]}, {"Out": ["b"]})
        assert names(get("softmax").grad_op_maker(desc))[-1] == "a@GRAD"

    def test_types_come_from_the_block(self):
        other = OpDesc("make_loss", {"data": ["a"]}, {"out": ["c"]})
        with pytest.raises(UnknownTypeError, match="pass block=, whose variables tell them"):
            get("make_loss").grad_op_maker(other)
        desc = OpDesc("add", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
        block = BlockDesc([VarDesc("a", [3, 1], "float32"), VarDesc("b", [2], "float32")])
        descs = get("add").grad_op_maker(desc, block=block)
        assert {one.type for one in descs} == {"sum_to"}
        assert set(names(descs)) == {"a@GRAD", "b@GRAD"}

    def test_one_variable_in_two_slots(self):
        desc = OpDesc("multiply", {"x": ["a"], "y": ["a"]}, {"out": ["b"]})
        block = BlockDesc([VarDesc("a", [3], "float32")])
        descs = get("multiply").grad_op_maker(desc, block=block)
        assert names(descs).count("a@GRAD") == 1
        assert descs[-1].type == "add"

    def test_one_gradient_for_two_variables(self):
        desc = OpDesc("add", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
        block = BlockDesc([VarDesc("a", [3], "float32"), VarDesc("b", [3], "float32")])
        descs = get("add").grad_op_maker(desc, block=block)
        assert sorted(names(descs)) == ["a@GRAD", "b@GRAD"]

    def test_the_no_grad_set(self):
        desc = OpDesc("multiply", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
        block = BlockDesc([VarDesc("a", [3], "float32"), VarDesc("b", [3], "float32")])
        (only,) = get("multiply").grad_op_maker(desc, {"a"}, block)
        assert only.outputs == {"out": ["b@GRAD"]}
        assert get("multiply").grad_op_maker(desc, {"a", "b@GRAD"}, block) == []

    def test_integers_have_no_gradient(self):
        desc = OpDesc("take", {"x": ["t"], "ids": ["i"]}, {"out": ["o"]}, {"axis": 0})
        block = BlockDesc([VarDesc("t", [3, 2], "float32"), VarDesc("i", [4], "int32")])
        assert names(get("take").grad_op_maker(desc, block=block))[-1] == "t@GRAD"
        assert "i@GRAD" not in names(get("take").grad_op_maker(desc, block=block))

    def test_no_gradient(self):
        desc = OpDesc("floor", {"x": ["a"]}, {"out": ["b"]})
        assert get("floor").grad_op_maker(desc) == []

    def test_unknown_slots(self):
        with pytest.raises(ArgumentError, match="sin: the slots must be among x, got 'z'"):
            get("sin").grad_op_maker(OpDesc("sin", {"z": ["a"]}, {"out": ["b"]}))
        with pytest.raises(ArgumentError, match="sin: the outputs must be among out, got 'y'"):
            get("sin").grad_op_maker(OpDesc("sin", {"x": ["a"]}, {"y": ["b"]}))

    @pytest.mark.parametrize("operator", registry.operators(), ids=lambda one: one.name)
    @pytest.mark.sampled(16)
    def test_what_is_recorded_computes_the_gradient(self, operator):
        """The OpDescs of each operator's first case, run one after another, against JAX."""
        with jax.enable_x64(True):
            self.check(operator)

    def check(self, operator):
        if operator.derivative is not Derivative.MAKER:
            return
        trial = next(
            one for each in operator.cases for one in trials(operator, each) if one.differentiable
        )
        if operator.fillable and any(s.implicit for s in operator.slots):
            return  # keys and training flags are no variables of an OpDesc
        groups = operator.input_groups([f"v{i}" for i in range(len(trial.inputs))])
        present = {f"v{i}": v for i, v in enumerate(trial.inputs) if v is not None}
        inputs = {
            slot.name: [n for n in ns if n in present] for slot, ns in groups if present.keys() & ns
        }
        if any(not isinstance(one, jax.Array) for one in present.values()):
            return
        outputs = trial.operator.outputs
        plain = {
            k: registry.operator.attributes.to_plain(v)
            for k, v in operator.attribute_dict(trial.attributes).items()
        }
        desc = OpDesc(operator.name, inputs, {name: [name] for name in outputs}, plain)
        block = BlockDesc(
            [VarDesc(n, list(v.shape), v.dtype.name) for n, v in present.items()],
        )
        descs = operator.grad_op_maker(desc, block=block)

        def both(present):
            """What JAX says, and what the OpDescs compute; compiled together."""
            results, pull = jax.vjp(
                trial.function("rules", trial.active), *[present[f"v{i}"] for i in trial.active]
            )
            values = dict(present) | dict(zip(outputs, results, strict=True))
            heads = [
                jnp.cos(jnp.arange(one.size, dtype=one.dtype)).reshape(one.shape)
                if i in trial.carrying and outputs[i] not in operator.hidden
                else jnp.zeros_like(one)
                for i, one in enumerate(results)
            ]
            values |= {f"{n}@GRAD": head for n, head in zip(outputs, heads, strict=True)}
            for one in descs:
                values |= create(one).run(values)
            integral = [not jnp.issubdtype(one.dtype, jnp.inexact) for one in results]
            zeros = [np.zeros(one.shape, jax.dtypes.float0) for one in results]
            chosen = [z if i else h for i, z, h in zip(integral, zeros, heads, strict=True)]
            expected = pull(chosen)
            found = [
                values.get(f"v{i}@GRAD", jnp.zeros_like(one))
                for i, one in zip(trial.active, expected, strict=True)
            ]
            return expected, found

        for expected, found in zip(*compiled(both, present)(present), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


class TestKinds:
    """A table of which some rows are looked up: its gradient is row-sparse where that is asked."""

    class LookupGrad(OperatorBase):
        outputs = ("W@GRAD",)

        def kernel(self, W, Ids, d_Out, *, is_sparse: bool = False):
            some = SelectedRows(Ids, d_Out, W.shape[0])
            return some if is_sparse else some.to_dense()

    class LookupKind(VarTypeInferer):
        def __call__(self, op_desc, block):
            sparse = op_desc.attrs["is_sparse"]
            kind = VarKind.SELECTED_ROWS if sparse else VarKind.LOD_TENSOR
            self.set_output_kind(op_desc, block, "W@GRAD", kind)

    class Densify(OperatorBase):
        def kernel(self, X):
            return X.to_dense() if isinstance(X, SelectedRows) else X

    class Dense(VarTypeInferer):
        pass

    @pytest.fixture
    def lookup(self):
        register_operator("densify", self.Densify, self.Dense)
        return register_operator("lookup_grad", self.LookupGrad, self.LookupKind)

    @pytest.fixture
    def inputs(self):
        return (
            so.var("w", shape=(5, 2)),
            so.var("ids", shape=(3,), dtype="int32"),
            so.var("d", shape=(3, 2)),
        )

    ARRAYS: ClassVar = {
        "w": np.zeros((5, 2), np.float32),
        "ids": np.array([1, 4, 1], np.int32),
        "d": np.ones((3, 2), np.float32),
    }

    def test_kinds_are_known_when_the_graph_is_built(self, lookup, inputs):
        assert lookup(*inputs, is_sparse=True).kind is VarKind.SELECTED_ROWS
        assert lookup(*inputs).kind is VarKind.LOD_TENSOR
        assert "selected_rows float32[5,2]" in str(lookup(*inputs, is_sparse=True))

    def test_values_are_of_that_kind(self, lookup, inputs):
        expected = [[0, 0], [2, 2], [0, 0], [0, 0], [1, 1]]
        sparse = lookup(*inputs, is_sparse=True)
        value = sparse.eval(**self.ARRAYS)
        assert value.values.shape == (3, 2)
        assert value.to_dense().tolist() == expected
        assert so.densify(sparse).eval(**self.ARRAYS).tolist() == expected
        assert so.densify(lookup(*inputs)).eval(**self.ARRAYS).tolist() == expected
        eager = lookup(*self.ARRAYS.values(), is_sparse=True)
        assert so.densify(eager).tolist() == expected
        assert so.load_json(sparse.tojson()).kind is VarKind.SELECTED_ROWS

    def test_an_operator_that_takes_dense_arrays_refuses_rows(self, lookup, inputs):
        with pytest.raises(KindError, match=r"cos: slot 'x' must hold a dense array, got selected"):
            so.cos(lookup(*inputs, is_sparse=True))
        with pytest.raises(KindError, match=r"cos: slot 'x' must hold a dense array, got selected"):
            so.cos(lookup(*self.ARRAYS.values(), is_sparse=True))

    def test_a_kind_that_the_kernel_contradicts(self, inputs):
        class Wrong(VarTypeInferer):
            def __call__(self, op_desc, block):
                self.set_output_kind(op_desc, block, "d_W", VarKind.SELECTED_ROWS)

        wrong = register_operator("wrong", self.LookupGrad, Wrong)
        with pytest.raises(KindError, match="wrong: output 'd_W' must be of the kind selected_row"):
            wrong(*inputs)
        plain = register_operator("plain", self.LookupGrad)
        with pytest.raises(KindError, match=r"'d_W' must be of the kind lod_tensor, .*got sele"):
            plain(*inputs, is_sparse=True)

    def test_kinds_of_inputs_are_read(self, lookup, inputs):
        class Sum(OperatorBase):
            def kernel(self, *Xs):
                if all(isinstance(one, SelectedRows) for one in Xs):
                    rows = jnp.concatenate([one.rows for one in Xs])
                    values = jnp.concatenate([one.values for one in Xs])
                    return SelectedRows(rows, values, Xs[0].height)
                return sum(x.to_dense() if isinstance(x, SelectedRows) else x for x in Xs)

        class SumKind(VarTypeInferer):
            def __call__(self, op_desc, block):
                kinds = set(self.input_kinds(op_desc, block, "Xs"))
                if VarKind.LOD_TENSOR in kinds:
                    super().__call__(op_desc, block)
                else:
                    (out,) = op_desc.outputs["Out"]
                    block.var(out).kind = VarKind.SELECTED_ROWS

        total = register_operator("total", Sum, SumKind)
        sparse, dense = lookup(*inputs, is_sparse=True), lookup(*inputs)
        assert total(sparse, sparse).kind is VarKind.SELECTED_ROWS
        assert total(sparse, dense).kind is VarKind.LOD_TENSOR
        both = total(sparse, dense).eval(**self.ARRAYS)
        assert both.tolist() == so.densify(total(sparse, sparse)).eval(**self.ARRAYS).tolist()

    @pytest.mark.parametrize(
        ("declared", "message"),
        [
            ({"kind": "selected_rows"}, None),
            (
                {"kind": "lod_tensor_array"},
                "the kind must be selected_rows, as its operator infers",
            ),
            ({"kind": "rows"}, "the kind 'rows' is no variable kind"),
            ({"shape": [5, 3]}, r"the shape must be \(5, 2\), as its operator infers"),
            ({"dtype": "float64"}, "the dtype must be float32, as its operator infers"),
            ({"shape": [5, 2], "dtype": "float32", "kind": "selected_rows"}, None),
        ],
    )
    def test_what_a_program_declares_is_compared(self, lookup, inputs, declared, message):
        desc = lookup(*inputs, is_sparse=True).to_desc()
        (name,) = desc.fetch
        desc.blocks[0].vars.append(VarDesc(name, role="intermediate", **declared))
        if message is None:
            assert so.from_desc(desc).kind is VarKind.SELECTED_ROWS
            return
        with pytest.raises(FormatError, match=message):
            so.from_desc(desc)

    def test_the_decorator(self):
        @registry.op
        def pass_rows(x: registry.Array) -> registry.Array:
            """``x``, rows or not."""
            return x

        @pass_rows.kind
        def pass_rows_kind(x: VarKind) -> VarKind:
            return x

        rows = SelectedRows(jnp.array([0]), jnp.ones((1, 2)), 3)
        assert pass_rows(rows).to_dense().tolist() == [[1, 1], [0, 0], [0, 0]]
        assert pass_rows(1.0) == 1.0

    def test_a_rule_that_tells_no_kind(self):
        @registry.op
        def wrong(x: registry.Array) -> registry.Array:
            """``x``."""
            return x

        wrong.kind(lambda: "rows")
        with pytest.raises(KindError, match=r"its kind rule must tell a VarKind .* got 'rows'"):
            wrong(1.0)

    def test_rows_without_values_are_refused(self, lookup):
        with pytest.raises(ShapeError, match="there must be one value for each of a list of rows"):
            so.densify(SelectedRows(jnp.array([0, 1]), jnp.ones((1, 2)), 3))

    def test_rows_are_a_pytree(self):
        rows = SelectedRows(jnp.array([0, 2]), jnp.ones((2, 2)), 3)
        doubled = jax.jit(lambda r: jax.tree.map(lambda one: one * 2, r))(rows)
        assert doubled.height == 3
        assert doubled.rows.tolist() == [0, 4]
        assert SelectedRows(jnp.array([-1, 7]), jnp.ones((2, 1)), 3).to_dense().sum() == 0


class TestInplace:
    class Hint(InplaceHint):
        def __call__(self, op_desc):
            assert op_desc.outputs == {"Out": ["Out"]}
            return {"X": "Out"}

    def test_what_the_gradient_does_not_need(self):
        assert minus(MinusGradMaker, self.Hint).inplace == {"X": "Out"}

    def test_what_the_gradient_needs(self):
        def square_grad(op_desc):
            inputs = {"x": op_desc.inputs["X"], "y": ["Out@GRAD"]}
            return OpDesc("multiply", inputs, {"out": ["X@GRAD"]})

        with pytest.raises(DeclarationError, match="'Out' must not take the place of 'X', which"):
            register_operator("squared", Square, square_grad, self.Hint)

    def test_what_does_not_exist(self):
        class Wrong(InplaceHint):
            def __call__(self, op_desc):
                return {"Z": "Out"}

        with pytest.raises(DeclarationError, match="must name a slot and an output, got Z: Out"):
            minus(Wrong)


class TestCreate:
    def test_by_position_by_slot_and_by_name(self):
        made = create(OpDesc("scale", {"X": ["a"]}, {"Out": ["b"]}, {"scale": 3}))
        assert made.attributes == {"scale": 3.0}
        assert made(2.0) == made(x=2.0) == 6.0
        assert made.run({"a": 2.0}) == {"b": 6.0}
        assert repr(made) == "<scale(scale=3.0)>"

    def test_on_symbols(self):
        x = so.var("x", shape=(2,))
        made = create(OpDesc("scale", {"x": ["a"]}, {"out": ["b"]}, {"scale": 2.0}))
        assert made(x).same_as(so.scale(x, scale=2.0))

    def test_several_outputs(self):
        class Parts(OperatorBase):
            outputs = ("Big", "Small")

            def kernel(self, X):
                return jnp.maximum(X, 0), jnp.minimum(X, 0)

        register_operator("parts", Parts)
        made = create(OpDesc("parts", {"X": ["a"]}, {"Small": ["s"], "Big": ["b"]}))
        assert made.run({"a": -2.0}) == {"s": -2.0, "b": 0.0}
        assert create(OpDesc("parts", {"X": ["a"]}, {"Small": ["s"]})).run({"a": 3.0}) == {"s": 0.0}

    @pytest.mark.parametrize(
        ("desc", "error", "message"),
        [
            (OpDesc("scal", {}, {}), UnknownOperatorError, "scal: no operator .*'scale'"),
            (OpDesc("scale", {"z": ["a"]}, {}), ArgumentError, "slots must be among x, got 'z'"),
            (OpDesc("scale", {"x": ["a"]}, {}), ArgumentError, "'scale' must be given, got none"),
            (
                OpDesc("scale", {"x": ["a"]}, {}, {"scale": 1, "by": 2}),
                ArgumentError,
                "scale: the attributes must be among scale, got 'by'",
            ),
            (
                OpDesc("scale", {"x": ["a"]}, {}, {"scale": "one"}),
                AttributeTypeError,
                "must be a float, got 'one'",
            ),
            (OpDesc("scale", {}, {}, {"scale": 1}), ArgumentError, r"inputs must be \(x\), got 0"),
            (
                OpDesc("scale", {"x": ["a"]}, {"y": ["b"]}, {"scale": 1}),
                ArgumentError,
                "outputs must be among out, got 'y'",
            ),
        ],
    )
    def test_what_does_not_fit(self, desc, error, message):
        with pytest.raises(error, match=message):
            create(desc)

    def test_a_variable_without_a_value(self):
        made = create(OpDesc("sin", {"x": ["a"]}, {"out": ["b"]}))
        with pytest.raises(ArgumentError, match="sin: a value must be given for 'a', got none"):
            made.run({"b": 1.0})


class TestReplacing:
    """What was built before keeps the operators, and the gradients, that it was built with."""

    class Proto(OpProtoAndCheckerMaker):
        def make(self):
            self.add_input("X")
            self.add_output("Out")

    def register(self, power, **options):
        class Power(OperatorBase):
            def kernel(self, X):
                return X**power

        class PowerGrad(OperatorBase):
            def kernel(self, X, d_Out):
                return power * X ** (power - 1) * d_Out

        return register_op("raised", Power, self.Proto, "raised_grad", PowerGrad, **options)

    def test_a_pair(self):
        x = so.var("x", shape=(2,))
        old = so.sum(self.register(3)(x))
        function = old.to_jax()
        self.register(2, replace=True)
        arrays = {"x": [1.0, 2.0]}
        assert so.grad(old, x).eval(**arrays).tolist() == [3.0, 12.0]
        assert so.grad(so.sum(so.grad(old, x)), x).eval(**arrays).tolist() == [6.0, 12.0]
        assert jax.grad(lambda v: function(x=v))(jnp.array([1.0, 2.0])).tolist() == [3.0, 12.0]
        assert so.grad(so.sum(so.raised(x)), x).eval(**arrays).tolist() == [2.0, 4.0]

    def test_an_operator_that_a_maker_calls(self):
        register_operator("inner", Square)
        get("inner").gradient(lambda X, d_Out: {"X": 2.0 * X * d_Out})

        def outer_grad(op_desc):
            inputs = {"X": op_desc.inputs["X"]}
            scaled = {"x": ["squared"], "y": ["Out@GRAD"]}
            return [
                OpDesc("inner", inputs, {"Out": ["squared"]}),
                OpDesc("multiply", scaled, {"out": ["X@GRAD"]}),
            ]

        class Third(OperatorBase):
            def kernel(self, X):
                return X**3 / 3

        outer = register_operator("outermost", Third, outer_grad)
        x = so.var("x", shape=())
        before = outer(x)
        register_operator("inner", MinusOp, MinusProto, replace=True)
        assert so.grad(before, x).eval(x=3.0) == 9.0


class TestHiddenOutputs:
    class Op(OperatorBase):
        def kernel(self, X):
            return jnp.sin(X), jnp.cos(X)

    def proto(self, declare):
        class Proto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out")
                declare(self.add_output("Slope").as_intermediate())

        return Proto

    @staticmethod
    def grad(op_desc):
        inputs = {"x": op_desc.outputs["Slope"], "y": ["Out@GRAD"]}
        return OpDesc("multiply", inputs, {"out": ["X@GRAD"]})

    def test_a_gradient_that_arrives_is_never_dropped(self):
        op = register_operator("sine", self.Op, self.proto(lambda slope: slope), self.grad)
        x = so.var("x", shape=())
        with pytest.raises(GradientError, match="must use the gradient of the output 'Slope'"):
            so.grad(op(x), x)
        with pytest.raises(GradientError, match="must use the gradient of the output 'Slope'"):
            jax.grad(op)(0.0)
        assert op(0.0) == 0.0

    def test_without_gradient(self):
        proto = self.proto(lambda slope: slope.without_gradient())
        op = register_operator("sine", self.Op, proto, self.grad)
        x = so.var("x", shape=())
        assert so.grad(so.grad(op(x), x), x).eval(x=0.3) == 0.0

    def test_the_decorator(self):
        @registry.op(outputs=("out", "slope"), hidden=("slope",), cases=[case(x=(3,))])
        def sine(x: registry.Array) -> tuple[registry.Array, registry.Array]:
            """``sin(x)``."""
            return jnp.sin(x), jnp.cos(x)

        sine.gradient(lambda slope, d_out: {"x": slope * d_out})
        with pytest.raises(GradientError, match="must name d_slope, because it uses the output"):
            jax.grad(sine)(0.0)
        assert not check_operator(sine).ok

    def test_outputs_that_are_not_considered(self):
        @registry.op(outputs=("out", "other"))
        def both(x: registry.Array) -> tuple[registry.Array, registry.Array]:
            """``2 x`` and ``3 x``."""
            return 2 * x, 3 * x

        both.gradient(lambda d_out: {"x": 2.0 * d_out})
        x = so.var("x", shape=())
        first, second = both(x)
        assert so.grad(first, x).eval(x=1.0) == 2.0
        with pytest.raises(GradientError, match="must name d_other, because a gradient arrives"):
            so.grad(first + second, x)

    def test_they_are_used_and_run_by_name(self):
        op = register_operator("sine", self.Op, self.proto(lambda slope: slope))
        desc = OpDesc("sine", {"X": ["a"]}, {"Out": ["o"], "Slope": ["s"]})
        assert create(desc).run({"a": 0.0}) == {"o": 0.0, "s": 1.0}
        assert op(0.0) == 0.0

        def cosine_grad(op_desc):
            (x,) = op_desc.inputs["X"]
            return [
                OpDesc("sine", {"X": [x]}, {"Out": ["o"], "Slope": ["s"]}),
                OpDesc("multiply", {"x": ["s"], "y": ["Out@GRAD"]}, {"out": ["X@GRAD"]}),
            ]

        assert jax.grad(register_operator("own_sine", Square, cosine_grad))(0.0) == 1.0


class TestOpDescsThatAreGiven:
    def test_they_must_fit_the_operator(self):
        maker = minus(MinusGradMaker).grad_op_maker
        inputs, outputs = MINUS.inputs, MINUS.outputs
        wrong = {
            "of this operator must be given, got one of 'sin'": OpDesc("sin", inputs, outputs),
            "slots must be among X, Y, got 'Z'": OpDesc("my_minus", {"Z": ["a"]}, outputs),
            r"the inputs must be \(X, Y\), got 1": OpDesc("my_minus", {"X": ["a"]}, outputs),
            "attributes must be among none": OpDesc("my_minus", inputs, outputs, {"bogus": 1}),
            "outputs must be among Out, got 'O'": OpDesc("my_minus", inputs, {"O": ["c"]}),
        }
        for message, desc in wrong.items():
            with pytest.raises(ArgumentError, match=message):
                maker(desc)
        with pytest.raises(ArgumentError, match="cos: an OpDesc of this operator must be given"):
            get("cos").grad_op_maker(OpDesc("sin", {"x": ["a"]}, {"out": ["b"]}))

    def test_one_variable_in_two_slots(self):
        desc = OpDesc("my_minus", {"X": ["a"], "Y": ["a"]}, {"Out": ["o"]})
        descs = minus(MinusGradMaker).grad_op_maker(desc)
        values = {"a": 3.0, "o": 0.0, "o@GRAD": 1.0}
        for one in descs:
            values |= create(one).run(values)
        assert values["a@GRAD"] == 0.0
        assert descs[-1].type == "add_n"

    def test_what_nobody_wants_is_run(self):
        descs = minus(MinusGradMaker).grad_op_maker(MINUS, {"a"})
        assert create(descs[0]).run({"c@GRAD": 1.0}) == {}

    def test_what_create_refuses(self):
        made = create(OpDesc("scale", {"x": ["a"]}, {"out": ["b"]}, {"scale": 2.0}))
        with pytest.raises(ArgumentError, match="scale: attributes must come from the OpDesc"):
            made(1.0, scale=3.0)
        with pytest.raises(ArgumentError, match="create: an OpDesc must be given, got 'scale'"):
            create("scale")
        with pytest.raises(ArgumentError, match="'out' must name 1 variables, got 2"):
            create(OpDesc("sin", {"x": ["a"]}, {"out": ["b", "c"]})).run({"a": 1.0})

    def test_a_function_may_take_the_no_grad_set(self):
        seen = []

        def square_grad(op_desc, no_grad_set):
            seen.append(set(no_grad_set))
            return OpDesc("scale", {"x": ["Out@GRAD"]}, {"out": ["X@GRAD"]}, {"scale": 2.0})

        square = register_operator("squared", Square, square_grad)
        square.grad_op_maker(OpDesc("squared", {"X": ["x"]}, {"Out": ["y"]}), {"x"})
        assert seen[-1] == {"x"}
        with pytest.raises(RegistrationError, match="a gradient maker must take an OpDesc, got"):
            register_operator("other", Square, lambda: [])


class TestMisreadDeclarations:
    def test_instances_and_double_roles(self):
        class Both(OperatorBase, VarTypeInferer):
            def kernel(self, X):
                return X

        with pytest.raises(RegistrationError, match="must derive from one of OperatorBase and Var"):
            register_operator("both", Both)
        with pytest.raises(RegistrationError, match="a component must be a class derived from"):
            minus(VarTypeInferer())

    def test_kernels_that_are_no_methods(self):
        class Static(OperatorBase):
            @staticmethod
            def kernel(X):
                return X

        class Bare(OperatorBase):
            def kernel(X):  # noqa: N805  # what is refused
                return X

        for one in (Static, Bare):
            with pytest.raises(DeclarationError, match=r"kernel must be a method \(kernel\(self"):
                register_operator("wrong", one)

    def test_make_is_called_once(self):
        calls = []

        class Proto(MinusProto):
            def make(self):
                calls.append(self)
                super().make()

        register_operator("my_minus", MinusOp, Proto)
        assert len(calls) == 1

    def test_one_output_as_a_string(self):
        class Plain(OperatorBase):
            outputs = "Result"

            def kernel(self, name):
                return name

        plain = register_operator("plain", Plain)
        assert plain.outputs == ("Result",)
        assert plain(name=3.0) == 3.0

    def test_numbers_are_compared_as_the_type_has_them(self):
        class Proto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X")
                self.add_output("Out")
                self.add_attr("by", float).in_enum([1, 2])

        class Scale(OperatorBase):
            def kernel(self, X, *, by):
                return by * X

        assert register_operator("by", Scale, Proto)(3.0, by=2) == 6.0

    @pytest.mark.parametrize("name", ["", "a b", "class", "sin(", "../x", 5, "grad", "_vjp_sin"])
    def test_names(self, name):
        with pytest.raises((RegistrationError, TypeError)):
            register_operator(name, Square)

    def test_shape_rules_that_raise(self):
        class Strict(OperatorBase):
            def infer_shape(self, X):
                raise ValueError("X must be a matrix")

            def kernel(self, X):
                return X

        strict = register_operator("strict", Strict)
        with pytest.raises(ShapeError, match=r"^strict: X must be a matrix"):
            strict(1.0)

    def test_several_variables_in_and_out(self):
        class Proto(OpProtoAndCheckerMaker):
            def make(self):
                self.add_input("X").as_duplicable()
                self.add_output("Out").as_duplicable()

        class Twice(OperatorBase):
            def kernel(self, X):
                return [2 * one for one in X]

        class TwiceGrad(OperatorBase):
            def kernel(self, X, d_Out):
                return [2 * one for one in d_Out]

        class Maker(GradOpDescMaker):
            def __call__(self):
                pairs = zip(
                    self.output_grad("Out"), self.input_grad("X", drop_empty=False), strict=True
                )
                return [OpDesc("scale", {"x": [a]}, {"out": [b]}, {"scale": 2.0}) for a, b in pairs]

        class Kinds(VarTypeInferer):
            def __call__(self, op_desc, block):
                self.set_output_kind(op_desc, block, "Out", VarKind.LOD_TENSOR)

        with pytest.raises(DeclarationError, match="at most one slot must hold several variables"):
            register_op("twice", Twice, Proto, "twice_grad", TwiceGrad)
        twice = register_operator("twice", Twice, Proto, Maker, Kinds, cases=[case(X=[(2,), (3,)])])
        assert check_operator(twice).ok


class TestKindsBeforeShapes:
    def test_a_contradiction_is_found_when_the_graph_is_built(self):
        rows = register_operator("rows", TestKinds.LookupGrad, TestKinds.LookupKind)
        untyped = [so.var(name) for name in ("w", "ids", "d")]
        sparse = rows(*untyped, is_sparse=True)
        with pytest.raises(KindError, match="cos: slot 'x' must hold a dense array, got selected_"):
            so.cos(sparse)
        assert so.cos(rows(*untyped)).list_arguments() == ["w", "ids", "d"]

    def test_declared_types_are_compared_with_the_kernel(self):
        @registry.op(shape=registry.shapes.same, dtype=registry.shapes.inexact)
        def wrong(x: registry.Array) -> registry.Array:
            """``x``."""
            return x

        wrong.kind(lambda: VarKind.SELECTED_ROWS)
        with pytest.raises(KindError, match="'out' must be of the kind selected_rows, by its kind"):
            wrong(so.var("x", shape=(2,)))

    def test_what_an_inferer_sets_is_checked(self):
        class Bogus(VarTypeInferer):
            def __call__(self, op_desc, block):
                block.var("Out").kind = "bogus"

        class Unknown(VarTypeInferer):
            def __call__(self, op_desc, block):
                block.var("zzz").kind = VarKind.LOD_TENSOR

        for inferer in (Bogus, Unknown):
            op = register_operator("wrong", Square, inferer, replace=True)
            with pytest.raises(KindError, match=f"wrong: {inferer.__name__} must set a VarKind"):
                op(1.0)


class TestPromises:
    """What operators of the catalogue may do, operators of any package may declare."""

    @staticmethod
    def doubled(**options):
        """An operator whose gradient runs a linear one, and what the kernel of that received."""
        received = []

        @registry.op(name="twice", **options)
        def twice(x: registry.Array) -> registry.Array:
            """``2 x``."""
            received.append(x)
            return jnp.multiply(x, 2)

        @registry.op(name="squared_sum")
        def squared_sum(x: registry.Array) -> registry.Array:
            """``x * x``."""
            return jnp.multiply(x, x)

        twice.gradient(lambda d_out: {"x": twice(d_out)})
        squared_sum.gradient(lambda x, d_out: {"x": twice(x * d_out)})
        return twice, squared_sum, received

    @pytest.mark.parametrize("promised", [False, True])
    def test_a_transposable_kernel_is_not_tried(self, promised):
        options = {"transposable": True} if promised else {}
        _, squared_sum, received = self.doubled(**options, dtype=registry.shapes.inexact)
        assert jax.grad(squared_sum.__call__)(3.0) == 6.0
        # Two runs: abstractly, for the type of the result, and for the derivative. A trial is one
        # run forward, and one that is transposed.
        assert len(received) == (2 if promised else 4)

    @pytest.mark.parametrize("promised", [False, True])
    def test_a_kernel_that_takes_numbers_gets_them(self, promised):
        twice, _, received = self.doubled(**{"takes_numbers": True} if promised else {})
        assert on_arrays(twice, ())(3.0) == 6.0
        assert isinstance(received[-1], float) is promised

    def test_a_package_promises_for_all_its_operators(self):
        def kernel(x: registry.Array) -> registry.Array:
            """``x``."""
            return x

        kernel.__module__ = "promising.operators.first"
        assert not registry.Operator(kernel).native
        registry.declare_package("promising.operators", native=True, transposable=True)
        made = registry.Operator(kernel)
        assert made.native
        assert made.transposable
        assert not made.takes_numbers
        assert not registry.Operator(kernel, native=False).native
        assert not registry.Operator(kernel, opaque=True).transposable
        kernel.__module__ = "promising.operators2"
        assert not registry.Operator(kernel).native
        with pytest.raises(DeclarationError, match="name must be that of a module, got 'a b'"):
            registry.declare_package("a b")

    def test_the_catalogue_promises_like_any_package(self):
        for one in registry.operators():
            if one.kernel.__module__.startswith("registry.ops."):
                assert one.transposable is not one.opaque, one.name
                assert one.takes_numbers
                assert one.catalogued


class TestRejectedInputs:
    """Errors of kernels are told apart by what the kernels accept, not by their texts."""

    @staticmethod
    def strict(kernel):
        def strict(x: registry.Array, y: registry.Array) -> registry.Array:
            """Of ``x`` and ``y``."""
            return kernel(x, y)

        return registry.Operator(strict)

    def test_a_dtype(self):
        def kernel(x, y):
            if x.dtype != y.dtype:
                raise TypeError("the shape of things to come needs one type")
            return x

        x, y = so.var("x", (3,), dtype="int32"), so.var("y", (3,), dtype="float32")
        with pytest.raises(DTypeError, match=r"must fit together \(the shape of"):
            self.strict(kernel)(x, y)
        with pytest.raises(DTypeError, match="must fit together"):
            self.strict(lambda x, y: x & y)(y, y)

    def test_a_shape(self):
        def kernel(x, y):
            if x.shape != y.shape:
                raise ValueError("a dtype would not help")
            return x

        with pytest.raises(ShapeError, match=r"must fit together \(a dtype"):
            self.strict(kernel)(so.var("x", (3,)), so.var("y", (4,)))
