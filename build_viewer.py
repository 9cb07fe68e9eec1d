"""Fetches the layout library of interactive drawings, for wheels and for ``make viewer``.

The library is dagre (https://github.com/dagrejs/dagre, MIT license), by npm, in one version whose
content is checked. It is written to ``symop/drawing/viewer/dagre.js``, with its license, which git
ignores. A wheel that is built without npm lacks it: ``to_html`` then says what to do.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from setuptools.command.build_py import build_py

PACKAGE, VERSION = "@dagrejs/dagre", "3.1.3"
SHA512 = "X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg=="
"""The checksum of the package, as npm tells it."""
TARGET = Path(__file__).parent / "symop" / "drawing" / "viewer" / "dagre.js"


def fetch() -> bytes:
    """Returns the library with its license as a comment.

    Raises:
        OSError: npm is not there, or cannot fetch the package.
        ValueError: the package is not the one that was checked.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent", "--pack-destination", folder]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=300)
        (archive,) = Path(folder).glob("*.tgz")
        checksum = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if checksum != SHA512:
            raise ValueError(f"{PACKAGE}@{VERSION}: the checksum must be {SHA512}, got {checksum}")
        with tarfile.open(archive) as package:
            script = _read(package, "dist/dagre.min.js")
            terms = (
                _read(package, "LICENSE") + b"\n" + _read(package, "dist/dagre.min.js.LEGAL.txt")
            )
    comment = (
        f"/*! {PACKAGE} {VERSION}\n\n".encode() + terms.strip().replace(b"*/", b"") + b"\n*/\n"
    )
    return comment + b"\n".join(
        line for line in script.splitlines() if not line.startswith((b"//#", b"/*! For license"))
    )


class BuildPy(build_py):
    """The build of a wheel, which fetches the library first if npm is there."""

    def run(self) -> None:
        """Builds; an editable installation has no library until ``make viewer``."""
        if not self.editable_mode:
            main()
        super().run()


def _read(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(f"package/{name}")
    assert file is not None
    return file.read()


def main() -> int:
    """Writes the library, unless it is there; returns the exit status."""
    if TARGET.exists() and f"{PACKAGE} {VERSION}\n".encode() in TARGET.read_bytes()[:200]:
        return 0
    try:
        TARGET.write_bytes(fetch())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"interactive drawings need {PACKAGE}: {error}", file=sys.stderr)
        return 1
    print(f"wrote {TARGET.relative_to(Path(__file__).parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
