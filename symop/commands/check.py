"""``symop check``: proves the operators that a module declares."""

import argparse
import functools
import sys
from pathlib import Path

from registry.operator.operator import Operator
from symop.testing import check_operator, record, sheets
from symop.testing.discovery import ModuleFailedError, declared_by


def run(options: argparse.Namespace) -> int:
    """Check each operator. Its name is printed first, as the checks may take a while."""
    try:
        chosen = declared_by(options.module)
    except ModuleFailedError as error:
        print(f"{error}symop: {error.module} failed while it was imported", file=sys.stderr)
        return 1
    if not chosen:
        print(f"symop: {options.module} declares no operator to check", file=sys.stderr)
        return 1
    failed = (_checked if options.sheets is None else _recorded)(chosen, options)
    held = len(chosen) - len(failed)
    print(f"{held} of {len(chosen)} operators hold" + "".join(f"; {n} FAILS" for n in failed))
    return 1 if failed else 0


def _checked(chosen: list[Operator], _options: argparse.Namespace) -> list[str]:
    failed = []
    for i, operator in enumerate(chosen, 1):
        print(f"[{i}/{len(chosen)}] {operator.name}", flush=True)
        if not check_operator(operator).ok:
            failed.append(operator.name)
        print(flush=True)
    return failed


def _recorded(chosen: list[Operator], options: argparse.Namespace) -> list[str]:
    folder: Path = options.sheets
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sheets.RECORDS
    prepare = functools.partial(declared_by, options.module)
    failed = record.update(path, chosen, options.workers, prepare)
    sheets.write(folder, chosen, record.load(path))
    return failed
