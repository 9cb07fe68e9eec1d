"""``symop audit``: which operators are differentiable to every order."""

import argparse

import registry


def run(options: argparse.Namespace) -> None:
    """Print the audit."""
    del options
    print(registry.audit())
