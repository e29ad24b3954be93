"""Any JSON given to any tool gets an answer: no exception, no word about the host, no change when refused."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.config.table import SANDBOX
from carrel.testing import tree
from carrel.tools.core.spec import Tool, ToolEffect
from carrel.tools.core.table import TOOLS
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.depth import rounds
from tests.requirements import requirement
from tests.workspace.planting import snapshot

EVERY = [
    pytest.param(tool, id=f"{tool.profile}-{tool.name}") for each in TOOLS.values() for tool in each.values()
]
LAYOUT = (
    "a.txt = one\ntwo\nthree\n",
    'data.json = {"a": [1, 2.5, null]}',
    'odd.json = [1e999, "\\ud800"]',
    "conf.yaml = a: !!float ''\n",
    "large.txt = " + "0123456789\n" * 200,
    "d/b.txt = two",
    "d/deep/c.txt",
    ".hidden",
    "empty/",
    "link => d",
    "out => ../../..",
)
WORDS = (
    *("a.txt", "data.json", "odd.json", "conf.yaml", "image.png", "d", "d/b.txt", "link/b.txt", "out/etc"),
    *(
        "",
        ".",
        "..",
        "/",
        "~",
        "new",
        "new/newer",
        "/workspace",
        "/workspace/a.txt",
        "/etc/passwd",
        "a.txt/x",
    ),
    *(
        "x" * 300,
        "d/" * 2000,
        "a\0b",
        "\ud800",
        "\\",
        "C:\\a",
        "é",
        "a b\n",
        "-rf",
        "*",
        "**/*.txt",
        "[",
        "(",
    ),
    *(
        "{a,b}",
        "{" * 50,
        "{list}",
        "(a*)*$",
        "one",
        "two\n",
        "utf-8",
        "base64",
        "0",
        "7",
        "9" * 30,
        "5@x",
        "ab.0.0",
    ),
    *(
        "ls",
        "cat a.txt",
        "rm -r d",
        "echo $x > new",
        "cat < a.txt | sort",
        "mkdir -p e/f && cd e",
        "python -c 1",
    ),
)
ODD = st.text(st.characters(exclude_categories=()), max_size=20)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(10**400), 1e308, -0.0])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | ODD,
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | ODD, inside, max_size=4)
    ),
    max_leaves=8,
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that *schema* allows."""
    match schema["type"]:
        case "object":
            required = {name: fitting(schema["properties"][name]) for name in schema["required"]}
            optional = {
                name: st.none() | fitting(each)
                for name, each in schema["properties"].items()
                if name not in required
            }
            return st.fixed_dictionaries(required, optional=optional)
        case "array":
            least, most = schema.get("minItems", 0), schema.get("maxItems", 4)
            return st.lists(fitting(schema["items"]), min_size=least, max_size=min(most, least + 4))
        case "string":
            return st.sampled_from(schema["enum"]) if "enum" in schema else st.sampled_from(WORDS) | ODD
        case "integer":
            return st.integers(schema.get("minimum", -3), schema.get("maximum", 2**62))
        case "number":
            return st.floats(schema.get("minimum", -3), schema.get("maximum", 2**62))
    return st.booleans()


def nearly(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Objects with the names of *schema*, and anything at all in some of them."""
    given = {name: fitting(each) | ANYTHING for name, each in schema["properties"].items()}
    unknown = st.dictionaries(ODD, ANYTHING, max_size=1)
    return st.builds(
        lambda known, more: {**more, **known}, st.fixed_dictionaries({}, optional=given), unknown
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace that is as it was before every call."""

    directory: Path
    workspace: Workspace
    layout: dict[str, bytes | str | None]

    def restore(self) -> None:
        """Make it so."""
        for path in self.directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        _lay_out(self.directory)


def _lay_out(directory: Path) -> None:
    tree(directory, *LAYOUT)
    (directory / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(16))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("every-schema") / "ws"
    directory.mkdir()
    _lay_out(directory)
    with Workspace.open(directory) as workspace:
        yield Place(directory, workspace, snapshot(directory))


@pytest.fixture(scope="module", autouse=True)
def _without_guests() -> Iterator[None]:
    """Code is judged, but not run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(str(SANDBOX.variable), "false")
        yield


def _toolbox(place: Place, tool: Tool, role: str = "developer") -> Toolbox:
    return Toolbox(
        place.workspace, role, profile=tool.profile, answer_bytes=200, pipelines=True, shell_timeout_seconds=1
    )


def _require_sound(place: Place, tool: Tool, answer: ToolResult) -> None:
    """Check what holds for every result."""
    assert isinstance(answer, ToolResult)
    document = json.loads(answer.to_json())
    assert document["success"] is answer.success
    assert answer.text().encode() is not None
    assert answer.success == (answer.error is None) == (answer.code is None)
    assert answer.code != "tool.failed"
    assert str(place.directory.parent) not in answer.to_json()
    is_changed = snapshot(place.directory) != place.layout
    if is_changed:
        place.restore()
        assert "changes" in answer.metadata, "it was changed, and nobody told"
        assert tool.effect is not ToolEffect.READ
        assert answer.success or tool.effect is ToolEffect.RUN, "refused, and yet something was changed"


NESTED: Any = "a.txt"
for _ in range(5000):
    NESTED = [NESTED]


@pytest.mark.deeper
@settings(max_examples=rounds(50, 3))
@given(data=st.data())
@pytest.mark.parametrize("tool", EVERY)
def test_what_fits_the_schema_gets_an_answer(tool: Tool, data: st.DataObject, place: Place) -> None:
    arguments = data.draw(fitting(tool.load().parameters.schema()))
    with _toolbox(place, tool) as toolbox:
        answer = toolbox.call(tool.name, arguments)
    _require_sound(place, tool, answer)


@pytest.mark.deeper
@settings(max_examples=rounds(30, 3))
@given(data=st.data())
@pytest.mark.parametrize("tool", EVERY)
def test_any_json_gets_an_answer(tool: Tool, data: st.DataObject, place: Place) -> None:
    arguments = data.draw(nearly(tool.load().parameters.schema()) | ANYTHING)
    with _toolbox(place, tool) as toolbox:
        answer = toolbox.call(tool.name, arguments)
    _require_sound(place, tool, answer)


@pytest.mark.deeper
@requirement("AP-22")
@settings(max_examples=rounds(20, 3))
@given(data=st.data())
@pytest.mark.parametrize("tool", EVERY)
def test_a_role_that_may_not_write_changes_nothing(tool: Tool, data: st.DataObject, place: Place) -> None:
    arguments = data.draw(fitting(tool.load().parameters.schema()))
    with _toolbox(place, tool, "critic") as toolbox:
        answer = toolbox.call(tool.name, arguments)
        assert tool.name in toolbox.names or answer.code == "tool.unknown"
    is_changed = snapshot(place.directory) != place.layout
    _require_sound(place, tool, answer)
    assert not is_changed


@settings(max_examples=5)
@given(data=st.data())
@pytest.mark.parametrize("tool", EVERY)
def test_the_same_holds_for_an_awaited_call(tool: Tool, data: st.DataObject, place: Place) -> None:
    schema = tool.load().parameters.schema()
    arguments = data.draw(fitting(schema) | nearly(schema))
    with _toolbox(place, tool) as toolbox:
        answer = asyncio.run(toolbox.acall(tool.name, arguments))
    _require_sound(place, tool, answer)


@pytest.mark.parametrize("tool", EVERY)
def test_what_is_deep_or_wide_gets_an_answer(tool: Tool, place: Place) -> None:
    names = list(tool.load().parameters.schema()["properties"])
    wide = {f"x{number}": number for number in range(10_000)}
    with _toolbox(place, tool) as toolbox:
        for value in (NESTED, {"a": NESTED}, "x" * 10**6, ["a.txt"] * 10_000, wide):
            for arguments in (value, dict.fromkeys(names, value)):
                answer = toolbox.call(tool.name, arguments)
                _require_sound(place, tool, answer)
                assert len(answer.to_json()) < 2**16
