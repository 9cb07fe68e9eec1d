"""The distribution: its name in the metadata, in messages and in the documentation."""

import re
import subprocess
import tomllib
from pathlib import Path

import symop
from registry.errors import missing_extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAME = PROJECT["name"]


def test_extras_refer_to_extras_of_this_distribution():
    own = [re.fullmatch(rf"{NAME}\[(.*)\]", one) for some in EXTRAS.values() for one in some]
    named = {extra for match in own if match for extra in match[1].split(",")}
    assert {"train", "notebook"} <= named <= set(EXTRAS)
    assert not any(one.startswith("symop[") for some in EXTRAS.values() for one in some)


def test_messages_and_pages_name_the_distribution():
    assert f"pip install '{NAME}[train]'" in str(missing_extra("fit", "tqdm", "train"))
    listed = subprocess.run(
        ["git", "grep", "-nE", r"pip install .?symop(\[|$|[^-a-z])"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.stdout == ""


def test_the_readme_lists_all_extras():
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(EXTRAS) <= set(table)


def test_the_version_has_one_place():
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", symop.__version__)
