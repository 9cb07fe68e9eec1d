"""LoDTensor and the operators on ragged sequences, against loops over Python's lists."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import registry
import symop as so
from registry.errors import (
    ArgumentError,
    AttributeValueError,
    DTypeError,
    KindError,
    ShapeError,
    UnknownTypeError,
)

NAN = np.nan
LENGTHS = [[3, 0, 2], [0, 0, 4], [1], [0], [5, 1, 0, 0, 2]]


def ragged(lengths, seed=0, width=2):
    """Lists of steps, each of them a list of numbers."""
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(n, width)).astype(np.float32).tolist() for n in lengths]


def tensor(sequences, width=2):
    """The same as a LoDTensor, also where all are empty."""
    steps = [step for one in sequences for step in one]
    data = np.asarray(steps, np.float32).reshape(-1, width)
    return so.LoDTensor(jnp.asarray(data), [np.cumsum([0, *map(len, sequences)])])


def close(found, wanted, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=rtol, atol=1e-6)


def same_lists(found, wanted):
    """Whether a LoDTensor holds these sequences."""
    assert [len(one) for one in found.to_lists()] == [len(one) for one in wanted]
    for own, other in zip(found.to_lists(), wanted, strict=True):
        close(np.reshape(own, (-1,)), np.reshape(other, (-1,)))


def column(steps, i):
    return [step[i] for step in steps]


POOLS = {
    "sum": sum,
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "sqrt": lambda numbers: sum(numbers) / len(numbers) ** 0.5,
    "max": max,
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
}


class TestMaking:
    def test_from_lists_of_one_level(self):
        words = so.LoDTensor.from_lists([[3, 1, 4], [], [1, 5]])
        assert words.data.tolist() == [3, 1, 4, 1, 5]
        assert words.data.dtype == np.int32
        assert [one.tolist() for one in words.lod] == [[0, 3, 3, 5]]
        assert len(words) == words.count() == 3
        assert words.lod_level == 1
        assert words.type == registry.VarType((5,), np.dtype(np.int32))

    @pytest.mark.parametrize(
        ("lists", "level"),
        [
            ([[[1, 2], [3]], [], [[], [4, 5, 6]]], 2),
            ([[[[1], []], []], [[[2, 3]]]], 3),
            ([[[1, 2], [3, 4]], [[5, 6]], []], 1),
            ([[], []], 1),
            ([], 1),
            ([[], [[]]], 2),
        ],
    )
    def test_lists_come_back(self, lists, level):
        made = so.LoDTensor.from_lists(lists, lod_level=level)
        assert made.lod_level == level
        assert made.to_lists() == lists

    def test_levels_count_what_the_next_one_bounds(self):
        text = so.LoDTensor.from_lists([[[1, 2], [3]], [], [[], [4, 5, 6]]], lod_level=2)
        assert [one.tolist() for one in text.lod] == [[0, 2, 2, 4], [0, 2, 3, 3, 6]]
        assert text.recursive_sequence_lengths() == [[2, 0, 2], [2, 1, 0, 3]]
        assert text.offsets(0).tolist() == [0, 3, 3, 6]
        assert text.offsets(1).tolist() == text.offsets().tolist() == [0, 2, 3, 3, 6]
        assert text.lengths(0).tolist() == [3, 0, 3]
        assert text.lengths(-1).tolist() == [2, 1, 0, 3]

    def test_lengths_make_the_same(self):
        text = so.LoDTensor.from_lengths(np.arange(6), [[2, 0, 2], [2, 1, 0, 3]])
        assert text.to_lists() == [[[0, 1], [2]], [], [[], [3, 4, 5]]]
        assert text.recursive_sequence_lengths() == [[2, 0, 2], [2, 1, 0, 3]]

    def test_arrays_of_steps(self):
        made = so.LoDTensor.from_lists([np.ones((2, 3)), np.zeros((0, 3)), np.ones((1, 3))])
        assert made.shape == (3, 3)
        assert made.dtype == np.float32
        assert made.lod[0].tolist() == [0, 2, 2, 3]

    def test_another_dtype(self):
        assert so.LoDTensor.from_lists([[1], [2]], dtype=np.float32).dtype == np.float32

    @pytest.mark.parametrize(
        ("lod", "message"),
        [
            ([[1, 5]], "offsets of level 0 must start with 0, got [1, 5]"),
            ([[0, 3, 2, 5]], "offsets of level 0 must never decrease, got [0, 3, 2, 5]"),
            ([[0, 6]], "must end with 5, the number of what they count, got [0, 6]"),
            ([[0, 4]], "must end with 5, the number of what they count, got [0, 4]; padded=True"),
            ([[0, 2], [0, 5]], "offsets of level 0 must end with 1"),
            ([[0, 1], [0, 4]], "offsets of level 1 must end with 5"),
            ([[[0, 5]]], "level 0 must be a vector with one number more than there are sequences"),
            ([[]], "level 0 must be a vector with one number more"),
            ([5], "level 0 must be a vector"),
            ([], "there must be a level of offsets, got none"),
        ],
    )
    def test_wrong_offsets_are_refused(self, lod, message):
        for kind in (list, np.asarray, jnp.asarray):
            with pytest.raises(ShapeError) as caught:
                so.LoDTensor(
                    np.zeros(5), [kind(o) if np.ndim(o) or kind is not list else o for o in lod]
                )
            assert message in str(caught.value)

    def test_offsets_must_be_integers(self):
        with pytest.raises(DTypeError, match="level 0 must be integers, got float64"):
            so.LoDTensor(np.zeros(5), [[0.0, 5.0]])
        with pytest.raises(DTypeError, match="level 0 must be integers, got float64"):
            so.LoDTensor.from_lengths(np.zeros(5), [[2.5, 2.5]])

    def test_data_needs_steps(self):
        with pytest.raises(ShapeError, match="data must have an axis for the steps"):
            so.LoDTensor(np.float32(1), [[0, 1]])

    def test_padding_must_be_allowed(self):
        made = so.LoDTensor(np.arange(5), [[0, 1, 3]], padded=True)
        assert made.to_lists() == [[0], [1, 2]]
        with pytest.raises(ShapeError, match="must end with at most 5"):
            so.LoDTensor(np.arange(5), [[0, 6]], padded=True)

    @pytest.mark.parametrize("lists", [[1, 2], [[1], 2], ["ab"]])
    def test_lists_must_nest_as_told(self, lists):
        with pytest.raises(ShapeError, match="a sequence must be a list or an array"):
            so.LoDTensor.from_lists(lists, lod_level=2 if lists == [[1], 2] else 1)

    def test_steps_must_be_alike(self):
        with pytest.raises(ShapeError, match="the steps of a sequence must have one shape"):
            so.LoDTensor.from_lists([[[1], [2, 3]]])
        with pytest.raises(AttributeValueError, match="lod_level must be positive"):
            so.LoDTensor.from_lists([], lod_level=0)

    def test_negative_lengths_are_refused(self):
        with pytest.raises(ShapeError, match="without negative numbers, got \\[2, -1\\]"):
            so.LoDTensor.from_lengths(np.zeros(1), [[2, -1]])


class TestPadded:
    @pytest.mark.parametrize("lengths", LENGTHS)
    def test_there_and_back(self, lengths):
        lists = ragged(lengths)
        rows, mask = tensor(lists).to_padded(pad_value=-1.0)
        assert rows.shape == (len(lengths), max(lengths), 2)
        for row, own, steps in zip(rows, mask, lists, strict=True):
            assert own.tolist() == [True] * len(steps) + [False] * (max(lengths) - len(steps))
            close(row[: len(steps)], np.reshape(steps, (-1, 2)))
            assert np.all(np.asarray(row[len(steps) :]) == -1.0)
        same_lists(so.LoDTensor.from_padded(rows, mask=mask), lists)
        same_lists(so.LoDTensor.from_padded(rows, length=lengths), lists)

    def test_a_longer_sequence_is_cut(self):
        rows, mask = so.LoDTensor(jnp.arange(5), [[0, 4, 5]]).to_padded(2)
        assert rows.tolist() == [[0, 1], [4, 0]]
        assert mask.tolist() == [[True, True], [True, False]]

    def test_a_mask_must_begin_with_the_steps(self):
        with pytest.raises(ShapeError, match="mask must be true before it is false"):
            so.LoDTensor.from_padded(np.zeros((1, 3)), mask=np.array([[True, False, True]]))

    def test_length_or_mask(self):
        for given in ({}, {"length": [1], "mask": np.array([[True]])}):
            with pytest.raises(ArgumentError, match="length or mask must be given"):
                so.LoDTensor.from_padded(np.zeros((1, 1)), **given)

    def test_lengths_may_be_traced(self):
        def back(rows, mask):
            return so.LoDTensor.from_padded(rows, mask=mask, total_length=5)

        rows = jnp.asarray([[1, 0], [2, 3]])
        found = jax.jit(back)(rows, rows > 0)
        assert found.data.tolist() == [1, 2, 3, 0, 0]
        assert found.lod[0].tolist() == [0, 1, 3]
        with pytest.raises(UnknownTypeError, match="total_length must be known"):
            jax.jit(lambda r: so.LoDTensor.from_padded(r, mask=r > 0).data)(rows)

    def test_batches_of_one_static_length(self):
        words = so.LoDTensor(np.arange(3), [[0, 1, 3]]).with_total_length(5)
        assert words.data.tolist() == [0, 1, 2, 0, 0]
        assert isinstance(words.data, np.ndarray)
        assert words.to_lists() == [[0], [1, 2]]
        assert words.with_total_length(4).shape == (4,)
        with pytest.raises(ShapeError, match="total_length must be at least 3, got 2"):
            words.with_total_length(2)

    def test_batches_of_arrays_on_a_device(self):
        words = so.LoDTensor(jnp.ones((3, 2)), [[0, 1, 3]]).with_total_length(4)
        assert words.data.tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]
        assert words.sequence_pool("sum").tolist() == [[1, 1], [2, 2]]


class TestParts:
    TEXT = so.LoDTensor.from_lists([[[1, 2], [3]], [], [[], [4, 5, 6]]], lod_level=2)

    def test_a_sequence_of_the_last_level_is_an_array(self):
        words = so.LoDTensor(jnp.arange(5), [[0, 3, 3, 5]])
        assert [one.tolist() for one in words] == [[0, 1, 2], [], [3, 4]]
        assert words[-1].tolist() == [3, 4]
        assert words[np.int64(0)].tolist() == [0, 1, 2]

    def test_a_sequence_above_is_a_tensor(self):
        assert [one.to_lists() for one in self.TEXT] == self.TEXT.to_lists()
        assert self.TEXT[2].lod[0].tolist() == [0, 0, 3]

    @pytest.mark.parametrize("index", [slice(1, 3), slice(0), slice(None), slice(-1, None)])
    def test_slices(self, index):
        assert self.TEXT[index].to_lists() == self.TEXT.to_lists()[index]

    def test_beyond(self):
        with pytest.raises(IndexError):
            self.TEXT[3]
        with pytest.raises(ArgumentError, match="a slice must have step 1, got 2"):
            self.TEXT[::2]
        with pytest.raises(AttributeValueError, match="level must be in \\[-2, 2\\), got 2"):
            self.TEXT.offsets(2)

    def test_other_data(self):
        words = so.LoDTensor(jnp.arange(3), [[0, 1, 3]])
        assert words.with_data(words.data * 2).to_lists() == [[0], [2, 4]]
        with pytest.raises(ShapeError, match="there must be 3 steps, got 2"):
            words.with_data(jnp.zeros(2))

    def test_text(self):
        assert repr(self.TEXT) == (
            "LoDTensor(int32[6], lod=[[0, 2, 2, 4], [0, 2, 3, 3, 6]])\n"
            "  0.0: [1 2]\n  0.1: [3]\n  2.0: []\n  2.1: [4 5 6]"
        )

    def test_text_of_many_sequences_is_short(self):
        many = so.LoDTensor(np.arange(1000), [np.arange(1001)])
        assert repr(many).splitlines() == [
            "LoDTensor(int64[1000], lod=[[0, 1, 2, ..., 998, 999, 1000]])",
            *[f"  {i}: [{i}]" for i in range(8)],
            "  ...: 992 more",
        ]

    def test_text_of_what_is_traced(self):
        seen = []
        jax.jit(lambda one: seen.append(repr(one)))(self.TEXT)
        assert seen == ["LoDTensor(int32[6], lod=[int32[4], int32[5]])"]

    def test_table(self):
        html = so.LoDTensor(np.arange(3), [[0, 1, 3]])._repr_html_()
        assert html.startswith("<table><caption>LoDTensor int64[3], lod [[0, 1, 3]]</caption>")
        assert "<tr><th>1</th><td>2</td><td><code>[1 2]</code></td></tr>" in html
        assert html.endswith("</table>")

    def test_it_is_a_pytree(self):
        leaves, structure = jax.tree.flatten(self.TEXT)
        assert len(leaves) == 3
        assert jax.tree.unflatten(structure, leaves).to_lists() == self.TEXT.to_lists()
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(self.TEXT)]
        assert paths == [".data", ".lod[0]", ".lod[1]"]
        doubled = jax.jit(lambda one: jax.tree.map(lambda leaf: leaf * 2, one))(self.TEXT)
        assert doubled.lod[1].tolist() == [0, 4, 6, 6, 12]

    @pytest.mark.parametrize("taken", [np.asarray, jnp.asarray, so.nd.array])
    def test_it_is_no_array(self, taken):
        with pytest.raises(KindError, match=r"an array must be chosen, .data or to_padded\(\)"):
            taken(so.LoDTensor(np.arange(4), [[0, 2, 4]]))

    def test_an_operator_tells_that_it_takes_arrays(self):
        with pytest.raises(ArgumentError, match="slot 'x' must hold an array, a number or a sym"):
            so.relu(self.TEXT)

    def test_it_is_pickled(self):
        assert pickle.loads(pickle.dumps(self.TEXT)).to_lists() == self.TEXT.to_lists()

    def test_values_are_needed(self):
        def lists(one):
            one.to_lists()

        with pytest.raises(UnknownTypeError, match="to_lists: lod must be known"):
            jax.jit(lists)(self.TEXT)


@pytest.mark.parametrize("lengths", LENGTHS)
class TestAgainstLoops:
    @pytest.mark.parametrize("pool", POOLS)
    def test_pool(self, lengths, pool):
        lists = ragged(lengths)
        wanted = [
            [POOLS[pool](column(steps, i)) if steps else -7.0 for i in range(2)] for steps in lists
        ]
        close(tensor(lists).sequence_pool(pool, pad_value=-7.0), wanted)

    def test_softmax(self, lengths):
        lists = ragged(lengths)
        wanted = []
        for steps in lists:
            powers = [[np.exp(number) for number in step] for step in steps]
            totals = [sum(column(powers, i)) for i in range(2)]
            wanted.append([[p / t for p, t in zip(row, totals, strict=True)] for row in powers])
        same_lists(tensor(lists).sequence_softmax(), wanted)

    def test_reverse(self, lengths):
        lists = ragged(lengths)
        same_lists(tensor(lists).sequence_reverse(), [steps[::-1] for steps in lists])

    def test_expand_as(self, lengths):
        lists = ragged(lengths)
        rows = np.arange(len(lists))
        found = tensor(lists).sequence_expand_as(rows)
        assert found.to_lists() == [[s] * len(steps) for s, steps in enumerate(lists)]

    def test_expand(self, lengths):
        lists, times = ragged(lengths), [(2 * s + 1) % 3 for s in range(len(lengths))]
        y = so.LoDTensor.from_lengths(np.zeros(sum(times)), [times])
        wanted = [steps for steps, n in zip(lists, times, strict=True) for _ in range(n)]
        same_lists(tensor(lists).sequence_expand(y), wanted)

    def test_concat(self, lengths):
        parts = [ragged(lengths), ragged(lengths[::-1], seed=1), ragged(lengths, seed=2)]
        first, *others = map(tensor, parts)
        same_lists(
            first.sequence_concat(*others), [a + b + c for a, b, c in zip(*parts, strict=True)]
        )

    def test_slice(self, lengths):
        lists = ragged(lengths)
        begin, length = [s % 3 for s in range(len(lists))], [2] * len(lists)
        wanted = [steps[b : b + 2] for b, steps in zip(begin, lists, strict=True)]
        same_lists(tensor(lists).sequence_slice(begin, length), wanted)

    @pytest.mark.parametrize(("length", "start"), [(3, None), (2, None), (1, 0), (2, 1), (4, -3)])
    def test_conv(self, lengths, length, start):
        lists = ragged(lengths)
        weight = np.random.default_rng(5).normal(size=(length * 2, 3)).astype(np.float32)
        first, wanted = -(length // 2) if start is None else start, []
        for steps in lists:
            rows = []
            for i in range(len(steps)):
                context = []
                for j in range(i + first, i + first + length):
                    context += steps[j] if 0 <= j < len(steps) else [0.0, 0.0]
                rows.append(
                    [
                        sum(c * w for c, w in zip(context, weight[:, m], strict=True))
                        for m in range(3)
                    ]
                )
            wanted.append(rows)
        found = tensor(lists).sequence_conv(weight, context_length=length, context_start=start)
        same_lists(found, wanted)


class TestLevels:
    LISTS = ([[1.0, 2.0], [3.0]], [], [[], [4.0, 5.0, 6.0]])

    def test_the_last_level_is_pooled_first(self):
        text = so.LoDTensor.from_lists(self.LISTS, lod_level=2)
        sentences = text.sequence_pool("sum")
        assert sentences.to_lists() == [[3.0, 3.0], [], [0.0, 15.0]]
        assert sentences.sequence_pool("max", pad_value=-1.0).tolist() == [3.0, -1.0, 15.0]

    def test_an_outer_level_is_pooled_at_once(self):
        text = so.LoDTensor.from_lists(self.LISTS, lod_level=2)
        assert text.sequence_pool("mean", level=0).tolist() == [2.0, 0.0, 5.0]

    def test_the_softmax_of_an_outer_level(self):
        text = so.LoDTensor.from_lists(self.LISTS, lod_level=2)
        close(text.sequence_softmax(level=0).sequence_pool("sum", level=0), [1, 0, 1])

    def test_steps_of_the_last_level_are_reversed_sliced_joined(self):
        text = so.LoDTensor.from_lists(self.LISTS, lod_level=2)
        assert text.sequence_reverse().to_lists() == [[[2, 1], [3]], [], [[], [6, 5, 4]]]
        shorter = text.sequence_slice([1, 0, 0, 1], [1, 0, 1, 9])
        assert shorter.to_lists() == [[[2], []], [], [[], [5, 6]]]
        joined = shorter.sequence_concat(text)
        assert joined.to_lists() == [[[2, 1, 2], [3]], [], [[], [5, 6, 4, 5, 6]]]

    def test_sequences_are_repeated_by_an_outer_level(self):
        # The example of Paddle's documentation.
        x = so.LoDTensor.from_lists([[1, 2], [3, 4]])
        y = so.LoDTensor.from_lengths(np.zeros(8), [[2, 2], [3, 3, 1, 1]])
        found = x.sequence_expand(y, ref_level=0)
        assert found.to_lists() == [[1, 2], [1, 2], [3, 4], [3, 4]]

    def test_what_does_not_fit_is_refused(self):
        text = so.LoDTensor.from_lists(self.LISTS, lod_level=2)
        words = so.LoDTensor(np.zeros(3), [[0, 3]])
        with pytest.raises(ShapeError, match="one level of 4 sequences must be expanded"):
            words.sequence_expand(text)
        with pytest.raises(ShapeError, match="the same number of sequences at each level"):
            words.sequence_concat(text)
        with pytest.raises(ShapeError, match="begin and length must hold one number for each of 1"):
            words.sequence_slice([0, 0], [1, 1])
        with pytest.raises(ArgumentError, match="weight or channels must be given"):
            words.sequence_conv()


def everything(x, offsets, weight):
    """Each operator that keeps the number of steps, and pools of what it makes."""
    words = so.LoDTensor(x, [offsets], padded=True)
    hidden = words.sequence_conv(weight, context_length=2)
    weights = hidden.sequence_softmax()
    context = weights.with_data(weights.data * words.data).sequence_pool("sum")
    spread = words.sequence_expand_as(context)
    joined = spread.sequence_concat(words.sequence_reverse())
    sliced = joined.sequence_slice(
        jnp.ones(offsets.shape[0] - 1, jnp.int32), jnp.full(offsets.shape[0] - 1, 3)
    )
    pools = [sliced.sequence_pool(pool) for pool in POOLS]
    rows, mask = sliced.to_padded(4)
    return jnp.concatenate([*pools, jnp.where(mask[..., None], rows, 0).sum(1)], axis=1)


X = np.random.default_rng(3).normal(size=(9, 2)).astype(np.float32)
WEIGHT = np.random.default_rng(4).normal(size=(4, 2)).astype(np.float32)
MANY = np.asarray([[0, 2, 2, 7], [0, 0, 3, 9], [0, 4, 5, 5], [0, 0, 0, 0]], np.int32)


class TestTraced:
    def test_one_program_serves_all_offsets(self):
        traces = []

        @jax.jit
        def compiled(offsets):
            traces.append(1)
            return everything(jnp.asarray(X), offsets, WEIGHT)

        for offsets in MANY:
            # Without jit, and with the steps that are there alone.
            alone = everything(jnp.asarray(X[: offsets[-1]]), offsets, WEIGHT)
            close(compiled(offsets), alone)
        assert len(traces) == 1

    def test_vmap_over_offsets(self):
        alone = jax.jit(lambda offsets: everything(jnp.asarray(X), offsets, WEIGHT))
        close(jax.jit(jax.vmap(alone))(MANY), [alone(offsets) for offsets in MANY])

    def test_vmap_over_data(self):
        xs = np.stack([X, X[::-1], 2 * X])
        alone = jax.jit(lambda x: everything(x, MANY[0], WEIGHT))
        close(jax.jit(jax.vmap(alone))(xs), [alone(x) for x in xs])

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("offsets", MANY, ids=str)
    def test_derivatives(self, offsets):
        with jax.enable_x64(True):
            x, weight = (jnp.asarray(one, jnp.float64) for one in (X, WEIGHT))
            run = jax.jit(lambda x, weight: everything(x, offsets, weight))
            check_grads(run, (x, weight), 2)

    def test_derivatives_with_traced_offsets(self):
        def loss(x, offsets, weight):
            return jnp.sum(everything(x, offsets, weight) ** 2)

        slopes = jax.grad(loss, argnums=(0, 2))
        traced = jax.jit(slopes)
        for offsets in MANY:
            # Here the offsets are known when the program is compiled.
            known = jax.jit(lambda x, weight, offsets=offsets: slopes(x, offsets, weight))
            apart, jitted = known(X, WEIGHT), traced(X, offsets, WEIGHT)
            for one, other in zip(apart, jitted, strict=True):
                close(one, other, rtol=1e-4)

    def test_wrong_traced_offsets_are_not_looked_at(self):
        made = jax.jit(lambda offsets: so.LoDTensor(jnp.zeros(2), [offsets]))(np.array([3, 1]))
        assert made.lod[0].tolist() == [3, 1]

    def test_a_result_may_need_its_length(self):
        y = so.LoDTensor(jnp.zeros(3), [[0, 1, 3]])
        x = so.LoDTensor(jnp.arange(4), [[0, 1, 4]])
        expanded = jax.jit(lambda x, y: x.sequence_expand(y, total_length=8))(x, y)
        assert expanded.data.tolist() == [0, 1, 2, 3, 1, 2, 3, 0]
        assert expanded.lod[0].tolist() == [0, 1, 4, 7]
        short = jax.jit(lambda x, y: x.sequence_expand(y, total_length=5))(x, y)
        assert short.data.tolist() == [0, 1, 2, 3, 1]
        assert short.lod[0].tolist() == [0, 1, 4, 5]
        with pytest.raises(UnknownTypeError, match="sequence_expand: total_length must be known"):
            jax.jit(lambda x, y: x.sequence_expand(y))(x, y)
        with pytest.raises(UnknownTypeError, match="to_padded: padded_length must be known"):
            jax.jit(lambda x: x.to_padded())(x)

    def test_offsets_that_are_known_stay_known(self):
        """Under jit with offsets from outside every length is worked out."""

        def lengths(x):
            words = so.LoDTensor(x, [[0, 2, 5]])
            sliced = words.sequence_slice([1, 0], [1, 2])
            both = sliced.sequence_concat(words).sequence_reverse()
            assert both.data.shape == (8,)
            assert both.to_padded()[0].shape == (2, 5)
            repeated = sliced.sequence_expand(so.LoDTensor(np.zeros(3), [[0, 0, 3]]))
            assert repeated.data.shape == (6,)
            return repeated.data

        assert jax.jit(lengths)(jnp.arange(5)).tolist() == [2, 3, 2, 3, 2, 3]


class TestPadding:
    BAD = np.where(np.arange(9)[:, None] < 7, X, NAN).astype(np.float32)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("pool", POOLS)
    def test_it_is_not_read(self, pool):
        def loss(x):
            return jnp.sum(so.sequence_pool(x, MANY[0], pool=pool) ** 2)

        close(loss(self.BAD), loss(np.nan_to_num(self.BAD)))
        gradient = np.asarray(jax.grad(loss)(jnp.asarray(self.BAD)))
        assert np.all(np.isfinite(gradient))
        assert np.all(gradient[7:] == 0)

    def test_not_by_the_others_either(self):
        run = jax.jit(lambda x: everything(x, MANY[0], WEIGHT))
        close(run(self.BAD), run(X[:7]))
        gradient = jax.jit(jax.grad(lambda x: jnp.sum(run(x) ** 2)))(self.BAD)
        assert np.all(np.isfinite(gradient))
        assert np.all(np.asarray(gradient[7:]) == 0)

    def test_results_are_zero_there(self):
        x, offsets = jnp.asarray(self.BAD), MANY[0]
        for made in (
            so.sequence_softmax(x, offsets),
            so.sequence_conv(x, offsets, WEIGHT, channels=2, context_length=2),
            so.sequence_expand_as(x[:3], offsets, total_length=9),
        ):
            assert np.all(np.asarray(made[7:]) == 0)
            assert np.all(np.isfinite(made))


class TestEdges:
    def test_the_first_of_equal_steps_has_the_gradient(self):
        x = jnp.asarray([2.0, 5.0, 5.0, 1.0, 1.0])
        offsets = np.array([0, 3, 5])
        gradient = jax.grad(lambda x: so.sequence_pool(x, offsets, pool="max").sum())(x)
        assert gradient.tolist() == [0, 1, 0, 1, 0]

    def test_the_first_nan_is_largest(self):
        x = np.asarray([1.0, NAN, 9.0, NAN, 2.0], np.float32)
        assert so.sequence_argmax(x, np.array([0, 4, 5])).tolist() == [1, 4]
        close(so.sequence_pool(x, np.array([0, 4, 5]), pool="max"), [NAN, 2.0])

    def test_infinities(self):
        x = np.asarray([-np.inf, -np.inf, 3.0], np.float32)
        assert so.sequence_pool(x, np.array([0, 2, 3]), pool="max").tolist() == [-np.inf, 3.0]
        assert so.sequence_argmax(x, np.array([0, 2, 3])).tolist() == [0, 2]

    def test_softmax_does_not_overflow(self):
        x = np.asarray([1000.0, 1000.0, -1000.0], np.float32)
        assert so.sequence_softmax(x, np.array([0, 2, 3])).tolist() == [0.5, 0.5, 1.0]

    def test_sums_in_half_precision_do_not_saturate(self):
        ones = jnp.ones(5000, jnp.bfloat16)
        total = so.sequence_pool(ones, np.array([0, 4096, 5000]), pool="sum")
        assert total.dtype == jnp.bfloat16
        assert total.astype(np.float32).tolist() == [4096.0, 904.0]
        assert so.sequence_pool(ones, np.array([0, 5000]), pool="mean").tolist() == [1.0]

    def test_sequences_of_both_kinds_are_reversed(self):
        rows = np.asarray([[1, 2], [3, 4], [5, 6]])
        assert so.sequence_reverse(rows, np.array([3, 2])).tolist() == [[5, 4], [3, 2], [1, 6]]
        offsets = np.array([0, 2, 3])
        assert so.sequence_reverse(rows, offsets=offsets).tolist() == [[3, 4], [1, 2], [5, 6]]

    def test_offsets_may_be_small_integers(self):
        offsets = np.array([0, 100, 255], np.uint8)
        x = np.ones(300, np.float32)
        assert so.sequence_pool(x, offsets).tolist() == [100.0, 155.0]
        assert so.sequence_pad(x, offsets, padded_length=300)[1].tolist() == [100, 155]


OFFSETS = np.array([0, 2, 2, 5])
CALLS = {
    "sequence_ids": lambda op, x, o: op(o, total_length=6),
    "sequence_lengths": lambda op, x, o: op(o),
    "sequence_offsets": lambda op, x, o: op(o),
    "sequence_pool": lambda op, x, o: op(x, o, pool="last"),
    "sequence_argmax": lambda op, x, o: op(x, o),
    "sequence_softmax": lambda op, x, o: op(x, o),
    "sequence_expand_as": lambda op, x, o: op(x[:3], o, total_length=6),
    "sequence_expand": lambda op, x, o: op(x, o, o, total_length=9, n_sequences=5)[1],
    "sequence_concat": lambda op, x, o: op([x, x], so.stack(o, o))[1],
    "sequence_slice": lambda op, x, o: op(x, o, o[:3], o[1:])[1],
    "sequence_context": lambda op, x, o: op(x, o, context_length=2),
    "sequence_conv": lambda op, x, o: op(x, o, x[:4], channels=2, context_length=2),
    "sequence_pad": lambda op, x, o: op(x, o, padded_length=3)[1],
    "sequence_unpad": lambda op, x, o: op(x[:4], o)[1],
    "sequence_reverse": lambda op, x, o: op(x, offsets=o),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["int64", "uint32", "int8"])
def test_offsets_of_each_dtype(name, dtype):
    """The result is that of int32 and of the type that was inferred."""
    with jax.enable_x64(True):
        x, operator = jnp.asarray(X[:6]), registry.get(name)
        offsets = so.var("o", shape=(4,), dtype=dtype)
        graph = CALLS[name](operator, so.var("x", shape=(6, 2), dtype="float32"), offsets)
        fed = {"x": x, "o": OFFSETS.astype(dtype)}
        found = graph.eval(**{one: fed[one] for one in graph.list_arguments()})
        wanted = CALLS[name](operator, x, jnp.asarray(OFFSETS, jnp.int32))
        assert (
            (found.shape, found.dtype) == (graph.shape, graph.dtype) == (wanted.shape, wanted.dtype)
        )
        close(found, wanted)


class TestDoors:
    def test_symbols(self):
        words = so.LoDTensor(so.var("words"), [so.var("words@LOD0", dtype="int32")])
        out = words.sequence_conv(channels=3, name="conv").sequence_pool("max")
        assert out.list_arguments() == ["words", "words@LOD0", "conv_weight"]
        x, weight = jnp.asarray(X[:7]), np.ones((6, 3), np.float32)
        given = so.LoDTensor(x, [MANY[0]])
        wanted = given.sequence_conv(weight).sequence_pool("max")
        close(out.eval(**given.as_feed("words"), conv_weight=weight), wanted)
        text = so.LoDTensor(so.var("w", shape=(6,)), [[0, 2, 3], [0, 2, 3, 6]])
        assert text.sequence_pool(level=0).eval(w=np.arange(6.0)).tolist() == [3.0, 12.0]
        assert repr(text).startswith("LoDTensor(float32[6], lod=[[0, 2, 3], [0, 2, 3, 6]])")

    def test_a_symbol_of_several_traced_levels(self):
        lod = [so.var("a", shape=(3,), dtype="int32"), so.var("b", shape=(4,), dtype="int32")]
        text = so.LoDTensor(so.var("w", shape=(6,)), lod)
        given = {"a": np.array([0, 2, 3]), "b": np.array([0, 2, 3, 6])}
        pooled = text.sequence_pool("sum", level=0)
        assert pooled.eval(w=np.arange(6.0), **given).tolist() == [3.0, 12.0]
        assert text.lengths(0).eval(**given).tolist() == [3, 3]

    def test_eager_arrays(self):
        x = so.nd.array(X[:7])
        x.attach_grad()
        offsets = so.nd.array(MANY[0])
        with so.autograd.record():
            words = so.LoDTensor(x, [offsets])
            loss = (words.sequence_softmax().data * x).sum() + words.sequence_pool("max").sum()
        loss.backward()

        def plain(x):
            words = so.LoDTensor(x, [MANY[0]])
            return (words.sequence_softmax().data * x).sum() + words.sequence_pool("max").sum()

        close(x.grad.asnumpy(), jax.grad(plain)(jnp.asarray(X[:7])))

    def test_gradients_of_graphs_to_the_second_order(self):
        x, w = so.var("x", shape=(7, 2)), so.var("w", shape=(4, 2))
        words = so.LoDTensor(x, [MANY[0]])
        hidden = words.sequence_conv(w, context_length=2).sequence_softmax()
        loss = so.sum(so.square(hidden.sequence_pool("sqrt")))
        twice = so.grad(so.sum(so.square(so.grad(loss, w))), x)

        def plain(x, w):
            words = so.LoDTensor(x, [MANY[0]])
            hidden = words.sequence_conv(w, context_length=2).sequence_softmax()
            return jnp.sum(hidden.sequence_pool("sqrt") ** 2)

        wanted = jax.grad(lambda x: jnp.sum(jax.grad(plain, 1)(x, jnp.asarray(WEIGHT)) ** 2))
        close(twice.eval(x=X[:7], w=WEIGHT), wanted(jnp.asarray(X[:7])), rtol=1e-4)
