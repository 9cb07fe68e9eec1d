"""Symbol: MXNet's, composed by its operators' names, bound and run through the catalogue."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from symop.files import PathLike, read_bounded, write_atomically
from symop.interop.mxnet import binding
from symop.interop.mxnet.attributes import written
from symop.interop.mxnet.calls import as_shape, by_place
from symop.interop.mxnet.errors import MXNetError, require_known
from symop.interop.mxnet.executor import Executor
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
from symop.interop.mxnet.partial_shapes import Partial, is_known
from symop.interop.mxnet.symbol_json import HIDDEN, LIMIT, decode, encode
from symop.interop.mxnet.translating import as_function, translated
from symop.symbol import Symbol as Graph

_PLACING = ("stype_dict", "group2ctx", "shared_arg_names", "shared_exec", "shared_buffer")
Inferred = tuple[list[Any] | None, list[Any] | None, list[Any] | None]


class Symbol:
    """One or more outputs of a graph of MXNet's operators.

    Made by ``var``, by operators and by ``load``. Shapes are inferred when it is bound;
    ``to_graph`` gives the same computation as a symbol of the catalogue, for ``so.grad`` and the
    rest.

    Example:
        >>> import symop.interop.mxnet as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
        >>> net.list_arguments()
        ['data', 'fc_weight', 'fc_bias']
        >>> net.infer_shape(data=(2, 4))
        ([(2, 4), (3, 4), (3,)], [(2, 3)], [])
    """

    __slots__ = ("heads",)
    __hash__: ClassVar[Callable[..., int]] = object.__hash__
    __array_priority__ = 1000

    def __init__(self, heads: Sequence[Entry]) -> None:
        """The outputs ``heads``; users call operators."""
        self.heads = list(heads)

    # Names

    @property
    def name(self) -> str | None:
        """The name of the node, or None for outputs of several."""
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
        """Names of the variables that are no auxiliary states."""
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
        """The output at ``index``, or called so.

        Raises:
            ValueError: none is called so.
            IndexError: there are fewer.
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
        """All outputs of all nodes, for picking one by its name."""
        nodes = topological(self.heads)
        return Symbol([(node, i) for node in nodes for i in range(node.visible)])

    def get_children(self) -> "Symbol | None":
        """What the outputs are computed from; None for a variable."""
        nodes = {id(node): node for node, _ in self.heads}
        below = [entry for node in nodes.values() for entry in node.inputs]
        return Symbol(below) if below else None

    # Attributes

    def attr(self, key: str) -> str | None:
        """The attribute ``key`` of the node, if it has it."""
        own = self._node("attr").attributes
        return own.get(key, own.get(f"__{key}__") if key in HIDDEN else None)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node; MXNet's own remarks also under their plain names.

        Raises:
            MXNetError: ``recursive`` is asked for, which MXNet has dropped.
        """
        if recursive:
            raise MXNetError("list_attr: recursive must be False, got True; use attr_dict")
        return _with_plain(self._node("list_attr").attributes)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes of all nodes that have some, by name."""
        found: dict[str, dict[str, str]] = {}
        for node in topological(self.heads):
            if node.attributes:
                found[node.name] = _with_plain(node.attributes)
        return found

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
        """A copy with other symbols in place of variables, in their order or by name.

        Raises:
            MXNetError: a name is no variable's, or what is given is no symbol.
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
        made = Symbol(copied(self.heads, replaced))
        if name is not None:
            made._node("compose").name = name
        return made

    def __copy__(self) -> "Symbol":
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> "Symbol":
        return Symbol(copied(self.heads))

    # Files

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet writes it; without the casts of mixed precision unless told."""
        return encode(without_casts(self.heads) if remove_amp_cast else self.heads)

    def save(self, fname: PathLike, remove_amp_cast: bool = True) -> None:
        """Write the graph as MXNet reads it; the file is replaced whole or not at all."""
        write_atomically(fname, self.tojson(remove_amp_cast).encode())

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    # Types

    def infer_shape(self, *args: Any, **kwargs: Any) -> Inferred:
        """Shapes of arguments, outputs and auxiliary states; three times None if some stay open.

        Raises:
            MXNetError: two shapes contradict each other; the message names operator and node.
        """
        found = self.infer_shape_partial(*args, **kwargs)
        return self._complete("shape", found, lambda one: bool(one) and is_known(one))

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Inferred:
        """As ``infer_shape``, with ``()`` or zeros for what stays open."""
        types = Inference(self.heads, self._given_shapes(args, kwargs))
        return self._listed(types, lambda entry: types.shape(entry) or ())

    def infer_type(self, *args: Any, **kwargs: Any) -> Inferred:
        """Dtypes of arguments, outputs and auxiliary states; three times None if some stay open.

        Raises:
            MXNetError: two dtypes contradict each other; the message names operator and node.

        Example:
            >>> import symop.interop.mxnet as mx
            >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, no_bias=True)
            >>> net.infer_type(data="float16")[0]
            [<class 'numpy.float16'>, <class 'numpy.float16'>]
        """
        found = self.infer_type_partial(*args, **kwargs)
        return self._complete("type", found, lambda one: one is not None)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Inferred:
        """As ``infer_type``, with None for what stays open."""
        given = self._given("infer_type", args, kwargs)
        told = {name: one for name, one in given.items() if one is not None}
        types = Inference(self.heads, {}, told, partial=True)

        def scalar(entry: Entry) -> Any:
            dtype = types.dtype(entry)
            return None if dtype is None else dtype.type

        return self._listed(types, scalar)

    def _given(self, what: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What is told of variables, arguments in their order or any by name."""
        require_known(f"{what}: names", kwargs, self.list_inputs())
        return by_place(what, self.list_arguments(), args, kwargs)

    def _given_shapes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Partial]:
        given = self._given("infer_shape", args, kwargs)
        told = {name: as_shape(name, one) for name, one in given.items() if one is not None}
        # A scalar's shape () tells nothing in MXNet, where no array is of rank 0.
        return {name: one for name, one in told.items() if one}

    def _complete(self, what: str, found: Inferred, is_told: Callable[[Any], bool]) -> Inferred:
        """``found``, unless some of it stays open."""
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
        """The same computation as a symbol of the catalogue, for variables of known shapes.

        Args:
            dtypes: of variables; float32 unless told or inferred.
            **shapes: of variables, as many as do not follow from others.

        Raises:
            MXNetError: a shape does not follow.

        Example:
            >>> import symop as so, symop.interop.mxnet as mx
            >>> x = mx.sym.var("x")
            >>> graph = mx.sym.sum(x * x).to_graph(x=(3,))
            >>> so.grad(graph, graph.get_internals()["x"], unreachable="error").shape
            (3,)
        """
        return translated(self.heads, self._given_shapes((), shapes), dtypes)

    def to_jax(self, *, is_train: bool = False) -> Callable[..., Any]:
        """The graph as a pure JAX function of arrays by name; types are those of what it gets.

        As the function of ``so.Symbol.to_jax``: arrays may come by position, arguments first, then
        auxiliary states; ``key=`` for random operators (``random_key=`` where a variable has
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
        """An executor over given arrays, which it reads and writes in place.

        Args:
            ctx: where; arrays lie where they are.
            args: arrays of the arguments, in their order or by name.
            args_grad: arrays that gradients are written into, likewise.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.
            aux_states: arrays of the auxiliary states.
            **others: what MXNet takes for placing and sharing memory; changes no result.
        """
        del ctx, others
        return binding.bind(self.heads, args, args_grad, grad_req, aux_states)

    def simple_bind(
        self,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Executor:
        """An executor over zeros of inferred shapes.

        Args:
            ctx: where; arrays lie on JAX's default device.
            grad_req: ``"write"``, ``"add"`` or ``"null"``, for all, in order or by name.
            type_dict: dtypes by name.
            **kwargs: shapes by name; what MXNet takes for placing and sharing memory changes no
                result.
        """
        del ctx
        shapes = {key: one for key, one in kwargs.items() if key not in _PLACING}
        return binding.simple_bind(self.heads, grad_req, type_dict, shapes)

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[Any]:
        """The outputs for given arrays."""
        del ctx
        return binding.evaluated(self.heads, kwargs)


def _with_plain(attributes: Mapping[str, str]) -> dict[str, str]:
    plain = {key: attributes[f"__{key}__"] for key in HIDDEN if f"__{key}__" in attributes}
    return {**attributes, **plain}


# Files -----------------------------------------------------------------------------------------


def load_json(text: str | bytes, limit: int = LIMIT) -> Symbol:
    """The symbol that ``text`` writes; nothing in it is executed.

    Raises:
        MXNetFormatError: it is damaged.
        MXNetError: it has an operator that is not mapped.
    """
    return Symbol(decode(text, limit))


def load(fname: PathLike, limit: int = LIMIT) -> Symbol:
    """The symbol in the file ``fname``.

    Raises:
        MXNetFormatError: it is damaged or too large.
        OSError: it cannot be read.
    """
    try:
        return load_json(read_bounded(fname, limit), limit)
    except MXNetError as error:
        raise type(error)(f"{fname}: {error}") from error.__cause__


def save(fname: PathLike, symbol: Symbol) -> None:
    """Write ``symbol`` as MXNet reads it; the file is replaced whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    symbol.save(fname)
