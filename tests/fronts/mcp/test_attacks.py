"""Every tool with every path that leads out, as a client names it: nothing outside is touched or told."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from carrel.sessions.manager import WorkspaceManager
from carrel.tools.core.spec import Profile
from tests.attack.operations import MINE, MINE_DIRECTORY
from tests.attack.tool_operations import CALLS
from tests.fronts.mcp.conftest import Near

pytestmark = pytest.mark.attack

SECRET = "content that nobody may see"
PATHS = (
    "../s2/secret",
    "../../secret",
    "out/secret",
    "out/sessions/s2/secret",
    "there",
    "host",
    "{base}/secret",
    "/workspace/../../secret",
    "/etc/passwd",
    "/proc/self/environ",
    "..%2f..%2fsecret",
    "%2e%2e/s2/secret",
    "..\\..\\secret",
    "../.carrel/registry.db",
    "secret\0",
)


@pytest.mark.parametrize("profile", list(Profile))
def test_no_tool_reaches_out_of_the_session(profile: Profile, near: Near, tmp_path: Path) -> None:
    place = tmp_path / "sessions"
    with WorkspaceManager(place) as manager, manager.create("s2") as other:
        other.write("secret", SECRET)
        manager.create("s1").close()
    (tmp_path / "secret").write_text(SECRET)
    talk = near(role="developer", session="s1", profiles=(profile,))
    for call in (call for call in CALLS if call.profile is profile and call.name != "python_executor"):
        for path in PATHS:
            asked = path.replace("{base}", str(tmp_path))
            _prepare(place / "s1", tmp_path)
            arguments = {
                name: _filled(value, shlex.quote(asked) if name == "command" else asked)
                for name, value in call.arguments.items()
            }
            answer = talk.call(call.name, **arguments)
            # What was asked may be repeated, and what a link says may be told.
            told = answer.model_dump_json().replace(str(tmp_path / "secret"), "")
            assert SECRET not in told, f"{call} with {asked!r}"
            assert str(tmp_path) not in told, f"{call} with {asked!r}: {told}"
            assert "root:" not in told
    assert (tmp_path / "secret").read_text() == (place / "s2" / "secret").read_text() == SECRET
    assert {each.name for each in tmp_path.iterdir()} == {"sessions", "secret"}
    assert {each.name for each in place.iterdir()} == {"s1", "s2", ".carrel"}


def _prepare(mine: Path, base: Path) -> None:
    """Put back what a call may have taken away."""
    for name, target in (("out", "../.."), ("there", "../s2/secret"), ("host", str(base / "secret"))):
        link = mine / name
        if not link.is_symlink():
            if link.exists():
                link.rename(mine / f"was-{name}-{len(list(mine.iterdir()))}")
            link.symlink_to(target)
    (mine / MINE_DIRECTORY).mkdir(exist_ok=True, parents=True)
    if not (mine / MINE).exists():
        (mine / MINE).write_text("mine")


def _filled(value: Any, path: str) -> Any:  # Any: whatever JSON can say
    if isinstance(value, str):
        return value.replace("{}", path)
    if isinstance(value, list):
        return [_filled(each, path) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, path) for name, each in value.items()}
    return value
