"""``symop audit``: reports which operators are differentiable to every order."""

import argparse

import registry


def run(options: argparse.Namespace) -> None:
    """Print the audit of the catalogue, or of the operators that are named."""
    chosen = [registry.get(name).name for name in options.name]
    report = registry.audit()
    if not chosen:
        print(report)
        return
    width = max(map(len, chosen))
    for name in chosen:
        print(f"{name:<{width}}  {report[name]}")
