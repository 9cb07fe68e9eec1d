"""Products that lowering replaces by cheaper ones: chains in another order, lookups."""

import itertools

import jax
import numpy as np
import pytest

import symop as so
from registry import tuning
from symop.passes.chains import LONGEST

GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small_sizes():
    """Makes every saving worthwhile."""
    before = tuning.present.tuning
    tuning.tune(chain_saving=0, one_hot=0)
    yield
    tuning.present.tuning = before


def variables(**shapes):
    return [so.var(name, shape=shape) for name, shape in shapes.items()]


def drawn(symbol):
    """Arrays for the arguments of a symbol; integers from -2 to 10, or from 0 on."""
    shapes, dtypes = symbol.infer_shape()[0], symbol.infer_type()[0]
    arrays = {}
    for name, shape, dtype in zip(symbol.list_arguments(), shapes, dtypes, strict=True):
        values = GENERATOR.standard_normal(shape)
        if np.issubdtype(dtype, np.integer):
            values = GENERATOR.integers(0 if dtype.kind == "u" else -2, 11, shape)
        arrays[name] = values.astype(dtype)
    return arrays


def count(symbol, name):
    """How many calls of an operator run."""
    return {one.name: one.calls for one in so.explain(symbol).operators}.get(name, 0)


def close(found, expected, rtol=1e-9):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def turned(x):
    return so.permute_dims(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


# Chains ------------------------------------------------------------------------------------------


def column():
    a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
    return a @ b @ x


def row():
    a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
    return x @ (a @ b)


def row_and_column():
    a, b, x, y = variables(a=(8, 8), b=(8, 8), x=(8,), y=(8,))
    return x @ ((a @ b) @ y)


def low_rank():
    x, u, v = variables(x=(2, 9), u=(9, 1), v=(1, 9))
    return x @ (u @ v)


def transposed():
    a, b, x = variables(a=(8, 8), b=(8, 8), x=(8, 1))
    return turned(turned(b) @ turned(a)) @ x


def rows_turned():
    a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
    return turned(a @ b) @ x


def column_on_the_left():
    a, x, c = variables(a=(6, 6), x=(6,), c=(6, 6))
    return (a @ x) @ (c @ turned(a))


def outer():
    x, y, m = variables(x=(8,), y=(8,), m=(8, 3))
    return so.reshape(x, shape=(8, 1)) @ so.reshape(y, shape=(1, 8)) @ m


def batches():
    x, w, v = variables(x=(5, 3, 8), w=(8, 8), v=(8, 1))
    return x @ w @ v


def batches_and_column():
    x, w, v = variables(x=(5, 3, 8), w=(8, 8), v=(8,))
    return x @ w @ v


def row_and_batches():
    x, w, v = variables(x=(8,), w=(8, 8), v=(5, 8, 3))
    return x @ (w @ v)


def turned_batches():
    x, w, v = variables(x=(2, 8, 8), w=(8, 8), v=(2, 8, 1))
    return turned(x @ w) @ v


def dots():
    a, b, x = variables(a=(3, 4, 8), b=(8, 8), x=(8,))
    return so.dot(so.dot(a, b), x)


def power():
    a, x = variables(a=(8, 8), x=(8,))
    return a @ a @ a @ x


CHAINS = (
    column, row, row_and_column, low_rank, transposed, rows_turned, column_on_the_left, outer,
    batches, batches_and_column, row_and_batches, turned_batches, dots, power,
)  # fmt: skip


@pytest.mark.usefixtures("x64")
class TestChains:
    @pytest.mark.parametrize("build", CHAINS)
    def test_fewer_operations_compute_the_same(self, build):
        symbol = build()
        arrays = drawn(symbol)
        (note,) = so.explain(symbol).rewritten
        assert "matrix products of" in str(note)
        assert str(note) in str(so.explain(symbol))
        with so.rewriting(False):
            plain, expected = so.explain(symbol), symbol.to_jax()(**arrays)
        assert plain.rewritten == ()
        assert 2 * so.explain(symbol).flops <= plain.flops + 2
        assert so.explain(symbol).operators[0].calls <= plain.operators[0].calls
        close(symbol.to_jax()(**arrays), expected)

    @pytest.mark.parametrize("build", CHAINS)
    def test_gradients_take_fewer_operations(self, build):
        symbol = so.sum(so.tanh(build()))
        names, arrays = symbol.list_arguments(), drawn(symbol)
        whole = so.Group([symbol, *so.grad(symbol, names)])
        with so.rewriting(False):
            plain, expected = so.explain(whole).flops, whole.to_jax()(**arrays)
        # Gradients of batches are sums over the batch, too, which stay as they are.
        assert so.explain(whole).flops < plain or "batches" in build.__name__
        close(whole.to_jax()(**arrays), expected)
        value, gradients = so.value_and_grad(symbol)(**arrays)
        close([value, *(gradients[name] for name in names)], expected)

    def test_finite_differences(self):
        symbol = so.sum(so.tanh(column()))
        arrays = drawn(symbol)
        _, gradients = so.value_and_grad(symbol)(**arrays)
        by_jax = jax.grad(lambda given: symbol.to_jax()(**given))(arrays)
        for name, slope in gradients.items():
            way = GENERATOR.standard_normal(arrays[name].shape)
            ahead, behind = (
                symbol.eval({**arrays, name: arrays[name] + step * way}) for step in (1e-6, -1e-6)
            )
            np.testing.assert_allclose(np.sum(slope * way), (ahead - behind) / 2e-6, rtol=1e-6)
            close(by_jax[name], slope)

    def test_the_order_is_the_cheapest(self):
        def cheapest(lengths):
            if len(lengths) < 3:
                return 0
            return min(
                cheapest(lengths[: k + 1]) + cheapest(lengths[k:])
                + lengths[0] * lengths[k] * lengths[-1]
                for k in range(1, len(lengths) - 1)
            )  # fmt: skip

        for lengths in list(itertools.permutations((2, 30, 5, 40, 1)))[::9]:
            factors = [so.var(f"m{i}", shape=lengths[i : i + 2]) for i in range(4)]
            orders = [
                factors[0] @ factors[1] @ factors[2] @ factors[3],
                factors[0] @ (factors[1] @ (factors[2] @ factors[3])),
            ]
            least, multiplied = cheapest(lengths), []
            for symbol in orders:
                with so.rewriting(False):
                    plain = _multiplications(symbol)
                multiplied.append(_multiplications(symbol))
                assert multiplied[-1] == (least if plain >= 2 * least else plain)

    def test_random_products(self):
        for seed in range(20):
            symbol = _random_products(np.random.default_rng(seed))
            arrays = drawn(symbol)
            with so.rewriting(False):
                plain, expected = so.explain(symbol).flops, symbol.to_jax()(**arrays)
            assert so.explain(symbol).flops <= plain
            close(symbol.to_jax()(**arrays), expected, rtol=1e-8)


def _multiplications(symbol):
    """The multiplications of products of two matrices."""
    total = 0
    for line in so.explain(symbol).operators:
        if line.name == "matmul":
            total += line.flops
    return total // 2


def _random_products(draw):
    """Sums of products that share factors and parts, some of them transposed."""
    values = [so.var(f"v{i}", shape=(4, 4) if i % 3 else (4,)) for i in range(4)]
    leaves = list(values)
    for _ in range(8):
        x, y = (values[draw.integers(len(values))] for _ in range(2))
        x = turned(x) if x.ndim == 2 and draw.random() < 0.3 else x
        new = x @ y if x.ndim + y.ndim else x * y
        values.append(new if new.ndim else leaves[0] * new)
    return so.Group([so.tanh(one) for one in values[-2:]])


class TestChainsThatStay:
    def stays(self, symbol):
        return so.explain(symbol).rewritten == ()

    def test_a_product_that_something_else_reads(self):
        a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
        product = a @ b
        assert self.stays(so.Group([product @ x, product]))
        assert self.stays(so.Group([product @ x, so.tanh(product)]))
        assert self.stays(so.Group([product @ x, turned(product)]))
        assert not self.stays(so.Group([product @ x, x @ product]))

    def test_a_product_with_a_name(self):
        a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
        assert self.stays(so.matmul(a, b, name="product") @ x)
        assert not self.stays(so.matmul(a @ b, x, name="result"))
        assert so.matmul(a @ b, x, name="result").list_outputs() == ["result_output"]

    def test_a_product_in_another_scope(self):
        a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
        with so.remat.scope():
            product = a @ b
        assert self.stays(product @ x)

    def test_products_that_are_cheap_or_not_much_cheaper_otherwise(self):
        a, b, x = variables(a=(8, 8), b=(8, 8), x=(8, 4))
        assert self.stays(a @ b @ x)  # 768 multiplications rather than 512
        tuning.tune(chain_saving=1000)
        assert self.stays(column())

    def test_long_chains(self):
        a, x = variables(a=(4, 4), x=(4,))
        for _ in range(LONGEST):
            a = a @ a  # of exponentially many factors
        assert self.stays(a @ x)

    def test_other_dtypes_and_axes(self):
        a, b, x = variables(a=(8, 8), b=(8, 8), x=(8,))
        assert self.stays(so.cast(a @ b, dtype="float16") @ so.cast(x, dtype="float16"))
        stacks = so.var("c", shape=(8, 8, 8))
        assert self.stays(so.dot(a @ b, stacks))
        assert self.stays(so.permute_dims(stacks @ b, axes=(1, 0, 2)) @ x)

    def test_a_function_keeps_the_choice_of_where_it_was_made(self):
        symbol = column()
        with so.rewriting(False):
            function = symbol.to_jax()
        shape = "f32[8,8] = dot_general"
        arrays = drawn(symbol)
        assert shape in str(jax.make_jaxpr(function)(**arrays))
        assert shape not in str(jax.make_jaxpr(symbol.to_jax())(**arrays))

    def test_policies_of_memory(self):
        symbol = so.sum(so.tanh(column()))
        arrays = drawn(symbol)
        for policy in (so.remat.keep_costly(), so.remat.segments(2)):
            close(
                so.value_and_grad(symbol, remat=policy)(**arrays),
                so.value_and_grad(symbol)(**arrays),
                rtol=1e-5,
            )


# Lookups -----------------------------------------------------------------------------------------


def ids(*shape, dtype="int32"):
    return so.var("ids", shape=shape, dtype=dtype)


def hot(*shape, **how):
    return so.one_hot(ids(*shape, dtype=how.pop("of", "int32")), num_classes=9, **how)


def table(*shape, **how):
    return so.var("w", shape=shape or (9, 4), **how)


LOOKUPS = {
    "matmul": lambda: hot(5) @ table(),
    "of several axes": lambda: hot(2, 5) @ table(),
    "of no axis": lambda: hot() @ table(),
    "vector": lambda: hot(2, 3) @ table(9),
    "dot": lambda: so.dot(hot(2, 5), table()),
    "layer": lambda: so.fully_connected(hot(5), units=4, name="f"),
    "layer without bias": lambda: so.fully_connected(
        hot(2, 5), units=4, use_bias=False, flatten=False, name="f"
    ),
    "einsum": lambda: so.einsum("bsn,nd->bsd", hot(2, 5), table()),
    "unsigned": lambda: hot(5, of="uint8") @ table(),
    "small integers": lambda: hot(5, of="int8") @ table(),
    "cast": lambda: so.cast(hot(5, dtype="int32"), dtype="float32") @ table(),
    "wider": lambda: hot(5) @ table(9, 4, dtype="float16"),
    "boolean": lambda: hot(5, dtype="bool") @ table(),
    "complex": lambda: hot(5) @ table(9, 4, dtype="complex64"),
    "first axis": lambda: turned(hot(5, axis=0)) @ table(),
    "columns": lambda: table(2, 4, 9) @ turned(hot(5)),
    "entry": lambda: table(2, 4, 9) @ hot(),
    "sums": lambda: turned(hot(5)) @ table(5, 4),
    "sums of numbers": lambda: hot(5, axis=0) @ table(5),
    "sums in half precision": lambda: (
        turned(hot(5, dtype="bfloat16")) @ table(5, 4, dtype="bfloat16")
    ),
    "sums of columns": lambda: table(4, 5) @ hot(5),
    "reshaped": lambda: so.reshape(hot(2, 5), shape=(10, 9)) @ table(),
    "sums by einsum": lambda: so.einsum("bsn,bsd->nd", hot(2, 5), table(2, 5, 4)),
}


@pytest.mark.parametrize("build", LOOKUPS.values(), ids=LOOKUPS)
def test_lookups_compute_the_same(build):
    symbol = build()
    arrays = drawn(symbol)
    report = so.explain(symbol)
    (note,) = report.rewritten
    assert "of one_hot became" in str(note)
    assert "one_hot" not in {one.name for one in report.operators}
    with so.rewriting(False):
        expected = symbol.to_jax()(**arrays)
        assert count(symbol, "one_hot") == 1
    found = symbol.to_jax()(**arrays)
    assert found.dtype == expected.dtype
    if "sum" in str(note) or "add_rows" in str(note):
        close(found.astype(np.float32), expected.astype(np.float32), rtol=1e-2)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "name", ["matmul", "of several axes", "vector", "layer", "layer without bias", "einsum", "sums"]
)
def test_gradients_of_lookups_add_rows(name):
    symbol = so.sum(so.tanh(LOOKUPS[name]()))
    names = [one for one in symbol.list_arguments() if one != "ids"]
    arrays = drawn(symbol)
    whole = so.Group([symbol, *so.grad(symbol, names)])
    assert count(whole, "one_hot") == 0
    with so.rewriting(False):
        expected = whole.to_jax()(**arrays)
    close(whole.to_jax()(**arrays), expected, rtol=1e-5)
    value, gradients = so.value_and_grad(symbol, names)(**arrays)
    close([value, *(gradients[one] for one in names)], expected, rtol=1e-5)


class TestLookupsInDetail:
    def test_known_ids_may_be_out_of_range(self):
        symbol = so.one_hot(np.asarray([3, -1, 9]), num_classes=9) @ table()
        weight = drawn(symbol)["w"]
        expected = [weight[3], np.zeros(4), np.zeros(4)]
        np.testing.assert_array_equal(symbol.eval(w=weight), expected)
        assert count(symbol, "one_hot") == 0

    def test_a_row_that_is_not_read_may_be_infinite(self):
        symbol = hot(2) @ table()
        weight = np.ones((9, 4), np.float32)
        weight[5] = np.inf
        np.testing.assert_array_equal(symbol.eval(ids=[1, 2], w=weight), np.ones((2, 4)))
        with so.rewriting(False):
            assert np.isnan(symbol.eval(ids=[1, 2], w=weight)).all()

    @pytest.mark.parametrize("dtype", ["int8", "int16"])
    def test_sums_of_integers_wrap_as_products_do(self, dtype):
        classes = so.one_hot(ids(300), num_classes=9, dtype=dtype)
        symbol = so.matmul(classes.T, so.var("x", shape=(300, 1), dtype=dtype))
        most = np.iinfo(dtype).max
        arrays = {"ids": np.full(300, 2, np.int32), "x": np.full((300, 1), most, dtype)}
        assert count(symbol, "one_hot") == 0
        found = symbol.eval(**arrays)
        assert found.dtype == dtype
        expected = np.zeros((9, 1), np.int64)
        expected[2] = 300 * most
        np.testing.assert_array_equal(found, expected.astype(dtype))

    def test_few_classes_stay(self):
        tuning.tune(one_hot=10)
        assert count(hot(5) @ table(), "one_hot") == 1

    def test_names_stay(self):
        symbol = so.fully_connected(hot(5), units=4, name="f")
        assert symbol.list_outputs() == ["f_output"]
        assert count(symbol, "lookup_table") == 1

    def test_other_products_stay(self):
        x = so.var("x", shape=(3, 5, 4))
        for symbol in (
            hot(3, 5, axis=1) @ x,
            hot(3, 5) @ so.var("y", shape=(3, 9, 2)),
            so.einsum("bsn,bnd->bsd", hot(3, 5), so.var("y", shape=(3, 9, 2))),
            so.einsum("sn,nd->ds", hot(5), table()),
            so.var("v", shape=(2, 3, 5)) @ hot(5),
            hot(3, 5) * so.var("z", shape=(9,)),
            so.fully_connected(hot(3, 5), units=4, name="f"),
        ):
            assert count(symbol, "one_hot") == 1


class TestThresholds:
    def test_a_mask_of_relu_is_computed_from_its_operand(self):
        x = so.var("x", shape=(7,))
        mask = so.where(so.relu(x) > 0, 2.0, 3.0)
        assert count(mask, "relu") == 0
        with so.rewriting(False):
            assert count(mask, "relu") == 1
        values = np.array([np.nan, -0.0, 0.0, 1.0, -1.0, np.inf, -np.inf], np.float32)
        np.testing.assert_array_equal(mask.eval(x=values), [3, 3, 3, 2, 3, 2, 3])

    def test_the_gradient_is_that_of_jax(self):
        x = so.var("x", shape=(7,))
        values = np.array([np.nan, -0.0, 0.0, 1.0, -1.0, np.inf, -np.inf], np.float32)
        slope = so.grad(so.sum(3.0 * so.relu(x)), "x")
        assert count(slope, "relu") == 0
        expected = jax.grad(lambda x: jax.numpy.sum(3.0 * jax.nn.relu(x)))(values)
        np.testing.assert_array_equal(slope.eval(x=values), expected)

    @pytest.mark.parametrize("bound", [1.0, -1.0])
    def test_other_bounds_stay(self, bound):
        x = so.var("x", shape=(4,))
        mask = so.relu(x) > bound
        assert count(mask, "relu") == 1
        np.testing.assert_array_equal(
            mask.eval(x=np.float32([-2, 0, 0.5, 2])), np.float32([0, 0, 0.5, 2]) > bound
        )

    def test_what_rematerialization_keeps_stays(self):
        x = so.var("x", shape=(4,))
        with so.remat.scope(so.remat.keep_all()):
            loss = so.sum(so.square(x) + so.relu(x))
        slope = so.grad(loss, "x")
        assert count(slope, "relu") == 1
        values = np.array([-2, -1, 1, 2], np.float32)
        np.testing.assert_array_equal(slope.eval(x=values), 2 * values + (values > 0))
