"""Operators of other packages, and the one table under many threads and replacements."""

import random
import subprocess
import sys
import textwrap
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registry
import symop as so
from registry import Array, op, table, var
from registry.errors import RegistrationError, UnknownOperatorError

pytestmark = pytest.mark.usefixtures("temporary_operators")

DECLARE = '''
from registry import Array, op

@op(name="{name}"{options})
def kernel(x: Array) -> Array:
    """``2 x``."""
    return x * 2
'''


class Site:
    """A folder on the path into which packages are installed."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, package, *, modules, entries):
        """A distribution with a package of ``modules`` and the ``entries`` of the group."""
        home = self.folder / package
        home.mkdir()
        for name, text in {"__init__": "", **modules}.items():
            (home / f"{name}.py").write_text(textwrap.dedent(text))
        info = self.folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[symop.operators]", *lines, ""]))

    def run(self, code):
        """What ``code`` prints in a process of its own, with warnings on stderr."""
        path = [str(self.folder), *filter(None, sys.path)]
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={"PYTHONPATH": ":".join(path), "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A ``Site`` on this process's path; plug-ins are as if none was ever loaded."""
    monkeypatch.syspath_prepend(tmp_path)
    fresh = table.Plugins(table._transaction)
    fresh.open()
    monkeypatch.setattr(table, "installed", fresh)
    before = set(sys.modules)
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        if name.startswith("plug_"):
            del sys.modules[name]


def declaration(name, options=""):
    return DECLARE.format(name=name, options=options)


# Loading ----------------------------------------------------------------------------------------


class TestLoading:
    def test_module_is_loaded_when_a_name_is_missing(self, site):
        site.install(
            "plug_one", modules={"ops": declaration("plug_double")}, entries={"one": "plug_one.ops"}
        )
        assert so.sin is not None
        assert "plug_one.ops" not in sys.modules
        assert float(so.plug_double(jnp.float32(3))) == 6.0
        assert so.var("x").plug_double().list_arguments() == ["x"]

    @pytest.mark.parametrize("ask", [registry.names, registry.operators, registry.load_plugins])
    def test_listing_loads(self, site, ask):
        site.install(
            "plug_one", modules={"ops": declaration("plug_double")}, entries={"one": "plug_one.ops"}
        )
        assert ask()
        assert "plug_double" in table._table

    def test_function_target_is_called_once(self, site):
        text = "def enter():\n" + textwrap.indent(declaration("plug_double"), "    ")
        site.install("plug_one", modules={"ops": text}, entries={"one": "plug_one.ops:enter"})
        assert registry.load_plugins() == ["one"]
        assert registry.load_plugins() == ["one"]
        assert "plug_double" in registry.names()

    def test_operator_as_target(self, site):
        site.install(
            "plug_one",
            modules={"ops": declaration("plug_double")},
            entries={"one": "plug_one.ops:kernel"},
        )
        assert registry.load_plugins() == ["one"]

    def test_plugin_may_use_symop_and_the_table(self, site):
        text = (
            "import registry, symop as so\n"
            + "assert 'sin' in registry.names()\n"
            + "assert not hasattr(so, 'plug_absent')\n"
            + declaration("plug_double")
            + "\nkernel.gradient(lambda d_out: {'x': so.scale(d_out, scale=2.0)})\n"
        )
        site.install("plug_one", modules={"ops": text}, entries={"one": "plug_one.ops"})
        assert float(jax.grad(so.plug_double)(1.0)) == 2.0

    def test_own_import_triggers_the_loading(self, site):
        text = (
            "import registry\nbefore = 'plug_double' in registry.names()\n"
            + declaration("plug_double")
            + "\ndef enter():\n"
            + textwrap.indent(declaration("plug_again"), "    ")
        )
        entries = {"called": "plug_one.ops:enter", "imported": "plug_one.ops"}
        site.install("plug_one", modules={"ops": text}, entries=entries)
        __import__("plug_one.ops")
        assert {"plug_double", "plug_again"} <= set(registry.names())
        assert registry.load_plugins() == ["called", "imported"]

    def test_found_after_installation_when_asked_for_by_hand(self, site):
        assert registry.load_plugins() == []
        site.install(
            "plug_one", modules={"ops": declaration("plug_double")}, entries={"one": "plug_one.ops"}
        )
        assert registry.load_plugins() == ["one"]

    def test_import_of_registry_loads_nothing(self, site):
        site.install(
            "plug_one",
            modules={"ops": "print('loaded')\n" + declaration("plug_double")},
            entries={"one": "plug_one.ops"},
        )
        out, err = site.run(
            """
            import registry
            import symop as so
            print("imported")
            print(so.plug_double(1.0))
            """
        )
        assert out.splitlines() == ["imported", "loaded", "2.0"]
        assert err == ""


class TestBroken:
    def install_three(self, site, broken, entry="plug_bad.ops"):
        for name in ("a_first", "z_last"):
            ops = declaration(f"plug_of_{name}")
            entries = {name: f"plug_{name}.ops"}
            site.install(f"plug_{name}", modules={"ops": ops}, entries=entries)
        site.install("plug_bad", modules={"ops": broken}, entries={"bad": entry})

    def failure(self, reason):
        return pytest.warns(RuntimeWarning, match=rf"'bad' \(plug_bad.*\) of plug_bad .*{reason}")

    def test_it_is_named_taken_back_and_skipped(self, site):
        options = ', aliases=["plug_alias"], infix="<=>"'
        self.install_three(site, declaration("plug_half", options) + "\nraise OSError('no disk')\n")
        with self.failure("OSError: no disk"):
            found = registry.names(aliases=True)
        assert {"plug_of_a_first", "plug_of_z_last"} <= set(found)
        assert not {"plug_half", "plug_alias"} & set(found)
        assert "<=>" not in var.infix
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            registry.names()  # told once
        with self.failure("no disk"):
            assert registry.load_plugins() == ["a_first", "z_last"]

    def test_name_that_is_taken(self, site):
        self.install_three(site, declaration("plug_half") + declaration("sin"))
        before = registry.get("sin")
        with self.failure("RegistrationError: sin: an operator must be registered once"):
            assert "plug_half" not in registry.names()
        assert registry.get("sin") is before

    def test_what_it_replaced_comes_back(self, site):
        taken = declaration("add", ', replace=True, infix="+"') + "\n1 / 0\n"
        self.install_three(site, taken)
        before = registry.get("add")
        with self.failure("ZeroDivisionError"):
            registry.names()
        assert registry.get("add") is registry.get("elemwise_add") is before
        assert var.infix["+"] is before

    def test_infix_that_is_taken(self, site):
        self.install_three(site, declaration("plug_half", ', infix="+"'))
        with self.failure("infix"):
            assert "plug_half" not in registry.names()
        assert var.infix["+"] is registry.get("add")

    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            ("plug_bad.absent", "ModuleNotFoundError"),
            ("plug_bad.ops:absent", "AttributeError"),
            ("plug_bad.ops:number", "must name a module or a function, got 3"),
            ("plug_bad.ops:leave", "SystemExit"),
        ],
    )
    def test_target(self, site, entry, reason):
        self.install_three(site, "import sys\nnumber = 3\nleave = sys.exit\n", entry)
        with self.failure(reason):
            assert "plug_of_z_last" in registry.names()

    def test_registrations_of_other_threads_stay(self, site):
        self.install_three(
            site,
            """
            import threading
            from registry import op

            def enter():
                thread = threading.Thread(target=lambda: op(name="plug_other")(abs_of))
                thread.start()
                thread.join()
                raise ValueError("late")

            def abs_of(x):
                '''``|x|``.'''
                return abs(x)
            """,
            "plug_bad.ops:enter",
        )
        with self.failure("late"):
            assert "plug_other" in registry.names()

    def test_warnings_as_errors_leave_the_others_loaded(self, site):
        self.install_three(site, "1 / 0")
        with pytest.raises(RuntimeWarning, match="bad"):
            registry.names()
        assert "plug_of_z_last" in registry.names()


# Threads ----------------------------------------------------------------------------------------


def together(*functions):
    """Run the functions at once in threads; the errors that they raise."""
    errors = []

    def guarded(function):
        try:
            start.wait()
            function()
        except Exception as error:
            errors.append(error)

    start = threading.Barrier(len(functions))
    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in functions]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not any(one.is_alive() for one in threads), "a thread is stuck"
    return errors


class TestThreads:
    def test_everybody_waits_for_the_one_that_loads(self, site):
        slow = "import time\ntime.sleep(0.3)\n" + declaration("plug_double")
        site.install("plug_one", modules={"ops": slow}, entries={"one": "plug_one.ops"})
        assert together(*[lambda: registry.get("plug_double")] * 8) == []

    def test_one_thread_imports_what_another_loads(self, site):
        text = "import time, registry\ntime.sleep(0.3)\nregistry.names()\n" + declaration(
            "plug_double"
        )
        site.install("plug_one", modules={"ops": text}, entries={"one": "plug_one.ops"})
        assert together(lambda: __import__("plug_one.ops"), registry.names, registry.names) == []
        assert "plug_double" in registry.names()

    def test_registering_looking_up_listing_and_replacing(self):
        shared = declare_twice("thread_shared", aliases=["thread_alias"])
        assert table.get("thread_alias") is shared

        def register(k):
            for n in range(40):
                declare_twice(f"thread_{k}_{n}", aliases=[f"thread_{k}_{n}_alias"])

        def look_up():
            for _ in range(400):
                assert registry.get("thread_shared").name == "thread_shared"
                assert registry.get("thread_alias").name == "thread_shared"

        def list_all():
            for _ in range(50):
                assert "thread_shared" in registry.names(aliases=True)
                assert [one.name for one in registry.operators()]

        def replace():
            for _ in range(40):
                declare_twice("thread_shared", aliases=["thread_alias"], replace=True)

        jobs = [look_up, list_all, replace] * 4 + [lambda k=k: register(k) for k in range(4)]
        random.Random(0).shuffle(jobs)
        assert together(*jobs) == []
        expected = {f"thread_{k}_{n}" for k in range(4) for n in range(40)}
        assert expected <= set(registry.names())

    def test_one_of_many_gets_a_name(self):
        errors = together(*[lambda: declare_twice("thread_contested")] * 8)
        assert [type(one) for one in errors] == [RegistrationError] * 7


def declare_twice(name, factor=2.0, **options):
    @op(name=name, **options)
    def kernel(x: Array) -> Array:
        """``factor * x * x``."""
        return factor * x * x

    kernel.gradient(lambda x, d_out: {"x": 2.0 * factor * x * d_out})
    return kernel


# Replacing ---------------------------------------------------------------------------------------


class TestReplacing:
    def test_what_was_built_before_keeps_working(self):
        old = declare_twice("again")
        x = so.var("x", shape=(3,))
        y = so.again(x)
        slope = so.grad(so.sum(y), x)
        function, lowered = jax.jit(lambda v: jnp.sum(so.again(v))), y.to_jax()
        values = np.array([1.0, 2.0, 3.0], np.float32)
        before = function(values)
        new = declare_twice("again", 5.0, replace=True)
        assert registry.get("again") is new is not old
        np.testing.assert_allclose(y.eval(x=values), 2 * values**2)
        np.testing.assert_allclose(slope.eval(x=values), 4 * values)
        np.testing.assert_allclose(so.grad(so.sum(slope), x).eval(x=values), 4 * np.ones(3))
        np.testing.assert_allclose(function(values), before)
        np.testing.assert_allclose(jax.grad(function)(values), 4 * values)
        np.testing.assert_allclose(jax.jacrev(jax.jacfwd(lowered_at(lowered)))(2.0), 4.0)
        np.testing.assert_allclose(so.again(values), 5 * values**2)

    def test_names_of_the_old_one_are_gone(self):
        declare_twice("again", aliases=["anew", "afresh"], infix="<=>")
        new = declare_twice("again", aliases=["afresh"], replace=True)
        assert "<=>" not in var.infix
        assert registry.get("afresh") is new
        with pytest.raises(UnknownOperatorError, match="anew"):
            registry.get("anew")

    def test_only_on_purpose_and_only_its_own_name(self):
        declare_twice("again", aliases=["anew"])
        with pytest.raises(RegistrationError, match="pass replace=True"):
            declare_twice("again")
        with pytest.raises(RegistrationError, match="the name belongs to again"):
            declare_twice("anew", replace=True)
        with pytest.raises(RegistrationError, match="belongs to add"):
            declare_twice("other", infix="+")
        assert "other" not in registry.names()


def lowered_at(lowered):
    return lambda v: jnp.sum(lowered(x=jnp.stack([v, 0.0, 0.0])))
