"""Every path of the table with every tool: nothing outside is touched or told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from carrel.errors import CarrelError
from carrel.tools.core.spec import Tool
from carrel.tools.core.table import TOOLS
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.attack.operations import prepare
from tests.attack.privilege import acting_as
from tests.attack.special import SPECIAL
from tests.attack.test_every_operation import PARAMETERS, SHALLOW, SUFFIXES, in_turn
from tests.attack.tool_operations import CALLS, OTHERS, PATHS, PATTERNS, Call, Tools, told
from tests.attack.world import HOST_TEXTS, MARKER, RESOLVERS, MakeWorld, World, split
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]

EVERY = [
    pytest.param(tool, id=f"{tool.profile}-{tool.name}") for each in TOOLS.values() for tool in each.values()
]
REFUSALS = frozenset({"path.escape", "path.absolute", "path.invalid", "access.outside"})
"""What the gate says of a path that is not in the workspace, whatever the operation."""


@requirement("AP-21")
@pytest.mark.parametrize("place", PARAMETERS)
def test_no_tool_reaches_out(place: tuple[str, str], world: MakeWorld) -> None:
    """Each place with one of the two resolvers; with both it is asked of every operation of the gate."""
    layout, path = place
    with world(layout, RESOLVERS[len(layout + path) % 2]) as here:
        _try_all(here, path, in_turn(CALLS, layout, path))


@pytest.mark.thorough
@requirement("AP-21")
@pytest.mark.parametrize("place", SHALLOW)
def test_no_tool_reaches_out_by_a_slash_more(place: tuple[str, str], world: MakeWorld) -> None:
    layout, path = place
    with world(layout, RESOLVERS[len(layout) % 2]) as here:
        _try_all(here, path + SUFFIXES[len(path) % len(SUFFIXES)], in_turn(CALLS, layout, path))


@requirement("AP-21")
@pytest.mark.parametrize("tool", EVERY)
def test_every_argument_that_may_be_a_path_is_tried(tool: Tool) -> None:
    names = set(tool.load().parameters.schema()["properties"])
    assert names <= PATHS | PATTERNS | OTHERS, "say of every argument whether it is a path"
    tried = {
        name
        for call in CALLS
        if (call.profile, call.name) == (tool.profile, tool.name)
        for name, value in call.arguments.items()
        if "{}" in str(value)
    }
    # What `command` means is one of a few words for the editor.
    is_choice = "enum" in tool.load().parameters.schema()["properties"].get("command", {})
    assert names & (PATHS | PATTERNS) - ({"command"} if is_choice else set()) == tried


def _try_all(here: World, path: str, calls: Sequence[Call]) -> None:
    """Make each call for *path*; what changes the workspace is followed by a fresh one."""
    _prepare(here)
    before = here.contents()
    asked = here.fill(path)
    with acting_as(here.variant.user):
        tools = Tools(here.workspace)
        is_refused = _refuses(here.workspace, asked)
    for call in calls:
        try:
            outcome = here.attempt(lambda _, call=call: tools.run(call, asked), asked)  # type: ignore[misc]
            assert isinstance(outcome.value, ToolResult), f"no answer: {outcome}"
            _require_silence(here, outcome.value, asked)
            assert not (is_refused and call.is_direct and outcome.value.success), "not refused"
        except (AssertionError, pytest.fail.Exception) as error:
            error.add_note(f"{call} with {asked[:80]!r}")
            raise
        if call.is_changing and here.contents() != before:
            here.start_over()
            _prepare(here)


def _refuses(workspace: Workspace, path: str) -> bool:
    """Whether *path* itself, be it a link or not, is not in the workspace; without one, tools take that."""
    try:
        workspace.stat(path, follow_symlinks=False)
    except CarrelError as error:
        return path != "" and error.code in REFUSALS
    return False


def _require_silence(here: World, answer: ToolResult, asked: str) -> None:
    """Fail if the answer tells anything of the host, but for what was asked and what links say."""
    assert answer.code != "tool.failed"
    hidden = (str(here.base), "/proc/self", MARKER, *(text.decode() for text in HOST_TEXTS))
    links = [here.fill(line.partition(" => ")[2]) for line in split(here.layout)]
    if here.layout in SPECIAL:
        links.append(str(here.out))
    # What was asked may be repeated, also cut.
    said = (asked, repr(asked)[1:-1], asked[:80], asked[:40], *links)
    known = [words for words in said if any(each in words for each in hidden)]
    for text in told(answer.to_dict()):
        rest = text
        for words in known:
            rest = rest.replace(words, "")
        assert not any(secret in rest for secret in hidden), f"tells too much: {text}"


def _prepare(here: World) -> None:
    with acting_as(here.variant.user):
        prepare(here.workspace)
