"""A `Workspace` on memory works as one on a directory: every operation, the same answers and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

import pytest

from carrel.errors import CarrelError, UnavailableError
from carrel.fs.memory.files import MemoryFiles
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.testing import tree
from carrel.values import FileInfo, Limits
from carrel.workspace.workspace import Workspace
from tests.contract.operations import plain
from tests.workspace.archives import directory, file, link, tar

Step = Callable[[Workspace], object]

STEPS: list[Step] = [
    lambda ws: ws.list_files(),
    lambda ws: ws.write("src/main.py", "def old():\n    pass\n"),
    lambda ws: ws.write("src/util.py", b"# TODO: tidy\nx = 1\n", overwrite=False),
    lambda ws: ws.write("src/util.py", b"again", overwrite=False),
    lambda ws: ws.write("data/a.bin", "3q2+7w==", encoding="base64"),
    lambda ws: ws.write("no/parent", b"", parents=False),
    lambda ws: ws.write("/workspace/notes.md", "first\nsecond\nthird\n"),
    lambda ws: ws.write("../evil", b"x"),
    lambda ws: ws.write("/nonexistent/evil", b"x"),
    lambda ws: ws.write("too/large", b"x" * 2_000),
    lambda ws: ws.write("d/" * 20 + "f", b"too deep"),
    lambda ws: ws.write_chunks("big", (b"x" * 100 for _ in range(5))),
    lambda ws: ws.write_chunks("bigger", (b"x" * 100 for _ in range(50))),
    lambda ws: ws.append("notes.md", "fourth\n"),
    lambda ws: ws.append("log/new.txt", "begun\n"),
    lambda ws: ws.append("big", b"x" * 600),
    lambda ws: ws.read("notes.md"),
    lambda ws: ws.read("notes.md", offset=6, length=6),
    lambda ws: list(ws.read_with_info("notes.md", offset=6, length=6)),
    lambda ws: ws.append("notes.md", "never", if_version="1-1-1"),
    lambda ws: ws.append("notes.md", "", if_version=ws.stat("notes.md").version),
    lambda ws: ws.append("none/such", "never", if_version="1-1-1"),
    lambda ws: ws.read_text("notes.md"),
    lambda ws: ws.read_text("data/a.bin"),
    lambda ws: ws.read_text("data/a.bin", encoding="base64"),
    lambda ws: ws.read_lines("notes.md", start=2, count=2),
    lambda ws: list(ws.read_chunks("notes.md", chunk_bytes=10)),
    lambda ws: [ws.reader("notes.md").info, *ws.reader("notes.md").chunks(10, 5)],
    lambda ws: ws.write_chunks("notes.md", [b"never"], if_version="1-1-1"),
    lambda ws: len(b"".join(ws.archive("src"))),
    lambda ws: list(ws.archive("../secret")),
    lambda ws: ws.extract(tar(file("a/f"), link("a/l", "f"), directory("b")), "out"),
    lambda ws: ws.extract(ws.archive("src", format="zip"), "out/src", overwrite=True),
    lambda ws: ws.extract(tar(file("c/f"), file("a/f")), "out"),
    lambda ws: ws.extract(tar(file("c/f"), file("../evil")), "out"),
    lambda ws: ws.extract(tar(file("f", b"x" * 2_000)), "out"),
    lambda ws: ws.read("src"),
    lambda ws: ws.read("missing"),
    lambda ws: ws.read("../secret"),
    lambda ws: ws.stat("src/main.py"),
    lambda ws: [ws.exists(path) for path in ("src", "src/main.py", "src/none", "src/main.py/x")],
    lambda ws: ws.list(),
    lambda ws: ws.list("src"),
    lambda ws: ws.list_names(),
    lambda ws: ws.list_names("src"),
    lambda ws: ws.list_names("notes.md"),
    lambda ws: list(ws.walk()),
    lambda ws: list(ws.read_tree("src")),
    lambda ws: ws.touch("src/main.py", modified_ns=10**18),
    lambda ws: ws.touch("touched"),
    lambda ws: ws.touch("missing/touched"),
    lambda ws: ws.glob("*.py"),
    lambda ws: ws.glob("src/**"),
    lambda ws: ws.glob("../*"),
    lambda ws: ws.list_files("**/*.md"),
    lambda ws: ws.search("TODO"),
    lambda ws: ws.search("second", "notes.md", regex=False, context=1),
    lambda ws: ws.usage(),
    lambda ws: ws.explain("src").allowed,
    lambda ws: ws.explain("/etc/passwd").reason,
    lambda ws: [ws.edit("src/main.py", "old", "new").diff, ws.read("src/main.py")],
    lambda ws: ws.edit("src/main.py", "absent", "x"),
    lambda ws: ws.edit("src/main.py", "new", "newer", if_version="1-1-1"),
    lambda ws: ws.mkdir("made/of/dirs"),
    lambda ws: ws.mkdir("made"),
    lambda ws: ws.mkdir("made", exist_ok=True),
    lambda ws: ws.mkdir("notes.md", exist_ok=True),
    lambda ws: ws.copy("notes.md", "made/copy.md"),
    lambda ws: ws.copy("notes.md", "made/copy.md"),
    lambda ws: ws.copy("src", "made/src"),
    lambda ws: ws.copy("src", "made/src", recursive=True),
    lambda ws: ws.copy("made", "made/of/itself", recursive=True),
    lambda ws: ws.move("made/src", "moved"),
    lambda ws: ws.move("moved", "moved/inside"),
    lambda ws: ws.move("notes.md", "src/main.py"),
    lambda ws: ws.move("notes.md", "src/main.py", overwrite=True),
    lambda ws: ws.remove("moved"),
    lambda ws: ws.remove("moved", recursive=True, if_version="1-1-1"),
    lambda ws: ws.move("moved", "removed", if_version="1-1-1"),
    lambda ws: ws.move("moved", "removed", if_version=ws.stat("moved").version),
    lambda ws: ws.move("removed", "moved"),
    lambda ws: ws.remove("moved", recursive=True, if_version=ws.stat("moved").version),
    lambda ws: ws.remove("moved"),
    lambda ws: ws.remove("moved", if_version="1-1-1"),
    lambda ws: ws.remove("moved", if_version="1-1-1", force=True),
    lambda ws: ws.remove("moved", force=True),
    lambda ws: ws.remove("."),
    lambda ws: ws.remove(".", recursive=True),
    lambda ws: sorted((info.path, plain(info)) for info in ws.walk()),
    lambda ws: [ws.read(path) for path in ws.list_files()],
    lambda ws: [ws.usage(), ws.recount()],
    lambda ws: [
        (event.operation, event.path, event.other_path, event.before_bytes, event.after_bytes, event.error)
        for event in ws.changes()
    ],
    lambda ws: ws.close(),
    lambda ws: ws.read("src/main.py"),
]
"""One life of a workspace, good and bad requests."""

LIMITS = Limits(file_bytes=1_000, depth=10)


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tree(tmp_path / "ws"), limits=LIMITS) as opened:
        yield opened


@pytest.fixture
def in_memory() -> Iterator[Workspace]:
    policy = SandboxPolicy.for_workspace("/workspace")
    with Workspace(MemoryFiles(), policy=policy, limits=LIMITS) as opened:
        yield opened


def _outcome(step: Step, workspace: Workspace) -> object:
    try:
        value = step(workspace)
    except CarrelError as error:
        return type(error).__name__, error.code, error.path
    if isinstance(value, FileInfo | list):
        return plain(value)
    return value


def test_a_whole_life_is_the_same_in_memory_and_on_disk(on_disk: Workspace, in_memory: Workspace) -> None:
    for number, step in enumerate(STEPS):
        expected = _outcome(step, on_disk)
        assert _outcome(step, in_memory) == expected, number


def test_every_operation_of_a_workspace_is_in_that_life() -> None:
    used = {name for step in STEPS for name in _names(step.__code__)}
    offered = {name for name in dir(Workspace) if callable(getattr(Workspace, name)) and name[0] != "_"}
    assert offered - used <= {"open", "host_path", "narrowed"}


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def test_a_workspace_in_memory_says_so_and_has_no_place_on_the_host(in_memory: Workspace) -> None:
    in_memory.write("f", b"x")
    assert in_memory.confinement == "memory"
    with pytest.raises(UnavailableError):
        in_memory.host_path("f")


def test_files_go_from_memory_to_an_allowed_path_and_back(tmp_path: Path) -> None:
    shared = tree(tmp_path / "shared", "there/f = theirs")
    rule = PathRule(str(shared), AccessMode.READ_WRITE)
    policy = SandboxPolicy.for_workspace("/workspace", allow=[rule])
    with Workspace(MemoryFiles(), policy=policy) as workspace:
        workspace.write("mine/f", b"mine")
        workspace.copy("mine", f"{shared}/copied", recursive=True)
        workspace.copy(f"{shared}/there", "theirs", recursive=True)
        workspace.move(f"{shared}/there/f", "moved")
        assert workspace.list_files() == ["mine/f", "moved", "theirs/f"]
    assert (shared / "copied/f").read_bytes() == b"mine"
    assert not (shared / "there/f").exists()
