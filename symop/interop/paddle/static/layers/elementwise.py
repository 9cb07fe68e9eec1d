"""Entrywise functions of several variables, comparisons, reductions and products of matrices."""

from collections.abc import Callable, Sequence

from symop.interop.paddle.programs import Variable
from symop.interop.paddle.static.helper import Layer, named


def _binary(kind: str) -> Callable[..., Variable]:
    def layer(
        x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
    ) -> Variable:
        one = Layer(kind, name)
        return one.activated(one.call(kind, {"X": x, "Y": y}, attrs={"axis": axis}), act)

    doc = f"Returns ``{kind}`` of two variables; the first axis of ``y`` meets ``axis``."
    return named(layer, kind, doc)


elementwise_add = _binary("elementwise_add")
elementwise_sub = _binary("elementwise_sub")
elementwise_mul = _binary("elementwise_mul")
elementwise_div = _binary("elementwise_div")
elementwise_max = _binary("elementwise_max")
elementwise_min = _binary("elementwise_min")
elementwise_pow = _binary("elementwise_pow")
elementwise_mod = _binary("elementwise_mod")
elementwise_floordiv = _binary("elementwise_floordiv")


def _comparison(kind: str) -> Callable[..., Variable]:
    def layer(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
        return _written(kind, {"X": x, "Y": y}, cond)

    return named(layer, kind, f"Returns ``{kind}`` of two variables, or writes it to ``cond``.")


def _written(kind: str, inputs: dict[str, Variable], out: Variable | None) -> Variable:
    layer = Layer(kind)
    if out is None:
        return layer.call(kind, inputs, stop_gradient=True)
    layer.block.append_op(kind, inputs, {"Out": out})
    return out


equal = _comparison("equal")
not_equal = _comparison("not_equal")
less_than = _comparison("less_than")
less_equal = _comparison("less_equal")
greater_than = _comparison("greater_than")
greater_equal = _comparison("greater_equal")


def _logical(kind: str) -> Callable[..., Variable]:
    def layer(
        x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
    ) -> Variable:
        del name
        return _written(kind, {"X": x, "Y": y}, out)

    return named(layer, kind, f"Returns ``{kind}`` of two variables, or writes it to ``out``.")


logical_and = _logical("logical_and")
logical_or = _logical("logical_or")
logical_xor = _logical("logical_xor")


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Returns where ``x`` is false."""
    del name
    return _written("logical_not", {"X": x}, out)


def _reduction(kind: str) -> Callable[..., Variable]:
    def layer(
        input: Variable,
        dim: int | Sequence[int] | None = None,
        keep_dim: bool = False,
        name: str | None = None,
    ) -> Variable:
        axes = [dim] if isinstance(dim, int) else list(dim or ())
        every = not axes or len(axes) == len(input.shape)
        attrs = {"dim": axes or [0], "keep_dim": keep_dim, "reduce_all": every}
        return Layer(kind, name).call(kind, {"X": input}, attrs=attrs)

    return named(layer, kind, f"Returns ``{kind}`` over the axes ``dim``, by default all.")


reduce_sum = _reduction("reduce_sum")
reduce_mean = _reduction("reduce_mean")
reduce_max = _reduction("reduce_max")
reduce_min = _reduction("reduce_min")
reduce_prod = _reduction("reduce_prod")
reduce_all = _reduction("reduce_all")
reduce_any = _reduction("reduce_any")


def mean(x: Variable, name: str | None = None) -> Variable:
    """Returns the mean of all entries, with shape (1,)."""
    return Layer("mean", name).call("mean", {"X": x})


def sums(input: Sequence[Variable] | Variable, out: Variable | None = None) -> Variable:
    """Returns the sum of variables, or writes it to ``out``."""
    layer = Layer("sum")
    given = [input] if isinstance(input, Variable) else list(input)
    if out is None:
        return layer.call("sum", {"X": given})
    layer.block.append_op("sum", {"X": given}, {"Out": out})
    return out


sum = sums


def mul(
    x: Variable,
    y: Variable,
    x_num_col_dims: int = 1,
    y_num_col_dims: int = 1,
    name: str | None = None,
) -> Variable:
    """Returns the product of matrices into which the inputs are flattened."""
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return Layer("mul", name).call("mul", {"X": x, "Y": y}, attrs=attrs)


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """Returns products of matrices, times ``alpha``."""
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": alpha}
    return Layer("matmul", name).call("matmul", {"X": x, "Y": y}, attrs=attrs)


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """Returns the cosine of the angle between rows."""
    return Layer("cos_sim").call("cos_sim", {"X": X, "Y": Y}, "Out XNorm YNorm")
