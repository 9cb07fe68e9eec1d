"""The committed table and pages of operators are those of the operators as they are."""

import dataclasses
import importlib
import json
import sys
from pathlib import Path

import pytest

import registry
from registry import Array, Operator
from registry.operator.operator import Derivative
from symop import cli, testing
from symop.testing import check_operator, record, sheets
from symop.testing.fingerprint import fingerprint

DOCS = Path(__file__).parents[1] / "docs"
OPERATORS = [one for one in registry.operators() if one.catalogued]
STALE = "docs/ is stale: run  make proofs"


@pytest.fixture(scope="module")
def records():
    return record.load(DOCS / sheets.RECORDS)


@pytest.fixture(scope="module")
def pages(records):
    return sheets.rendered(OPERATORS, records)


class TestCommitted:
    @pytest.mark.essential
    def test_every_operator_was_proved_as_it_is(self, records):
        assert [one.name for one in record.stale(OPERATORS, records)] == [], STALE
        assert sorted(records) == sorted(one.name for one in OPERATORS), STALE

    def test_pages_are_those_that_would_be_written(self, pages):
        stored = {name for name in pages if (DOCS / name).exists()}
        assert sorted(pages.keys() - stored) == [], STALE
        differing = [n for n in pages if (DOCS / n).read_text(encoding="utf-8") != pages[n]]
        assert differing == [], STALE

    def test_no_page_is_of_an_operator_that_is_no_more(self):
        stored = {page.stem for page in (DOCS / sheets.FOLDER).glob("*.md")}
        assert stored == {one.name for one in OPERATORS}, STALE

    def test_links_lead_to_pages(self, pages):
        for name, text in pages.items():
            for target in sheets.linked(text):
                assert ((DOCS / name).parent / target).exists(), f"{name}: {target}"


MODULE = '''
"""Two operators."""
from registry import Array, case, op

FACTOR = 2.0

def doubled(x):
    """What the first one is."""
    return FACTOR * x

@op(name="sheet_double", cases=[case(x=(3,), order=1)], reference=lambda x: 2 * x)
def sheet_double(x: Array) -> Array:
    """``2 x``."""
    return doubled(x)

@sheet_double.gradient
def sheet_double_gradient(d_out):
    return {"x": 2.0 * d_out}

@op(name="sheet_sign", cases=[case(x=(3,), order=1)])
def sheet_sign(x: Array) -> Array:
    """Sign of ``x``."""
    return (x > 0) * 1.0

sheet_sign.zero_gradient("it is constant between jumps")
'''


def forget():
    """As in a new process."""
    sys.modules.pop("sheet_operators", None)
    for name in ("sheet_double", "sheet_sign"):
        registry.table.unregister(name)


@pytest.mark.usefixtures("temporary_operators")
class TestOwnOperators:
    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "sheet_operators.py"
        path.write_text(MODULE)
        yield path
        forget()

    def test_a_table_and_pages_are_written(self, module, capsys):
        assert cli.main(["check", str(module), "--sheets", "sheets"]) == 0
        assert "sheet_double holds" in capsys.readouterr().out
        folder = module.parent / "sheets"
        assert "| [`sheet_double`](operators/sheet_double.md) | `2 x`." in (
            folder / "operators.md"
        ).read_text(encoding="utf-8")
        page = (folder / "operators" / "sheet_double.md").read_text(encoding="utf-8")
        assert "multiply(2.0, d_out)" in page
        assert "- [x] the kernel computes what the reference computes (1 case)" in page
        page = (folder / "operators" / "sheet_sign.md").read_text(encoding="utf-8")
        assert "it is constant between jumps" in page
        assert "reference: nothing to compare, no reference= is declared" in page

    def test_what_did_not_change_is_not_proved_again(self, module, capsys):
        cli.main(["check", str(module), "--sheets", "sheets"])
        capsys.readouterr()
        forget()
        assert cli.main(["check", str(module), "--sheets", "sheets"]) == 0
        assert "sheet_double" not in capsys.readouterr().out

    def test_a_proof_that_was_not_run_makes_it_stale(self, module, capsys):
        cli.main(["check", str(module), "--sheets", "sheets"])
        forget()
        path = module.parent / "sheets" / "proofs.json"
        stored = json.loads(path.read_text())
        del stored["sheet_double"]["proofs"]["half"]
        path.write_text(json.dumps(stored))
        capsys.readouterr()
        assert cli.main(["check", str(module), "--sheets", "sheets"]) == 0
        said = capsys.readouterr().out
        assert "sheet_double holds" in said
        assert "sheet_sign" not in said

    def test_what_fails_is_not_recorded(self, module, capsys):
        module.write_text(MODULE.replace('{"x": 2.0 * d_out}', '{"x": 3.0 * d_out}'))
        assert cli.main(["check", str(module), "--sheets", "sheets"]) == 1
        assert "sheet_double FAILS" in capsys.readouterr().out
        stored = json.loads((module.parent / "sheets" / "proofs.json").read_text())
        assert list(stored) == ["sheet_sign"]


class TestOrders:
    """The table shows the derivatives that something independent of the maker was compared with."""

    def orders(self, name, **proofs):
        """What the table shows, where so many cases hold for ``proofs``."""
        operator = registry.get(name)
        highest = testing.highest_orders(operator)
        orders = {proof: order for proof, order in highest.items() if proof in proofs}
        shown = sheets.rendered([operator], {name: record.Record("", proofs, orders)})[
            "operators.md"
        ]
        row = next(line for line in shown.splitlines() if line.startswith(f"| [`{name}`]"))
        return row.split(" | ")[3]

    def test_of_jax_and_differences(self):
        assert self.orders("sin", kernel=1, rules=1, differences=1) == "1–3"

    def test_of_the_declared_gradient_of_a_draw(self):
        assert self.orders("random_gamma", kernel="its own", rules=1, differences=1) == "1"

    def test_of_rules_alone(self):
        assert self.orders("random_gamma", rules=1) == "·"

    def test_of_what_is_zero_by_definition(self):
        whole = registry.get("floor")
        assert testing.highest_orders(whole) == {"kernel": 0, "rules": 0, "differences": 0}

    def test_every_maker_is_compared_with_what_knows_nothing_of_it(self):
        makers = [one for one in OPERATORS if one.derivative is Derivative.MAKER]
        highest = {one.name: testing.highest_orders(one) for one in makers}
        alone = [n for n, found in highest.items() if not (found["kernel"] or found["differences"])]
        assert alone == []

    def test_what_is_recorded(self):
        (_, found), *_ = record.prove([registry.get("minus")])
        assert found.orders == {"kernel": 3, "rules": 3, "differences": 3}


class TestFingerprint:
    def fingerprint(self, folder, text, module="fingerprinted"):
        """Of ``sheet_double`` in a module with that text."""
        (folder / f"{module}.py").write_text(text)
        importlib.invalidate_caches()
        testing.fingerprint._module.cache_clear()

        def kernel(x: Array) -> Array:
            """``2 x``."""
            return x

        kernel.__module__, kernel.__name__ = module, "sheet_double"
        return fingerprint(Operator(kernel))

    @pytest.mark.parametrize(
        ("old", "new", "changes"),
        [
            ("FACTOR = 2.0", "FACTOR = 3.0", True),
            ("return FACTOR * x", "return FACTOR * x * 1", True),
            ('{"x": 2.0 * d_out}', '{"x": d_out * 2.0}', True),
            ("x=(3,), order=1)], reference", "x=(4,), order=1)], reference", True),
            ("What the first one is.", "Twice its argument.", False),
            ("return doubled(x)", "return doubled(x)  # twice", False),
            ("(x > 0) * 1.0", "(x >= 0) * 1.0", False),
            ("FACTOR = 2.0", "for FACTOR in (2.0,): pass", True),
            ("FACTOR = 2.0", "if True:\n    FACTOR = 2.0", True),
        ],
    )
    def test_it_changes_with_what_counts(self, tmp_path, monkeypatch, old, new, changes):
        changed = MODULE.replace(old, new)
        assert changed != MODULE
        monkeypatch.syspath_prepend(tmp_path)
        before, after = (self.fingerprint(tmp_path, text) for text in (MODULE, changed))
        assert (before != after) is changes

    def test_it_does_not_change_where_a_module_moves(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        assert self.fingerprint(tmp_path, MODULE) == self.fingerprint(tmp_path, MODULE, "moved")

    @pytest.mark.parametrize(("name", "changes"), [("silu", True), ("floor", False)])
    def test_it_changes_with_operators_that_infix_signs_call(self, monkeypatch, name, changes):
        before = fingerprint(registry.get(name))
        told = testing.fingerprint._Module.text

        def text(module, name):
            return told(module, name) + "changed" * (name == "multiply")

        monkeypatch.setattr(testing.fingerprint._Module, "text", text)
        assert (fingerprint(registry.get(name)) != before) is changes

    def test_it_changes_with_the_proofs(self, monkeypatch):
        before = fingerprint(registry.get("sin"))
        monkeypatch.setattr(testing.fingerprint, "_proofs", lambda: "others")
        assert fingerprint(registry.get("sin")) != before


def test_a_verdict_may_be_quiet(capsys):
    assert check_operator("floor", quiet=True).ok
    assert capsys.readouterr().out == ""


def test_records_are_read_as_they_are_written(tmp_path):
    kept = {"sin": record.Record("0123", {"reference": 3, "complex": "it is refused: “no”"})}
    record.save(tmp_path / "proofs.json", kept)
    assert record.load(tmp_path / "proofs.json") == kept
    assert dataclasses.asdict(kept["sin"])["proofs"]["reference"] == 3
    assert record.load(tmp_path / "nothing.json") == {}
