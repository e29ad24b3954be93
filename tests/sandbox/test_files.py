"""Files of the workspace behave for a script as files do, and the host sees what it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import Limits
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

SAMPLE = """
import os
os.makedirs("tree/deep")
open("tree/a", "w").write("a")
open("tree/deep/b", "w").write("b")
"""


# Between the host and the guest


@requirement("E-31")
def test_a_script_works_on_what_the_host_wrote(sandbox: BaseSandbox, files: Path) -> None:
    (files / "input.txt").write_text("Hello from host side")
    result = sandbox.execute(
        "text = open('/app/input.txt').read()\n"
        "open('/app/output.txt', 'w').write(text.upper()[::-1])\n"
        "print('Processed', len(text), 'characters')"
    )
    assert said(result) == "Processed 20 characters\n"
    assert (files / "output.txt").read_text() == "EDIS TSOH MORF OLLEH"


@requirement("E-32")
def test_bytes_go_in_and_out_as_they_are(sandbox: BaseSandbox, files: Path) -> None:
    (files / "data.bin").write_bytes(bytes(range(256)))
    code = "data = open('data.bin', 'rb').read()\nopen('out.bin', 'wb').write(bytes(b ^ 0xFF for b in data))"
    assert said(sandbox.execute(code)) == ""
    assert (files / "out.bin").read_bytes() == bytes(range(255, -1, -1))


@requirement("E-33")
def test_a_script_does_what_a_file_tells_it(sandbox: BaseSandbox, files: Path) -> None:
    (files / "config.json").write_text(json.dumps({"count": 3, "prefix": "item"}))
    code = """
import json
config = json.load(open("config.json"))
for number in range(config["count"]):
    with open(f"{config['prefix']}_{number}.txt", "w") as file:
        file.write(f"test - item {number}\\n")
"""
    assert sandbox.execute(code).files_created == ["item_0.txt", "item_1.txt", "item_2.txt"]
    assert (files / "item_0.txt").read_text() == "test - item 0\n"
    assert len(list(files.glob("item_*.txt"))) == 3


@requirement("E-34", "E-35")
def test_files_last_and_variables_do_not(house: House) -> None:
    code = """
from pathlib import Path
counter = Path("counter")
value = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(value))
print(value, "old" in globals())
old = True
"""
    sandbox = house.new("again")
    assert said(sandbox.execute(code)) == "1 False\n"
    assert said(sandbox.execute(code)) == "2 False\n"
    assert said(house.get("again").execute(code)) == "3 False\n"
    assert (house.files(sandbox) / "counter").read_text() == "3"


# Open files


@pytest.mark.parametrize(
    ("code", "content"),
    [
        ("f = open('f', 'w')\nf.write('left open')", "left open"),
        ("open('f', 'w').write('dropped')", "dropped"),
        ("with open('f', 'w') as f:\n    f.write('closed')", "closed"),
        ("import sys\nopen('f', 'w').write('exit')\nsys.exit()", "exit"),
        ("f = open('f', 'w')\nf.write('failed')\n1 / 0", "failed"),
        ("f = open('f', 'wb', 0)\nf.write(b'raw')", "raw"),
        ("import os\nfd = os.open('f', os.O_CREAT | os.O_WRONLY)\nos.write(fd, b'descriptor')", "descriptor"),
        ("import atexit\natexit.register(lambda: open('f', 'w').write('last words'))", "last words"),
        ("class C: pass\nc = C()\nc.c = c\nc.f = open('f', 'w')\nc.f.write('in a circle')", "in a circle"),
        ("import sys\nsys.stdout = open('f', 'w')\nprint('printed')", "printed\n"),
        ("import builtins\nbuiltins.kept = open('f', 'w')\nbuiltins.kept.write('elsewhere')", "elsewhere"),
    ],
)
def test_what_was_written_is_there_however_the_script_ends(
    sandbox: BaseSandbox, files: Path, code: str, content: str
) -> None:
    result = sandbox.execute(code)
    assert (files / "f").read_text() == content
    assert result.files_created == ["f"]


@pytest.mark.parametrize(
    ("code", "output"),
    [
        # Two handles append in the order of writing.
        ("a, b = open('f', 'a'), open('f', 'a'); a.write('A'); a.flush(); b.write('B'); b.close()", "AB"),
        ("a, b = open('f', 'a'), open('f', 'a'); a.write('A'); b.write('B'); a.close(); b.close()", "AB"),
        ("for c in 'ABC':\n    with open('f', 'a') as f: f.write(c)", "ABC"),
        ("open('f', 'w').write('A'); f = open('f', 'a+'); f.write('B'); f.seek(0); f.close()", "AB"),
        # What was flushed is seen by all.
        ("f = open('f', 'w'); f.write('abc'); f.flush(); assert open('f').read() == 'abc'", "abc"),
        ("f = open('f', 'w'); f.write('abc'); f.flush(); assert os.path.getsize('f') == 3", "abc"),
        ("f = open('f', 'a'); f.write('abc'); f.flush(); assert os.path.getsize('f') == 3", "abc"),
        ("f = open('f', 'w'); f.write('abc'); f.flush(); os.fsync(f.fileno())", "abc"),
        # Anywhere in a file.
        ("open('f', 'w').write('abcdef'); f = open('f', 'r+'); f.seek(2); f.write('X'); f.close()", "abXdef"),
        ("open('f', 'w').write('abcdef'); f = open('f', 'r+'); f.seek(2); f.truncate(); f.close()", "ab"),
        ("open('f', 'w').write('abcdef'); os.truncate('f', 3)", "abc"),
        ("f = open('f', 'w+'); f.write('abc'); f.seek(0); assert f.read() == 'abc'; f.close()", "abc"),
        ("f = open('f', 'wb'); f.seek(3); f.write(b'x'); f.close()", "\0\0\0x"),
        ("f = open('f', 'w'); f.write('ab'); assert f.tell() == 2; f.seek(1); f.write('X'); f.close()", "aX"),
        # Under other names.
        ("f = open('g', 'w'); f.write('abc'); os.rename('g', 'f'); f.close()", "abc"),
        ("open('g', 'w').write('new'); open('f', 'w').write('old'); os.replace('g', 'f')", "new"),
        ("open('f', 'x').write('abc')\ntry: open('f', 'x')\nexcept FileExistsError: pass", "abc"),
    ],
)
def test_an_open_file_behaves_as_one(sandbox: BaseSandbox, files: Path, code: str, output: str) -> None:
    assert said(sandbox.execute(f"import os\n{code}")) == ""
    assert [path.name for path in files.iterdir()] == ["f"]
    assert (files / "f").read_text() == output


def test_a_file_that_was_removed_can_still_be_read(sandbox: BaseSandbox) -> None:
    code = (
        "import os\nopen('f', 'w').write('abc')\nf = open('f')\nos.remove('f')\nprint(f.read(), os.listdir())"
    )
    assert said(sandbox.execute(code)) == "abc []\n"


# Trees


@pytest.mark.parametrize("source", ["/app/tree", "/workspace/tree", "/tmp/tree"])
@pytest.mark.parametrize("target", ["/app/new", "/workspace/new", "/tmp/new"])
@pytest.mark.parametrize("how", ["copytree", "move"])
def test_trees_are_copied_and_moved_between_all_places(
    sandbox: BaseSandbox, source: str, target: str, how: str
) -> None:
    code = f"""
import shutil
os.chdir("/")
if {source!r}.startswith("/tmp"):
    shutil.move("/app/tree", {source!r})
shutil.{how}({source!r}, {target!r})
print(sorted(name for _, names, files in os.walk({target!r}) for name in names + files))
print(os.path.exists({source!r}))
shutil.rmtree({target!r})
print(os.path.exists({target!r}))
"""
    kept = how == "copytree"
    assert said(sandbox.execute(SAMPLE + code)) == f"['a', 'b', 'deep']\n{kept}\nFalse\n"


def test_a_tree_can_be_looked_at_in_every_way(sandbox: BaseSandbox) -> None:
    code = """
import glob, pathlib
print(sorted(glob.glob("**/*", recursive=True)))
print(sorted(str(path) for path in pathlib.Path().rglob("*")))
print(sorted((entry.name, entry.is_dir(), entry.is_file()) for entry in os.scandir("tree")))
print([(place, sorted(names), sorted(files)) for place, names, files in os.walk("tree")])
print(os.path.isdir("tree"), os.path.isfile("tree/a"), os.path.getsize("tree/a"), os.path.exists("no"))
"""
    names = "['tree', 'tree/a', 'tree/deep', 'tree/deep/b']\n"
    assert said(sandbox.execute(SAMPLE + code)) == (
        f"{names}{names}[('a', False, True), ('deep', True, False)]\n"
        "[('tree', ['deep'], ['a']), ('tree/deep', [], ['b'])]\nTrue True 1 False\n"
    )


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('missing')", "FileNotFoundError"),
        ("open('tree')", "IsADirectoryError"),
        ("open('tree', 'w')", "IsADirectoryError"),
        ("open('tree/a/b')", "NotADirectoryError"),
        ("open('no/parent', 'w')", "FileNotFoundError"),
        ("os.mkdir('tree')", "FileExistsError"),
        ("os.mkdir('tree/a')", "FileExistsError"),
        ("os.rmdir('tree')", "OSError"),
        ("os.rmdir('tree/a')", "NotADirectoryError"),
        ("os.remove('missing')", "FileNotFoundError"),
        ("os.listdir('tree/a')", "NotADirectoryError"),
        ("os.listdir('missing')", "FileNotFoundError"),
        ("os.rename('missing', 'x')", "FileNotFoundError"),
        ("os.rename('tree', 'tree/deep/x')", "OSError"),
        ("os.rename('tree/a', 'tree/deep')", "IsADirectoryError"),
        ("os.rename('tree/deep', 'tree/a')", "NotADirectoryError"),
        ("open('x' * 300, 'w')", "OSError"),
        ("open('nul\\0', 'w')", "ValueError"),
        ("os.rmdir('/app')", "OSError"),
        ("open('/new', 'w')", "OSError"),
        ("os.mkdir('/new')", "OSError"),
    ],
)
def test_a_mistake_is_the_error_that_it_would_be_elsewhere(
    sandbox: BaseSandbox, code: str, error: str
) -> None:
    assert error_name(sandbox.execute(f"{SAMPLE}{code}")) == error


@pytest.mark.parametrize(
    "name", ["名 ü.txt", "a\nb", "-rf", "'quoted'", "e\u0301", "~", "%s{}", ".hidden", "a" * 255]
)
def test_odd_names_are_names(sandbox: BaseSandbox, files: Path, name: str) -> None:
    result = sandbox.execute(f"import os\nopen({name!r}, 'w').write('x')\nprint(ascii(os.listdir()))")
    assert said(result) == f"{[name]!a}\n"
    assert result.files_created == [name]
    assert (files / name).read_text() == "x"


@pytest.mark.slow
def test_a_directory_may_be_large(house: House) -> None:
    sandbox = house.new(limits=Limits(entries=20_000))
    code = """
import os
for number in range(2_000):
    open(f"{number:05}", "w").close()
print(len(os.listdir()), len(list(os.scandir())))
"""
    result = sandbox.execute(code)
    assert said(result) == "2000 2000\n"
    assert len(result.files_created) == 2_000
