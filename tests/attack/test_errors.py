"""What errors, records and journals tell: what was asked, and nothing of the host (E40, E41)."""

from __future__ import annotations

import logging

import pytest

from carrel.errors import CarrelError
from carrel.sessions.functions import (
    delete_session_path,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from tests.attack.guards import require_silence
from tests.attack.operations import EVERY, Operation, prepare
from tests.attack.privilege import acting_as
from tests.attack.world import RESOLVERS, MakeWorld, Outcome, Variant, World
from tests.depth import pairs
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]

LAYOUT = (
    "f; d/f; out => $OUT; up => ..; file => $OUT/secret; loop => loop; dangling => $OUT/none;"
    " near => ../outside"
)
PATHS = [
    "no",
    "no/no",
    "f/x",
    "d",
    "d/f/x",
    "out",
    "out/secret",
    "out/no",
    "up",
    "up/secret",
    "file",
    "file/x",
    "loop",
    "loop/x",
    "dangling",
    "near/secret",
    "..",
    "../secret",
    "../no",
    "/etc/passwd",
    "/no",
    "x" * 300,
    "a\x00b",
    "\ud800",
    ".",
]


@requirement("R-04", "W-17")
@pytest.mark.parametrize(("name", "variant"), pairs(list(EVERY), RESOLVERS), ids=str)
def test_no_error_and_no_record_tells_where_the_workspace_lies(
    name: str, variant: Variant, world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """E40: not its text, its arguments, what hangs on to it, the log, nor the journal."""
    with world(LAYOUT, variant) as here, caplog.at_level(logging.DEBUG):
        caplog.clear()
        with acting_as(variant.user):
            prepare(here.workspace)
        for path in PATHS:
            here.try_path(EVERY[name], path, path)
            here.start_over()
        for record in caplog.records:
            told = f"{record.getMessage()} {record.__dict__}"
            assert str(here.base) not in told
            assert "/proc/self" not in told
        for event in here.workspace.changes():
            assert str(here.base) not in repr(event)


@requirement("R-04")
@pytest.mark.parametrize("path", [path for path in PATHS if path != "."], ids=lambda path: ascii(path[:20]))
def test_no_error_of_the_session_functions_tells_where_the_workspace_lies(
    path: str, world: MakeWorld
) -> None:
    """E40."""
    with world(LAYOUT, RESOLVERS[0]) as here:
        hidden = (str(here.base), "/proc/self", str(here.parent))
        calls = (
            lambda: read_session_file("ROOT", path, here.parent),
            lambda: write_session_file("ROOT", path, b"new", here.parent, overwrite=False),
            lambda: delete_session_path("ROOT", path, here.parent),
            lambda: read_session_file("no-such-session", path, here.parent),
            lambda: delete_session_path("no-such-session", path, here.parent),
            lambda: list_session_files("ROOT", here.parent, path),
            lambda: WorkspaceManager(here.parent).open("no-such-session"),
            lambda: WorkspaceManager(here.parent / "ROOT" / "f"),
        )
        for call in calls:
            try:
                call()
            except CarrelError as error:
                require_silence(error, hidden, (path,))


@requirement("P-11", "P-09")
@pytest.mark.parametrize(("name", "variant"), pairs(list(EVERY), RESOLVERS), ids=str)
def test_an_error_does_not_tell_what_exists_outside(name: str, variant: Variant, world: MakeWorld) -> None:
    """E41: behind a link that leads out, what is there and what is not end in the same error."""
    spots = [
        ("out/secret", "out/nothin"),
        ("out/dir", "out/nil"),
        ("out/dir/secret", "out/nil/secret"),
        ("out/secret/x", "out/nothin/x"),
        ("near/secret", "near/nothin"),
        ("near/dir/secret", "near/nil/secret"),
        ("up/secret", "up/nothin"),
        ("up/ROOT/f", "up/NONE/f"),
        ("../secret", "../nothin"),
        ("../ROOT/f", "../NONE/f"),
        ("file", "dang"),
        ("file/", "dang/"),
        ("tofile", "todang"),
        ("/etc/passwd", "/etc/nothing"),
    ]
    layout = (
        "f; out => $OUT; up => ..; file => $OUT/secret; dang => $OUT/nothin; near => ../outside;"
        " tofile => file; todang => dang"
    )
    with world(layout, variant) as here:
        for there, nowhere in spots:
            found = _answer(here, EVERY[name], there)
            missed = _answer(here, EVERY[name], nowhere)
            assert _told(found, there) == _told(missed, nowhere), f"{name}: {found} against {missed}"


def _answer(here: World, operation: Operation, path: str) -> Outcome:
    here.start_over()
    with acting_as(here.variant.user):
        prepare(here.workspace)
    return here.try_path(operation, path, path)


def _told(outcome: Outcome, path: str) -> object:
    """What a caller learns, but for the path that he gave himself and what differs from run to run."""
    if isinstance(outcome.error, CarrelError):
        text = str(outcome.error).replace(path, "PATH").replace(outcome.error.path or path, "PATH")
        return type(outcome.error), outcome.error.code, text
    return "ok"
