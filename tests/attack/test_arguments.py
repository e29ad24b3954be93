"""What callers hand over instead of a plain `str` (E12 to E14)."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from carrel.errors import PathError
from carrel.workspace.workspace import Workspace
from tests.attack.operations import EVERY, Operation, prepare
from tests.attack.privilege import acting_as
from tests.attack.world import RESOLVERS, MakeWorld, Variant

pytestmark = pytest.mark.attack

BENEATH = {name for name in EVERY if name.endswith("beneath")}
"""They make a text of the path themselves."""
PATTERNS = ("glob", "list_files", "search what it includes")
BY_PATH = {name: operation for name, operation in EVERY.items() if name not in (*BENEATH, *PATTERNS)}
WITH_TEXT: dict[str, Operation] = {
    "write of text": lambda workspace, path: workspace.write(path, "text"),
    "write of base64": lambda workspace, path: workspace.write(path, "aW4=", encoding="base64"),
    "append of text": lambda workspace, path: workspace.append(path, "text"),
    "write of text that cannot be encoded": lambda workspace, path: workspace.write(
        path, "é", encoding="ascii"
    ),
    "read_text that cannot be decoded": lambda workspace, path: workspace.read_text(path, encoding="rot13"),
}


class Fickle:
    """Answers with a harmless path once, and with another ever after."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __fspath__(self) -> str:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]

    def __str__(self) -> str:
        return "anything"


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", BY_PATH | WITH_TEXT)
def test_a_path_object_is_asked_once(name: str, variant: Variant, world: MakeWorld) -> None:
    """E12."""
    operation = (BY_PATH | WITH_TEXT)[name]
    with world("f; d/f", variant) as here:
        with acting_as(variant.user):
            prepare(here.workspace)
        for harmless in ("f", "d", "new"):
            fickle = Fickle(harmless, "../secret")
            here.try_path(operation, fickle, "anything")
            assert fickle.asked == 1, f"{name} asked {fickle.asked} times"


def _bad_arguments() -> list[object]:
    return [
        b"f",
        bytearray(b"f"),
        memoryview(b"f"),
        0,
        3,
        True,
        -1,
        1.0,
        None,
        ["f"],
        ("f",),
        {"f"},
        object(),
        str,
    ]


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", BY_PATH | {name: EVERY[name] for name in PATTERNS})
def test_what_is_no_path_is_a_type_error(name: str, variant: Variant, world: MakeWorld) -> None:
    """E13: an int, above all, would be taken for a descriptor."""
    operation = EVERY[name]
    with world("f; d/f", variant) as here:
        for argument in _bad_arguments():
            if argument is None and name in ("list_files", "search what it includes"):
                continue  # no pattern at all
            if isinstance(argument, list | tuple | set) and name == "search what it includes":
                continue  # several patterns
            outcome = here.try_path(operation, argument)
            assert isinstance(outcome.error, TypeError), f"{name}({argument!r}): {outcome}"
        assert here.contents() == here.expected("f; d/f")


class Bytes:
    """A path object that gives bytes."""

    def __fspath__(self) -> bytes:
        return b"f"


@pytest.mark.parametrize("name", BY_PATH)
def test_a_path_object_that_gives_bytes_is_a_type_error(name: str, world: MakeWorld) -> None:
    """E13."""
    operation = BY_PATH[name]
    with world("f", RESOLVERS[0]) as here:
        assert isinstance(here.try_path(operation, Bytes()).error, TypeError)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", [name for name in BY_PATH if not name.startswith("explain")])
def test_a_path_object_is_held_to_the_rule_of_paths(name: str, variant: Variant, world: MakeWorld) -> None:
    """E13."""
    operation = BY_PATH[name]
    with world("f", variant) as here:
        with acting_as(variant.user):
            prepare(here.workspace)
        for path in (Path("/etc/passwd"), PurePosixPath("../secret"), here.out / "secret", Path("../x")):
            outcome = here.try_path(operation, path, str(path))
            assert isinstance(outcome.error, PathError), f"{name}({path}): {outcome}"


class Liar(str):
    """Is one path, and shows another to everyone who asks."""

    def split(self, *_: object, **__: object) -> list[str]:
        return ["f"]

    def replace(self, *_: object) -> str:
        return "f"

    def encode(self, *_: object) -> bytes:
        return b"f"

    def startswith(self, *_: object) -> bool:
        return False

    def partition(self, *_: object) -> tuple[str, str, str]:
        return "f", "", ""

    def __getitem__(self, _: object) -> str:
        return "f"

    def __iter__(self) -> Any:  # Any: it lies
        return iter("f")

    def __contains__(self, _: object) -> bool:
        return False

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "f"

    def __format__(self, _: str) -> str:
        return "f"

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("f")


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", [name for name in BY_PATH if not name.startswith("explain")])
def test_a_text_that_lies_about_itself_is_judged_by_its_characters(
    name: str, variant: Variant, world: MakeWorld
) -> None:
    """E14."""
    operation = BY_PATH[name]
    with world("f", variant) as here:
        with acting_as(variant.user):
            prepare(here.workspace)
            here.workspace.read("f")  # whatever is remembered of a path, it is remembered now
        for text in ("../secret", "/etc/passwd", str(here.out / "secret"), "../../outside/secret"):
            outcome = here.try_path(operation, Liar(text), text)
            assert isinstance(outcome.error, PathError), f"{name}({text}): {outcome}"


def test_a_text_that_lies_still_names_its_file(world: MakeWorld) -> None:
    """E14."""
    with world("g = honest; f", RESOLVERS[0]) as here:
        assert here.try_path(Workspace.read, Liar("g")).value == b"honest"


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "../outside/*"])
def test_a_pattern_that_lies_matches_nothing_outside(pattern: str, world: MakeWorld) -> None:
    """E14."""
    with world("f; l => ..", RESOLVERS[0]) as here:
        for operation in (Workspace.glob, Workspace.list_files):
            outcome = here.try_path(operation, Liar(pattern), pattern)
            assert outcome.error is not None or outcome.value in ([], ["f"])
