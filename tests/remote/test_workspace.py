"""A workspace that a service keeps does what one in this process does."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from carrel import AsyncClient, Client, Limits, Workspace, WorkspaceManager
from carrel.errors import ClosedError, EscapeError, LimitError, RequestError
from carrel.remote.transport.http_connection import CONNECTIONS
from carrel.values import Position
from carrel.workspace.archive.create import LeftOut
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.search import SearchBudget
from tests.remote.outcomes import outcome
from tests.remote.serving import Serving
from tests.workspace.archives import file, tar

Step = Callable[[Any], Any]  # Any: a workspace here or afar, and whatever its methods give


def version_of(workspace: Any, path: str) -> str:
    return str(workspace.stat(path).version)


STORIES: dict[str, list[Step]] = {
    "writing": [
        lambda w: w.write("a/b.txt", "hello\nworld\n"),
        lambda w: w.read("a/b.txt"),
        lambda w: w.write("a/b.txt", b"\x00\xff", overwrite=False),
        lambda w: w.write("a/b.txt", b"\x00\xff"),
        lambda w: w.write("c/d.txt", "x", parents=False),
        lambda w: w.write("e.bin", "AAEC", encoding="base64"),
        lambda w: w.write("e.bin", "no base64!", encoding="base64"),
        lambda w: w.write("f.txt", "\u20ac", encoding="latin-1"),
        lambda w: w.write("empty", b""),
        lambda w: w.read("empty"),
        lambda w: w.write("../out", b""),
        lambda w: w.write("/etc/passwd", b""),
        lambda w: w.write("", b""),
        lambda w: w.write("a", b"is a directory"),
        lambda w: w.write("a/b.txt/c", b"is in a file"),
        lambda w: w.write("/workspace/abs.txt", b"1"),
        lambda w: w.write("a//./x.txt", b"2"),
        lambda w: w.write("d\u00e9j\u00e0 vu?#%2F&.txt", "odd"),
        lambda w: w.read_text("d\u00e9j\u00e0 vu?#%2F&.txt"),
        lambda w: w.write("nul\0", b""),
        lambda w: w.write("slash/", b""),
        lambda w: w.write("x" * 300, b""),
        lambda w: w.write("x/" * 5000, b""),
        lambda w: w.write(Path("a/path.txt"), memoryview(b"view")),
        lambda w: w.list_files(),
    ],
    "versions": [
        lambda w: w.write("v", "one"),
        lambda w: w.write("v", "two", if_version=version_of(w, "v")),
        lambda w: w.write("v", "three", if_version="1-2-3"),
        lambda w: w.write("v", "three", if_version="*"),
        lambda w: w.write("v", "three", if_version='"\n'),
        lambda w: w.write("w", "none", if_version="1-2-3"),
        lambda w: w.append("v", "!", if_version=version_of(w, "v")),
        lambda w: w.append("v", "?", if_version="1-2-3"),
        lambda w: w.edit("v", "two", "2", if_version=version_of(w, "v")),
        lambda w: w.remove("v", if_version="1-2-3"),
        lambda w: w.move("v", "z", if_version=version_of(w, "v")),
        lambda w: w.write_chunks("z", [b"a", b"b"], if_version=version_of(w, "z")),
        lambda w: w.write_chunks("z", [b"c"], if_version="1-2-3"),
        lambda w: w.read("z"),
    ],
    "reading": [
        lambda w: w.write("r", bytes(range(256)) * 1000),
        lambda w: w.read("r", offset=10, length=5),
        lambda w: w.read("r", offset=255_990),
        lambda w: w.read("r", offset=256_000),
        lambda w: w.read("r", offset=300_000, length=1),
        lambda w: w.read("r", length=0),
        lambda w: w.read("r", length=2**40),
        lambda w: w.read("r", offset=2**70),
        lambda w: w.read("r", offset=255_999, length=2**70),
        lambda w: w.read("r", offset=True, length=True),
        lambda w: w.read_with_info("r", offset=5, length=2),
        lambda w: w.read_with_info("r", length=0),
        lambda w: w.read_with_info("r", offset=10**6),
        lambda w: w.read_text("r"),
        lambda w: w.read_text("r", encoding="base64"),
        lambda w: w.read_text("r", encoding="utf-7"),
        lambda w: w.read("missing"),
        lambda w: w.read("missing", length=0),
        lambda w: w.read("."),
        lambda w: w.read(""),
        lambda w: w.read(".."),
        lambda w: w.read("r/"),
        lambda w: list(w.read_chunks("r", chunk_bytes=100_000)),
        lambda w: list(w.read_chunks("missing")),
        lambda w: w.write("lines", "".join(f"line {number}\n" for number in range(1, 101))),
        lambda w: w.read_lines("lines"),
        lambda w: w.read_lines("lines", start=5, count=2),
        lambda w: w.read_lines("lines", start=1000),
        lambda w: w.read_lines("missing"),
    ],
    "changing": [
        lambda w: w.append("log", "one\n"),
        lambda w: w.append("log", b"\xfe"),
        lambda w: w.append("log", "AA==", encoding="base64"),
        lambda w: w.read("log"),
        lambda w: w.write("code.py", "a = 1\na = 1\n"),
        lambda w: w.edit("code.py", "a = 1", "a = 2"),
        lambda w: w.edit("code.py", "a = 1", "a = 2", replace_all=True),
        lambda w: w.edit("code.py", "zzz", "y"),
        lambda w: w.edit("missing", "x", "y"),
        lambda w: w.touch("code.py", modified_ns=10**18).modified_ns,
        lambda w: w.touch("new"),
        lambda w: w.mkdir("d/e"),
        lambda w: w.mkdir("d/e"),
        lambda w: w.mkdir("d/e", exist_ok=True),
        lambda w: w.mkdir("f/g", parents=False),
        lambda w: w.copy("code.py", "d/copy.py"),
        lambda w: w.copy("d", "h"),
        lambda w: w.copy("d", "h", recursive=True),
        lambda w: w.copy("d", "d/e/d", recursive=True),
        lambda w: w.move("code.py", "h/copy.py"),
        lambda w: w.move("code.py", "h/copy.py", overwrite=True),
        lambda w: w.remove("h"),
        lambda w: w.remove("h", recursive=True),
        lambda w: w.remove("h"),
        lambda w: w.remove("h", force=True),
        lambda w: w.remove("."),
        lambda w: w.usage(),
        lambda w: w.recount(),
    ],
    "finding": [
        lambda w: [w.write(f"{d}/{f}", f"{d} {f}\nTODO: x\n") for d in ("a", "b/c", "b") for f in "xyz"],
        lambda w: w.write("b/.hidden", "TODO hidden"),
        lambda w: w.exists("a/x"),
        lambda w: w.exists("a/q"),
        lambda w: w.exists("../q"),
        lambda w: w.stat("a"),
        lambda w: w.stat("a/x", follow_symlinks=False),
        lambda w: w.stat("nope"),
        lambda w: w.list(),
        lambda w: w.list("b"),
        lambda w: w.list("a/x"),
        lambda w: w.list_files(),
        lambda w: w.list_files("*.none"),
        lambda w: w.list_names(),
        lambda w: w.list_names("a/x"),
        lambda w: w.list_names("../q"),
        lambda w: w.glob("b/**/x"),
        lambda w: w.glob("*", hidden=True),
        lambda w: w.glob("["),
        lambda w: w.walk(),
        lambda w: w.walk("b", enter=lambda info: info.name != "c"),
        lambda w: w.walk("a/x"),
        lambda w: w.walk("nope"),
        lambda w: w.read_tree(),
        lambda w: w.read_tree("b", enter=lambda name: name != "c", wants=lambda name: name != "y"),
        lambda w: w.search("TODO"),
        lambda w: w.search("todo", "b", ignore_case=True, include="x", hidden=True, context=1),
        lambda w: w.search("todo", include=["x", "y"], regex=False, ignore_case=True),
        lambda w: w.search("TODO", budget=SearchBudget(matches=2)),
        lambda w: w.search("TODO", start=Position("b/x", 0)),
        lambda w: w.search("("),
    ],
    "archives": [
        lambda w: [w.write(name, name * 100) for name in ("d/a", "d/b", "d/e/c")],
        lambda w: w.extract(b"".join(w.archive("d")), "out"),
        lambda w: w.extract(b"".join(w.archive("d")), "out"),
        lambda w: w.extract(b"".join(w.archive("d", format="zip")), "out", overwrite=True),
        lambda w: w.extract(list(w.archive("d", format="tar.gz")), "pieces", format="tar.gz"),
        lambda w: w.extract(io.BytesIO(tar(file("f", b"1"))), "opened"),
        lambda w: w.extract(b"no archive", "bad"),
        lambda w: w.extract(tar(file("../f", b"1")), "bad"),
        lambda w: w.extract(tar(file("f", b"1")), "bad", limits=ExtractLimits(members=0)),
        lambda w: w.archive("nope"),
        lambda w: w.list_files(),
    ],
    "the journal": [
        lambda w: w.write("a", "1"),
        lambda w: w.write("../b", "2"),
        lambda w: w.remove("a"),
        lambda w: w.changes(),
        lambda w: w.changes(next(iter(w.changes())).sequence),
        lambda w: w.changes(list(w.changes())[-1].sequence),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_a_workspace_afar_does_what_one_here_does(story: str, far: Any, here: Workspace) -> None:
    for number, step in enumerate(STORIES[story]):
        wanted = outcome(step, here)
        assert outcome(step, far) == wanted, f"step {number}"


def test_a_source_that_fails_leaves_nothing_and_its_error_comes_out(far: Any) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begun"
        raise ZeroDivisionError("of the caller")

    with pytest.raises(ZeroDivisionError, match="of the caller"):
        far.write_chunks("f", chunks())
    with pytest.raises(ZeroDivisionError, match="of the caller"):
        far.extract(chunks())
    assert far.list() == []


def test_a_file_larger_than_one_read_is_refused_and_comes_by_chunks(client: Any) -> None:
    far = client.create(limits=Limits(read_bytes=1000))
    far.write_chunks("large", [b"x" * 999] * 3)
    with pytest.raises(LimitError, match="'large' is too large: 2997 bytes, the limit is 1000") as caught:
        far.read("large")
    assert (caught.value.code, caught.value.limit, caught.value.asked) == ("limit.read_bytes", 1000, 2997)
    assert len(far.read("large", offset=2000)) == 997
    assert [len(chunk) for chunk in far.read_chunks("large", chunk_bytes=2000)] == [2000, 997]


def test_a_walk_ends_at_the_limits_of_the_session(client: Any, tmp_path: Path) -> None:
    for limits in (Limits(depth=2), Limits(walk_entries=3), Limits(list_entries=1)):
        far = client.create(limits=limits)
        assert far.limits == limits
        with WorkspaceManager(tmp_path / "limited", limits=limits) as manager, manager.create() as here:
            for step in STORIES["finding"][0], lambda w: w.list("b"), lambda w: list(w.walk()):
                wanted = outcome(step, here)
                assert outcome(step, far) == wanted


def test_an_upload_that_is_refused_on_its_way_is_told_why(far: Any) -> None:
    for _ in range(5):
        with pytest.raises(EscapeError):
            far.write_chunks("../f", [b"x" * 2**16] * 100)


def test_a_workspace_that_was_closed_is_not_used_any_more(far: Any) -> None:
    far.write("a", "1")
    far.close()
    for step in (far.usage, lambda: far.read("a"), lambda: far.write("a", "2"), lambda: list(far.walk())):
        with pytest.raises(ClosedError, match="workspace is closed"):
            step()


def test_a_function_cannot_be_sent(far: Any) -> None:
    with pytest.raises(RequestError, match="wants is a function"):
        far.search("x", wants=lambda name: True)


def test_what_a_call_does_not_take_is_a_type_error_here(far: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        far.stat("a", follow=True)


def test_a_name_that_is_no_text_can_be_used(far: Any, here: Workspace) -> None:
    name = "not utf-8 \udcff"
    steps: tuple[Step, ...] = (
        lambda w: w.write(name, b"1"),
        lambda w: w.append(name, "2"),
        lambda w: w.read(name),
        lambda w: w.stat(name),
        lambda w: list(w.walk()),
        lambda w: list(w.read_tree()),
        lambda w: w.move(name, name + "x"),
        lambda w: w.edit(name + "x", "\ud800", "x"),
        lambda w: w.search("1"),
        lambda w: w.remove(name + "x"),
        lambda w: w.write_chunks(f"{name}/a", [b"1", b"2"]),
        lambda w: list(w.read_chunks(f"{name}/a")),
        lambda w: len(b"".join(w.archive(name))),
        lambda w: w.extract(tar(file("b")), name),
        lambda w: w.changes(),
    )
    for step in steps:
        wanted = outcome(step, here)
        assert outcome(step, far) == wanted


def test_a_path_that_stands_for_none_is_refused_as_the_library_does(far: Any, here: Workspace) -> None:
    steps: tuple[Step, ...] = (
        lambda w: w.read("\ud800"),
        lambda w: w.write("\ud800", b"1"),
        lambda w: list(w.read_chunks("a\ud800")),
        lambda w: w.write_chunks("a\ud800", [b"1"]),
        lambda w: list(w.archive("a\ud800")),
        lambda w: w.extract(tar(file("b")), "a\ud800"),
        lambda w: list(w.archive("")),
        lambda w: w.extract(tar(file("b")), ""),
        lambda w: list(w.walk("")),
    )
    for step in steps:
        wanted = outcome(step, here)
        assert wanted[1] == "path.invalid"
        assert outcome(step, far) == wanted


def test_what_is_of_the_wrong_type_is_a_type_error_as_in_the_library(far: Any, here: Workspace) -> None:
    steps: tuple[Step, ...] = (
        lambda w: w.stat(5),
        lambda w: w.read(b"a"),
        lambda w: w.write(b"a", b"1"),
        lambda w: w.copy("a", None),
        lambda w: list(w.archive(b"a")),
        lambda w: w.extract(tar(file("b")), b"a"),
        lambda w: w.read("f", offset=1.5),
        lambda w: w.write_chunks("a", None),
        lambda w: w.write_chunks("a", b"1"),
        lambda w: w.write_chunks("a", [b"1", None, b"2"]),
        lambda w: w.write_chunks("a", [b"1", "2"]),
        lambda w: w.extract(None),
        lambda w: w.extract("a"),
    )
    for workspace in here, far:
        workspace.write("f", b"12345")
        for step in steps:
            with pytest.raises(TypeError):
                step(workspace)
        assert [each.name for each in workspace.list()] == ["f"]


def test_changes_are_told_from_any_number_on(far: Any) -> None:
    far.write("a", "1")
    assert [[event.path for event in far.changes(since)] for since in (-1, 2**70)] == [["a"], []]


def test_too_many_answers_at_once_are_told_as_that(service: Serving) -> None:
    with Client(service.http, timeout=1) as client, client.create() as far:
        far.write("large", bytes(2**22))
        begun = [far.read_chunks("large", chunk_bytes=1) for _ in range(CONNECTIONS)]
        with pytest.raises(LimitError, match=f"{CONNECTIONS} responses .* are already open"):
            far.read("large")
        del begun
        assert far.read("large", length=1) == b"\0"


def test_a_path_that_no_url_can_hold_is_refused_as_the_library_does(
    service: Serving, here: Workspace
) -> None:
    with Client(service.http) as client:
        far = client.create()
        for step in (lambda w: w.read("x" * 200_000), lambda w: w.write("x/" * 100_000, b"")):
            wanted = outcome(step, here)
            assert outcome(step, far) == wanted


def test_what_was_left_out_of_an_archive_is_told_over_grpc(service: Serving) -> None:
    with Client(service.grpc) as client, Client(service.http) as other:
        far = client.create()
        far.write("a", "1")
        (service.directory / far.session_id / "out").symlink_to("/etc")
        missed: list[LeftOut] = []
        assert b"".join(far.archive(left_out=missed.append))
        assert [each.path for each in missed] == ["out"]
        with pytest.raises(RequestError, match="left_out"):
            other.open(far.session_id).archive(left_out=missed.append)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_threads_share_a_client(service: Serving, protocol: str) -> None:
    with Client(service.url(protocol)) as client, client.create() as far, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> bytes:
            far.write(f"{number}", f"{number}")
            return far.read(f"{number}")

        assert list(pool.map(work, range(40))) == [b"%d" % number for number in range(40)]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tasks_share_a_client(service: Serving, protocol: str) -> None:
    async def run() -> list[bytes]:
        async with AsyncClient(service.url(protocol)) as client, await client.create() as far:

            async def work(number: int) -> bytes:
                await far.write(f"{number}", f"{number}")
                return await far.read(f"{number}")

            return await asyncio.gather(*map(work, range(40)))

    assert asyncio.run(run()) == [b"%d" % number for number in range(40)]
