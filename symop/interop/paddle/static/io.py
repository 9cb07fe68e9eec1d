"""Files of programs and of variables, in Paddle's formats."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symop.interop.paddle import files
from symop.interop.paddle.errors import PaddleError
from symop.interop.paddle.executor import global_scope
from symop.interop.paddle.framework import VarDesc
from symop.interop.paddle.guards import default_main_program, program_guard
from symop.interop.paddle.programs import Program, Variable, name_of
from symop.interop.paddle.pruning import feeds_of, pruned, targets_of, with_feeds
from symop.interop.paddle.roles import OPTIMIZE, Role
from symop.interop.paddle.static.helper import Layer, named
from symop.interop.paddle.static.missing import raise_missing

PathLike = str | os.PathLike[str]
Chooses = Callable[[Variable], bool]


# Variables ---------------------------------------------------------------------------------------


def is_persistable(variable: Variable) -> bool:
    """Returns whether a value outlives a run."""
    return variable.name in files.persistables(variable.program.desc)


def is_parameter(variable: Variable) -> bool:
    """Returns whether a variable is a parameter of the model, not of the optimizer.

    A file does not always say so; then those are meant that no update writes, except parameters.
    """
    if any(one.is_parameter for one in variable.program.desc.blocks[0].vars.values()):
        return variable.desc.is_parameter
    return is_persistable(variable) and variable.name not in _states(variable.program)


def _states(program: Program) -> set[str]:
    """Returns the variables that updates read or write, except parameters."""
    updates = [op for op in program.desc.blocks[0].ops if Role.of(op).number & OPTIMIZE]
    touched = {name for op in updates for name in (*op.input_arg_names, *op.output_arg_names)}
    return touched - {name for op in updates for name in op.input("Param")}


def _chosen(
    program: Program | None, chosen: Sequence[Any] | None, predicate: Chooses
) -> list[VarDesc]:
    block = (program or default_main_program()).global_block()
    if chosen is not None:
        return [block.var(name_of(one)).desc for one in chosen]
    return [one.desc for one in block.vars.values() if predicate(one)]


def _values(variables: Sequence[VarDesc]) -> dict[str, Any]:
    """Returns the values of variables, in the dtypes that the program declares.

    Raises:
        PaddleError: a variable has no value.
    """
    scope = global_scope()
    lacking = [one.name for one in variables if one.name not in scope]
    if lacking:
        raise PaddleError(f"save: variables must have values, got none for {lacking[0]!r}")
    return {one.name: _declared(one, scope[one.name]) for one in variables}


def _declared(variable: VarDesc, value: Any) -> Any:
    """Returns a value in its variable's dtype; JAX keeps integers of 64 bits in 32."""
    if not hasattr(value, "__array__") or variable.dtype is None:
        return value
    return np.asarray(value).astype(variable.dtype, copy=False)


def save_vars(
    executor: Any,
    dirname: PathLike,
    main_program: Program | None = None,
    vars: Sequence[Any] | None = None,
    predicate: Chooses | None = None,
    filename: str | None = None,
) -> None:
    """Saves variables, one a file or all in one.

    Args:
        executor: accepted as in Paddle.
        dirname: the folder.
        main_program: the program that declares them.
        vars: the variables.
        predicate: says which variables are meant, if ``vars`` does not.
        filename: the name of the one file.
    """
    del executor
    chosen = _chosen(main_program, vars, predicate or is_persistable)
    files.save_vars(dirname, _values(chosen), filename=filename)


def load_vars(
    executor: Any,
    dirname: PathLike,
    main_program: Program | None = None,
    vars: Sequence[Any] | None = None,
    predicate: Chooses | None = None,
    filename: str | None = None,
) -> None:
    """Loads variables into the global scope; see ``save_vars``."""
    del executor
    chosen = _chosen(main_program, vars, predicate or is_persistable)
    global_scope().update(files.load_vars(dirname, chosen, filename=filename))


def _of_all(verb: str, what: str, predicate: Chooses) -> Callable[..., None]:
    """Returns the function that saves or loads all variables of a kind."""
    function = save_vars if verb == "save" else load_vars

    def move(
        executor: Any,
        dirname: PathLike,
        main_program: Program | None = None,
        filename: str | None = None,
    ) -> None:
        function(executor, dirname, main_program, predicate=predicate, filename=filename)

    doc = f"{verb.title()}s all {what} of a program; see ``{function.__name__}``."
    return named(move, f"{verb}_{what}", doc)


save_persistables = _of_all("save", "persistables", is_persistable)
load_persistables = _of_all("load", "persistables", is_persistable)
save_params = _of_all("save", "params", is_parameter)
load_params = _of_all("load", "params", is_parameter)


def save(program: Program, model_path: PathLike) -> None:
    """Saves parameters, the optimizer's variables and the program.

    Args:
        program: the program.
        model_path: the beginning of the files' names, which end in ``.pdparams``, ``.pdopt`` and
            ``.pdmodel``.
    """
    prefix = os.fspath(model_path)
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    everything = _chosen(program, None, is_persistable)
    parameters = {one.name for one in _chosen(program, None, is_parameter)}
    values = _values(everything)
    kept = {name: one for name, one in values.items() if name in parameters}
    files.save_pickled(f"{prefix}.pdparams", kept)
    others = {name: one for name, one in values.items() if name not in parameters}
    files.save_pickled(f"{prefix}.pdopt", others)
    files.write_program(f"{prefix}.pdmodel", program.desc)


def load(
    program: Program,
    model_path: PathLike,
    executor: Any = None,
    var_list: Sequence[Any] | None = None,
) -> None:
    """Loads what ``save`` saved into the global scope.

    Args:
        program: the program.
        model_path: the beginning of the files' names.
        executor: accepted as in Paddle.
        var_list: the variables that are loaded, by default all.

    Raises:
        PaddleError: a variable is in none of the files.
    """
    del executor
    found = files.load_state(model_path, program.desc)
    wanted = [one.name for one in _chosen(program, var_list, is_persistable)]
    lacking = [name for name in wanted if name not in found]
    if lacking:
        raise PaddleError(f"load: the files must have all variables, got none for {lacking[0]!r}")
    global_scope().update({name: found[name] for name in wanted})


def load_program_state(
    model_path: PathLike, var_list: Sequence[Any] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the arrays that ``save`` saved, by name."""
    found = files.load_state(model_path)
    names = list(found) if var_list is None else [name_of(one) for one in var_list]
    return {name: found[name] for name in names}


def set_program_state(program: Program, state_dict: Mapping[str, Any]) -> None:
    """Gives the variables of a program values by name."""
    names = {one.name for one in _chosen(program, None, is_persistable)}
    global_scope().update({key: one for key, one in state_dict.items() if key in names})


# Programs ----------------------------------------------------------------------------------------


def load_program(path: PathLike, *, max_steps: int | None = None) -> Program:
    """Loads a program from a file ``__model__`` or ``.pdmodel``, without values of variables.

    Args:
        path: the file.
        max_steps: the largest number of steps of loops whose number of steps is not known when the
            program is compiled; such loops need it for their gradients.

    Raises:
        PaddleFormatError: the file is damaged, too large, or contradicts itself.
        OSError: the file cannot be read.
    """
    return Program(files.read_program(path), max_steps=max_steps)


def save_program(program: Program, path: PathLike) -> None:
    """Saves a program without values of variables; the file is replaced atomically.

    Raises:
        PaddleError: the program contradicts itself; nothing is written.
        OSError: the file cannot be written; the old file is unchanged.
    """
    files.write_program(path, program.desc)


# Models of inference -----------------------------------------------------------------------------


def save_inference_model(
    dirname: PathLike,
    feeded_var_names: Sequence[Any],
    target_vars: Sequence[Any],
    executor: Any = None,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    *,
    program: Program | None = None,
) -> list[str]:
    """Saves what some variables depend on, with its parameters.

    As in Paddle 1.8, ``dirname`` is a folder with a file ``__model__``. Where variables are given
    in place of the names of what is fed, as in Paddle 2, it is the beginning of the names of the
    files ``.pdmodel`` and ``.pdiparams``.

    Args:
        dirname: the folder, or the beginning of the files' names.
        feeded_var_names: names of what is fed, or the variables.
        target_vars: what is computed.
        executor: accepted as in Paddle.
        main_program: the program, by default that which layers append to.
        model_filename: the name of the program's file.
        params_filename: the name of the one file of parameters; None for one file each.
        program: Paddle 2's name of ``main_program``.

    Returns:
        The names of the variables that the file computes.
    """
    del executor
    feeds, targets = _as_list(feeded_var_names), _as_list(target_vars)
    source = program or main_program or default_main_program()
    model = _inference(source, [name_of(one) for one in feeds], [name_of(one) for one in targets])
    if any(isinstance(one, Variable) for one in feeds):
        folder, stem = os.path.split(os.fspath(dirname))
        model_filename, params_filename = f"{stem}.pdmodel", f"{stem}.pdiparams"
    else:
        folder = os.fspath(dirname)
    Path(folder or ".").mkdir(parents=True, exist_ok=True)
    variables = list(files.persistables(model.desc).values())
    files.save_vars(folder or ".", _values(variables), filename=params_filename)
    files.write_program(Path(folder) / (model_filename or "__model__"), model.desc)
    return targets_of(model)


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _inference(program: Program, feeds: Sequence[str], targets: Sequence[str]) -> Program:
    """Returns a program for inference; each target passes through an operator, as in Paddle."""
    found = pruned(program, feeds, targets)
    names = []
    with program_guard(found):
        for i, name in enumerate(targets):
            layer = Layer("scale", f"save_infer_model/scale_{i}")
            output = layer.call(
                "scale", {"X": found.global_block().var(name)}, attrs={"scale": 1.0}
            )
            names.append(output.name)
    return with_feeds(found, feeds, names)


def load_inference_model(
    dirname: PathLike,
    executor: Any = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> tuple[Program, list[str], list[Variable]]:
    """Loads a model into the global scope.

    Args:
        dirname: the folder, or the beginning of the names of ``.pdmodel`` and ``.pdiparams``.
        executor: accepted as in Paddle.
        model_filename: the name of the program's file.
        params_filename: the name of the one file of parameters; None for one file each.

    Returns:
        The program, the names of what is fed, and the variables that it computes.
    """
    del executor
    prefix = os.fspath(dirname)
    if model_filename is None and Path(f"{prefix}.pdmodel").exists():
        prefix, stem = os.path.split(prefix)
        model_filename, params_filename = f"{stem}.pdmodel", f"{stem}.pdiparams"
    program = Program(files.read_program(Path(prefix) / (model_filename or "__model__")))
    found = files.load_vars(prefix or ".", program.desc, filename=params_filename)
    global_scope().update(found)
    block = program.global_block()
    return program, feeds_of(program), [block.var(name) for name in targets_of(program)]


def __getattr__(name: str) -> Any:
    raise_missing(__name__, name)
