"""What is said of names of Paddle that are not here."""

from typing import NoReturn

from symop.interop.paddle.operators import find

_INSTEAD = {
    "dygraph": "symop's eager arrays, symop.nd, with autograd.record() and backward()",
    "in_dygraph_mode": "programs alone; eager arrays are symop.nd",
    "nn": "layers of a program, static.nn and fluid.layers",
    "nets": "layers of a program, fluid.layers",
    "fleet": "train.Trainer with a mesh of devices",
    "distributed": "train.Trainer with a mesh of devices",
    "incubate": "symop's own operators and train.Trainer",
    "ParallelExecutor": "static.Executor; JAX uses the devices of a mesh",
    "PyReader": "a Python generator whose batches are fed to Executor.run",
    "DataFeeder": "Executor.run(feed={name: array}); a ragged array is (array, lengths)",
    "DataLoader": "a Python generator whose batches are fed to Executor.run",
    "DatasetFactory": "a Python generator whose batches are fed to Executor.run",
    "py_reader": "a Python generator whose batches are fed to Executor.run",
    "create_py_reader_by_data": "a Python generator whose batches are fed to Executor.run",
    "read_file": "a Python generator whose batches are fed to Executor.run",
    "py_func": "an operator that is registered with registry.op",
    "profiler": "jax.profiler",
    "metrics": "fetch_list of Executor.run and NumPy",
    "LoDTensor": "so.LoDTensor.from_lengths(data, lengths)",
    "create_lod_tensor": "so.LoDTensor.from_lengths(data, lengths)",
    "LoDTensorArray": "layers.create_array and array_write",
    "reorder_lod_tensor_by_rank": "DynamicRNN.static_input, or memory(need_reorder=True)",
    "WeightNormParamAttr": "ParamAttr; divide the weight by its norm with so.norm",
    "cuda_pinned_places": "static.cpu_places",
    "require_version": "symop.__version__",
    "install_check": "symop's tests",
    "dataset": "arrays from files; examples/ shows some",
    "transpiler": "train.Trainer with a mesh of devices",
    "DistributeTranspiler": "train.Trainer with a mesh of devices",
    "memory_optimize": "nothing: XLA plans memory, so.remat trades it for time",
    "amp": "train.Trainer with a compute dtype",
}


def raise_missing(module: str, name: str) -> NoReturn:
    """Raises the error for a name that a module does not have.

    Raises:
        AttributeError: always; the message says what to use instead.
    """
    instead = _INSTEAD.get(name)
    if instead is None and find(name) is not None:
        instead = f"current_block().append_op({name!r}, inputs, outputs, attrs) of a program"
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise AttributeError(f"{module}.{name} is not here: use {instead}")
