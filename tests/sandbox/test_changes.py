"""The lists of a result tell exactly which files a script made, changed and removed; so does the journal."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from carrel.sessions.manager import WorkspaceManager
from tests.requirements import requirement
from tests.sandbox.house import House

BEFORE = {"old": "old", "other": "other", "dir/a": "a", "dir/b": "b", "dir/sub/c": "c"}


@pytest.fixture
def planted(files: Path) -> Path:
    """The files that are there before."""
    for name, content in BEFORE.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(content)
    return files


@pytest.mark.parametrize(
    ("code", "created", "modified", "deleted"),
    [
        ("pass", [], [], []),
        ("open('output.txt', 'w').write('x')", ["output.txt"], [], []),
        ("for n in range(3): open(f'file_{n}', 'w').close()", ["file_0", "file_1", "file_2"], [], []),
        ("os.makedirs('new/deep')\nopen('new/deep/file', 'w').close()", ["new/deep/file"], [], []),
        ("open('/workspace/x', 'w').close()\nopen('/app/./dir/../y', 'w').close()", ["x", "y"], [], []),
        ("os.mkdir('empty')", [], [], []),
        ("open('/tmp/x', 'w').close()", [], [], []),
        ("open('old').read()\nos.listdir()\nos.stat('old')", [], [], []),
        ("open('old', 'r+')", [], [], []),
        ("open('old', 'a')", [], [], []),
        # Writing what is there.
        ("open('old', 'w').write('more than before')", [], ["old"], []),
        ("open('old', 'w').write('new')", [], ["old"], []),
        ("open('old', 'w').write('old')", [], ["old"], []),
        ("open('old', 'a').write('x')", [], ["old"], []),
        ("os.truncate('old', 1)", [], ["old"], []),
        ("for _ in range(3): open('old', 'w').write('x')", [], ["old"], []),
        # Removing.
        ("os.remove('old')", [], [], ["old"]),
        ("shutil.rmtree('dir')", [], [], ["dir/a", "dir/b", "dir/sub/c"]),
        ("os.remove('dir/sub/c')\nos.rmdir('dir/sub')", [], [], ["dir/sub/c"]),
        # Back and forth.
        ("open('new', 'w').close()\nos.remove('new')", [], [], []),
        ("open('new', 'w').close()\nos.remove('new')\nopen('new', 'w').close()", ["new"], [], []),
        ("os.remove('old')\nopen('old', 'w').write('again')", [], ["old"], []),
        ("open('old', 'w').write('x')\nos.remove('old')", [], [], ["old"]),
        ("open('new', 'w').write('x')\nopen('new', 'a').write('y')", ["new"], [], []),
        # Moving.
        ("os.rename('old', 'new')", ["new"], [], ["old"]),
        ("os.replace('old', 'other')", [], ["other"], ["old"]),
        ("open('draft', 'w').write('x')\nos.replace('draft', 'old')", [], ["old"], []),
        ("open('draft', 'w').write('x')\nos.rename('draft', 'new')", ["new"], [], []),
        (
            "os.rename('dir', 'moved')",
            ["moved/a", "moved/b", "moved/sub/c"],
            [],
            ["dir/a", "dir/b", "dir/sub/c"],
        ),
        ("os.rename('dir/sub', 'sub')", ["sub/c"], [], ["dir/sub/c"]),
        ("os.rename('/app/dir/sub', '/workspace/dir/new')", ["dir/new/c"], [], ["dir/sub/c"]),
        ("shutil.move('old', '/tmp/old')", [], [], ["old"]),
        ("shutil.copy('old', 'copy')", ["copy"], [], []),
        ("shutil.copytree('dir', 'copy')", ["copy/a", "copy/b", "copy/sub/c"], [], []),
        # What did not happen.
        ("try: open('no/where', 'w')\nexcept OSError: pass", [], [], []),
        ("try: os.rename('dir', 'dir/sub/x')\nexcept OSError: pass", [], [], []),
        ("try: open('/etc/x', 'w')\nexcept OSError: pass", [], [], []),
        # However it ends.
        ("open('new', 'w').close()\n1 / 0", ["new"], [], []),
        ("open('new', 'w').close()\nos._exit(1)", ["new"], [], []),
        ("open('new', 'w').close()\nos.abort()", ["new"], [], []),
    ],
)
@pytest.mark.usefixtures("planted")
@requirement("E-18", "E-19", "E-20", "E-21", "E-22", "E-23", "E-24")
def test_the_lists_are_exact(
    sandbox: BaseSandbox, code: str, created: list[str], modified: list[str], deleted: list[str]
) -> None:
    result = sandbox.execute(f"import os, shutil\n{code}")
    assert (result.files_created, result.files_modified, result.files_deleted) == (created, modified, deleted)


def test_a_script_that_is_a_file_is_not_told(sandbox: BaseSandbox, planted: Path) -> None:
    (planted / "main.py").write_text("open('made', 'w').close()")
    result = sandbox.execute_file("main.py")
    assert (result.files_created, result.files_modified) == (["made"], [])


def test_a_file_behind_a_link_is_told_by_the_name_that_the_script_used(
    sandbox: BaseSandbox, planted: Path
) -> None:
    os.symlink("dir", planted / "door")
    result = sandbox.execute("open('door/a', 'w').write('x')\nopen('door/new', 'w').write('x')")
    assert (result.files_created, result.files_modified) == (["door/new"], ["door/a"])


@pytest.mark.usefixtures("planted")
def test_every_change_is_in_the_journal_as_the_guests(house: House, sandbox: BaseSandbox) -> None:
    assert sandbox.session_id is not None
    sandbox.execute(
        "import os\nopen('new', 'w').write('abc')\nos.mkdir('made')\nos.rename('new', 'made/new')\n"
        "open('old', 'a').write('x')\nos.remove('other')"
    )
    manager = WorkspaceManager(house.root)
    with closing(manager.journal(sandbox.session_id)) as journal:
        events = [event for event in journal.events() if event.actor == "guest"]
    assert [(event.operation, event.path, event.other_path) for event in events if event.error is None] == [
        ("write", "new", None),
        ("write", "new", None),
        ("mkdir", "made", None),
        ("move", "new", "made/new"),
        ("append", "old", None),
        ("remove", "other", None),
    ]


@requirement("E-27")
def test_a_result_tells_the_place_and_what_the_engine_saw(house: House, sandbox: BaseSandbox) -> None:
    result = sandbox.execute("pass")
    assert result.workspace_path == str(house.files(sandbox))
    metadata = result.metadata
    assert metadata["session_id"] == sandbox.session_id
    assert (metadata["exit_code"], metadata["trapped"], metadata["trap_reason"]) == (0, False, None)
    assert metadata["runtime"] == "python"
    assert result.memory_used_bytes is not None
    assert metadata["memory_pages"] == result.memory_used_bytes // 65536
    assert result.memory_used_bytes >= 40 * 2**20
