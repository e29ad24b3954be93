"""The guards of the resolvers and the parser, one small test each.

`tests/mutants.py` takes the guards out one at a time, and each must fail a test like these. Other suites try
the same things in greater number; these are few and quick, so that a mutant is found in a second.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    AbsoluteError,
    AccessError,
    EscapeError,
    LoopError,
    MissingError,
    NotDirectoryError,
    PathError,
    PatternError,
)
from carrel.fs.local import resolve
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import parse
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement


def host(confinement: str, quiet: SandboxLogger) -> Workspace:
    """All of the host, read-only: it has mounts in it."""
    policy = SandboxPolicy.for_workspace("/", AccessMode.READ_ONLY)
    return Workspace.open("/", policy=policy, logger=quiet, confinement=confinement)


# Resolving


@requirement("P-05")
def test_nothing_above_the_workspace_is_reached_by_dots(confined: Workspace) -> None:
    for path in ("../secret", "d/../../secret", "..", "d/../.."):
        with pytest.raises(EscapeError):
            confined.stat(path)
    assert confined.read("d/../f") == b"in"


@requirement("P-05")
def test_a_missing_name_does_not_hide_that_a_path_leads_out(confined: Workspace, directory: Path) -> None:
    (directory / "here").symlink_to(".")
    for path in ("missing/../../secret", "f/../../secret", "here/missing/../../secret"):
        with pytest.raises(EscapeError):
            confined.stat(path)
    for path in ("missing/../f", "d/missing/../../f"):
        with pytest.raises(MissingError):
            confined.stat(path)


@requirement("P-10")
def test_a_relative_link_out_is_refused(confined: Workspace, directory: Path) -> None:
    (directory / "up").symlink_to("..")
    (directory / "l").symlink_to("../secret")
    for path in ("up/secret", "l"):
        with pytest.raises(EscapeError):
            confined.read(path)


@requirement("P-09")
def test_an_absolute_link_is_refused_even_if_it_leads_inside(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to(directory / "f")
    (directory / "e").symlink_to(directory / "d")
    for path in ("l", "e/f"):
        with pytest.raises(EscapeError):
            confined.read(path)


def test_links_inside_are_followed_in_the_middle_and_at_the_end(confined: Workspace, directory: Path) -> None:
    (directory / "e").symlink_to("d")
    (directory / "l").symlink_to("e/f")
    assert confined.read("e/f") == confined.read("l") == b"in"
    assert confined.stat("l").size_bytes == 2


def test_a_link_that_is_asked_for_itself_is_not_followed(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("../secret")
    assert confined.stat("l", follow_symlinks=False).target == "../secret"


def test_the_text_of_a_link_that_ends_in_a_slash_asks_for_a_directory(
    confined: Workspace, directory: Path
) -> None:
    (directory / "l").symlink_to("f/")
    with pytest.raises(NotDirectoryError):
        confined.read("l")


def test_forty_links_are_followed_and_not_one_more(confined: Workspace, directory: Path) -> None:
    (directory / "l0").symlink_to("f")
    for number in range(1, 41):
        (directory / f"l{number}").symlink_to(f"l{number - 1}")
    assert confined.read("l39") == b"in"
    with pytest.raises(LoopError):
        confined.read("l40")


def test_a_walk_ends_after_a_number_of_steps(
    directory: Path, quiet: SandboxLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that go back and forth ask for far more steps than there are links."""
    (directory / "d").mkdir()
    (directory / "d/f").write_bytes(b"in")
    workspace = Workspace.open(directory, logger=quiet, confinement="walk")
    path = "d/../" * 20 + "d/f"
    assert workspace.read(path) == b"in"
    monkeypatch.setattr(resolve, "STEPS", 20)
    with pytest.raises(LoopError):
        workspace.read(path)


@pytest.mark.parametrize("confinement", ["kernel", "walk"])
def test_another_mount_is_refused_in_the_middle_and_at_the_end(
    quiet: SandboxLogger, confinement: str
) -> None:
    workspace = host(confinement, quiet)
    for path in ("proc/version", "proc", "proc/self/../version"):
        with pytest.raises(EscapeError):
            workspace.stat(path)


def test_a_magic_link_is_refused_as_such(quiet: SandboxLogger) -> None:
    """The kernel would refuse it as an escape as well, but only as long as it is told to stay beneath."""
    policy = SandboxPolicy.for_workspace("/proc/self", AccessMode.READ_ONLY)
    workspace = Workspace.open("/proc/self", policy=policy, logger=quiet, confinement="kernel")
    with pytest.raises(LoopError):
        workspace.stat("cwd")


@pytest.fixture
def shared(tmp_path: Path, quiet: SandboxLogger) -> tuple[Path, Workspace]:
    """A directory that may be written, but for two places that earlier rules have; one is not there yet."""
    place = tmp_path / "shared"
    (place / "a/ws").mkdir(parents=True)
    (place / "d").mkdir()
    (place / "a/ws/f").write_bytes(b"in")
    (place / "link").symlink_to("a/ws")
    policy = SandboxPolicy.for_workspace(
        place / "a/ws",
        AccessMode.READ_ONLY,
        [
            PathRule(str(place / "later"), AccessMode.READ_ONLY),
            PathRule(str(place), AccessMode.READ_WRITE),
        ],
    )
    workspace = Workspace.open(place / "a/ws", policy=policy, logger=quiet)
    workspace.write(f"{place}/beside", b"fine")
    return place, workspace


def test_a_directory_of_an_earlier_rule_is_not_entered_through_a_later_one(
    shared: tuple[Path, Workspace],
) -> None:
    place, workspace = shared
    for path in (f"{place}/link/f", f"{place}/d/../a/ws/f"):
        with pytest.raises(AccessError):
            workspace.read(path)
        with pytest.raises(AccessError):
            workspace.write(path, b"changed")
    assert (place / "a/ws/f").read_bytes() == b"in"


def test_a_directory_of_an_earlier_rule_is_not_moved_away_with_one_above_it(
    shared: tuple[Path, Workspace],
) -> None:
    place, workspace = shared
    for path in (f"{place}/a", f"{place}/d/../a"):
        with pytest.raises(AccessError):
            workspace.remove(path, recursive=True)
        with pytest.raises(AccessError):
            workspace.move(path, f"{place}/moved")
    assert (place / "a/ws/f").read_bytes() == b"in"


def test_the_place_of_an_earlier_rule_is_not_made_through_a_later_one(
    shared: tuple[Path, Workspace],
) -> None:
    place, workspace = shared
    workspace.mkdir(f"{place}/made")
    path = f"{place}/d/../later"
    for act in (
        lambda: workspace.write(path, b"x"),
        lambda: workspace.move(f"{place}/made", path),
        lambda: workspace.mkdir(path),
    ):
        with pytest.raises(AccessError):
            act()
    assert not (place / "later").exists()


def test_directories_on_the_way_are_not_made_at_the_place_of_an_earlier_rule(
    shared: tuple[Path, Workspace],
) -> None:
    place, workspace = shared
    with pytest.raises(AccessError):
        workspace.mkdir(f"{place}/d/../later/x/y")
    with pytest.raises(AccessError):
        workspace.write(f"{place}/d/../later/x/f", b"x")
    assert not (place / "later").exists()


# Parsing


@requirement("P-19", "P-22")
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", PathError),
        ("f\0", PathError),
        ("f\0.png", PathError),
        ("/etc/passwd", AbsoluteError),
        ("\\etc", AbsoluteError),
        ("C:f", AbsoluteError),
        ("c:\\f", AbsoluteError),
        ("./" * 2048 + "f", PathError),
        ("n" * 256, PathError),
        ("€" * 86, PathError),
        ("\ud800", PathError),
        ("\udcff\udcfe"[::-1] + "\ud83d", PathError),
    ],
    ids=lambda value: None if isinstance(value, str) else value.__name__,
)
def test_what_is_no_path_is_refused_before_anything_is_opened(path: str, problem: type[PathError]) -> None:
    with pytest.raises(problem) as caught:
        parse(path)
    assert type(caught.value) is problem
    assert caught.value.path == path


def test_a_surrogate_that_stands_for_text_is_not_taken_for_a_byte() -> None:
    """The bytes of `é`, each as a surrogate, would name another file than they seem to."""
    with pytest.raises(PathError):
        parse("\udcc3\udca9")
    assert parse("\udcff").name == b"\xff"


@pytest.mark.parametrize(
    ("path", "must_dir", "dotted", "name"),
    [
        ("a/b", False, False, b"b"),
        ("a/b/", True, False, b"b"),
        ("a\\b\\", True, False, b"b"),
        ("a/b/.", True, True, b""),
        ("a/b//./", True, True, b""),
        ("a/..", True, True, b""),
        ("a/../", True, True, b""),
        (".", True, True, b""),
    ],
)
def test_what_a_path_ends_in_is_remembered(path: str, must_dir: bool, dotted: bool, name: bytes) -> None:
    where = parse(path)
    assert (where.must_dir, where.dotted, where.name) == (must_dir, dotted, name)
    assert not where.encoded.endswith(b"/")


def test_a_path_object_is_asked_once() -> None:
    class Fickle:
        answers = iter(("f", "../secret"))

        def __fspath__(self) -> str:
            return next(self.answers)

    class Sly(str):
        __slots__ = ()

        def replace(self, *args: object, **more: object) -> str:
            return "../secret"

    assert parse(Fickle()).parts == ("f",)
    assert parse(Sly("f")).parts == ("f",)


@requirement("P-18")
@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "**/../../*", "", "a\0b", "x" * 2000])
def test_a_pattern_that_leads_anywhere_else_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern(pattern)
