"""What answers the files of a guest, asked by a worker that was taken over: it may send anything."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

from carrel.runtimes.wasm.file_server import FileServer
from carrel.workspace.workspace import Workspace
from tests.attack.operations import MINE, MINE_DIRECTORY, NEW, prepare
from tests.attack.privilege import acting_as
from tests.attack.special import marks
from tests.attack.test_every_operation import PLACES, SUFFIXES
from tests.attack.world import DOORS, RESOLVERS, MakeWorld, Variant, World

pytestmark = pytest.mark.attack

READING = ("stat", "list", "read")
CHANGING = ("create", "replace", "append", "mkdir", "remove", "rmdir")
APP = "/app"
NO_PATHS: tuple[object, ...] = (None, 1, True, 1.5, [], ["/app/f"], {"path": "/app/f"}, 10**4000, "[" * 9)


def _layouts() -> dict[str, list[str]]:
    found = defaultdict(list)
    for layout, path in PLACES:
        found[layout].append(path)
    return dict(found)


LAYOUTS = [
    pytest.param(layout, paths, id=layout, marks=marks(layout)) for layout, paths in _layouts().items()
]


def _spelled(path: str) -> Iterator[str]:
    """How a worker may ask for what the table asks the workspace for."""
    yield f"{APP}/{path}"
    yield path


def _requests(path: str) -> Iterator[dict[str, object]]:
    """Every operation of the mount on *path*, at both ends of those that have two."""
    for operation in (*READING, *CHANGING):
        yield {"operation": operation, "path": path}
    yield {"operation": "rename", "path": path, "target": f"{APP}/carried-away"}
    yield {"operation": "rename", "path": f"{APP}/{MINE}", "target": path}
    yield {"operation": "rename", "path": f"{APP}/{MINE_DIRECTORY}", "target": path}


def _try(here: World, request: dict[str, object], *asked: str) -> dict[str, object]:
    """The head of the answer, which must not tell or touch anything outside."""

    def answer(workspace: Workspace) -> object:
        head, body = FileServer(workspace, mount_path=APP).answer(request, NEW)
        return json.dumps(head), bytes(body)

    outcome = here.attempt(answer, *asked)
    assert outcome.ok, f"{request}: {outcome.error!r}"
    assert isinstance(outcome.value, tuple)
    head = json.loads(outcome.value[0])
    assert isinstance(head, dict)
    return head


def _try_all(here: World, paths: list[str]) -> None:
    with acting_as(here.variant.user):
        prepare(here.workspace)
    before = here.contents()
    for request in (request for path in paths for request in _requests(here.fill(path))):
        _try(here, request, str(request["path"]), str(request.get("target")))
        if request["operation"] not in READING and here.contents() != before:
            here.start_over()
            with acting_as(here.variant.user):
                prepare(here.workspace)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize(("layout", "paths"), LAYOUTS)
def test_no_request_of_a_worker_reaches_out(
    layout: str, paths: list[str], variant: Variant, world: MakeWorld
) -> None:
    with world(layout, variant) as here:
        _try_all(here, [spelled for path in paths for spelled in _spelled(path)])


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("layout", ["f; l => $OUT", "f; l => ../outside/secret", "d/; l => d/../.."])
def test_no_request_of_a_worker_reaches_out_by_a_slash_more(
    layout: str, variant: Variant, world: MakeWorld
) -> None:
    with world(layout, variant) as here:
        _try_all(here, [f"{APP}/{path}{suffix}" for path in ("l", "l/secret", "..") for suffix in SUFFIXES])


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_a_path_that_is_no_text_is_refused(variant: Variant, world: MakeWorld) -> None:
    with world("f", variant) as here:
        for operation in (*READING, *CHANGING, "rename"):
            for path in NO_PATHS:
                head = _try(here, {"operation": operation, "path": path, "target": f"{APP}/g"})
                assert "error" in head, (operation, path)
            head = _try(here, {"operation": operation})
            assert "error" in head or operation in ("stat", "list"), operation
        assert _try(here, {"operation": "rename", "path": f"{APP}/f", "target": ["g"]}) == {"error": "EINVAL"}
        assert here.contents() == here.expected("f")


@pytest.mark.parametrize("operation", ["", "answer", "_write", "__class__", None, 1, ["stat"], {"a": 1}])
def test_an_operation_that_is_none_is_refused(operation: object, world: MakeWorld) -> None:
    with world("f", RESOLVERS[0]) as here:
        assert _try(here, {"operation": operation, "path": f"{APP}/f"}) == {"error": "ENOSYS"}


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_what_leads_out_is_refused_alike_whether_it_is_there_or_not(
    variant: Variant, world: MakeWorld
) -> None:
    """E41: the answer is no oracle for what exists outside."""
    with world("l => $OUT; up => ..", variant) as here:
        for there, missing in (
            ("l/secret", "l/missing"),
            ("up/secret", "up/missing"),
            ("../secret", "../missing"),
        ):
            for operation in (*READING, *CHANGING):
                answers = [
                    _try(here, {"operation": operation, "path": f"{APP}/{path}"}) for path in (there, missing)
                ]
                assert answers[0] == answers[1], (operation, there)
                assert "error" in answers[0], (operation, there)


def test_a_large_directory_is_listed_whole(world: MakeWorld) -> None:
    """A head of an answer could not hold it."""
    with world("d/", RESOLVERS[0]) as here:
        names = [f"{number:05d}" + "\x01" * 250 for number in range(12_000)]
        for name in names:
            (here.root / "d" / name).touch()
        head, body = FileServer(here.workspace, mount_path=APP).answer(
            {"operation": "list", "path": "/app/d"}, b""
        )
        assert head == {}
        assert json.loads(body) == [[name, "file"] for name in names]


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_name_that_is_no_text_is_not_shown_and_not_removed(variant: Variant, world: MakeWorld) -> None:
    with world("d/f", variant) as here:
        (here.root / os.fsdecode(b"d/bad\xff")).write_bytes(b"in")
        mount = FileServer(here.workspace, mount_path=APP)
        assert json.loads(mount.answer({"operation": "list", "path": f"{APP}/d"}, b"")[1]) == [["f", "file"]]
        for operation in (*READING, "remove", "rmdir"):
            assert "error" in _try(here, {"operation": operation, "path": f"{APP}/d/bad\ufffd"}), operation
        assert _try(here, {"operation": "remove", "path": f"{APP}/d/f"}) == {}
        assert _try(here, {"operation": "rmdir", "path": f"{APP}/d"}) == {"error": "ENOTEMPTY"}
