"""`carrel files put` and `get` of directories and archives."""

from __future__ import annotations

import io
import os
import signal
import tarfile
import zipfile
from pathlib import Path

import pytest

import carrel.workspace.archive.extract  # noqa: F401  # imported late, perhaps as a user who may not read it
from carrel.fronts.cli.commands.files.command import FORMATS
from carrel.fronts.cli.commands.files.local_directory import LocalDirectoryWriter, pack_directory
from carrel.fronts.cli.local_files import LocalError
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.archive.create import ArchiveFormat
from tests.fronts.cli.conftest import Carrel
from tests.workspace.archives import build, directory, file, hard_link, link, tar
from tests.workspace.planting import plant, snapshot

TREE = ("d/f = text", "d/sub/g = more", "d/empty/", "d/l => sub/g", "d/sub/up => ../f")
COPIED = {
    "f": b"text",
    "sub": None,
    "sub/g": b"more",
    "sub/up": "../f",
    "empty": None,
    "l": "sub/g",
}


@pytest.fixture
def full(carrel: Carrel) -> str:
    """A session with the tree in it."""
    WorkspaceManager(carrel.sessions).create("s1").close()
    plant(carrel.workspace("s1"), *TREE)
    return "s1"


def inside(carrel: Carrel, session: str = "s1") -> dict[str, bytes | str | None]:
    return snapshot(carrel.workspace(session))


def here(carrel: Carrel) -> dict[str, bytes | str | None]:
    return snapshot(carrel.here)


# put of a directory


@pytest.mark.parametrize(
    ("words", "place"),
    [(["d"], "d"), (["d/"], "d"), (["./d/."], "d"), (["d", "a/b"], "a/b"), (["d", "/workspace/x"], "x")],
)
def test_put_stores_a_directory_with_all_that_is_in_it(carrel: Carrel, words: list[str], place: str) -> None:
    plant(carrel.here, *TREE)
    answer = carrel("files", "put", "s1", *words)
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert snapshot(carrel.workspace("s1") / place) == COPIED
    assert carrel.drafts == []


def test_put_of_this_directory_can_fill_the_workspace_itself(carrel: Carrel) -> None:
    plant(carrel.here, *TREE)
    assert carrel("files", "put", "s1", ".", ".").status == 0
    assert inside(carrel) == here(carrel)


def test_put_of_a_directory_as_json_counts_it(carrel: Carrel) -> None:
    plant(carrel.here, *TREE, "d/out => /etc/passwd")
    document = carrel("files", "put", "s1", "d", "--json").json
    assert document == {
        "path": "d",
        "files": 2,
        "directories": 3,
        "links": 2,
        "size_bytes": 8,
        "left_out": [{"path": "out", "reason": "the link could lead out of the archive"}],
    }


def test_put_follows_no_link_out_of_the_directory_and_tells(carrel: Carrel) -> None:
    plant(carrel.here, "secret", "secrets/x", "d/f", "d/file => ../secret", "d/dir => ../secrets")
    plant(carrel.here, f"d/abs => {carrel.here}/secret", "d/self => self", "d/a\\b")
    os.mkfifo(carrel.here / "d" / "fifo")
    answer = carrel("files", "put", "s1", "d")
    assert (answer.status, answer.out) == (0, b"")
    assert answer.err.splitlines() == [
        "carrel: left out a\\b: its name is ambiguous",
        "carrel: left out abs: the link could lead out of the archive",
        "carrel: left out dir: the link could lead out of the archive",
        "carrel: left out fifo: it is a FIFO, a socket or a device",
        "carrel: left out file: the link could lead out of the archive",
    ]
    assert inside(carrel) == {"d": None, "d/f": b"in", "d/self": "self"}


def test_put_finds_the_directory_itself_through_a_link(carrel: Carrel) -> None:
    plant(carrel.here, *TREE, "way => d")
    assert carrel("files", "put", "s1", "way").status == 0
    assert snapshot(carrel.workspace("s1") / "way") == COPIED


def test_put_of_a_directory_replaces_files_unless_told_otherwise(carrel: Carrel, full: str) -> None:
    before = inside(carrel)
    plant(carrel.here, "d/f = new", "d/new")
    answer = carrel("files", "put", full, "d", "--no-overwrite", "--json")
    assert (answer.status, answer.error["code"], answer.error["path"]) == (1, "path.exists", "d/f")
    assert inside(carrel) == before
    assert carrel("files", "put", full, "d").status == 0
    assert inside(carrel) == {**before, "d/f": b"new", "d/new": b"in"}


def test_put_of_a_directory_goes_through_no_link_of_the_session(carrel: Carrel, tmp_path: Path) -> None:
    WorkspaceManager(carrel.sessions).create("s1").close()
    (tmp_path / "outside").mkdir()
    plant(carrel.workspace("s1"), f"d/sub => {tmp_path}/outside", "in/", "e/sub => ../in")
    before = inside(carrel)
    plant(carrel.here, "d/sub/f", "d/f")
    for place in ("d", "e"):
        assert carrel("files", "put", "s1", "d", place).status != 0
        assert inside(carrel) == before
    assert carrel("files", "put", "s1", "d", "d/sub").status == 3
    assert os.listdir(tmp_path / "outside") == []


def test_put_of_a_directory_that_passes_a_limit_stores_nothing(carrel: Carrel) -> None:
    plant(carrel.here, "d/a", "/".join(["d"] * 200))
    answer = carrel("files", "put", "s1", "d", "--json")
    assert (answer.status, answer.error["code"]) == (4, "limit.depth")
    assert inside(carrel) == {}


def test_a_directory_that_cannot_be_read_is_an_error_about_this_side(unprivileged: Path) -> None:
    plant(unprivileged, "d/f", "d/shut/f")
    (unprivileged / "d" / "shut").chmod(0)
    with pytest.raises(LocalError, match=r"^cannot read '.*/d': permission denied"):
        list(pack_directory(f"{unprivileged}/d", lambda _: None))
    (unprivileged / "d" / "shut").chmod(0o700)


@pytest.mark.parametrize("name", ["shut/to", "shut"])
def test_a_directory_that_cannot_be_written_is_an_error_about_this_side(
    unprivileged: Path, name: str
) -> None:
    plant(unprivileged, "shut/")
    (unprivileged / "shut").chmod(0o500)
    target = LocalDirectoryWriter(f"{unprivileged}/{name}", fill=True)
    with pytest.raises(LocalError, match=r"^cannot write '.*/shut"):
        target.write([tar(file("f"))])
    assert snapshot(unprivileged) == {"shut": None}


def test_put_of_a_directory_without_a_name_needs_a_path(carrel: Carrel) -> None:
    answer = carrel("files", "put", "s1", "/")
    assert (answer.status, "PATH is required" in answer.err) == (2, True)
    assert not carrel.sessions.exists()


# put --extract


@pytest.mark.parametrize("form", FORMATS)
def test_put_extracts_an_archive(carrel: Carrel, form: str) -> None:
    data = build(form, directory("d/empty"), file("d/f", b"text"), link("l", "d/f"))
    (carrel.here / "archive").write_bytes(data)
    document = carrel("files", "put", "s1", "archive", "--extract", "--json").json
    assert document == {"path": ".", "files": 1, "directories": 2, "links": 1, "size_bytes": 4}
    assert inside(carrel) == {"d": None, "d/empty": None, "d/f": b"text", "l": "d/f"}
    assert carrel("files", "put", "s1", "-", "in/here", "--extract", stdin=data).status == 0
    assert snapshot(carrel.workspace("s1") / "in/here") == {
        "d": None,
        "d/empty": None,
        "d/f": b"text",
        "l": "d/f",
    }


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (tar(file("good"), file("../evil")), 3, "path.escape"),
        (tar(file("good"), link("l", "..")), 3, "path.escape"),
        (tar(file("good"), hard_link("h", "/etc/passwd")), 3, "path.absolute"),
        (tar(file("good"))[:700], 2, "archive.invalid"),
        (b"no archive at all", 2, "archive.invalid"),
    ],
)
def test_put_refuses_a_hostile_or_broken_archive_as_a_whole(
    carrel: Carrel, data: bytes, status: int, code: str
) -> None:
    answer = carrel("files", "put", "s1", "-", "--extract", "--json", stdin=data)
    assert (answer.status, answer.error["code"]) == (status, code)
    assert inside(carrel) == {}
    assert os.listdir(carrel.sessions) in (["s1", ".carrel"], [".carrel", "s1"])


def test_put_extracts_over_what_is_there_unless_told_otherwise(carrel: Carrel, full: str) -> None:
    data = tar(file("f", b"new"))
    assert carrel("files", "put", full, "-", "d", "--extract", "--no-overwrite", stdin=data).status == 1
    assert inside(carrel)["d/f"] == b"text"
    assert carrel("files", "put", full, "-", "d", "--extract", stdin=data).status == 0
    assert inside(carrel)["d/f"] == b"new"


def test_put_extracts_no_directory(carrel: Carrel) -> None:
    (carrel.here / "d").mkdir()
    answer = carrel("files", "put", "s1", "d", "--extract")
    assert (answer.status, answer.err) == (1, "carrel: 'd' is a directory\n")
    assert not carrel.sessions.exists()


# get of a directory


@pytest.mark.parametrize(
    ("words", "place"), [(["d"], "d"), (["d/"], "d"), (["d", "to"], "to"), (["d", "to/"], "to")]
)
def test_get_makes_the_directory_here(carrel: Carrel, full: str, words: list[str], place: str) -> None:
    answer = carrel("files", "get", full, *words)
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert os.listdir(carrel.here) == [place]
    assert snapshot(carrel.here / place) == COPIED


def test_get_of_the_whole_workspace_is_named_after_the_session(carrel: Carrel, full: str) -> None:
    assert carrel("files", "get", full, ".").status == 0
    assert os.listdir(carrel.here) == [full]
    assert snapshot(carrel.here / full) == inside(carrel)


def test_get_of_what_is_called_dash_prints_nothing(carrel: Carrel, full: str) -> None:
    plant(carrel.workspace(full), "- = dash", "e/-/f")
    for path in ("-", "e/-"):
        answer = carrel("files", "get", full, "--", path)
        assert (answer.status, answer.out, os.listdir(carrel.here)) == (0, b"", ["-"])
        os.rename(carrel.here / "-", carrel.here.parent / path.replace("/", "_"))


def test_neither_side_has_anything_else_in_it_afterwards(carrel: Carrel, full: str) -> None:
    plant(carrel.here, "local/f")
    assert carrel("files", "put", full, "local").status == 0
    assert os.listdir(carrel.here / "local") == ["f"]
    for force in ([], ["--force"]):
        assert carrel("files", "get", full, "local", "copy", *force).status == 0
        assert os.listdir(carrel.here / "copy") == ["f"]


def test_get_tells_what_it_leaves_out(carrel: Carrel, full: str) -> None:
    plant(carrel.workspace(full), "d/out => /etc/passwd", "d/up => ../..", "d/new\nline => /x")
    answer = carrel("files", "get", full, "d")
    assert (answer.status, answer.err.splitlines()) == (
        0,
        [
            "carrel: left out 'new\\nline': the link could lead out of the archive",
            "carrel: left out out: the link could lead out of the archive",
            "carrel: left out up: the link could lead out of the archive",
        ],
    )
    assert snapshot(carrel.here / "d") == COPIED


@pytest.mark.parametrize("there", ["to = mine", "to/", "to/mine", "to => nowhere", "to => other"])
def test_get_of_a_directory_touches_nothing_that_is_there_unless_forced(
    carrel: Carrel, full: str, there: str
) -> None:
    plant(carrel.here, "other/", there)
    before = here(carrel)
    answer = carrel("files", "get", full, "d", "to")
    assert (answer.status, "already exists" in answer.err) == (1, True)
    assert here(carrel) == before


def test_get_by_force_fills_a_directory_and_replaces_files(carrel: Carrel, full: str) -> None:
    plant(carrel.here, "to/f = old", "to/mine", "to/sub/mine", "way => to")
    assert carrel("files", "get", full, "d", "way", "--force").status == 0
    assert (carrel.here / "way").is_symlink()
    assert snapshot(carrel.here / "to") == {**COPIED, "mine": b"in", "sub/mine": b"in"}


@pytest.mark.parametrize(
    "there", ["to = mine", "to/sub", "to/f/", "to/sub => ../other", "to/f => ../other/f", "to/l = mine"]
)
def test_get_by_force_goes_through_no_link_and_replaces_nothing_of_another_kind(
    carrel: Carrel, full: str, there: str
) -> None:
    plant(carrel.here, "other/f = mine", there)
    before = here(carrel)
    answer = carrel("files", "get", full, "d", "to", "--force")
    assert (answer.status, answer.err.startswith("carrel: ")) == (1, True)
    assert here(carrel) == before


def test_links_that_came_from_a_session_lead_no_later_copy_astray(carrel: Carrel, full: str) -> None:
    """First a link comes, and then a directory in its place: it is not written through."""
    plant(carrel.here, "to/mine/kept")
    plant(carrel.workspace(full), "e/sub => mine")
    assert carrel("files", "get", full, "e", "to", "--force").status == 0
    before = here(carrel)
    assert before["to/sub"] == "mine"
    assert carrel("files", "get", full, "d", "to", "--force").status == 1
    assert here(carrel) == before


def test_get_of_a_directory_that_fails_leaves_nothing(carrel: Carrel, full: str) -> None:
    for words in (["d", "no/such/place"], ["nope", "to"], ["d", "-"], ["../x", "to"]):
        assert carrel("files", "get", full, *words).status != 0
        assert os.listdir(carrel.here) == []
    plant(carrel.workspace(full), "d/F => f")
    answer = carrel("files", "get", full, "d")
    assert (answer.status, answer.err.startswith("carrel: cannot write 'd': member 'f' differs")) == (1, True)
    assert os.listdir(carrel.here) == []


@pytest.mark.parametrize("words", [["to"], ["to", "--archive", "tar.xz"]], ids=["directory", "archive"])
def test_get_that_is_interrupted_leaves_nothing(carrel: Carrel, words: list[str]) -> None:
    # Without a quota, which a fast copy would reach before the signal arrives.
    unlimited = Limits(disk_bytes=None, file_bytes=None)
    WorkspaceManager(carrel.sessions, limits=unlimited).create("s1").close()
    plant(carrel.workspace("s1"), *TREE)
    with open(carrel.workspace("s1") / "d" / "large", "wb") as large:
        large.truncate(2**40)
    running = carrel.start("files", "get", "s1", "d", *words)
    while not os.listdir(carrel.here):
        assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert os.listdir(carrel.here) == []


# get --archive


def test_the_formats_are_those_that_can_be_made() -> None:
    assert list(FORMATS) == list(ArchiveFormat)


@pytest.mark.parametrize("form", FORMATS)
def test_get_makes_an_archive_of_a_directory(carrel: Carrel, full: str, form: str) -> None:
    printed = carrel("files", "get", full, "d", "-", "--archive", form)
    assert (printed.status, printed.err) == (0, "")
    names = ["empty", "f", "l", "sub", "sub/g", "sub/up"]
    if form == "zip":
        with zipfile.ZipFile(io.BytesIO(printed.out)) as packed:
            assert [name.rstrip("/") for name in packed.namelist()] == names
    else:
        with tarfile.open(fileobj=io.BytesIO(printed.out)) as opened:
            assert opened.getnames() == names
    assert carrel("files", "get", full, "d", "--archive", form).status == 0
    assert (carrel.here / f"d.{form}").read_bytes() == printed.out
    assert carrel("files", "put", "s2", f"d.{form}", "--extract").status == 0
    assert inside(carrel, "s2") == COPIED


def test_get_makes_an_archive_of_everything_and_of_one_file(carrel: Carrel, full: str) -> None:
    for path in (".", "d/f"):
        assert carrel("files", "get", full, path, "--archive", "tar").status == 0
    assert sorted(os.listdir(carrel.here)) == ["f.tar", "s1.tar"]


def test_get_of_an_archive_replaces_nothing_unless_forced(carrel: Carrel, full: str) -> None:
    plant(carrel.here, "to = mine", "dir/")
    for words in (["to"], ["dir"], ["dir", "--force"]):
        assert carrel("files", "get", full, "d", *words, "--archive", "zip").status == 1
        assert here(carrel) == {"to": b"mine", "dir": None}
    assert carrel("files", "get", full, "d", "to", "--archive", "zip", "--force").status == 0
    assert zipfile.is_zipfile(carrel.here / "to")
    assert carrel("files", "get", full, "d", "--archive", "rar").status == 2


def test_a_directory_is_printed_as_an_archive_only(carrel: Carrel, full: str) -> None:
    answer = carrel("files", "get", full, "d", "-")
    assert (answer.status, answer.out, "--archive" in answer.err) == (2, b"", True)


@pytest.mark.parametrize("words", [["put", "here"], ["put", "a.tar", "--extract"], ["get", "d"]])
def test_what_leads_out_is_refused_for_trees_too(carrel: Carrel, full: str, words: list[str]) -> None:
    (carrel.here / "here").mkdir()
    (carrel.here / "a.tar").write_bytes(tar())
    carrel.workspace(full).joinpath("out").symlink_to(carrel.here)
    before = here(carrel)
    for path in ("..", "/etc", "out", "out/here"):
        command, name, *options = words
        operands = [full, path, "to"] if command == "get" else [full, name, path]
        answer = carrel("files", command, *operands, *options)
        assert (answer.status, str(carrel.sessions) in answer.err) == (3, False)
        assert here(carrel) == before
