"""Program: named variables and ordered calls, complete with backward and update, run as one."""

from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import msgspec

from registry.desc import OpDesc, ProgramDesc
from registry.errors import ArgumentError, FeedError, ProgramError, UnknownTypeError
from registry.lod import LoDTensor
from registry.table import get
from registry.types import VarKind
from symop import random
from symop.draw import html
from symop.files import PathLike, read_bounded, write_atomically
from symop.initial import initial_value
from symop.parsing import parsed
from symop.program_block import Block, Variable
from symop.program_run import Runner
from symop.program_symbol import from_symbol_desc, to_symbol_desc
from symop.scope import Scope
from symop.serialize import LIMIT, decode, encode
from symop.symbol import Symbol
from symop.symbol_calls import from_desc
from symop.text import program_text
from symop.verifying import checked_block

Given = Variable | str


class Program:
    """A program: data that is built, printed, saved and differentiated, and run when it is whole.

    A program is built and run by one thread at a time.

    Attributes:
        scope: the values of parameters and states by name. A run donates those that it updates:
            copy what shall be kept.

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

    __hash__: ClassVar[None]  # type: ignore[assignment]  # what changes has none

    def __init__(self) -> None:
        """An empty program."""
        self._block = Block()
        self._outputs: list[str] = []
        self.scope = Scope()
        self._runners: dict[Any, Runner] = {}
        self._last: tuple[Any, bool | None, Any] = (self, None, None)

    @classmethod
    def _of(cls, desc: ProgramDesc, block: Block) -> "Program":
        made = cls()
        made._block, made._outputs = block, desc.fetch
        return made

    # Variables

    def data(
        self,
        name: str,
        shape: Sequence[int] | int,
        dtype: Any = None,
        *,
        kind: str = VarKind.LOD_TENSOR.value,
        stop_gradient: bool = False,
    ) -> Variable:
        """A variable that every run is fed.

        Args:
            name: its name.
            shape: its shape; of rows that of the whole array.
            dtype: its dtype; JAX's default float without one.
            kind: dense, or ``"selected_rows"``.
            stop_gradient: whether gradients end here.

        Raises:
            ProgramError: the name is taken.
        """
        return self._block.declare("argument", name, shape, dtype, stops=stop_gradient, kind=kind)

    def ragged(
        self, name: str, shape: Sequence[int] | int, dtype: Any = None, *, counts: Sequence[int]
    ) -> LoDTensor:
        """Sequences of any length that every run is fed, as a ``LoDTensor`` of variables.

        Args:
            name: of the variable of all steps; the offsets of each level follow it, ``name@LOD0``
                and so on. A run is fed a ``LoDTensor`` under ``name``.
            shape: of all steps together, padding behind the last sequence included.
            dtype: of the steps; JAX's default float without one.
            counts: how many sequences each level has, the outermost first.

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
        initial: float | str | None = None,
        trainable: bool = True,
    ) -> Variable:
        """A variable that outlives runs, and that ``append_backward`` and optimizers train.

        Args:
            name: its name.
            shape: its shape.
            dtype: its dtype; JAX's default float without one.
            initial: a number, or a distribution such as ``"normal(0.01)"``, ``"uniform(-1, 1)"``,
                ``"glorot_uniform"``, ``"he_normal"``; without it, ``"he_normal"``.
            trainable: whether gradients are taken by it unless others are asked for.
        """
        return self._block.declare(
            "parameter", name, shape, dtype, initial=initial, stops=not trainable
        )

    def state(
        self, name: str, shape: Sequence[int] | int, dtype: Any = None, *, initial: float | str = 0
    ) -> Variable:
        """A variable that outlives runs and that no gradient reaches: a counter, a moving mean."""
        return self._block.declare("state", name, shape, dtype, initial=initial, stops=True)

    def var(self, name: str) -> Variable:
        """The variable called ``name``.

        Raises:
            FeedError: there is none.
        """
        return self._block.variable(name)

    __getitem__ = var

    def __contains__(self, name: object) -> bool:
        return name in self._block.values

    @property
    def variables(self) -> list[Variable]:
        """All variables, in the order in which they were made."""
        return [Variable(self._block, name) for name in self._block.variables]

    def _of_role(self, role: str) -> list[Variable]:
        return [one for one in self.variables if one.desc.role == role]

    @property
    def inputs(self) -> list[Variable]:
        """The variables that are fed."""
        return self._of_role("argument")

    @property
    def parameters(self) -> list[Variable]:
        """The variables that are trained."""
        return self._of_role("parameter")

    @property
    def states(self) -> list[Variable]:
        """The variables that are kept and not trained."""
        return self._of_role("state")

    @property
    def outputs(self) -> list[Variable]:
        """What is fetched when a run is told nothing else; assign variables or their names."""
        return [self.var(name) for name in self._outputs]

    @outputs.setter
    def outputs(self, given: Given | Sequence[Given]) -> None:
        self._outputs = self._listed(given)
        self._last = (self, None, None)

    @property
    def ops(self) -> list[OpDesc]:
        """The calls in their order; constants among them."""
        return list(self._block.desc.ops)

    # Building

    def update(self, variable: Given, value: Any) -> None:
        """After each run, ``variable`` holds what ``value`` is in it.

        Args:
            variable: a parameter or a state.
            value: a variable of the program, of the same type.

        Raises:
            ProgramError: ``variable`` does not outlive a run, or is updated already; or the types
                differ.
        """
        state = self._named(variable)
        if state in self._block.desc.updates:
            raise ProgramError(f"update: {state!r} must be updated once, and is updated already")
        self._block.set_update(state, self._named(value))

    def _named(self, given: Any) -> str:
        if isinstance(given, Variable):
            if given.block is not self._block:
                raise ProgramError(
                    f"program: a variable must be of this program, got {given.name!r} of another"
                )
            return given.name
        if not isinstance(given, str):
            raise ArgumentError(
                f"program: a variable or its name must be given, got {type(given).__name__}"
            )
        return self._block.variable(given).name

    def _listed(self, given: Given | Sequence[Given]) -> list[str]:
        if isinstance(given, (str, Variable)):
            return [self._named(given)]
        if not isinstance(given, (list, tuple)):
            raise ArgumentError(
                "program: variables or their names must be given, one or a list, got "
                f"{type(given).__name__}"
            )
        return [self._named(one) for one in given]

    def append_op(
        self,
        type: str,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Given] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Append a call by the operator's name; where ``outputs`` names what is kept, update it.

        Args:
            type: the operator's name.
            inputs: by slot a variable, a number or an array, or a list of them.
            outputs: by output the parameter or state that holds it after a run.
            attrs: attributes by name.

        Returns:
            What the operator returns: a variable, or a tuple of them.

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
            # Not by a call: an operator without inputs could not tell which program is meant.
            given, values, name = operator.bind((), {**inputs, **(attrs or {})})
            member = operator.resolved(given, values)
            made = tuple(self._block.call(member, given, values, name))
            pairs = zip(operator.visible, made, strict=False)
            shown = {operator.outputs[i]: one for i, one in pairs}
            for output, kept in (outputs or {}).items():
                if output not in shown:
                    raise ArgumentError(
                        f"{type}: the outputs must be among {', '.join(shown)}, got {output!r}"
                    )
                self.update(kept, shown[output])
        return made if len(made) > 1 or operator.variadic_output else made[0]

    # Records

    def desc(self) -> ProgramDesc:
        """The program as records, which are the caller's own."""
        return _copied(ProgramDesc(blocks=self._block.blocks, fetch=self._outputs))

    @classmethod
    def from_desc(cls, desc: ProgramDesc) -> "Program":
        """The program that ``desc`` records, checked: the verifier.

        Every name is defined once and before it is used, types are inferred again and compared with
        what is declared, slots and attributes are checked against the operators.

        Raises:
            FormatError: something in the records is wrong; the message shows where.
        """
        own = _copied(desc)
        return cls._of(own, checked_block(own))

    def verify(self) -> None:
        """Check the whole program anew, as ``from_desc`` does.

        Raises:
            FormatError: it contradicts itself.
        """
        checked_block(self.desc())

    def __str__(self) -> str:
        """The program as text that ``Program.parse`` reads."""
        return program_text(self.desc(), self._block.types()).rstrip()

    @classmethod
    def parse(cls, text: str) -> "Program":
        """The program that ``str(program)`` printed.

        Raises:
            FormatError: the text is no such program; the message tells the line and the column.
        """
        desc, places, check = parsed(text)
        block = checked_block(desc, places)
        check(block.values)
        return cls._of(desc, block)

    def __repr__(self) -> str:
        desc = self._block.desc
        return f"<Program of {len(desc.ops)} calls, {len(self.parameters)} parameters>"

    def _repr_html_(self) -> str:
        """The drawing that a notebook shows."""
        ends = self._ends()
        return html([self._block.values[name] for name in ends], ends)

    def _ends(self) -> list[str]:
        """What the program computes that nothing in it reads."""
        read = {name for op in self.ops for names in op.inputs.values() for name in names}
        read -= set(self._outputs)
        return [name for name in self._block.variables if name not in read]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or a pickle holds the records and the values, and what is compiled not."""
        return _restored, (self.tojson(), dict(self.scope))

    def __eq__(self, other: object) -> bool:
        """Whether both are the same program, wherever it was built."""
        return isinstance(other, Program) and str(self) == str(other)

    def tojson(self) -> str:
        """The program as JSON, without the values of parameters."""
        return encode(self.desc())

    def save(self, path: PathLike) -> None:
        """Write the program as JSON; the file is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        write_atomically(path, self.tojson().encode())

    @classmethod
    def load(cls, path: PathLike, *, limit: int = LIMIT) -> "Program":
        """The program that ``save`` wrote; nothing in the file is executed.

        Raises:
            FormatError: the file is damaged, too large or of a newer version.
            OSError: the file cannot be read.
        """
        return cls.from_desc(decode(read_bounded(path, limit), limit=limit))

    def clone(self, *, updates: bool = True) -> "Program":
        """A program of its own with the same records, over the same values of parameters.

        Without ``updates`` it leaves parameters and states as they are: for evaluation.
        """
        desc = self.desc()
        if not updates:
            desc.blocks[0].updates = {}
        made = Program.from_desc(desc)
        made.scope = self.scope
        return made

    # Symbols

    @classmethod
    def from_symbol(cls, symbol: Symbol, parameters: Collection[str] = ()) -> "Program":
        """The program that computes ``symbol``; users call ``symbol.to_program()``."""
        desc = symbol.to_desc()
        unknown = [var.name for var in desc.blocks[0].vars if var.shape is None]
        if unknown:
            raise UnknownTypeError(
                f"to_program: the shapes of all variables must be known, got none of "
                f"{', '.join(unknown)}; pass them, {unknown[0]}=(...)"
            )
        return cls.from_desc(from_symbol_desc(desc, parameters))

    def to_symbol(self, fetch: Given | Sequence[Given] | None = None) -> Symbol:
        """The values ``fetch`` as a symbol, whose variables are those of the program.

        Updates of auxiliary states follow from the operators that make them; what else the program
        updates is no part of a symbol.

        Args:
            fetch: variables or their names, one or a list; the outputs unless told.

        Raises:
            FormatError: the program has no outputs, and none are told.
        """
        names = self._outputs if fetch is None else self._listed(fetch)
        return from_desc(to_symbol_desc(self.desc(), names))

    # Running

    def initialize(self, seed: int | None = None) -> None:
        """Give every parameter and state its initial value.

        Args:
            seed: of the random numbers; without it they are drawn from ``so.random.seed``.
        """
        self.fill([one.name for one in self.variables if one.persistable], seed)

    def values(self) -> dict[str, Any]:
        """The values of all parameters and states; what has none yet gets its initial one."""
        kept = [one.name for one in self.variables if one.persistable]
        self.fill([name for name in kept if name not in self.scope])
        return {name: self.scope[name] for name in kept}

    def fill(self, names: Sequence[str], seed: int | None = None) -> None:
        """Give the parameters and states ``names`` their initial values, as ``initialize`` does."""
        if not names:
            return
        if seed is None:
            root, number = random.draw(owner="program")
            key = jax.random.fold_in(root, number)
        else:
            key = jax.random.key(seed)
        for i, name in enumerate(names):
            type, attrs = self._block.values[name].type, self._block.variables[name].attrs
            own = jax.random.fold_in(key, i)
            self.scope[name] = initial_value(attrs.get("initial"), type, own)

    def run(
        self,
        feed: Mapping[str, Any] | None = None,
        fetch: Given | Sequence[Given] | None = None,
        *,
        training: bool | None = None,
    ) -> Any:
        """Run all of it once: compute ``fetch``, and replace what the program updates.

        Compiled once for each ``fetch``. Parameters and states that have no value yet get their
        initial one first. Random operators draw from ``so.random.seed``.

        Args:
            feed: an array for each variable that is fed and needed, a ``LoDTensor`` for those of
                ``ragged``.
            fetch: variables or their names, one or a list; the program's outputs unless told. A
                parameter or a state is given as it is after the run.
            training: what the training flag says; by default, whether a parameter is updated.

        Returns:
            The value of the one that is fetched, or a list.

        Raises:
            FeedError: an array is missing, superfluous, or of the wrong shape or dtype.
        """
        before, flag, runner = self._last
        if (
            (before is not fetch and not _are_the_same(fetch, before))
            or flag is not training
            or runner.serial != self._block.serial
        ):
            runner = self._runner(fetch, training)
            self._last = tuple(fetch) if isinstance(fetch, list) else fetch, training, runner
        return runner.run(feed if feed.__class__ is dict else _as_dict(feed), self)

    def _runner(self, fetch: Given | Sequence[Given] | None, training: bool | None) -> Runner:
        single = isinstance(fetch, (str, Variable))
        names = tuple(self._outputs if fetch is None else self._listed(fetch))
        key = names, single, training
        found = self._runners.get(key)
        if found is None or found.serial != self._block.serial:
            found = self._runners[key] = self._planned(names, single, training)
        return found

    def _planned(self, names: Sequence[str], single: bool, training: bool | None) -> Runner:
        if training is None:
            roles = {self._block.variables[name].role for name in self._block.desc.updates}
            training = "parameter" in roles
        stale = [key for key, one in self._runners.items() if one.serial != self._block.serial]
        for key in stale:
            del self._runners[key]
        return Runner(self._block, names, single=single, training=training)


def _are_the_same(fetch: Any, before: Any) -> bool:
    """Whether a list holds the very variables that it, or another list, held before."""
    if fetch.__class__ is not list or before.__class__ is not tuple:
        return False
    return len(fetch) == len(before) and all(map(is_, fetch, before))


def _as_dict(feed: Any) -> dict[str, Any]:
    if feed is None:
        return {}
    if not isinstance(feed, Mapping):
        raise FeedError(f"run: a dict of arrays must be fed, got {type(feed).__name__}")
    return dict(feed)


def _restored(text: str, values: Mapping[str, Any]) -> Program:
    """The program that a pickle or a copy holds."""
    made = Program.from_desc(decode(text))
    # A run of either program donates its own arrays.
    made.scope.update(jax.tree_util.tree_map(jnp.copy, dict(values)))
    return made


def _copied(desc: ProgramDesc) -> ProgramDesc:
    return msgspec.convert(msgspec.to_builtins(desc), ProgramDesc)


Symbol.program_of = staticmethod(Program.from_symbol)
