"""What ``import symop`` and the command line import, and when the rest is loaded."""

import ast
import os
import subprocess
import symtable
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"symop", "registry"}
HEAVY = {"jax", "numpy", "scipy", "optax", "msgspec", "registry"}


def fresh(code):
    """What ``code`` prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_after(code):
    """The modules that ``code`` leaves imported."""
    return set(fresh(f"import sys\n{textwrap.dedent(code)}\nprint(*sys.modules)").split())


def test_import_loads_neither_jax_nor_the_catalogue():
    imported = modules_after("import symop; assert symop.__version__")
    assert imported & HEAVY == set()
    assert {name for name in imported if name.startswith("symop.")} == {"symop.shadowing"}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["--help"], 0), (["ops", "--help"], 0), (["draw"], 2), (["convert", "m", "1"], 2)],
)
def test_help_and_errors_of_arguments_do_not_load_jax(arguments, status):
    imported = modules_after(f"""
        import contextlib, io
        from symop.cli import main
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                main({arguments})
        except SystemExit as stopped:
            assert stopped.code == {status}
    """)
    assert imported & HEAVY == set()


@pytest.mark.parametrize("command", ["ops", "show"])
def test_commands_load_what_they_need(command):
    imported = modules_after(f"import symop.commands.{command}")
    assert not {"symop.interop", "symop.testing", "optax"} & imported


def test_the_first_names_load_what_is_public():
    unneeded = {"scipy", "optax", "sympy", "networkx", "matplotlib"}
    imported = modules_after("""
        from symop import softmax
        import symop as so
        assert so.softmax is softmax is so.registry.get("softmax")
        assert "softmax" in dir(so) and "grad" in dir(so) and "importlib" not in dir(so)
        assert so.nd.softmax(so.nd.array([1.0])).shape == (1,)
        assert so.remat.__name__ == "symop.remat"
        from symop import *
        assert var is so.var and registry is so.registry
        try:
            so.softmaxx
        except AttributeError as error:
            assert "softmax" in str(error)
        else:
            raise AssertionError
    """)
    assert not imported & unneeded
    assert not {"symop.interop", "symop.testing", "symop.train", "symop.cli"} & imported


@pytest.mark.parametrize("first", ["", "so.sin; "])
def test_modules_are_attributes(first):
    """Before the names of ``symop`` are loaded, and afterwards."""
    for name in ("train", "testing", "interop", "checkpoint", "autograd", "random", "optim"):
        assert fresh(f"import symop as so; {first}print(so.{name}.__name__)") == f"symop.{name}\n"
    assert "symop.train" not in modules_after(f"import symop as so; {first}dir(so)")
    assert fresh(f"import symop as so; {first}print(so.interop.mxnet.ndarray.__name__)")


def test_mxnets_modules_are_importable_by_their_names():
    """Scripts also write ``import mxnet.ndarray as nd`` and ``import mxnet.symbol``."""
    for name, short in (("ndarray", "nd"), ("symbol", "sym")):
        code = f"import symop.interop.mxnet as mx, symop.interop.mxnet.{name} as one; "
        assert fresh(f"{code}print(one is mx.{name} is mx.{short}, one.zeros is not None)") == (
            "True True\n"
        )


def test_registry_alone_has_what_symop_adds():
    """Rules of JAX, reserved names and bodies of cases do not wait for a name of ``symop``."""
    fresh("""
        import symop
        import registry
        from registry import Array, var
        from registry.errors import RegistrationError

        def grad(x: Array) -> Array:
            "``x``."
            return x

        try:
            registry.op(grad)
        except RegistrationError as error:
            assert "reserved" in str(error)
        else:
            raise AssertionError
        assert type(var.Arrays.emitter).__name__ == "ArrayEmitter"
    """)
    fresh("""
        import symop
        import jax, jax.numpy as jnp, registry

        assert "custom_" in str(jax.make_jaxpr(registry.get("softmax"))(jnp.ones(3)))
    """)
    fresh("""
        import symop
        import numpy as np
        from registry.operator.bodies import BodySample

        body = BodySample(lambda x: x * 2.0, ((3,),)).at(np.dtype(np.float32))
        assert type(body).__name__ == "GraphBody"
    """)


def test_each_public_module_works_alone():
    """Classes of values are complete after the import of any public module."""
    fresh("""
        import importlib, pkgutil, sys
        import symop

        lower = {"autograd", "cli", "engine", "public", "random", "shadowing"}
        found = {one.name for one in pkgutil.iter_modules(symop.__path__) if not one.ispkg}
        for name in sorted(found - lower | {"testing", "interop.mxnet"}):
            for loaded in [one for one in sys.modules if one.startswith("symop")]:
                del sys.modules[loaded]
            importlib.import_module("symop." + name)
            assert "symop.public" not in sys.modules or name == "interop.mxnet", name
            assert "symop.engine" in sys.modules, name
            array = importlib.import_module("symop.eager.ndarray").NDArray
            symbol = importlib.import_module("symop.symbol.symbol").Symbol
            emitter = importlib.import_module("registry.var").Arrays.emitter
            assert type(emitter).__module__ == "symop.runtime.jax_calls", name
            assert type(emitter) is sys.modules["symop.runtime.jax_calls"].ArrayEmitter, name
            for owner, attribute in (
                (array, "emitter"), (array, "pass_back"), (array, "mean"), (array, "__add__"),
                (symbol, "emitter"), (symbol, "program_of"),
            ):
                assert attribute in vars(owner), (name, owner, attribute)
    """)


def test_threads_that_ask_first():
    fresh("""
        import threading
        import symop as so

        names = ["softmax", "var", "nd", "Program", "random", "sym", "grad", "remat"] * 3
        start, got = threading.Barrier(len(names)), []

        def ask(name):
            start.wait()
            got.append((name, getattr(so, name)))

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(got) == len(names)
        assert all(found is getattr(so, name) for name, found in got)
    """)


def test_an_interrupted_load_is_made_again():
    """The interrupts come when a module has done all that it does, and is dropped by Python."""
    fresh("""
        import importlib.machinery, sys
        import symop as so

        left = ["registry.ops.core.arithmetic", "registry.ops.loss.losses", "symop.eager.tape",
                "symop.symbol.symbol", "symop.nd", "symop.public"]

        class Finder(importlib.machinery.PathFinder):
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                spec = super().find_spec(name, path, target)
                if name in left:
                    execute = spec.loader.exec_module
                    def interrupted(module):
                        execute(module)
                        left.remove(name)
                        raise KeyboardInterrupt(name)
                    spec.loader.exec_module = interrupted
                return spec

        sys.meta_path.insert(0, Finder)
        count = 0
        for _ in range(len(left)):
            try:
                so.softmax
            except KeyboardInterrupt:
                count += 1
        assert (count, left) == (6, [])
        x = so.var("x", shape=(3,))
        assert so.grad(so.softmax(x), x).infer_shape(x=(3,))[1] == [(3,)]
        y = so.nd.array([1.0, 2.0])
        y.attach_grad()
        with so.autograd.record():
            z = (y * y).sum()
        z.backward()
        assert y.grad.tolist() == [2.0, 4.0]
        assert len(so.registry.names()) > 400
    """)


SCRIPTS = sorted(
    path
    for folder in ("benchmarks", "examples", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith("test_")  # pytest imports those
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_names_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            exec(f"from {node.module} import {', '.join(one.name for one in node.names)}", {})


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_names_that_other_scripts_define(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source = script_of(node.module, path)
            if source is not None:
                assert {one.name for one in node.names} <= names_of(source), source


def script_of(module, path):
    """The script that ``path`` imports as ``module``; None for a module of a package."""
    inner = Path(*module.split("."))
    folders = [path.parent, *(ROOT / one for one in ("benchmarks", "examples", "tests"))]
    files = [folder / name for folder in folders for name in (f"{inner}.py", inner / "__init__.py")]
    return next((one for one in files if one.exists()), None)


def names_of(path):
    """The names that a script defines or imports, and its modules."""
    table = symtable.symtable(path.read_text(encoding="utf-8"), str(path), "exec")
    bound = {
        one.get_name()
        for one in table.get_symbols()
        if one.is_assigned() or one.is_imported() or one.is_namespace()
    }
    modules = path.parent.iterdir() if path.name == "__init__.py" else ()
    return bound | {one.stem for one in modules}
