"""Programs: named variables and ordered calls, including backward and updates, run as one step."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any, ClassVar

import jax
import msgspec
import numpy as np

from registry.desc import OpDesc, ProgramDesc
from registry.errors import ArgumentError, FeedError, FormatError, ProgramError, UnknownTypeError
from registry.hooks import define
from registry.lod import LoDTensor
from registry.naming import matching
from registry.shardings import MeshAxes
from registry.table import get
from registry.tracebacks import api_boundary, api_class
from registry.types import VarKind
from symop import random
from symop.drawing.draw import MAX_NODES, draw_subject, subject_html
from symop.drawing.subject import Subject, subject_of, updating
from symop.graph.shardings import Rules
from symop.io.files import PathLike, read_bounded, write_atomically
from symop.io.parsing import parse_records
from symop.io.serialize import LIMIT, decode, encode
from symop.io.text import program_text
from symop.passes.uses import Uses
from symop.program.block import Block, Variable
from symop.program.placing import make_on, placement_of_block
from symop.program.run import Runner
from symop.program.scope import Scope
from symop.program.symbols import from_symbol_desc, to_symbol_desc
from symop.program.verifying import checked_block
from symop.runtime.initial import variable_value
from symop.runtime.memory import copy_array
from symop.runtime.placement import MeshRecord, Placement
from symop.runtime.processes import Share, require_same
from symop.symbol.calls import from_desc
from symop.symbol.explaining import Computation
from symop.symbol.symbol import Symbol

_one_device: Any = jax.sharding.SingleDeviceSharding  # JAX declares no types for it
Given = Variable | str


@api_class
class Program:
    """A program: data that can be built, printed, saved, differentiated and run as a whole.

    A program is built and run by one thread at a time.

    Attributes:
        scope: the values of parameters and states by name. A run donates the values it updates;
            copy those that must be kept.

    Example:
        >>> import numpy as np
        >>> import symop as so
        >>> program = so.Program()
        >>> x, w = program.data("x", (2,)), program.parameter("w", (2,), initial="1")
        >>> loss = so.sum(so.square(x * w))
        >>> ((_, slope),) = so.append_backward(loss)
        >>> program.update(w, w - slope * 0.25)
        >>> print(program)
        (x: float32[2], parameter w: float32[2] {initial="1"}) {
          multiply0: float32[2] = multiply(x, w)
          square0: float32[2] = square(multiply0)
          sum0: float32[] = sum(square0)
        <BLANKLINE>
          # gradient of square
          multiply1: float32[2] = multiply(2.0, multiply0)
        <BLANKLINE>
          # gradient of multiply
          "w@GRAD": float32[2] = multiply(multiply1, x)
        <BLANKLINE>
          multiply2: float32[2] = multiply("w@GRAD", 0.25)
          subtract0: float32[2] = subtract(w, multiply2)
          w := subtract0
        } ->
        >>> [float(program.run({"x": [1.0, 0.0]}, loss)) for _ in range(3)]
        [1.0, 0.25, 0.0625]
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable objects are not hashable

    @api_boundary
    def __init__(self) -> None:
        """Creates an empty program."""
        self._block = Block()
        self._outputs: list[str] = []
        self.scope = Scope()
        self._runners: dict[Any, Runner] = {}
        self._where: tuple[Any, Rules | None] | None = None
        self._placed: tuple[int, Placement | None] = -1, None
        self._last: tuple[Any, bool | None, Any] = (self, None, None)

    @classmethod
    def _of(cls, desc: ProgramDesc, block: Block) -> "Program":
        result = cls()
        result._block, result._outputs = block, desc.fetch
        return result

    # Variables

    def data(
        self,
        name: str,
        shape: Sequence[int] | int,
        dtype: Any = None,
        *,
        kind: str = VarKind.LOD_TENSOR.value,
        stop_gradient: bool = False,
        sharding: Sequence[MeshAxes] | None = None,
    ) -> Variable:
        """Declares a variable that is fed to every run.

        Args:
            name: its name.
            shape: its shape; for row-sparse values, the shape of the whole array.
            dtype: its dtype; defaults to JAX's default float.
            kind: dense, or ``"selected_rows"``.
            stop_gradient: whether gradients stop here.
            sharding: for each axis the mesh axis that it is split over; see ``so.shard``.

        Raises:
            ProgramError: the name is taken.
        """
        return self._block.declare(
            "argument", name, shape, dtype, stops=stop_gradient, kind=kind, sharding=sharding
        )

    def ragged(
        self, name: str, shape: Sequence[int] | int, dtype: Any = None, *, counts: Sequence[int]
    ) -> LoDTensor:
        """Declares ragged sequences, fed to every run, as a ``LoDTensor`` of variables.

        Args:
            name: the name of the variable that holds all steps; the offsets of each level are named
                after it, ``name@LOD0`` and so on. A run is fed a ``LoDTensor`` under ``name``.
            shape: the shape of all steps together, including padding after the last sequence.
            dtype: the dtype of the steps; defaults to JAX's default float.
            counts: the number of sequences at each level, outermost first.

        Example:
            >>> import symop as so
            >>> program = so.Program()
            >>> words = program.ragged("words", 6, counts=[3])
            >>> total = words.sequence_pool("sum")
            >>> lists = so.LoDTensor.from_lists([[1.0, 2.0], [], [3.0]]).with_total_length(6)
            >>> program.run({"words": lists}, total).tolist()
            [3.0, 0.0, 3.0]
        """
        with self._block.atomically():
            steps = self.data(name, shape, dtype)
            offsets = [
                self.data(f"{name}@LOD{i}", count + 1, "int32") for i, count in enumerate(counts)
            ]
        return LoDTensor(steps, offsets)

    def parameter(
        self,
        name: str,
        shape: Sequence[int] | int,
        dtype: Any = None,
        *,
        initial: Any = None,
        trainable: bool = True,
        sharding: Sequence[MeshAxes] | None = None,
    ) -> Variable:
        """Declares a variable that persists between runs and is trained.

        ``append_backward`` and optimizers train it.

        Args:
            name: its name.
            shape: its shape.
            dtype: its dtype; defaults to JAX's default float.
            initial: its initializer, as in ``so.var``.
            trainable: whether gradients are taken with respect to it when no list is given.
            sharding: for each axis the mesh axis that it is split over; see ``so.shard``.
        """
        return self._block.declare(
            "parameter",
            name,
            shape,
            dtype,
            initial=initial,
            stops=not trainable,
            sharding=sharding,
        )

    def state(
        self,
        name: str,
        shape: Sequence[int] | int,
        dtype: Any = None,
        *,
        initial: Any = 0,
        sharding: Sequence[MeshAxes] | None = None,
    ) -> Variable:
        """Declares a variable that persists between runs but gets no gradient.

        Examples are a counter and a moving mean. The arguments are those of ``parameter``.
        """
        return self._block.declare(
            "state", name, shape, dtype, initial=initial, stops=True, sharding=sharding
        )

    def var(self, name: str) -> Variable:
        """Returns the variable called ``name``.

        Raises:
            FeedError: no variable has this name.
        """
        return self._block.variable(name)

    __getitem__ = var

    def __contains__(self, name: object) -> bool:
        return name in self._block.values

    @property
    def variables(self) -> list[Variable]:
        """All variables, in order of creation."""
        return [Variable(self._block, name) for name in self._block.variables]

    def _of_role(self, role: str) -> list[Variable]:
        return [one for one in self.variables if one.desc.role == role]

    @property
    def inputs(self) -> list[Variable]:
        """The variables that are fed to each run."""
        return self._of_role("argument")

    @property
    def parameters(self) -> list[Variable]:
        """The trained variables."""
        return self._of_role("parameter")

    @property
    def states(self) -> list[Variable]:
        """The variables that persist between runs and are not trained."""
        return self._of_role("state")

    @property
    def outputs(self) -> list[Variable]:
        """The variables that a run fetches by default; assign variables or their names."""
        return [self.var(name) for name in self._outputs]

    @outputs.setter
    def outputs(self, given: Given | Sequence[Given]) -> None:
        self._outputs = self._listed(given)
        self._last = (self, None, None)

    @property
    def ops(self) -> list[OpDesc]:
        """The calls in order, including constants."""
        return list(self._block.desc.ops)

    # Building

    def update(self, variable: Given, value: Any) -> None:
        """Sets ``variable`` to ``value`` at the end of each run.

        Args:
            variable: a parameter or a state.
            value: a variable of the program, of the same type.

        Raises:
            ProgramError: ``variable`` does not persist between runs or already has an update, or
                the types differ.
        """
        state = self._named(variable)
        if state in self._block.desc.updates:
            raise ProgramError(f"update: {state!r} must be updated once, and is updated already")
        self._block.set_update(state, self._named(value))

    def _named(self, variable: Any) -> str:
        if isinstance(variable, Variable):
            if variable.block is not self._block:
                raise ProgramError(
                    f"program: a variable must be of this program, got {variable.name!r} of another"
                )
            return variable.name
        if not isinstance(variable, str):
            raise ArgumentError(
                f"program: a variable or its name must be given, got {type(variable).__name__}"
            )
        return self._block.variable(variable).name

    def _listed(self, variables: Given | Sequence[Given]) -> list[str]:
        if isinstance(variables, (str, Variable)):
            return [self._named(variables)]
        if not isinstance(variables, (list, tuple)):
            raise ArgumentError(
                "program: variables or their names must be given, one or a list, got "
                f"{type(variables).__name__}"
            )
        return [self._named(one) for one in variables]

    def append_op(
        self,
        type: str,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Given] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Appends a call, given the operator's name; ``outputs`` may name variables to update.

        Args:
            type: the operator's name.
            inputs: a variable, a number, an array, or a list of these for each slot.
            outputs: for each output to be kept, the parameter or state that holds it after a run.
            attrs: attributes by name.

        Returns:
            The result of the operator: a variable, or a tuple of variables.

        Example:
            >>> import symop as so
            >>> program = so.Program()
            >>> w, slope = program.parameter("w", (2,)), program.data("slope", (2,))
            >>> program.append_op("subtract", {"x": w, "y": slope}, {"out": w})
            <Variable subtract0: float32[2]>
            >>> program.desc().blocks[0].updates
            {'w': 'subtract0'}
        """
        operator = get(type)
        with self._block.atomically():
            # Not emitted as a call: an operator without inputs could not determine its program.
            slots = {matching(key, operator.slot_names) or key: one for key, one in inputs.items()}
            operands, values, name = operator.bind((), {**slots, **(attrs or {})})
            member = operator.resolved(operands, values)
            results = tuple(self._block.call(member, operands, values, name))
            pairs = zip(operator.visible, results, strict=False)
            shown = {operator.outputs[i]: one for i, one in pairs}
            for key, kept in (outputs or {}).items():
                output = matching(key, list(shown))
                if output is None:
                    raise ArgumentError(
                        f"{type}: the outputs must be among {', '.join(shown)}, got {key!r}"
                    )
                self.update(kept, shown[output])
        return results if len(results) > 1 or operator.variadic_output else results[0]

    # Records

    def desc(self) -> ProgramDesc:
        """Returns the program as records; the caller owns the copy."""
        return _copied(ProgramDesc(blocks=self._block.blocks, fetch=self._outputs))

    @classmethod
    def from_desc(cls, desc: ProgramDesc) -> "Program":
        """Builds the program that ``desc`` records, after verifying it.

        Every name must be defined exactly once, and before its first use. Types are inferred again
        and compared with the declared types. Slots and attributes are checked against operators.

        Raises:
            FormatError: the records are invalid; the message shows where.
        """
        own = _copied(desc)
        return cls._of(own, checked_block(own))

    def verify(self) -> None:
        """Checks the whole program, as ``from_desc`` does.

        Raises:
            FormatError: the program is inconsistent.
        """
        checked_block(self.desc())

    def __str__(self) -> str:
        """Returns the program as text that ``Program.parse`` reads."""
        return program_text(self.desc(), self._block.types()).rstrip()

    @classmethod
    def parse(cls, text: str) -> "Program":
        """Parses the text printed by ``str(program)``.

        Raises:
            FormatError: the text is not a valid program; the message gives the line and the column.
        """
        desc, places, check = parse_records(text)
        block = checked_block(desc, places)
        check(block.values)
        return cls._of(desc, block)

    def __repr__(self) -> str:
        desc = self._block.desc
        return f"<Program of {len(desc.ops)} calls, {len(self.parameters)} parameters>"

    def _repr_html_(self) -> str:
        """Returns the drawing shown by a notebook."""
        return subject_html(self._subject())

    def _subject(self) -> Subject:
        """Returns what drawings show."""
        # Interned nodes have the origin of the latest call; the records have those of this program.
        values = Program.from_desc(self.desc())._block.values
        updates = self._block.desc.updates
        new = {value: f"new {state}" for state, value in updates.items()}
        ends = self._ends()
        subject = subject_of([values[name] for name in ends], [new.get(one, one) for one in ends])
        others = [values[name] for name in ends if name not in new]
        kept = {one.name: one.desc.role for one in (*self.parameters, *self.states)}
        changed = updating(others, [values[name] for name in updates.values()])
        return subject._replace(roles=kept, updates=changed)

    def to_svg(self, *, max_nodes: int = MAX_NODES, title: str | None = None) -> str:
        """Draws the program as SVG; parts are folded if it exceeds ``max_nodes`` boxes."""
        return draw_subject(self._subject()._replace(title=title), max_nodes=max_nodes)

    def _computation(self, types: Mapping[str, Any], is_train: bool) -> Computation:
        """Returns what ``so.explain`` examines: a run that fetches the outputs."""
        del is_train  # a run is for training if it updates parameters
        if types:
            raise ArgumentError(
                f"explain: a program declares its types, got some for {', '.join(types)}"
            )
        runner = self._runner(None, None)
        return Computation(self._subject(), runner.lower)

    def _ends(self) -> list[str]:
        """Returns the names of the values that no call of the program reads."""
        read = {name for op in self.ops for names in op.inputs.values() for name in names}
        read -= set(self._outputs)
        return [name for name in self._block.variables if name not in read]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the records, the values and the mesh, no compiled functions."""
        mesh = MeshRecord.of(self._placement)
        where = None if mesh is None or self._where is None else (mesh, self._where[1])
        return _restored, (self.tojson(), dict(self.scope), where)

    def __eq__(self, other: object) -> bool:
        """Whether both programs have the same text, wherever they were built."""
        return isinstance(other, Program) and str(self) == str(other)

    def tojson(self) -> str:
        """Returns the program as JSON, without the values of parameters."""
        return encode(self.desc())

    def save(self, path: PathLike) -> None:
        """Writes the program as JSON; the file is replaced atomically.

        Raises:
            OSError: the file cannot be written.
        """
        write_atomically(path, self.tojson().encode())

    @classmethod
    def load(cls, path: PathLike, *, limit: int = LIMIT) -> "Program":
        """Loads a program written by ``save``; nothing in the file is executed.

        Raises:
            FormatError: the file is damaged, too large or of a newer version.
            OSError: the file cannot be read.
        """
        data = read_bounded(path, limit)
        try:
            return cls.from_desc(decode(data, limit=limit))
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error.__cause__

    def clone(self, *, updates: bool = True) -> "Program":
        """Returns an independent program of the same records that shares the values of parameters.

        It runs on the mesh on which this one is placed.

        If ``updates`` is False, it does not update parameters and states: for evaluation.
        """
        desc = self.desc()
        if not updates:
            desc.blocks[0].updates = {}
        result = Program.from_desc(desc)
        result.scope = self.scope
        if self._where is not None:
            result._where = self._where
        return result

    # Symbols

    @classmethod
    def from_symbol(cls, symbol: Symbol, parameters: Collection[str] = ()) -> "Program":
        """Returns the program that computes ``symbol``; users call ``symbol.to_program()``."""
        desc = symbol.to_desc()
        unknown = [var.name for var in desc.blocks[0].vars if var.shape is None]
        if unknown:
            raise UnknownTypeError(
                f"to_program: the shapes of all variables must be known, got none of "
                f"{', '.join(unknown)}; pass them, {unknown[0]}=(...)"
            )
        return cls.from_desc(from_symbol_desc(desc, parameters))

    def to_symbol(self, fetch: Given | Sequence[Given] | None = None) -> Symbol:
        """Returns the values ``fetch`` as a symbol over the variables of the program.

        Updates of auxiliary states follow from the operators that make them; a symbol includes no
        other updates of the program.

        Args:
            fetch: one variable, its name, or a list of these; defaults to the outputs.

        Raises:
            FormatError: ``fetch`` is not given and the program has no outputs.
        """
        names = self._outputs if fetch is None else self._listed(fetch)
        return from_desc(to_symbol_desc(self.desc(), names))

    # Running

    def initialize(self, seed: int | None = None) -> None:
        """Sets every parameter and state to its initial value.

        Args:
            seed: the seed of the random numbers; defaults to keys drawn from ``so.random.seed``.
        """
        self.fill([one.name for one in self.variables if one.persistable], seed)

    def values(self) -> dict[str, Any]:
        """Returns the values of all parameters and states, initializing those that have none."""
        kept = [one.name for one in self.variables if one.persistable]
        self.fill([name for name in kept if name not in self.scope])
        return {name: self.scope[name] for name in kept}

    def fill(self, names: Sequence[str], seed: int | None = None) -> None:
        """Sets parameters and states to their initial values, as ``initialize`` does."""
        if not names:
            return
        if seed is None:
            root, number = random.draw(owner="program")
            key = jax.random.fold_in(root, number)
        else:
            key = jax.random.key(seed)
        arrays, placement = {}, self._placement
        uses = Uses(list(self._block.values.values()))
        for i, name in enumerate(names):
            node, attrs = self._block.values[name], self._block.variables[name].attrs
            make = partial(variable_value, name, node, attrs.get("initial"), uses=uses)
            arrays[name] = make_on(placement, name, make, jax.random.fold_in(key, i))
        self.scope.update(arrays)

    def place(self, mesh: Any, rules: Rules | None = None) -> None:
        """Puts the parameters and states on a mesh, where the following runs compute.

        Parameters and states are whole on each device and inputs split by examples, over the mesh
        axis ``"data"`` or the only one, except where ``rules`` or ``sharding`` of a variable say
        otherwise. The states of an optimizer are split like their parameters.

        Args:
            mesh: a ``jax.sharding.Mesh``; None to return to one device.
            rules: shardings (see ``so.shard``) by name of variable or by pattern such as
                ``"*_weight"``; the first that matches counts.

        Raises:
            ArgumentError: the mesh or a rule is invalid, or the random numbers of the processes
                differ; nothing is changed.

        Example:
            >>> import jax, symop as so
            >>> program = so.Program()
            >>> w = program.parameter("w", (4, 2), initial=1, sharding=("model",))
            >>> program.place(jax.make_mesh((1,), ("model",)))
            >>> program.run(fetch=w).sharding.spec
            P('model', None)
        """
        placement = placement_of_block(self._block, mesh, rules)
        if placement is not None and placement.spans:
            state = {name: one.tolist() for name, one in random.get_state().items()}
            require_same("place", mesh, {"the state of so.random": state})
        moved = {}
        for name, value in self.scope.items():
            if placement is None:
                moved[name] = jax.device_put(value, _one_device(jax.devices()[0]))
            else:
                moved[name] = placement.put(f"place: {name!r}", name, value)
        self.scope.update(moved)
        self._where = None if placement is None else (mesh, rules)
        self._placed = self._block.serial, placement
        self._runners, self._last = {}, (self, None, None)

    @property
    def _placement(self) -> Placement | None:
        """Where the values of the program are, also of variables declared since ``place``."""
        if self._where is not None and self._placed[0] != self._block.serial:
            self._placed = self._block.serial, placement_of_block(self._block, *self._where)
        return self._placed[1]

    def _place_values(self, placement: Placement) -> None:
        """Puts values that were set by hand on the mesh; a run rejects those of other shapes."""
        moved = {}
        for name, value in self.scope.settled().items():
            node = self._block.values.get(name) if isinstance(name, str) else None
            if node is None or placement.has(name, value) or np.shape(value) != node.type.shape:
                continue
            placed = placement.put(f"run: {name!r}", name, value)
            if placed is not value:
                moved[name] = placed
        if moved:
            self.scope.update(moved)

    def run(
        self,
        feed: Mapping[str, Any] | None = None,
        fetch: Given | Sequence[Given] | None = None,
        *,
        training: bool | None = None,
    ) -> Any:
        """Runs the whole program once: computes ``fetch`` and applies the program's updates.

        Each choice of ``fetch`` is compiled once. Parameters and states without a value are
        initialized first. Random operators draw from ``so.random.seed``.

        Args:
            feed: an array for each input that ``fetch`` or an update needs, or a ``LoDTensor`` for
                an input declared by ``ragged``.
            fetch: one variable, its name, or a list of these; defaults to the program's outputs.
                Parameters and states are fetched with their values after the run.
            training: the value of the training flag; defaults to whether a parameter is updated.

        Returns:
            The fetched value, or a list of values if ``fetch`` is a list.

        Raises:
            FeedError: an array is missing, unexpected, or of the wrong shape or dtype.
        """
        before, flag, runner = self._last
        if (
            (before is not fetch and not _are_the_same(fetch, before))
            or flag is not training
            or runner.serial != self._block.serial
        ):
            runner = self._runner(fetch, training)
            self._last = tuple(fetch) if isinstance(fetch, list) else fetch, training, runner
        fed = feed if feed.__class__ is dict else _as_dict(feed)
        placement = self._placement
        if placement is None:
            return runner.run(fed, self)
        if self.scope.ready is None:  # nothing has run since a value was set
            self._place_values(placement)
        with placement.current():
            batch = feed if isinstance(feed, Share) else fed
            return placement.finished(runner.run(placement.put_feed("run", batch), self))

    def _runner(self, fetch: Given | Sequence[Given] | None, training: bool | None) -> Runner:
        single = isinstance(fetch, (str, Variable))
        names = tuple(self._outputs if fetch is None else self._listed(fetch))
        key = names, single, training
        result = self._runners.get(key)
        if result is None or result.serial != self._block.serial:
            result = self._runners[key] = self._planned(names, single, training)
        return result

    def _planned(self, names: Sequence[str], single: bool, training: bool | None) -> Runner:
        if training is None:
            roles = {self._block.variables[name].role for name in self._block.desc.updates}
            training = "parameter" in roles
        stale = [key for key, one in self._runners.items() if one.serial != self._block.serial]
        for key in stale:
            del self._runners[key]
        return Runner(
            self._block, names, single=single, training=training, placement=self._placement
        )


def _are_the_same(fetch: Any, before: Any) -> bool:
    """Whether a list holds identically the variables that it, or another list, held before."""
    if fetch.__class__ is not list or before.__class__ is not tuple:
        return False
    return len(fetch) == len(before) and all(map(is_, fetch, before))


def _as_dict(feed: Any) -> dict[str, Any]:
    if feed is None:
        return {}
    if not isinstance(feed, Mapping):
        raise FeedError(f"run: a dict of arrays must be fed, got {type(feed).__name__}")
    return dict(feed)


def _restored(
    text: str, values: Mapping[str, Any], where: tuple[MeshRecord, Rules | None] | None = None
) -> Program:
    """Restores the program from a pickle or a copy; the next run puts its values on the mesh."""
    result = Program.from_desc(decode(text))
    if where is not None:
        mesh, rules = where
        result._where = mesh.mesh(), rules
    # Each program donates its own arrays in a run, so they cannot be shared.
    result.scope.update(jax.tree_util.tree_map(copy_array, dict(values)))
    return result


def _copied(desc: ProgramDesc) -> ProgramDesc:
    return msgspec.convert(msgspec.to_builtins(desc), ProgramDesc)


define(Symbol, program_of=staticmethod(Program.from_symbol))
