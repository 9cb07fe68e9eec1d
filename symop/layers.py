"""Layers that are compositions of operators, and make their parameters as operators do."""

from typing import Any

from registry.errors import ArgumentError, UnknownTypeError
from registry.table import get
from registry.tracebacks import api_boundary
from registry.var import emitter_of
from symop import engine as _engine  # noqa: F401  # it completes the classes of values
from symop.graph.naming import composed, next_name

_STEM = "attention"
_SEEDS = 2**31 - 1
"""The number of seeds of dropout."""
composed.add(_STEM)


@api_boundary
def multi_head_attention(  # noqa: PLR0913  # as many parts as the layer has
    data: Any,
    memory: Any = None,
    *,
    heads: int,
    kv_heads: int | None = None,
    width: int | None = None,
    causal: bool = False,
    mask: Any = None,
    window: int | tuple[int, int] | None = None,
    dropout: float = 0.0,
    rotary: bool | float = False,
    use_bias: bool = True,
    name: str | None = None,
    weight_initial: Any = "glorot_uniform",
) -> Any:
    """Multi-head attention with projections of queries, keys, values and results.

    Args:
        data: a symbol or variable of shape ``(..., positions, features)``.
        memory: the values to attend to, of as many axes; by default ``data``.
        heads: the number of heads of the queries.
        kv_heads: the number of heads of keys and values, which divides ``heads``: groups of query
            heads share one; defaults to ``heads``.
        width: the number of features of the result; defaults to that of ``data``.
        causal: whether each position sees only itself and those before.
        mask: as in ``so.scaled_dot_product_attention``.
        window: likewise.
        dropout: the share of the weights that is dropped in training.
        rotary: whether queries and keys are rotated by their position, as in
            ``so.rotary_embedding``; or the base of the angles.
        use_bias: whether the projections have biases.
        name: the start of the parameters' names, ``<name>_query_weight`` and so on.
        weight_initial: the initializer of the four matrices.

    Raises:
        ArgumentError: ``heads`` does not divide ``width``, or ``kv_heads`` not ``heads``.
        UnknownTypeError: neither ``width`` nor the shape of ``data`` is known.

    Source: Vaswani et al., "Attention is all you need", 2017; heads that share keys: Ainslie et
    al., "GQA", 2023.

    Example:
        >>> import symop as so
        >>> x = so.var("x", shape=(2, 5, 8))
        >>> y = so.multi_head_attention(x, heads=4, kv_heads=2, causal=True, name="attention")
        >>> y.shape, so.Group([y]).get_internals()["attention_key_weight"].shape
        ((2, 5, 8), (4, 8))
    """
    width = _width(data) if width is None else width
    kv_heads = heads if kv_heads is None else kv_heads
    for what, count, whole in (("heads", heads, width), ("kv_heads", kv_heads, heads)):
        if count < 1 or whole % count:
            raise ArgumentError(f"multi_head_attention: {what} must divide {whole}, got {count}")
    fully_connected, split = get("fully_connected"), get("split_heads")
    source = data if memory is None else memory
    stem = next_name(_STEM) if name is None else name
    shared = kv_heads * (width // heads)

    def projected(x: Any, part: str, units: int) -> Any:
        how = {"units": units, "flatten": False, "use_bias": use_bias}
        return fully_connected(x, name=f"{stem}_{part}", weight_initial=weight_initial, **how)

    query = split(projected(data, "query", width), heads=heads)
    keys = split(projected(source, "key", shared), heads=kv_heads)
    values = split(projected(source, "value", shared), heads=kv_heads)
    if rotary:
        turn, base = get("rotary_embedding"), 10000.0 if rotary is True else float(rotary)
        query, keys = turn(query, base=base), turn(keys, base=base)
    attend = get("scaled_dot_product_attention")
    how: dict[str, Any] = {"causal": causal, "window": window}
    attended = attend(query, keys, values, mask, **how)
    if dropout:
        how |= {"dropout": dropout, "dropout_seed": _seed_beside(data)}
        attended = get("choose")(attend(query, keys, values, mask, **how), attended)
    return projected(get("merge_heads")(attended), "out", width)


def _seed_beside(value: Any) -> Any:
    """Returns a seed of dropout, drawn anew in each run, of the kind of ``value``."""
    draw = get("random_integers")
    how = {"low": 0, "high": _SEEDS, "shape": (2,), "dtype": "int32"}
    inputs, attributes, _ = draw.bind((), how)
    return emitter_of((value,)).emit(draw, inputs, attributes, None)


def _width(data: Any) -> int:
    try:
        width: int = data.type.shape[-1]
    except UnknownTypeError:
        raise UnknownTypeError(
            "multi_head_attention: width= must be given where the shape of data is not known"
        ) from None
    return width
