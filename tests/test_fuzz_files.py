"""A small, fixed part of ``make fuzz-files``, and what the campaign itself must do."""

import fuzz_files
from fuzz_files import File, Outcome


def test_damaged_files_of_every_kind_are_refused_or_read(capsys):
    assert fuzz_files.campaign(seed=19, seconds=300, count=60, share=0.03) == 0, capsys.readouterr()


def test_what_goes_wrong_is_seen_and_shrunk(monkeypatch):
    data = b'{"a": [1, 2, {"b": 3}], "c": [4, {"bad": 5}]}'
    small = fuzz_files.shrunk(File("graph", data), lambda one: b'"bad"' in one.data)
    assert len(small.data) < 20
    script = fuzz_files.script(small)
    assert "so.load_json(data)" in script
    assert repr(small.data) in script
    compile(script, "script", "exec")
    monkeypatch.setitem(fuzz_files.READERS, "graph", "raise KeyError(3)")
    assert fuzz_files.read(File("graph", b""), "") == Outcome("KeyError", "3")
    hiding = "try: bytes(1 << 60)\nexcept MemoryError: raise ValueError from None"
    monkeypatch.setitem(fuzz_files.READERS, "graph", hiding)
    assert fuzz_files.read(File("graph", b""), "").fault == "takes memory"
    monkeypatch.setitem(fuzz_files.READERS, "graph", "data.decode()")
    assert fuzz_files.read(File("graph", b"\xff"), "") == Outcome("")
