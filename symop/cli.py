"""The command ``symop``: work with saved graphs and the catalogue of operators from a shell."""

import importlib
import os
import sys

from symop.commands.parser import parser


def main(arguments: list[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit status: 0 on success, 1 on failure, 2 if the arguments are invalid, 130 if the
        user interrupts the command. ``symop diff`` returns 1 for graphs that differ, 2 on failure.
    """
    options = parser().parse_args(arguments)
    try:
        # Commands import JAX and the catalogue; help and argument errors do not need them.
        errors = importlib.import_module("registry.errors")
        command = importlib.import_module(f"symop.commands.{options.command}")
        failure: int = getattr(command, "FAILURE", 1)
        try:
            status: int = command.run(options) or 0
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader closed the pipe. Discard the rest, including what Python flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return failure
        except (errors.SymopError, OSError) as error:
            print(f"symop: {_in_one_line(error)}", file=sys.stderr)
            return failure
    except KeyboardInterrupt:
        print("symop: interrupted", file=sys.stderr)
        return 130
    return status


def _in_one_line(error: BaseException) -> str:
    """Returns the message of ``error``; tools that read stderr take a line for a message."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
