"""The list of tests that `make test` leaves out since they take long."""

from pathlib import Path

from conftest import LENGTHY, MOST, lengthy_of


def test_the_shortest_case_of_a_function_stays():
    seconds = {"a.py::one": 2 * MOST, "a.py::quick": MOST / 2}
    seconds |= {"a.py::some[x]": 2 * MOST, "a.py::some[y]": 3 * MOST, "a.py::some[z]": MOST / 2}
    seconds |= {"a.py::all[x]": 3 * MOST, "a.py::all[y]": 2 * MOST}
    assert sorted(lengthy_of(seconds)) == [
        "a.py::all[x]", "a.py::one", "a.py::some[x]", "a.py::some[y]",
    ]  # fmt: skip


def test_the_list_names_tests_that_exist():
    listed = LENGTHY.read_text().splitlines()
    assert listed == sorted(set(listed))
    texts = {}
    for one in listed:
        place, *_, function = one.partition("[")[0].split("::")
        if place not in texts:
            texts[place] = Path(LENGTHY.parents[1], place).read_text()
        assert f"def {function}(" in texts[place], one
