"""Constants that trade one cost for another, whose best values depend on the machine.

``tune`` sets them. The defaults were measured on two cores of a server, with JAX 0.10.2.
"""

from typing import Any, NamedTuple

from registry.errors import ArgumentError


class Tuning(NamedTuple):
    """The constants.

    Attributes:
        segment: The number of eager values after which their calls run, so that the device works
            while Python continues. A chain of 900 calls on 16 x 16 arrays took 38, 14, 8.5 and
            8.7 ms with 8, 32, 128 and 512.
        patience: The excess of new eager programs over known ones after which calls run one by one
            for a while. Chains of 8 calls in random order took 1.35 ms if they were always
            recorded, 0.33, 0.40 and 0.48 ms with 2, 8 and 32; a chain that is known takes 0.12 ms
            recorded, and 0.26 ms one by one, so that a few new ones must not end the recording.
        rest: The number of calls that run one by one at first; it doubles each time. The random
            chains took 0.56 ms with 64, and 0.40 ms with 2,048.
        longest_rest: The largest such number, after which a loop that became regular is recorded.
        packed: Residuals of up to this many entries are concatenated in eager code, since each
            result of a compiled call has a cost of its own: 16 results of 4,096 entries took
            340 us, and 260 us in one array.
        crowded: The number of residuals from which on eager programs are compiled without fusion
            on the CPU, where XLA would compute each of them from the inputs again.
        quick_operators: The number of operators up to which a program on small arrays is compiled
            quickly on the CPU where calls of MXNet's interface make it: sums, comparisons and
            reductions took 10 to 20 ms to compile instead of 25 to 110.
        quick_entries: The number of entries up to which an array is small in this sense. Eight
            functions of 16,384 entries took 15 to 88 us if they were fully optimized, 17 to 78 us
            otherwise, 39 instead of 15 us at worst (a transpose).
        draft_runs: The largest number of runs of a draft, which MXNet's interface compiles on the
            CPU if a graph is bound to new shapes. Fewer than four switch drafts off.
        draft_loss: The nanoseconds, by estimate, that all runs of a draft may take longer, for each
            equation of its jaxpr. Drafts of 20 operators and gradients saved 0.6 to 48 ms of
            compilation for each equation, and one of an LSTM 1.3 ms.
        most_copied: The number of bytes that a loop may copy in each run, to be compiled once:
            16 MB took 8 ms, which is less than compiling a few operators takes.
        convolving_steps: The number of steps with convolutions from which on they are a loop on the
            CPU. Outside of loops, XLA computes several convolutions at once: residual blocks of 8
            and 16 channels took 1.2 to 1.3 times as long in loops of 6 to 12 steps, 1.08 times in
            one of 16 steps, and 0.9 times in one of 24. Gradients may have one step less.
        few_cores: The number of cores up to which MXNet's fused training step does not let XLA run
            operators in parallel. On two cores, steps of perceptrons with 256 to 1,024 units took
            3 to 16 percent longer in parallel.
        attention_block: The number of queries, and of keys, of a block of attention. Value and
            gradients of 4,096 tokens with 8 heads of 64 took 6.3 s with 256, 20 s with 512 and 15 s
            with whole matrices, on a machine that ran other programs.
        attention_scores: The number of scores, of all heads, above which attention is computed
            block by block: 64 MB of them in float32.
        logits: The number of scores, of examples times classes, above which the cross-entropy of
            linear scores is computed chunk by chunk: 64 MB in float32.
        logits_chunk: The number of scores of a chunk: 8 MB. With twice as many, value and gradient
            of 4,096 examples and 50,257 classes took 184 MB, more than a tenth of the plain form.
        chain_saving: The number of multiplications that another order of matrix products must
            save: a tenth of a millisecond, which a program of small products does not notice.
        one_hot: The number of classes from which on products by one-hot matrices become lookups.
            Value and gradient of 4,000 lookups in rows of 16 took 1.9, 1.4, 1.1 and 0.5 times as
            long as the products with 32, 128, 256 and 512 classes, since XLA's CPU backend adds one
            row at a time; the value alone took 0.6, 0.5, 0.4 and 0.2.
    """

    segment: int = 128
    patience: int = 8
    rest: int = 2048
    longest_rest: int = 65_536
    packed: int = 4096
    crowded: int = 8
    quick_operators: int = 32
    quick_entries: int = 16_384
    draft_runs: int = 64
    draft_loss: int = 1_000_000
    most_copied: int = 1 << 24
    convolving_steps: int = 16
    few_cores: int = 2
    attention_block: int = 256
    attention_scores: int = 1 << 24
    logits: int = 1 << 24
    logits_chunk: int = 1 << 21
    chain_saving: int = 1 << 20
    one_hot: int = 256


class _Holder:
    """Holds the constants in force."""

    __slots__ = ("tuning",)

    def __init__(self) -> None:
        self.tuning = Tuning()


present = _Holder()
"""Holds the constants in force, as ``present.tuning``."""


def tune(**constants: int) -> Tuning:
    """Sets constants for all later recording, lowering and compilation.

    Args:
        **constants: new values of attributes of ``Tuning``; the others are unchanged.

    Returns:
        The constants now in force.

    Raises:
        ArgumentError: the constant does not exist, or its value is not a natural number.

    Example:
        >>> from registry.tuning import tune
        >>> tune(segment=256).segment
        256
        >>> tune(segment=128).segment
        128
    """
    for name, value in constants.items():
        if name not in Tuning._fields:
            raise ArgumentError(
                f"tune: a constant must be one of {', '.join(Tuning._fields)}, got {name!r}"
            )
        if type(value) is not int or value < 0 or (name == "segment" and not value):
            raise ArgumentError(f"tune: {name} must be a positive integer, got {value!r}")
    present.tuning = present.tuning._replace(**constants)
    return present.tuning


def exceeds(count: Any, limit: int) -> bool:
    """Whether a number of entries is known to be larger; that of an open length is not known."""
    return isinstance(count, int) and count > limit
