"""Runs the benchmarks, stores their results as JSON and prints them: ``make bench``.

python benchmarks/run.py                 all of them
python benchmarks/run.py calls steps     some of them
python benchmarks/run.py --quick         few repeats, nothing stored
python benchmarks/run.py --table         only rewrite the pages from stored results
"""

import argparse
import importlib
from pathlib import Path
from typing import Any

import measure
import readme

MAIN = (
    "building", "steps", "calls", "eager", "sparse", "control_flow", "programs", "mxnet",
    "mxnet_sparse", "paddle", "depth", "depth_chain", "attention", "jax_functions",
    "differential_operators", "scale", "newcomer", "models", "start", "drawing",
)  # fmt: skip
NAMES = (*MAIN, "orders", "memory", "catalogue")
DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    "benchmarks.md": MAIN,
    "orders.md": ("orders",),
    "memory.md": ("memory",),
    "speed.md": ("catalogue",),
}
BEGIN = "<!-- The rest is written by `python benchmarks/run.py --table`. -->"


def run(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one benchmark; its result as plain data."""
    module = importlib.import_module(name)
    before = measure.load()
    figures, more = module.run(quick=quick)
    return measure.record(name, module.TITLE, figures, before, more)


def section(result: dict[str, Any]) -> str:
    """A result as a section of the page."""
    seen = result["environment"]
    where = (
        f"Python {seen['python']}, JAX {seen['jax']}, {seen['device']} with {seen['cores']} cores, "
        f"load {seen['load_before']:g} before and {seen['load_after']:g} after."
    )
    listed = "".join(f"\n- {remark}" for remark in result.get("remarks", []))
    shown = f"\n{listed}" if listed else ""
    more = "".join(f"\n{line}" for line in result.get("text", []))
    return f"## {result['title']}\n\n{where}\n\n{measure.table(result)}{shown}{more}\n"


def write_pages() -> None:
    """Replace the generated part of each page with the stored results."""
    for page, names in PAGES.items():
        path = DOCS / page
        written, _, _ = path.read_text(encoding="utf-8").partition(BEGIN)
        stored = [result for name in names if (result := measure.read(name)) is not None]
        sections = "\n".join(section(result) for result in stored)
        path.write_text(f"{written}{BEGIN}\n\n{sections}", encoding="utf-8")
    readme.write()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"among {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few repeats, nothing stored")
    parser.add_argument("--table", action="store_true", help="only rewrite the pages")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"benchmarks are {', '.join(NAMES)}, got {', '.join(unknown)}")
    for name in () if arguments.table else arguments.names or NAMES:
        result = run(name, quick=arguments.quick)
        print(section(result), flush=True)
        if not arguments.quick:
            measure.write(result)
    if not arguments.quick:
        write_pages()


if __name__ == "__main__":
    main()
