"""A script reads a file in pieces that is larger than its memory or than one read may be."""

from __future__ import annotations

import hashlib
import random
import tempfile
from pathlib import Path

import pytest

from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sandbox.factory import create_sandbox
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

HUGE = 5 * 1024 * MIB
"""Beyond the memory of a guest, the limit of a read, and 32 bits."""


def sparse(path: Path) -> None:
    """Make a huge file that takes no room."""
    with open(path, "wb") as file:
        file.write(b"the beginning\n")
        file.seek(HUGE // 2)
        file.write(b"the middle")
        file.seek(HUGE - 8)
        file.write(b"\nthe end")


def noise(path: Path, size: int = 5 * MIB) -> bytes:
    """Make a file of that size, whose bytes all differ from their neighbours; return its content."""
    content = random.Random(size).randbytes(size)
    path.write_bytes(content)
    return content


@requirement("E-62")
def test_a_file_of_any_size_is_read_in_pieces(sandbox: BaseSandbox, files: Path) -> None:
    sparse(files / "huge")
    code = f"""
import os
with open("huge", "rb") as file:
    print(os.fstat(file.fileno()).st_size == {HUGE}, file.readline(), file.tell())
    print(file.seek({HUGE} // 2), file.read(10))
    print(file.seek(-8, os.SEEK_END), file.read(), file.read())
    print(file.seek({HUGE} + 1), file.read(1))
    print(os.pread(file.fileno(), 7, {HUGE} // 2 + 4))
with open("huge") as file:
    print(next(iter(file)))
"""
    assert said(sandbox.execute(code)).splitlines() == [
        "True b'the beginning\\n' 14",
        f"{HUGE // 2} b'the middle'",
        f"{HUGE - 8} b'\\nthe end' b''",
        f"{HUGE + 1} b''",
        "b'middle\\x00'",
        "the beginning",
        "",
    ]


def test_a_file_larger_than_its_memory_is_read_to_its_end(house: House) -> None:
    sandbox = house.new(memory_bytes=64_000_000)
    with open(house.files(sandbox) / "lines", "wb") as file:
        for _ in range(80):
            file.write((b"x" * 999 + b"\n") * 1_000)
    code = """
print(sum(1 for line in open("lines")))
with open("lines", "rb") as file:
    print(sum(map(len, iter(lambda: file.read(3_000_000), b""))))
"""
    assert said(sandbox.execute(code)) == "80000\n80000000\n"


def test_every_byte_is_that_of_the_file(sandbox: BaseSandbox, files: Path) -> None:
    content = noise(files / "noise")
    places = [random.Random(n).randrange(len(content)) for n in range(40)]
    code = f"""
import hashlib, shutil
print(hashlib.sha256(open("noise", "rb").read()).hexdigest())
print(hashlib.file_digest(open("noise", "rb", 0), "sha256").hexdigest())
digest = hashlib.sha256()
with open("noise", "rb") as file:
    for place in {places}:
        file.seek(place)
        digest.update(file.read(place % 200_000))
print(digest.hexdigest())
shutil.copyfile("noise", "copy")
"""
    whole = hashlib.sha256(content).hexdigest()
    parts = hashlib.sha256(b"".join(content[place : place + place % 200_000] for place in places)).hexdigest()
    result = sandbox.execute(code)
    assert said(result).split() == [whole, whole, parts]
    assert result.files_created == ["copy"]
    assert (files / "copy").read_bytes() == content


def test_reading_it_here_and_there_takes_few_file_operations(house: House) -> None:
    sandbox = house.new(file_operations=200)
    content = noise(house.files(sandbox) / "noise")
    code = """
import random
places = random.Random(7)
found = bytearray()
with open("noise", "rb", 0) as file:
    for _ in range(5_000):
        file.seek(places.randrange(5_000_000))
        found += file.read(3)
print(found.hex())
"""
    places = random.Random(7)
    starts = [places.randrange(5_000_000) for _ in range(5_000)]
    assert said(sandbox.execute(code)).strip() == b"".join(content[at : at + 3] for at in starts).hex()


def test_a_huge_one_is_read_here_and_there(sandbox: BaseSandbox, files: Path) -> None:
    sparse(files / "huge")
    code = f"""
with open("huge", "rb", 0) as file:
    for number in range(300):
        file.seek({HUGE} // 2 + 200_000 * (number % 2))
        assert file.read(10) == (bytes(10) if number % 2 else b"the middle")
"""
    result = sandbox.execute(code)
    assert said(result) == ""
    assert result.metadata["file_operations"] == 301


def test_it_is_read_on_by_the_next_call_unless_it_has_changed(house: House) -> None:
    kept = house.new(stateful=True)
    content = noise(house.files(kept) / "noise")
    assert said(kept.execute("f = open('noise', 'rb', 0); print(f.read(2))")) == f"{content[:2]!r}\n"
    assert said(kept.execute("f.seek(3_000_000); print(f.read(2))")) == f"{content[3_000_000:3_000_002]!r}\n"
    noise(house.files(kept) / "noise", 4 * MIB)
    result = kept.execute("f.seek(2_000_000); f.read(2)")
    assert error_name(result) == "OSError"
    assert "Stale" in result.stderr


def test_it_is_read_on_after_it_was_renamed_or_removed(sandbox: BaseSandbox, files: Path) -> None:
    content = noise(files / "noise")
    code = """
import os
first, second = open("noise", "rb"), open("noise", "rb")
os.rename("noise", "other")
print(first.seek(3_000_000), first.read(2))
os.remove("other")
print(second.seek(4_000_000), second.read(2))
"""
    assert said(sandbox.execute(code)) == (
        f"3000000 {content[3_000_000:3_000_002]!r}\n4000000 {content[4_000_000:4_000_002]!r}\n"
    )


def test_it_sees_what_the_script_has_written(sandbox: BaseSandbox) -> None:
    code = """
with open("f", "wb") as file:
    file.write(b"a" * 3_000_000)
    file.flush()
    before = open("f", "rb")
    file.write(b"b" * 3_000_000)
    after = open("f", "rb")
print(len(before.read()), len(after.read()), open("f", "rb").read()[-1:])
"""
    assert said(sandbox.execute(code)) == "3000000 6000000 b'b'\n"


@pytest.mark.parametrize("mode", ["r+b", "ab"])
def test_opening_it_for_change_is_held_to_the_limits(sandbox: BaseSandbox, files: Path, mode: str) -> None:
    sparse(files / "huge")
    result = sandbox.execute(f"open('huge', '{mode}')")
    assert error_name(result) == "OSError"
    assert "File too large" in result.stderr


def test_a_copy_of_it_is_held_to_the_limits(house: House) -> None:
    sandbox = house.new(limits=Limits(disk_bytes=4 * MIB))
    noise(house.files(sandbox) / "noise")
    result = sandbox.execute("import shutil; shutil.copyfile('noise', 'copy')")
    assert error_name(result) == "OSError"
    assert "Quota exceeded" in result.stderr


def test_each_piece_is_a_file_operation(house: House) -> None:
    sandbox = house.new(file_operations=30)
    noise(house.files(sandbox) / "noise")
    code = "file = open('noise', 'rb')\nprint(len(file.read()), flush=True)\n"
    code += "while True: file.seek(0), file.read(10), file.seek(-10, 2), file.read(10)"
    result = sandbox.execute(code)
    assert (result.stdout, result.trap_reason) == (f"{5 * MIB}\n", "file_operations")


def test_it_may_lie_in_an_allowed_path_and_reading_it_is_no_change(directory: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir="/var/tmp") as shelf:
        content = noise(Path(shelf, "noise"))
        policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(shelf, AccessMode.READ_ONLY)])
        with Workspace.open(directory, policy=policy) as workspace:
            sandbox = create_sandbox(workspace=workspace)
            result = sandbox.execute(f"print(open('{shelf}/noise', 'rb').read()[-2:])")
            assert (said(result), result.files_modified) == (f"{content[-2:]!r}\n", [])
            assert list(workspace.changes()) == []


def test_it_may_be_mounted_data(house: House, tmp_path: Path) -> None:
    content = noise(tmp_path / "noise")
    sandbox = house.new(mount_data_dir=str(tmp_path))
    assert said(sandbox.execute("print(open('/data/noise', 'rb').read()[-2:])")) == f"{content[-2:]!r}\n"
