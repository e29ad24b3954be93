"""Closing, moving and replacing what an operation stands on (E1 to E4, E8 to E11)."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from carrel.errors import CarrelError, ChangedError, ClosedError, MissingError, PatternError
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.testing import tree
from carrel.workspace.workspace import Workspace
from tests.attack.everything import try_everything
from tests.attack.guards import in_time, open_descriptors
from tests.attack.operations import CHANGING, EVERY, prepare
from tests.attack.privilege import acting_as
from tests.attack.world import DOORS, MARKER, RESOLVERS, MakeWorld, Variant, World, contents, look
from tests.requirements import requirement

pytestmark = pytest.mark.attack

WITHOUT_A_PATH: dict[str, Callable[[Workspace], object]] = {
    "usage": Workspace.usage,
    "recount": Workspace.recount,
    "changes": lambda workspace: list(workspace.changes()),
    "glob everything": lambda workspace: workspace.glob("**"),
    "list every file": Workspace.list_files,
}


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize("path", ["f", "d", "l", "new/newer", "../secret", "/etc/passwd", "/workspace/f"])
def test_a_closed_workspace_says_so_for_every_operation(
    path: str, variant: Variant, world: MakeWorld
) -> None:
    """E1: never EBADF, and never whatever got the number of the descriptor since."""
    with world("f; d/f; l => ..", variant) as here, ExitStack() as decoys:
        here.workspace.close()
        for number in range(16):
            decoys.callback(os.close, os.open(here.out, os.O_PATH | (os.O_DIRECTORY if number % 2 else 0)))
        before = look(here.base)
        for name, operation in EVERY.items():
            with acting_as(variant.user), pytest.raises((ClosedError, PatternError)) as caught:
                operation(here.workspace, path)
            error = caught.value
            assert error.path or isinstance(error, PatternError), f"{name} does not name the path"
            assert error.path is None or repr(error.path) in str(error)
            assert str(here.base) not in str(error)
        for call in WITHOUT_A_PATH.values():
            with acting_as(variant.user), pytest.raises(ClosedError):
                call(here.workspace)
        assert look(here.base) == before


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_descriptors_are_closed_when_an_operation_ends_not_when_garbage_is_collected(
    variant: Variant, world: MakeWorld
) -> None:
    with world("f; d/f; l => ..; loop => loop", variant) as here:
        gc.collect()
        gc.disable()
        try:
            with acting_as(variant.user):
                _fail_and_succeed(here.workspace)  # whatever is opened once is open now
                before = open_descriptors()
                _fail_and_succeed(here.workspace)
            leaked = open_descriptors().items() - before.items()
        finally:
            gc.enable()
        assert not leaked


def _fail_and_succeed(workspace: Workspace) -> None:
    for operation in EVERY.values():
        prepare(workspace)
        for path in ("f", "d", "d/new/newer", "l/secret", "../secret", "loop/f", "f/x", "no/../f"):
            with suppress(CarrelError):
                operation(workspace, path)


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_closing_twice_is_fine(variant: Variant, world: MakeWorld) -> None:
    """E1."""
    with world("f", variant) as here:
        here.workspace.close()
        here.workspace.close()


class Decoys:
    """Files that take every descriptor number that becomes free, to see what is written to them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: list[int] = []

    def take(self) -> None:
        for number in range(16):
            path = self._directory / f"decoy{number}"
            self._open.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
            os.write(self._open[-1], b"decoy")
            os.lseek(self._open[-1], 0, os.SEEK_SET)

    def require_untouched(self) -> None:
        for fd in self._open:
            assert os.pread(fd, 100, 0) == b"decoy"
            os.close(fd)


def _close_elsewhere(workspace: Workspace) -> None:
    thread = threading.Thread(target=workspace.close)
    thread.start()
    thread.join()


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_a_write_in_the_middle_of_closing_ends_well_or_says_closed(
    variant: Variant, world: MakeWorld
) -> None:
    """E2."""
    with world("f", variant) as here:
        decoys = Decoys(here.base)

        def chunks() -> Iterator[bytes]:
            yield b"first"
            _close_elsewhere(here.workspace)
            decoys.take()
            yield b"second"

        try:
            here.workspace.write_chunks("n", chunks())
            done = True
        except ClosedError:
            done = False
        decoys.require_untouched()
        found = contents(here.root)
        assert found.get("n") == ("= firstsecond (11 bytes)" if done else None)


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_a_read_in_the_middle_of_closing_gives_its_own_bytes(variant: Variant, world: MakeWorld) -> None:
    """E2."""
    with world("f = abcdefgh", variant) as here:
        decoys = Decoys(here.base)
        chunks = here.workspace.read_chunks("f", chunk_bytes=4)
        found = [next(chunks)]
        _close_elsewhere(here.workspace)
        decoys.take()
        try:
            found += chunks
        except ClosedError:
            found.append(b"efgh")
        decoys.require_untouched()
        assert found == [b"abcd", b"efgh"]


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_a_walk_in_the_middle_of_closing_lists_its_own_tree(variant: Variant, world: MakeWorld) -> None:
    """E2."""
    with world("a/b/c; d/e/f", variant) as here:
        walk = here.workspace.walk()
        found = [next(walk).path]
        _close_elsewhere(here.workspace)
        kept = [os.open(here.out, os.O_RDONLY) for _ in range(16)]
        with suppress(ClosedError):
            found += [info.path for info in walk]
        for fd in kept:
            os.close(fd)
        assert set(found) <= {"a", "a/b", "a/b/c", "d", "d/e", "d/e/f"}


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_closing_under_running_operations_never_breaks_them(variant: Variant, world: MakeWorld) -> None:
    """E2: many threads, one of which closes; each sees its answer or that it is closed."""
    for _ in range(10):
        with world("f; d/f", variant) as here, in_time(20):
            wrong = _race_against_closing(here)
            assert not wrong, repr(wrong[0])


def _race_against_closing(here: World) -> list[BaseException]:
    workspace = here.workspace
    wrong: list[BaseException] = []
    started = threading.Barrier(5)

    def work(number: int) -> None:
        started.wait()
        try:
            while True:
                assert workspace.read("f") == b"in"
                workspace.write(f"n{number}", b"new")
                assert [info.path for info in workspace.list("d")] == ["d/f"]
                workspace.remove(f"n{number}")
                assert not workspace.exists("../secret")
        except ClosedError:
            return
        except CarrelError as error:
            if not isinstance(error, ValueError):
                wrong.append(error)
            else:
                work_on(number)
        except BaseException as error:
            wrong.append(error)

    def work_on(number: int) -> None:
        """The refusal of `../secret` was due; go on until it is closed."""
        try:
            while True:
                workspace.append(f"n{number}", b"new")
                workspace.mkdir(f"d{number}/below", exist_ok=True)
                workspace.remove(f"d{number}", recursive=True)
        except ClosedError:
            return
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    for _ in range(20):
        workspace.stat("f")
    workspace.close()
    for thread in threads:
        thread.join()
    return wrong


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_a_workspace_that_was_renamed_is_still_the_same(variant: Variant, world: MakeWorld) -> None:
    """E3: the descriptor is the identity, and nothing appears at the old name."""
    with world("f; d/f", variant) as here:
        moved = here.parent / "moved"
        here.root.rename(moved)
        tree(here.root, f"f = {MARKER}", "d/")
        with acting_as(variant.user):
            prepare(here.workspace)
            assert here.workspace.read("f") == b"in"
            here.workspace.write("d/new", b"new")
            here.workspace.move("f", "g")
            here.workspace.remove("d", recursive=True)
        assert contents(here.root) == {"f": f"= {MARKER} ({len(MARKER)} bytes)", "d": "/"}
        assert contents(moved).keys() == {"g", "mine", "mine-directory"} | {
            "mine-directory/below",
            "mine-directory/below/f",
        }
        shutil.rmtree(here.root)


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize("replaced", [False, True], ids=["gone", "replaced"])
def test_a_workspace_that_was_deleted_takes_nothing_more(
    replaced: bool, variant: Variant, world: MakeWorld
) -> None:
    """E4: nothing is made at its old path, be there something new or not."""
    with world("f", variant) as here:
        shutil.rmtree(here.root)
        if replaced:
            here.root.mkdir()
        before = look(here.base, frozenset({str(here.parent / ".carrel")}))
        for path in ("f", "new", "a/b/new"):
            for name in CHANGING.keys() - {"remove by force"}:
                # To append to a version that is gone is a lost update like any other.
                error = ChangedError if name.startswith("append to") else MissingError
                with acting_as(variant.user), pytest.raises(error):
                    CHANGING[name](here.workspace, path)
        assert look(here.base, frozenset({str(here.parent / ".carrel")})) == before


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_no_descriptor_is_handed_to_a_program_that_is_started(variant: Variant, world: MakeWorld) -> None:
    """E8: not that of a root, a file, a walk, a draft, a journal or another rule's directory."""
    with world("f = abcdefgh; d/e/f", variant) as here:
        other = tree(here.base / "other", "f")
        policy = SandboxPolicy.for_workspace(here.root, allow=[PathRule(str(other), AccessMode.READ_WRITE)])
        inherited: list[str] = []

        def chunks() -> Iterator[bytes]:
            yield b"half"
            inherited.extend(_inherited())

        with Workspace.open(here.root, policy=policy, confinement=variant.resolver) as bare:
            bare.read(f"{other}/f")
            reading = [bare.read_chunks("f", chunk_bytes=2), here.workspace.read_chunks("f", chunk_bytes=2)]
            walking = [bare.walk(), here.workspace.walk()]
            for iterator in (*reading, *walking):
                next(iterator)
            bare.write_chunks("n", chunks())
            here.workspace.write_chunks("m", chunks())
            inherited.extend(_inherited())
            del reading, walking, iterator
        assert not [path for path in inherited if path.startswith(str(here.base))]


def _inherited() -> list[str]:
    """What the descriptors of a new program stand for, if all that may be inherited is."""
    code = "import os; [print(os.readlink(e.path)) for e in os.scandir('/dev/fd/') if os.path.islink(e.path)]"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], close_fds=False, stdout=subprocess.PIPE, check=True
    )
    found = ran.stdout.decode().splitlines()
    assert found, "not even its output is open"
    return found


@requirement("P-10", "R-07", "W-16", "I-10")
@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize(
    "path",
    [
        "../b/f",
        "../b",
        "../b/",
        "x/../../b/f",
        "..\\b\\f",
        "$B/f",
        "$B",
        "/b/f",
        "/workspace/../b/f",
        "up/b/f",
        "to-b/f",
        "to-b",
        "to-b/",
        "to-b/.",
        "to-f",
        "to-f/",
        "to-new",
        "to-b-by-name/f",
        "loop/../to-b/f",
        "../.carrel/sessions/b/journal.0",
        "up/.carrel/sessions/b",
        "up/.carrel",
    ],
)
def test_one_session_cannot_reach_another(path: str, variant: Variant, world: MakeWorld) -> None:
    """E9."""
    layout = (
        "x/; up => ..; to-b => ../b; to-f => ../b/f; to-new => ../b/new;"
        " to-b-by-name => $WS/../b; loop => loop"
    )
    with world(layout, variant) as here:
        with acting_as(variant.user), WorkspaceManager(here.parent).create("b") as other:
            other.write("f", f"{MARKER} of b")
            other.write("d/f", f"{MARKER} of b")
        here.settle()
        try_everything(here, [path.replace("$B", str(here.parent / "b"))])


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_stream_of_a_deleted_session_gives_no_bytes_of_another(variant: Variant, world: MakeWorld) -> None:
    """E10."""
    with world("f = " + "a" * 64, variant) as here:
        chunks = here.workspace.read_chunks("f", chunk_bytes=8)
        found = [next(chunks)]
        shutil.rmtree(here.root)
        with acting_as(variant.user), WorkspaceManager(here.parent).create("ROOT") as again:
            again.write("f", b"b" * 64)
            found += chunks
            with pytest.raises(MissingError):
                here.workspace.read("f")
        assert b"".join(found) == b"a" * 64


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_no_operation_depends_on_the_working_directory(
    variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E11: not even on one that was deleted."""
    with world("f; d/f", variant) as here:
        elsewhere = tree(here.base / "elsewhere", f"f = {MARKER}", f"d/f = {MARKER}", f"mine = {MARKER}")
        gone = tree(here.base / "gone")
        monkeypatch.chdir(here.parent)
        with Workspace.open("ROOT", confinement=variant.resolver) as by_name:
            here.settle()
            for directory in (elsewhere, here.out, gone):
                monkeypatch.chdir(directory)
                if directory == gone:
                    gone.rmdir()
                    here.settle()
                try_everything(here, ["f", "d", "new", "d/new"])
                assert by_name.read("f") == b"in"
        monkeypatch.undo()


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_thread_that_changes_the_working_directory_disturbs_nobody(
    variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E11."""
    with world("f; d/f", variant) as here:
        elsewhere = tree(here.base / "elsewhere", f"f = {MARKER}", f"d/f = {MARKER}")
        monkeypatch.chdir(elsewhere)
        done = threading.Event()

        def wander() -> None:
            while not done.is_set():
                os.chdir(here.out)
                os.chdir(elsewhere)

        thread = threading.Thread(target=wander)
        thread.start()
        try:
            for _ in range(300):
                assert here.workspace.read("f") == b"in"
                here.workspace.write("d/n", b"new")
                here.workspace.remove("d/n")
        finally:
            done.set()
            thread.join()
        assert contents(elsewhere).keys() == {"f", "d", "d/f"}
        monkeypatch.undo()
