"""Every ceiling answers with its name, its value and what was asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.errors import LimitError
from tests.requirements import requirement
from tests.workspace.archives import file, tar
from tests.workspace.planting import plant, snapshot


def refused(limits: Limits, directory: Path, attempt: Callable[[Workspace], object]) -> LimitError:
    """The error of an operation beyond *limits*."""
    with Workspace.open(directory, limits=limits) as workspace, pytest.raises(LimitError) as caught:
        attempt(workspace)
    assert isinstance(caught.value, OSError)
    assert str(caught.value.limit) in str(caught.value)
    assert str(directory) not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
@pytest.mark.parametrize("value", [-1, 1.5, "10", True])
def test_a_ceiling_is_a_whole_number_or_none(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 0 or None"):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
def test_a_ceiling_can_be_nothing_or_none(name: str) -> None:
    assert getattr(Limits(**{name: 0}), name) == 0
    assert getattr(Limits(**{name: None}), name) is None


def test_limits_are_values() -> None:
    assert Limits(depth=3) == Limits(depth=3)
    assert hash(Limits()) == hash(Limits())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().depth = 5  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        Limits(5)  # type: ignore[call-arg]  # that is the point


WRITES: dict[str, Callable[[Workspace], object]] = {
    "write": lambda workspace: workspace.write("f", b"0123456789!"),
    "write_chunks": lambda workspace: workspace.write_chunks("f", [b"0123456789", b"!"]),
    "append": lambda workspace: workspace.append("f", b"56789!"),
    "append to a new one": lambda workspace: workspace.append("new", b"0123456789!"),
    "edit": lambda workspace: workspace.edit("f", "4", "4567890"),
    "extract": lambda workspace: workspace.extract(tar(file("f", b"0123456789!")), overwrite=True),
    "copy": lambda workspace: workspace.copy("large", "f", overwrite=True),
    "copy recursively": lambda workspace: workspace.copy("large", "f", overwrite=True, recursive=True),
}


@pytest.mark.parametrize("attempt", WRITES.values(), ids=WRITES)
def test_a_file_does_not_become_larger_than_its_ceiling(
    directory: Path, attempt: Callable[[Workspace], object]
) -> None:
    plant(directory, "f = 01234", "large = 0123456789!")
    before = snapshot(directory)
    error = refused(Limits(file_bytes=10), directory, attempt)
    assert (error.code, error.limit, error.asked) == ("limit.file_bytes", 10, 11)
    assert snapshot(directory) == before


def test_a_file_of_just_the_ceiling_is_fine(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(file_bytes=10, read_bytes=10)) as workspace:
        workspace.write("f", b"0123456789")
        workspace.write("g", b"01234")
        workspace.append("g", b"56789")
        workspace.copy("f", "h")
        workspace.write_chunks("i", [b"01234", b"56789"])
        assert {workspace.read(name) for name in "fghi"} == {b"0123456789"}


def test_a_read_does_not_return_more_than_its_ceiling(directory: Path) -> None:
    plant(directory, "f = 0123456789")
    limits = Limits(read_bytes=9)
    whole: Callable[[Workspace], object] = lambda workspace: workspace.read("f")  # noqa: E731  # one word each
    window: Callable[[Workspace], object] = lambda workspace: workspace.read("f", length=20)  # noqa: E731  # the same
    text: Callable[[Workspace], object] = lambda workspace: workspace.read_text("f")  # noqa: E731  # the same
    for attempt in (whole, window, text):
        error = refused(limits, directory, attempt)
        assert (error.code, error.limit, error.asked, error.path) == ("limit.read_bytes", 9, 10, "f")
    with Workspace.open(directory, limits=limits) as workspace:
        assert workspace.read("f", offset=1) == b"123456789"
        assert workspace.read("f", length=9) == b"012345678"
        assert b"".join(workspace.read_chunks("f")) == b"0123456789"


DEEP: dict[str, Callable[[Workspace], object]] = {
    "write": lambda workspace: workspace.write("1/2/3/4", b""),
    "write_chunks": lambda workspace: workspace.write_chunks("1/2/3/4", []),
    "append": lambda workspace: workspace.append("1/2/3/4", b""),
    "mkdir": lambda workspace: workspace.mkdir("1/2/3/4"),
    "extract": lambda workspace: workspace.extract(tar(file("3/4")), "1/2"),
    "move": lambda workspace: workspace.move("f", "1/2/3/4"),
    "copy": lambda workspace: workspace.copy("f", "1/2/3/4"),
    "copy recursively": lambda workspace: workspace.copy("f", "1/2/3/4", recursive=True),
}


@requirement("P-22")
@pytest.mark.parametrize("attempt", DEEP.values(), ids=DEEP)
def test_no_path_is_made_deeper_than_its_ceiling(
    directory: Path, attempt: Callable[[Workspace], object]
) -> None:
    plant(directory, "f")
    error = refused(Limits(depth=3), directory, attempt)
    assert (error.code, error.limit, error.asked, error.path) == ("limit.depth", 3, 4, "1/2/3/4")
    assert snapshot(directory) == {"f": b"in"}


@requirement("P-22")
def test_a_path_of_a_thousand_levels_is_a_clean_error(directory: Path) -> None:
    path = "/".join("d" * 1000)
    error = refused(Limits(), directory, lambda workspace: workspace.write(path, b""))
    assert (error.code, error.asked) == ("limit.depth", 1000)
    assert len(str(error)) < 300
    with Workspace.open(directory, limits=Limits(depth=None)) as workspace:
        workspace.write(path, b"deep")
        assert workspace.read(path) == b"deep"
        workspace.remove("d", recursive=True)
    assert snapshot(directory) == {}


def test_no_ceiling_means_none(directory: Path) -> None:
    plant(directory, "1/2/3/f = text")
    names = [field.name for field in dataclasses.fields(Limits)]
    with Workspace.open(directory, limits=Limits(**dict.fromkeys(names))) as workspace:
        workspace.write("1/2/3/g", b"x" * 1000)
        assert len(workspace.read("1/2/3/g")) == 1000
        assert len(list(workspace.walk())) == 5
        assert len(workspace.list("1/2/3")) == 2
        assert workspace.read_lines("1/2/3/f").text == "text"
        assert workspace.usage().entries == 5


def test_a_refused_limit_is_no_security_event_and_no_change(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(file_bytes=1)) as workspace:
        with pytest.raises(LimitError):
            workspace.write("f", b"long")
        assert list(workspace.changes()) == []
