"""The suite notices what it is there to notice; otherwise every other test would prove nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel.errors import MissingError
from carrel.fs.rules import info_of
from carrel.testing import tree
from carrel.workspace.workspace import Workspace
from tests.attack.guards import TooSlow, in_time
from tests.attack.privilege import NOBODY, User, acting_as
from tests.attack.world import DOORS, MARKER, RESOLVERS, MakeWorld, Variant, World, contents

pytestmark = pytest.mark.attack


def test_a_tree_is_built_as_it_looks(place: Path) -> None:
    top = tree(
        place / "top", "d/", "f", "g = some = text", "a/b/c", "l => ../..", "a/m => b/c", "n => d/", "x y"
    )
    assert contents(top) == {
        "d": "/",
        "f": "= in (2 bytes)",
        "g": "= some = text (11 bytes)",
        "a": "/",
        "a/b": "/",
        "a/b/c": "= in (2 bytes)",
        "l": "=> ../..",
        "a/m": "=> b/c",
        "n": "=> d/",
        "x y": "= in (2 bytes)",
    }


@pytest.mark.parametrize("line", ["/f", "../f", "a/../../f", "../d/", "../l => f"])
def test_a_tree_stays_in_its_directory(line: str, place: Path) -> None:
    with pytest.raises(ValueError, match="must stay in it"):
        tree(place / "top", line)
    assert contents(place) == {"top": "/"}


def _touch(here: World) -> None:
    os.utime(here.out / "secret", ns=(0, 0))


def _rewrite(here: World) -> None:
    path = here.out / "secret"
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(here: World) -> None:
    (here.parent / "secret").unlink()
    (here.parent / "secret").symlink_to("ROOT-evil/secret")


def _leave_a_draft(here: World) -> None:
    (here.parent / ".carrel" / "tmp" / "draft").touch()


def _copy_in(here: World) -> None:
    (here.root / "stolen").write_bytes((here.out / "secret").read_bytes())


DEEDS: dict[str, Callable[[World], object]] = {
    "a new file outside": lambda here: (here.out / "new").touch(),
    "a new file beside": lambda here: (here.parent / "new").touch(),
    "a new file above": lambda here: (here.base / "new").touch(),
    "a new name in a sibling": lambda here: (here.parent / "ROOT-evil" / "new").mkdir(),
    "a removed file": lambda here: (here.out / "dir" / "secret").unlink(),
    "a moved file": lambda here: (here.out / "secret").rename(here.out / "moved"),
    "a changed mode": lambda here: (here.out / "secret").chmod(0o600),
    "a changed mode of a directory": lambda here: here.out.chmod(0o700),
    "a changed time": _touch,
    "a changed content of the same size and time": _rewrite,
    "a link in place of a file": _swap,
    "something unfinished": _leave_a_draft,
    "a copy of a secret in the workspace": _copy_in,
    "the content of a file outside": lambda here: (here.out / "secret").read_bytes(),
    "the text of a file outside": lambda here: [(here.out / "secret").read_text()],
    "the names in a directory outside": lambda here: os.listdir(here.out),
    "what is known about a file outside": lambda here: info_of("f", os.stat(here.out / "secret")),
    "what is known about a directory outside": lambda here: [info_of("d", os.stat(here.parent))],
    "a file of the host": lambda here: Path("/etc/passwd").read_text(),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_an_attempt_that_reaches_out_is_noticed(deed: str, world: MakeWorld) -> None:
    with world("f", RESOLVERS[0]) as here, pytest.raises(AssertionError):
        here.attempt(lambda workspace: DEEDS[deed](here))


def _raise(error: BaseException) -> None:
    raise error


def _raise_in_context(place: str) -> None:
    try:
        os.stat(f"{place}/no")
    except OSError:
        raise MissingError("no such file: 'no'", path="no")  # noqa: B904  # the context is the point


ERRORS: dict[str, Callable[[str], object]] = {
    "an error of the host": lambda place: os.stat(f"{place}/no"),
    "an error that is not ours": lambda place: _raise(OSError(2, "no")),
    "a message with the place": lambda place: _raise(MissingError(f"no such file: {place}/no")),
    "a path with the place": lambda place: _raise(MissingError("no such file", path=f"{place}/no")),
    "an error of the host as context": _raise_in_context,
    "a secret": lambda place: _raise(MissingError(MARKER)),
    "a descriptor": lambda place: _raise(MissingError("no such file: '/proc/self/fd/7'")),
}


@pytest.mark.parametrize("problem", ERRORS)
def test_an_error_that_tells_too_much_is_noticed(problem: str, world: MakeWorld) -> None:
    with world("f", RESOLVERS[0]) as here, pytest.raises(AssertionError):
        here.attempt(lambda workspace: ERRORS[problem](str(here.root)))


def test_a_descriptor_that_stays_open_is_noticed(world: MakeWorld) -> None:
    with world("f", RESOLVERS[0]) as here:
        kept: list[int] = []
        with pytest.raises(AssertionError, match="leaked"):
            here.attempt(lambda workspace: kept.append(os.open(here.root, os.O_RDONLY)))
        os.close(kept[0])


def test_waiting_is_noticed(place: Path) -> None:
    os.mkfifo(place / "fifo")
    with pytest.raises(TooSlow), in_time(0.05):
        (place / "fifo").read_bytes()


@pytest.mark.parametrize("variant", DOORS, ids=str)
def test_the_resolver_that_is_asked_for_is_the_one_in_force(variant: Variant, world: MakeWorld) -> None:
    with world("f", variant) as here:
        assert here.workspace.confinement == variant.resolver


@pytest.mark.root
def test_acting_as_nobody_gives_up_all_rights_and_takes_them_back(place: Path) -> None:
    (place / "f").touch(0o600)
    before = os.geteuid(), os.getegid(), os.getgroups()
    with acting_as(User.NOBODY):
        if before[0] == 0:
            assert (os.geteuid(), os.getegid(), os.getgroups()) == (NOBODY, NOBODY, [])
            with pytest.raises(PermissionError):
                (place / "f").read_bytes()
        assert os.listdir("/proc/self/fd")
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    assert (place / "f").read_bytes() == b""


def test_what_is_allowed_is_not_complained_about(world: MakeWorld) -> None:
    with world("f", RESOLVERS[0]) as here:
        assert here.try_path(Workspace.read, "f", "f").names == {"ok", "ok:in"}
        assert "ENOENT" in here.try_path(Workspace.read, "no", "no").names
