"""MXNet's Symbol, composed of MXNet's operators, bound and run through the catalogue."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from registry.errors import FormatError
from symop.interop.mxnet import binding
from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.calls import as_shape, by_place
from symop.interop.mxnet.errors import MXNetError, MXNetFormatError, require_known
from symop.interop.mxnet.executor import Executor
from symop.interop.mxnet.fluent import HOOKS
from symop.interop.mxnet.graph import (
    Entry,
    Node,
    argument_names,
    copied,
    state_ids,
    state_names,
    topological,
    without_casts,
)
from symop.interop.mxnet.inferring import Inference
from symop.interop.mxnet.np_shapes import is_np_shape, is_told, shown
from symop.interop.mxnet.partial_shapes import Partial
from symop.interop.mxnet.storage_inference import StorageTypes
from symop.interop.mxnet.symbol_json import HIDDEN, LIMIT, decode, encode
from symop.interop.mxnet.translating import as_function, translated
from symop.io.files import PathLike, read_bounded, write_atomically
from symop.symbol.symbol import Symbol as Graph

ARRAYS_ONLY = (
    "__bool__", "as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read"
)  # fmt: skip
"""Methods of arrays that symbols refuse."""
_PLACING = ("shared_arg_names", "shared_exec", "shared_buffer")
Inferred = tuple[list[Any] | None, list[Any] | None, list[Any] | None]


class Symbol:
    """One or more outputs of a graph of MXNet's operators.

    Symbols are made by ``var``, by operators and by ``load``. Shapes are inferred when a symbol is
    bound; ``to_graph`` converts it to a symbol of the catalogue, for ``so.grad`` and other
    functions.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
        >>> net.list_arguments()
        ['data', 'fc_weight', 'fc_bias']
        >>> net.infer_shape(data=(2, 4))
        ([(2, 4), (3, 4), (3,)], [(2, 3)], [])
    """

    __slots__ = ("heads",)
    HOOKS = HOOKS.union(
        ARRAYS_ONLY,
        {"_compose", "as_nd_ndarray", "as_np_ndarray", "astype", "debug_str"},
        {"get_backend_symbol", "gradient", "optimize_for"},
    )
    __hash__: ClassVar[Callable[..., int]] = object.__hash__
    __array_priority__ = 1000

    def __init__(self, heads: Sequence[Entry]) -> None:
        """Creates a symbol of the outputs ``heads``; users call operators."""
        self.heads = list(heads)

    # Names

    @property
    def name(self) -> str | None:
        """The name of the node, or None if the outputs belong to several nodes."""
        nodes = {id(node): node for node, _ in self.heads}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(node.name for node, _ in self.heads))
        return f"<Symbol {names}>" if self.name else f"<Symbol group [{names}]>"

    def _variables(self) -> list[Node]:
        return [node for node in topological(self.heads) if node.is_variable]

    def list_inputs(self) -> list[str]:
        """Names of all variables."""
        return [node.name for node in self._variables()]

    def list_arguments(self) -> list[str]:
        """Names of the variables that are not auxiliary states."""
        return argument_names(self.heads)

    def list_auxiliary_states(self) -> list[str]:
        """Names of the variables that training updates without gradients."""
        return state_names(self.heads)

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return [node.output_name(index) for node, index in self.heads]

    # Parts

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator["Symbol"]:
        return (Symbol([one]) for one in self.heads)

    def __getitem__(self, index: int | str | slice) -> "Symbol":
        """The output with the given index or name.

        Raises:
            ValueError: no output, or more than one, has this name.
            IndexError: the index is out of range.
        """
        if isinstance(index, slice):
            return Symbol(self.heads[index])
        if not isinstance(index, str):
            return Symbol([self.heads[index]])
        names = self.list_outputs()
        if names.count(index) != 1:
            raise ValueError(f"symbol: an output must be called {index!r} once, got {names}")
        return Symbol([self.heads[names.index(index)]])

    def get_internals(self) -> "Symbol":
        """All outputs of all nodes, from which one can be selected by name."""
        nodes = topological(self.heads)
        return Symbol([(node, i) for node in nodes for i in range(node.visible)])

    def get_children(self) -> "Symbol | None":
        """The inputs of the outputs' nodes; None for a variable."""
        nodes = {id(node): node for node, _ in self.heads}
        below = [entry for node in nodes.values() for entry in node.inputs]
        return Symbol(below) if below else None

    # Attributes

    def attr(self, key: str) -> str | None:
        """The attribute ``key`` of the node, or None."""
        own = self._node("attr").attributes
        return own.get(key, own.get(f"__{key}__") if key in HIDDEN else None)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node; hidden ones of MXNet also under their plain names.

        Raises:
            MXNetError: ``recursive`` is set, which MXNet no longer supports.
        """
        if recursive:
            raise MXNetError("list_attr: recursive must be False, got True; use attr_dict")
        return _with_plain(self._node("list_attr").attributes)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes by the names of the nodes that have some."""
        result: dict[str, dict[str, str]] = {}
        for node in topological(self.heads):
            if node.attributes:
                result[node.name] = _with_plain(node.attributes)
        return result

    def _set_attr(self, **attributes: Any) -> None:
        node = self._node("_set_attr")
        for key, value in attributes.items():
            node.attributes[f"__{key}__" if key in HIDDEN else key] = written(value)

    def _node(self, what: str) -> Node:
        if self.name is None:
            raise MXNetError(f"{what}: the symbol must be of one node, got {self!r}")
        return self.heads[0][0]

    # Composition

    def __call__(self, *args: "Symbol", name: str | None = None, **kwargs: "Symbol") -> "Symbol":
        """A copy with variables replaced by other symbols, by position or name.

        Raises:
            MXNetError: a name is not that of a variable, or a value is not a symbol.
        """
        if args and kwargs:
            raise MXNetError("compose: symbols must be given in order or by name, got both")
        given = by_place("compose", self.list_arguments(), args, kwargs)
        variables = {node.name: node for node in self._variables()}
        require_known("compose: names", given, variables)
        for key, one in given.items():
            if not isinstance(one, Symbol) or len(one) != 1:
                raise MXNetError(
                    f"compose: a symbol of one output must be given for {key!r}, got {one!r}"
                )
        replaced = {id(variables[key]): one.heads[0] for key, one in given.items()}
        result = Symbol(copied(self.heads, replaced))
        if name is not None:
            result._node("compose").name = name
        return result

    def __copy__(self) -> "Symbol":
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> "Symbol":
        return Symbol(copied(self.heads))

    # Files

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet's JSON; by default without the casts of mixed precision."""
        return encode(without_casts(self.heads) if remove_amp_cast else self.heads)

    def save(self, fname: PathLike, remove_amp_cast: bool = True) -> None:
        """Writes the graph in MXNet's format; the file is replaced atomically."""
        write_atomically(fname, self.tojson(remove_amp_cast).encode())

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    # Types

    def infer_shape(self, *args: Any, **kwargs: Any) -> Inferred:
        """Shapes of arguments, outputs and auxiliary states; three times None if any is unknown.

        Raises:
            MXNetError: shapes contradict each other; the message names operator and node.
        """
        found = self.infer_shape_partial(*args, **kwargs)
        return self._complete("shape", found, is_told)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Inferred:
        """``infer_shape``, with ``()`` or zeros for what is unknown.

        Within ``mx.np_shape()`` these are None and -1.
        """
        types = Inference(self.heads, self._given_shapes(args, kwargs))
        return self._listed(types, lambda entry: shown(types.shape(entry)))

    def infer_type(self, *args: Any, **kwargs: Any) -> Inferred:
        """Dtypes of arguments, outputs and auxiliary states; three times None if any is unknown.

        Raises:
            MXNetError: dtypes contradict each other; the message names operator and node.

        Example:
            >>> import symop.interop.mxnet as mx
            >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, no_bias=True)
            >>> net.infer_type(data="float16")[0]
            [<class 'numpy.float16'>, <class 'numpy.float16'>]
        """
        found = self.infer_type_partial(*args, **kwargs)
        return self._complete("type", found, lambda one: one is not None)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Inferred:
        """``infer_type``, with None for what is unknown."""
        given = self._given("infer_type", args, kwargs)
        told = {name: one for name, one in given.items() if one is not None}
        types = Inference(self.heads, {}, told, partial=True)

        def scalar(entry: Entry) -> Any:
            dtype = types.dtype(entry)
            return None if dtype is None else dtype.type

        return self._listed(types, scalar)

    def infer_storage_type(self, *args: Any, **kwargs: Any) -> Inferred:
        """Storage types of arguments, outputs and auxiliary states.

        Args:
            *args: storage types of arguments, in order; those of variables are the default.
            **kwargs: the same by name.

        Raises:
            MXNetError: a storage type is unknown.

        Example:
            >>> import symop.interop.mxnet as mx
            >>> net = mx.sym.dot(mx.sym.var("x"), mx.sym.var("w"), transpose_a=True)
            >>> net.infer_storage_type(x="csr")[:2]
            (['csr', 'default'], ['row_sparse'])
        """
        given = self._given("infer_storage_type", args, kwargs)
        types = StorageTypes(self.heads, {n: one for n, one in given.items() if one is not None})
        states = state_ids(types.nodes)
        variables = [node for node in types.nodes if node.is_variable]
        return (
            [types.of((node, 0)) for node in variables if id(node) not in states],
            [types.of(entry) for entry in self.heads],
            [types.of((node, 0)) for node in variables if id(node) in states],
        )

    def _given(self, what: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The given values of variables: arguments in order, or any by name."""
        require_known(f"{what}: names", kwargs, self.list_inputs())
        return by_place(what, self.list_arguments(), args, kwargs)

    def _given_shapes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Partial]:
        given = self._given("infer_shape", args, kwargs)
        told = {name: as_shape(name, one) for name, one in given.items() if one is not None}
        # Outside of mx.np_shape() the shape () means unknown, and no array has rank 0.
        return {name: one for name, one in told.items() if one or is_np_shape()}

    def _complete(self, what: str, found: Inferred, is_told: Callable[[Any], bool]) -> Inferred:
        """``found``, or three times None with a warning if some of it is unknown."""
        names = [*self.list_arguments(), *self.list_outputs(), *self.list_auxiliary_states()]
        every = [one for part in found for one in part or []]
        unknown = [name for name, one in zip(names, every, strict=True) if not is_told(one)]
        if not unknown:
            return found
        warnings.warn(
            f"infer_{what}: more {what}s must be given to tell those of {', '.join(unknown)}",
            stacklevel=3,
        )
        return None, None, None

    def _listed(self, types: Inference, what: Callable[[Entry], Any]) -> Inferred:
        states = state_ids(types.nodes)
        variables = types.variables()
        return (
            [what((node, 0)) for node in variables if id(node) not in states],
            [what(entry) for entry in self.heads],
            [what((node, 0)) for node in variables if id(node) in states],
        )

    # The catalogue

    def to_graph(
        self, dtypes: Mapping[str, Any] | None = None, /, **shapes: Sequence[int]
    ) -> Graph:
        """Converts the graph to a symbol of the catalogue, for variables of known shapes.

        Args:
            dtypes: dtypes of variables; inferred or float32 by default.
            **shapes: shapes of variables that cannot be inferred.

        Raises:
            MXNetError: a shape cannot be inferred.

        Example:
            >>> import symop as so, symop.interop.mxnet as mx
            >>> x = mx.sym.var("x")
            >>> graph = mx.sym.sum(x * x).to_graph(x=(3,))
            >>> so.grad(graph, graph.get_internals()["x"], unreachable="error").shape
            (3,)
        """
        return translated(self.heads, self._given_shapes((), shapes), dtypes)

    def to_jax(self, *, is_train: bool = False) -> Callable[..., Any]:
        """The graph as a pure JAX function of arrays by name; types are those of its arguments.

        As for ``so.Symbol.to_jax``, arrays may be passed by position, arguments first, then
        auxiliary states; ``key=`` is the key of random operators (``random_key=`` if a variable has
        that name); in training with auxiliary states it returns a pair, the outputs and the new
        states by name.
        """
        names = [*self.list_arguments(), *self.list_auxiliary_states()]
        return as_function(self.heads, names, is_train)

    # Running

    def bind(
        self,
        ctx: Any = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        **others: Any,
    ) -> Executor:
        """Creates an executor over given arrays, which it reads and writes in place.

        Args:
            ctx: the device that computes, if arrays are on several; they stay where they are.
            args: arrays of the arguments, in order or by name.
            args_grad: arrays for gradients, in order or by name.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.
            aux_states: arrays of the auxiliary states.
            **others: MXNet's options for placement and memory sharing; they have no effect.
        """
        del others
        return binding.bind(self.heads, args, args_grad, grad_req, aux_states, ctx)

    def simple_bind(
        self,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None,
        group2ctx: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Executor:
        """Creates an executor over zeros of inferred shapes.

        Args:
            ctx: the device of arrays; JAX's default device if it does not exist.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.
            type_dict: dtypes by name.
            stype_dict: storage types by name; they override those of the variables.
            group2ctx: devices of the arrays whose variables have the attribute ``ctx_group``, by
                its value.
            **kwargs: shapes by name; MXNet's options for placement and memory sharing have no
                effect.
        """
        shapes = {key: one for key, one in kwargs.items() if key not in _PLACING}
        given = type_dict, shapes, ctx, group2ctx, stype_dict
        return binding.simple_bind(self.heads, grad_req, *given)

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[Any]:
        """The outputs for given arrays."""
        del ctx
        return binding.evaluated(self.heads, kwargs)


def _with_plain(attributes: Mapping[str, str]) -> dict[str, str]:
    plain = {key: attributes[f"__{key}__"] for key in HIDDEN if f"__{key}__" in attributes}
    return {**attributes, **plain}


# Files -----------------------------------------------------------------------------------------


def load_json(text: str | bytes, limit: int = LIMIT) -> Symbol:
    """Parses a symbol from MXNet's JSON; nothing in it is executed.

    Raises:
        MXNetFormatError: the text is damaged.
        MXNetError: an operator is not mapped.
    """
    return Symbol(decode(text, limit))


def load(fname: PathLike, limit: int = LIMIT) -> Symbol:
    """Loads the symbol from the file ``fname``.

    Raises:
        MXNetFormatError: the file is damaged or too large.
        OSError: the file cannot be read.
    """
    try:
        text = read_bounded(fname, limit)
    except FormatError as error:
        raise MXNetFormatError(str(error)) from None
    try:
        return load_json(text, limit)
    except MXNetError as error:
        raise type(error)(f"{fname}: {error}") from error.__cause__


def save(fname: PathLike, symbol: Symbol) -> None:
    """Writes ``symbol`` in MXNet's format; the file is replaced atomically.

    Raises:
        OSError: the file cannot be written.
    """
    symbol.save(fname)
