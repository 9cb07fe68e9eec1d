"""The kind of a file by its first bytes, for the message about a file of another kind."""

JSON = "JSON, as of a graph or a program, which so.load and so.Program.load read"
_ARRAYS = "arrays (safetensors), which so.load_parameters and so.checkpoint.load read"
_STARTS = {
    b"PK\x03\x04": "a zip archive, as numpy.load (.npz) or torch.load read",
    b"\x93NUMPY": "one array, which numpy.load reads",
    b"\x89HDF\r\n\x1a\n": "HDF5, which h5py reads",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"\x1f\x8b": "a gzip archive",
    b"\x12\x01\x00\x00\x00\x00\x00\x00": "arrays of MXNet, which symop.interop.mxnet reads",
}
HEADER_LIMIT = 100_000_000
"""The maximal length of the header of a safetensors file, defined by the format."""


def contents_of(data: bytes) -> str | None:
    """Returns what a file that begins with ``data`` holds and what reads it, or None."""
    for start, what in _STARTS.items():
        if data.startswith(start):
            return what
    if data[8:9] == b"{" and 0 < int.from_bytes(data[:8], "little") <= HEADER_LIMIT:
        return _ARRAYS
    return JSON if data[:64].lstrip()[:1] == b"{" else None
