"""The helpers that a script can import as `sandbox_utils`, each in a real guest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.runtimes.wasm.guest import sources
from carrel.sandbox.factory import create_sandbox
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

TREE = """
mkdir("/app/test/sub/deep", parents=True)
touch("/app/test/file1.py")
touch("/app/test/file2.txt")
touch("/app/test/.hidden.py")
touch("/app/test/sub/file3.py")
touch("/app/test/sub/deep/file4.txt")
"""
ERRORS = """
def error(call, *args, **options):
    try:
        return call(*args, **options)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
"""


@pytest.fixture
def house(tmp_path: Path, guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A directory of sessions, with the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    return House(tmp_path / "sessions")


@pytest.fixture
def sandbox(house: House) -> BaseSandbox:
    """A sandbox on a new session."""
    return house.new()


def values(sandbox: BaseSandbox, code: str, *expressions: str) -> list[Any]:  # Any: what a script printed
    """What the expressions are after *code*, one after another."""
    rows = [f"    {expression}," for expression in expressions]
    asked = "\n".join(("import json", "print(json.dumps([", *rows, "], default=str))"))
    start = f"from sandbox_utils import *\n{ERRORS}\n{code}\n"
    found: list[Any] = json.loads(said(sandbox.execute(start + asked)))
    return found


# How it comes into the guest


def test_it_is_not_there_before_it_is_imported_and_then_only_the_part_that_is_used(
    sandbox: BaseSandbox,
) -> None:
    code = """
import sys
ours = lambda: sorted(name for name in sys.modules if name.startswith("sandbox_utils"))
print(ours())
import sandbox_utils
print(ours())
sandbox_utils.chunk
print(ours())
from sandbox_utils import chunk
print(sandbox_utils.chunk is chunk, sandbox_utils.__spec__.origin)
"""
    parts = "['sandbox_utils', 'sandbox_utils.data']"
    assert said(sandbox.execute(code)) == f"[]\n['sandbox_utils']\n{parts}\nTrue None\n"


def test_every_name_has_its_words_and_no_other_name_is_there(sandbox: BaseSandbox) -> None:
    names, undocumented, star, wrong, missing = values(
        sandbox,
        "import sandbox_utils",
        "dir(sandbox_utils)",
        "[name for name in dir(sandbox_utils) if not getattr(sandbox_utils, name).__doc__]",
        "[name for name in dir(sandbox_utils) if name not in globals()]",
        "error(getattr, sandbox_utils, 'nothing')",
        "error(__import__, 'sandbox_utils.nothing')",
    )
    promised = """
        cat chunk copy_tree cp csv_to_json diff echo filter_by find grep group_by head json_to_csv ls
        map_items mkdir mv remove_tree rm sed sort_by tail touch tree unique walk wc xml_to_dict
    """
    assert names == promised.split()
    assert undocumented == star == []
    assert wrong == "AttributeError: module 'sandbox_utils' has no attribute 'nothing'"
    assert missing == "ModuleNotFoundError: No module named 'sandbox_utils.nothing'"


def test_a_module_of_that_name_in_the_session_goes_before_it(sandbox: BaseSandbox) -> None:
    code = "open('sandbox_utils.py', 'w').write('mine = 1')\nimport sandbox_utils\nprint(sandbox_utils.mine)"
    assert said(sandbox.execute(code)) == "1\n"


def test_its_files_are_those_that_a_guest_may_ask_for() -> None:
    folder = Path(sources.__file__).parent / sources.PACKAGE
    for file in folder.glob("*.py"):
        name = sources.PACKAGE if file.stem == "__init__" else f"{sources.PACKAGE}.{file.stem}"
        assert sources.source(name) == file.read_bytes()
    for wrong in ("", "os", "sandbox_utils.", "sandbox_utils...modules", "sandbox_utils.__init__"):
        assert sources.source(wrong) == b""


# Trees


@requirement("UT-01", "UT-02", "UT-03")
def test_files_are_found_drawn_and_walked(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        TREE + "from pathlib import Path",
        'find("*.py", "/app/test", recursive=True)',
        'find("file*.py", "/app/test", recursive=True)',
        'find("file*.py", "/app/test", recursive=False)',
        'find("sub/*", "test")',
        'find("sub/**/*.txt", "test")',
        'all(isinstance(path, Path) for path in find("*"))',
        'tree("/app/test")',
        'tree("/app/test", max_depth=2)',
        'list(walk("/app/test"))',
        'list(walk("/app/test", filter_func=lambda path: path.suffix == ".txt"))',
        'error(find, "*", "/app/missing")',
        'error(tree, "/app/missing")',
    )
    top = "/app/test"
    assert found[0] == [f"{top}/.hidden.py", f"{top}/file1.py", f"{top}/sub/file3.py"]
    assert found[1] == [f"{top}/file1.py", f"{top}/sub/file3.py"]
    assert found[2] == [f"{top}/file1.py"]
    assert found[3] == [f"{top}/sub/file3.py"]
    assert found[4] == [f"{top}/sub/deep/file4.txt"]
    assert found[5] is True
    drawn = [top, "├── .hidden.py", "├── file1.py", "├── file2.txt", "└── sub/", "    ├── deep/"]
    assert found[6].split("\n") == [*drawn, "    │   └── file4.txt", "    └── file3.py"]
    assert found[7].split("\n") == [*drawn, "    └── file3.py"]
    names = [".hidden.py", "file1.py", "file2.txt", "sub", "sub/file3.py", "sub/deep", "sub/deep/file4.txt"]
    assert found[8] == [f"{top}/{name}" for name in names]
    assert found[9] == [f"{top}/file2.txt", f"{top}/sub/deep/file4.txt"]
    assert found[10].startswith("FileNotFoundError")
    assert found[11].startswith("FileNotFoundError")


@requirement("UT-04", "UT-05")
def test_trees_are_copied_and_removed(sandbox: BaseSandbox, house: House) -> None:
    found = values(
        sandbox,
        """
mkdir("src/sub/empty")
echo("1", file="src/file1.txt")
echo("2", file="src/sub/file2.txt")
""",
        'f"Copied {copy_tree("/app/src", "/app/dst")} files"',
        'find("*.txt", "dst")',
        'copy_tree("/app/src", "/app/dst")',
        'copy_tree("/app/src", "/workspace/src/copy")',
        'cat("src/copy/sub/file2.txt")',
        'copy_tree("src", "/tmp/src")',
        'remove_tree("src", pattern="*2.txt")',
        'list(walk("src"))',
        'remove_tree("src/copy")',
        'remove_tree("/tmp/src")',
        'remove_tree("src")',
        'error(remove_tree, "src")',
        'error(remove_tree, "dst/file1.txt")',
        'error(copy_tree, "dst/file1.txt", "x")',
        'ls("/tmp")',
    )
    assert found[0] == "Copied 2 files"
    assert found[1] == ["/app/dst/file1.txt", "/app/dst/sub/file2.txt"]
    assert found[2:7] == [2, 2, "2\n", 4, 2]
    assert found[7] == [
        f"/app/src/{name}"
        for name in ("file1.txt", "copy", "copy/file1.txt", "copy/sub", "copy/sub/empty", "sub", "sub/empty")
    ]
    assert found[8:11] == [1, 4, 1]
    assert [one.partition(":")[0] for one in found[11:14]] == [
        "FileNotFoundError",
        "NotADirectoryError",
        "NotADirectoryError",
    ]
    assert found[14] == []
    files = house.files(sandbox)
    assert sorted(path.relative_to(files).as_posix() for path in files.rglob("*")) == [
        *("dst", "dst/file1.txt", "dst/sub", "dst/sub/empty", "dst/sub/file2.txt")
    ]


def test_a_link_is_removed_and_never_gone_through(sandbox: BaseSandbox, house: House, tmp_path: Path) -> None:
    files = house.files(sandbox)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    for name in ("kept", "tree"):
        (files / name).mkdir()
        (files / name / "file").write_text("x")
    (files / "tree" / "inner").symlink_to("../kept")
    (files / "tree" / "out").symlink_to(tmp_path / "outside")
    (files / "link").symlink_to("kept")
    found = values(
        sandbox,
        "",
        'error(remove_tree, "link")',
        'rm("link", recursive=True)',
        'error(cat, "tree/out/secret").partition(":")[0]',
        '[row["size"] for row in ls("tree", long=True) if row["name"] == "out"]',
        'error(copy_tree, "tree", "copy").partition(":")[0]',
        'find("*", "tree")',
        'remove_tree("tree")',
        'ls(".")',
    )
    assert found[0].startswith("NotADirectoryError")
    assert found[1:3] == [None, "PermissionError"]
    assert found[3] == [None]
    assert found[4] in ("IsADirectoryError", "PermissionError")
    assert found[5] == ["/app/tree/file", "/app/tree/inner", "/app/tree/out"]
    assert found[6:] == [3, ["copy", "kept"]]
    assert (files / "kept" / "file").read_text() == "x"
    assert (tmp_path / "outside" / "secret").read_text() == "secret"


# Text


@requirement("UT-06", "UT-07")
def test_lines_are_found_and_text_is_replaced(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        """
echo("ERROR: Failed to connect", file="/app/file1.log")
echo("INFO: Connection successful", file="/app/file2.log")
echo("fine\\r\\nERROR: Timeout occurred", file="/app/file3.log")
echo("Hello [world]", file="/app/test.txt")
echo("Test [bracket] text", file="/app/test.txt", append=True)
open("bytes", "wb").write(b"\\xff ERROR\\n")
files = ["/app/file1.log", "/app/file2.log", "/app/file3.log"]
""",
        'grep(r"ERROR", files)',
        'grep("[world]", ["/app/test.txt"], regex=False)',
        'len(grep("[world]", ["/app/test.txt"]))',
        'grep("fine$", "file3.log")',
        'grep("ERROR|INFO", find("file[12].log"))',
        'grep("ERROR", "bytes")',
        'error(grep, "[", files).partition(":")[0]',
        'error(grep, "x", "missing").partition(":")[0]',
        'sed(r"hello", "goodbye", "Hello world, hello universe")',
        'sed(r"foo([0-9]+)", r"baz\\1", "foo123 bar456 foo789")',
    )
    assert found[0] == [
        ["/app/file1.log", 1, "ERROR: Failed to connect"],
        ["/app/file3.log", 2, "ERROR: Timeout occurred"],
    ]
    assert found[1:4] == [[["/app/test.txt", 1, "Hello [world]"]], 2, [["file3.log", 1, "fine"]]]
    assert [row[:2] for row in found[4]] == [["/app/file1.log", 1], ["/app/file2.log", 1]]
    assert found[5] == [["bytes", 1, "\ufffd ERROR"]]
    assert found[6] in ("PatternError", "error")
    assert found[7] == "FileNotFoundError"
    assert found[8:] == ["Hello world, goodbye universe", "baz123 bar456 baz789"]


@requirement("UT-08", "UT-09", "UT-10")
def test_the_ends_of_a_file_are_shown_counted_and_compared(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        """
echo("\\n".join(f"Line {number}" for number in range(1, 11)), file="lines.txt")
echo("Line 1: Hello world\\nLine 2: Test", file="two.txt")
open("bare.txt", "w").write("Line 1: Hello world\\nLine 2: Tést")
touch("empty.txt")
""",
        'head("lines.txt", lines=3)',
        'tail("lines.txt", lines=3)',
        '(head("lines.txt").count("\\n"), tail("bare.txt"), head("two.txt", 0), tail("two.txt", lines=0))',
        'error(head, "lines.txt", lines=-1)',
        'error(tail, "lines.txt", lines=-1)',
        'wc("two.txt")',
        'wc("bare.txt")',
        'wc("empty.txt")',
        'diff("two.txt", "bare.txt")',
        'diff("two.txt", "/workspace/two.txt")',
    )
    assert found[0] == "Line 1\nLine 2\nLine 3\n"
    assert found[1] == "Line 8\nLine 9\nLine 10\n"
    assert found[2] == [10, "Line 1: Hello world\nLine 2: Tést", "", ""]
    assert found[3] == found[4] == "ValueError: lines must not be negative: -1"
    assert found[5] == {"lines": 2, "words": 7, "chars": 33}
    assert found[6] == {"lines": 2, "words": 7, "chars": 32}
    assert found[7] == {"lines": 0, "words": 0, "chars": 0}
    assert found[8] == (
        "--- two.txt\n+++ bare.txt\n@@ -1,2 +1,2 @@\n Line 1: Hello world\n-Line 2: Test\n"
        "+Line 2: Tést\n\\ No newline at end of file\n"
    )
    assert found[9] == ""


# Lists


@requirement("UT-11", "UT-12", "UT-13", "UT-14")
def test_lists_are_grouped_filtered_sorted_and_split(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        "",
        'sorted(group_by(["ant", "cat", "bird", "dog", "fish"], len).items())',
        "filter_by(range(1, 11), lambda n: n % 2 == 0)",
        "map_items([1, 2, 3], lambda n: n ** 2)",
        'sort_by(["apple", "pie", "cherry", "date"], len)',
        'sort_by(["apple", "pie", "cherry", "date"], key_func=len, reverse=True)',
        "unique([1, 2, 2, 3, 4, 4, 5, 1])",
        'unique(["apple", "Apricot", "banana", "Apple"], key=str.lower)',
        "unique([[1], {}, [1], {}, 2])",
        "list(chunk(range(1, 11), 3))",
        "list(chunk([], size=3))",
        "error(chunk, [1], 0)",
    )
    assert found[0] == [[3, ["ant", "cat", "dog"]], [4, ["bird", "fish"]]]
    assert found[1:3] == [[2, 4, 6, 8, 10], [1, 4, 9]]
    assert found[3:5] == [["pie", "date", "apple", "cherry"], ["cherry", "apple", "date", "pie"]]
    assert found[5:8] == [[1, 2, 3, 4, 5], ["apple", "Apricot", "banana"], [[1], {}, 2]]
    assert found[8:] == [
        [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]],
        [],
        "ValueError: size must be at least 1: 0",
    ]


# Formats


@requirement("UT-15", "UT-16")
def test_csv_and_json_are_made_of_each_other(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        r"""
text = "name,age,city\nAlice,30,NYC\nBob,25,LA"
echo(text, file="data.csv")
rows = [{"name": "Alice", "age": 30}, {"name": "Zoë, Bob", "age": None, "more": [True, 1.5]}]
import json
echo(json.dumps(rows), file="data.json")
""",
        "csv_to_json(text)",
        'csv_to_json("data.csv") == csv_to_json(text)',
        'csv_to_json("data.csv", output="made.json")',
        'json.loads(cat("made.json")) == json.loads(csv_to_json(text))',
        r'error(csv_to_json, "a,b\n1,2,3\n")',
        r'csv_to_json("a,b\n1\n")',
        'json_to_csv("data.json")',
        "json_to_csv(json.dumps(rows[0]))",
        'json_to_csv("data.json", output="/app/made.csv")',
        'cat("made.csv") == json_to_csv("data.json")',
        'error(json_to_csv, "[1, 2]")',
        'error(csv_to_json, "/etc/passwd")',
        'error(csv_to_json, "data.csv", "/etc/made")',
    )
    assert '"name": "Alice",\n    "age": "30",\n    "city": "NYC"\n' in found[0]
    assert json.loads(found[0])[1] == {"name": "Bob", "age": "25", "city": "LA"}
    assert found[1:4] == [True, None, True]
    assert found[4] == "ValueError: line 2 has more fields than the first row"
    assert json.loads(found[5]) == [{"a": "1", "b": None}]
    assert found[6] == 'name,age,more\nAlice,30,\n"Zoë, Bob",,"[true, 1.5]"\n'
    assert found[7:10] == ["name,age\nAlice,30\n", None, True]
    assert found[10] == "ValueError: the JSON must be an array of objects"
    assert found[11] == "ValueError: the path leads out of the session: '/etc/passwd'"
    assert found[12] == "ValueError: the path leads out of the session: '/etc/made'"


LATIN = b'<?xml version="1.0" encoding="latin-1"?><a><b>1</b><b/><b><c>\xe9 &amp; x</c></b></a>'
BOMB = '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><b>&b;</b>'
FETCH = '<!DOCTYPE b [<!ENTITY f SYSTEM "file:///app/secret">]><b>&f;</b>'


@requirement("UT-17")
def test_xml_becomes_a_dict_and_declares_nothing(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        "",
        """xml_to_dict('<root><item id="1">Value</item></root>')""",
        f"xml_to_dict({LATIN!r})",
        "xml_to_dict('<a/>')",
        "xml_to_dict('<a>' * 20_000 + '</a>' * 20_000)['a'] is not None",
        f"error(xml_to_dict, {BOMB!r})",
        f"error(xml_to_dict, {FETCH!r})",
        "error(xml_to_dict, '<a><b></a>')",
        "error(xml_to_dict, '<a>&undefined;</a>').partition(':')[0]",
    )
    assert found[0] == {"root": {"item": {"@id": "1", "#text": "Value"}}}
    assert found[1] == {"a": {"b": ["1", None, {"c": "é & x"}]}}
    assert found[2:4] == [{"a": None}, True]
    assert found[4] == found[5] == "ValueError: XML with a DOCTYPE is refused"
    assert found[6] == "ValueError: not well-formed XML: mismatched tag: line 1, column 8"
    assert found[7] == "ValueError"


# Single files


@requirement("UT-18", "UT-19", "UT-20")
def test_files_are_listed_shown_and_made(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        """
mkdir("/app/a/b/c", parents=True)
touch("/app/a/file.txt")
touch("/app/a/.dot")
echo("File 1", file="file1.txt")
echo("File 2", file="file2.txt")
touch("file1.txt")
""",
        'ls("/app/a")',
        'ls("/app/a", all=True)',
        '[[row["name"], row["is_dir"], row["size"]] for row in ls("/app", long=True)]',
        'ls(long=True)[1]["modified"] > 1_500_000_000',
        '(ls("a/.dot"), ls("/tmp"))',
        'error(ls, "missing").partition(":")[0]',
        'cat("file1.txt", "/workspace/file2.txt")',
        "cat()",
        'mkdir("a/b")',
        'error(mkdir, "a/b", parents=False).partition(":")[0]',
        'error(mkdir, "x/y", parents=False).partition(":")[0]',
        'error(touch, "x/y").partition(":")[0]',
    )
    assert found[0:2] == [["b", "file.txt"], [".dot", "b", "file.txt"]]
    assert [row[:2] for row in found[2]] == [["a", True], ["file1.txt", False], ["file2.txt", False]]
    assert found[2][1][2] == 7
    assert found[3:6] == [True, [[".dot"], []], "FileNotFoundError"]
    assert found[6:9] == ["File 1\nFile 2\n", "", None]
    assert found[9:] == ["FileExistsError", "FileNotFoundError", "FileNotFoundError"]


@requirement("UT-21", "UT-22", "UT-23")
def test_files_are_removed_copied_and_moved(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        """
mkdir("src/sub")
echo("Original content", file="src/file1.txt")
echo("2", file="src/sub/file2.txt")
""",
        'cp("src/file1.txt", "copy.txt")',
        'cp("copy.txt", "/workspace/copy.txt")',
        'cat("copy.txt")',
        'error(cp, "src", "dst").partition(":")[0]',
        'cp("/app/src", "/app/dst", recursive=True)',
        'cp("src", "dst", recursive=True)',
        'find("*.txt", "dst")',
        'mv("copy.txt", "new.txt")',
        'mv("new.txt", "dst")',
        'mv("dst/src", "/tmp/gone")',
        'mv("/tmp/gone/file1.txt", "back.txt")',
        'cat("back.txt")',
        '(ls("."), ls("dst"), ls("/tmp/gone"))',
        'rm("back.txt")',
        'error(rm, "back.txt").partition(":")[0]',
        'rm("back.txt", force=True)',
        'error(rm, "dst").partition(":")[0]',
        'rm("dst", recursive=True)',
        'error(mv, "missing", "x").partition(":")[0]',
        'error(rm, "/app", recursive=True)',
        'error(mv, "/workspace", "/tmp/x")',
        'error(remove_tree, ".")',
        'error(rm, "", recursive=True)',
        'ls(".")',
    )
    assert found[2:4] == ["Original content\n", "IsADirectoryError"]
    names = ["file1.txt", "src/file1.txt", "src/sub/file2.txt", "sub/file2.txt"]
    assert found[6] == [f"/app/dst/{name}" for name in names]
    assert found[11] == "Original content\n"
    assert found[12] == [["back.txt", "dst", "src"], ["file1.txt", "new.txt", "sub"], ["sub"]]
    assert found[13:18] == [None, "FileNotFoundError", None, "IsADirectoryError", None]
    assert found[18] == "FileNotFoundError"
    for problem in found[19:22]:
        assert problem.startswith("ValueError: a top directory cannot be moved or removed: ")
    assert found[22:] == ["ValueError: the path is empty", ["src"]]


@requirement("UT-24")
def test_text_is_printed_written_and_appended(sandbox: BaseSandbox) -> None:
    code = """
from sandbox_utils import cat, echo
print(echo("Hello"), echo("Line 1", file="out.txt"), echo("Line ²", file="out.txt", append=True))
print(repr(cat("out.txt")), echo("new", "out.txt"), repr(cat("out.txt")))
"""
    assert said(sandbox.execute(code)) == "Hello\nHello None None\n'Line 1\\nLine ²\\n' None 'new\\n'\n"


# Where it works


OUTSIDE = [
    "/etc",
    "/app/../../etc",
    "../etc",
    "/",
    "/appendix",
    "//etc",
    "/workspace/..",
    "/app/./../etc/passwd",
]
CALLS = """
calls = [
    ("find", lambda path: find("*", path)),
    ("tree", tree),
    ("walk", walk),
    ("copy_tree", lambda path: copy_tree(path, "x")),
    ("copy_tree", lambda path: copy_tree("there", path)),
    ("remove_tree", remove_tree),
    ("remove_tree", lambda path: remove_tree(path, pattern="*")),
    ("grep", lambda path: grep("x", [path])),
    ("grep", lambda path: grep("x", path)),
    ("head", head),
    ("tail", tail),
    ("wc", wc),
    ("diff", lambda path: diff("there/file", path)),
    ("diff", lambda path: diff(path, "there/file")),
    ("csv_to_json", csv_to_json),
    ("csv_to_json", lambda path: csv_to_json("there/file", path)),
    ("json_to_csv", json_to_csv),
    ("json_to_csv", lambda path: json_to_csv("[]", path)),
    ("ls", ls),
    ("ls", lambda path: ls(path, long=True)),
    ("cat", lambda path: cat("there/file", path)),
    ("touch", touch),
    ("mkdir", mkdir),
    ("mkdir", lambda path: mkdir(path, parents=False)),
    ("rm", rm),
    ("rm", lambda path: rm(path, recursive=True, force=True)),
    ("cp", lambda path: cp(path, "x")),
    ("cp", lambda path: cp("there", path, recursive=True)),
    ("mv", lambda path: mv(path, "x")),
    ("mv", lambda path: mv("there", path)),
    ("echo", lambda path: echo("x", file=path)),
    ("echo", lambda path: echo("x", file=path, append=True)),
]
mkdir("there")
echo("x", file="there/file")
"""
PATHLESS = {"sed", "group_by", "filter_by", "map_items", "sort_by", "unique", "chunk", "xml_to_dict"}


@requirement("UT-25")
def test_a_path_outside_is_a_wrong_value_for_every_helper(sandbox: BaseSandbox) -> None:
    told, covered, everything, left = values(
        sandbox,
        CALLS,
        f"[error(call, path) for path in {OUTSIDE} for _, call in calls]",
        "sorted({name for name, _ in calls})",
        "__import__('sandbox_utils').__all__",
        "list(walk('.'))",
    )
    count = len(told) // len(OUTSIDE)
    expected = [f"ValueError: the path leads out of the session: {path!r}" for path in OUTSIDE]
    assert told == [text for text in expected for _ in range(count)]
    assert set(everything) - set(covered) == PATHLESS
    assert left == ["/app/there", "/app/there/file"]


def test_what_the_policy_allows_is_inside(
    tmp_path: Path, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_text("shared")
    policy = SandboxPolicy.for_workspace(tmp_path / "ws", allow=[PathRule(str(shared), AccessMode.READ_ONLY)])
    (tmp_path / "ws").mkdir()
    with Workspace.open(tmp_path / "ws", policy=policy) as workspace:
        found = values(
            create_sandbox(workspace=workspace),
            f"shared = {str(shared)!r}",
            'cat(f"{shared}/file")',
            'find("*", shared)',
            'error(echo, "x", file=f"{shared}/new").partition(":")[0]',
            'error(remove_tree, shared).partition(":")[0]',
            "cp(shared, '/app/mine', recursive=True)",
            "cat('mine/file')",
        )
    assert found[0:2] == ["shared", [f"{shared}/file"]]
    assert found[2] in ("PermissionError", "OSError")
    assert found[3:] == ["ValueError", None, "shared"]


def test_what_lies_above_a_mount_or_is_no_mount_is_outside(house: House, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").touch()
    sandbox = house.new(
        guest_mount_path="/home/project", mount_data_dir=str(tmp_path / "data"), guest_data_path="/srv/data"
    )
    found = values(
        sandbox,
        "touch('mine')",
        "find('*')",
        "find('*', '/srv/data')",
        "[error(ls, path).partition(':')[0] for path in ('/home', '/srv', '/srv/database', '/app')]",
    )
    assert found == [["/home/project/mine"], ["/srv/data/file"], ["ValueError"] * 4]


def test_the_working_directory_is_where_relative_paths_begin(sandbox: BaseSandbox) -> None:
    found = values(
        sandbox,
        "import os\nmkdir('sub')\nos.chdir('sub')\ntouch('file')",
        "find('*')",
        "ls('..')",
        "error(ls, '../..')",
        "[os.chdir('/tmp'), touch('x'), find('*')][2]",
        "[os.chdir('/'), error(ls, '.'), ls('app')][1:]",
        "error(ls, b'app')",
    )
    assert found[0:2] == [["/app/sub/file"], ["sub"]]
    assert found[2] == "ValueError: the path leads out of the session: '../..'"
    assert found[3] == ["/tmp/x"]
    assert found[4] == ["ValueError: the path leads out of the session: '.'", ["sub"]]
    assert found[5] == "TypeError: a path must be text, not bytes"


def test_a_refusal_of_the_gate_stays_what_it_is(house: House) -> None:
    sandbox = house.new(limits=Limits(disk_bytes=100))
    result = sandbox.execute("from sandbox_utils import echo\necho('x' * 200, file='big')")
    assert error_name(result) == "OSError"
    assert "Traceback" in result.stderr
