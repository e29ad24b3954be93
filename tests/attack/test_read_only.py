"""Rules that say read-only, and everything that might get around them (E15 to E18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.errors import AccessError, CarrelError
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.testing import tree
from carrel.workspace.workspace import Workspace
from tests.attack.guards import in_time
from tests.attack.operations import CHANGING, READING
from tests.attack.world import look
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.parametrize("resolver", ["kernel", "walk"])]

RO = AccessMode.READ_ONLY
RW = AccessMode.READ_WRITE
PATHS = ["f", "./f", "d/../f", "d", "d/", "d/g", "new", "d/new/newer", "l", "inside", "/workspace/f", "empty"]


def _open(root: Path, resolver: str, mode: AccessMode, *rules: PathRule) -> Workspace:
    policy = SandboxPolicy.for_workspace(root, mode, rules)
    return Workspace.open(root, policy=policy, confinement=resolver)


@pytest.fixture
def ws(place: Path) -> Path:
    """A workspace in which every operation has something to work on."""
    return tree(
        place / "ws",
        "f",
        "d/g",
        "empty/",
        "l => /etc/passwd",
        "inside => f",
        "mine",
        "mine-directory/below/f",
    )


@requirement("AP-09", "AP-16")
@pytest.mark.parametrize("name", CHANGING)
def test_a_read_only_workspace_refuses_every_change(name: str, resolver: str, ws: Path) -> None:
    """E15."""
    before = look(ws)
    with _open(ws, resolver, RO) as workspace:
        for path in PATHS:
            with in_time(), pytest.raises(AccessError, match="read-only workspace"):
                CHANGING[name](workspace, path)
            assert look(ws) == before, f"{name} of {path} changed something"


@pytest.mark.parametrize("name", READING)
def test_reading_changes_nothing(name: str, resolver: str, ws: Path) -> None:
    """E16: no reading operation truncates, or makes what it does not find."""
    before = look(ws)
    with _open(ws, resolver, RW) as workspace:
        for path in PATHS:
            try:
                READING[name](workspace, path)
            except CarrelError:
                continue
    assert look(ws) == before


@pytest.mark.parametrize("option", ["truncate", "mode", "flags", "create", "append", "overwrite", "opener"])
def test_reading_takes_no_option_that_would_change_the_file(option: str, resolver: str, ws: Path) -> None:
    """E16."""
    before = look(ws)
    with _open(ws, resolver, RO) as workspace:
        reads: list[Callable[..., object]] = [workspace.read, workspace.read_text, workspace.read_lines]
        for read in (*reads, workspace.read_chunks):
            with pytest.raises(TypeError):
                read("f", **{option: True})
    assert look(ws) == before


@requirement("AP-11", "AP-16")
@pytest.mark.parametrize(("here", "there"), [(RW, RO), (RO, RW), (RO, RO)], ids=["out", "in", "neither"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_moves_between_a_read_only_rule_and_another(
    here: AccessMode, there: AccessMode, overwrite: bool, resolver: str, ws: Path
) -> None:
    """E17: a move changes both ends, so both have to be writable."""
    other = tree(ws.parent / "other", "f", "d/g", "g")
    before = look(ws.parent)
    with _open(ws, resolver, here, PathRule(str(other), there)) as workspace:
        for name in ("f", "d", "d/g"):
            for source, target in (
                (name, f"{other}/new"),
                (name, f"{other}/g"),
                (f"{other}/{name}", "new"),
                (f"{other}/{name}", "mine"),
            ):
                with pytest.raises(AccessError):
                    workspace.move(source, target, overwrite=overwrite)
    assert look(ws.parent) == before


@requirement("AP-11")
@pytest.mark.parametrize("recursive", [False, True])
def test_a_copy_reads_one_end_and_writes_the_other(recursive: bool, resolver: str, ws: Path) -> None:
    """E17."""
    other = tree(ws.parent / "other", "f = theirs")
    before = look(other)
    with _open(ws, resolver, RW, PathRule(str(other), RO)) as workspace:
        workspace.copy(f"{other}/f", "copied", recursive=recursive)
        assert workspace.read("copied") == b"theirs"
        for overwrite in (False, True):
            with pytest.raises(AccessError, match="read-only path"):
                workspace.copy("f", f"{other}/f", overwrite=overwrite, recursive=recursive)
            with pytest.raises(AccessError, match="read-only path"):
                workspace.copy("d", f"{other}/new", overwrite=overwrite, recursive=True)
    assert look(other) == before


@requirement("AP-11", "AP-16")
@pytest.mark.parametrize("name", [name for name in CHANGING if name not in ("copy away", "copy all away")])
def test_a_path_that_is_allowed_read_only_refuses_every_change(name: str, resolver: str, ws: Path) -> None:
    """E15, E18: replacing a file by a rename is a change, too."""
    other = tree(ws.parent / "other", "f", "d/g", "l => f", "empty/")
    before = look(other)
    with _open(ws, resolver, RW, PathRule(str(other), RO)) as workspace:
        for path in ("f", "d", "d/g", "new", "l", "empty", "d/new/newer", "./f", "d/../f", ".", ""):
            with in_time(), pytest.raises(AccessError, match="read-only path"):
                CHANGING[name](workspace, f"{other}/{path}")
            assert look(other) == before, f"{name} of {path!r} changed something"


class Nested:
    """Rules that lie in one another: the workspace, `x/sub` read-only, then all of `x` read-write."""

    def __init__(self, place: Path) -> None:
        self.x = tree(
            place / "x",
            "sub/f",
            "sub/d/g",
            "a/h",
            "to-sub => sub",
            "to-f => sub/f",
            "to-new => sub/new",
            "by-a => a/../sub",
            "chain => to-sub",
            "up => a/..",
            "f",
            "mine",
        )
        self.sub = self.x / "sub"
        self.rules = (PathRule(str(self.sub), RO), PathRule(str(self.x), RW))
        self.before = look(self.sub)

    def ways_in(self) -> Iterator[str]:
        """Every spelling of something in `x/sub` that begins in `x`."""
        for way in (
            "sub",
            "./sub",
            "sub/.",
            "sub/",
            "a/../sub",
            "a/.././sub",
            "to-sub",
            "to-sub/",
            "to-sub/.",
            "by-a",
            "chain",
            "up/sub",
            "up/up/to-sub",
            "sub/../sub",
            "to-sub/../sub",
        ):
            for rest in ("/f", "/d", "/d/g", "/new", "/new/newer", "/d/../f"):
                yield f"{self.x}/{way}{rest}"
        yield f"{self.x}/to-f"
        yield f"{self.x}/to-new"

    def require_untouched(self, what: str) -> None:
        assert look(self.sub) == self.before, f"{what} changed something beneath the read-only rule"


@pytest.fixture
def nested(place: Path) -> Nested:
    return Nested(place)


def _is_about_the_link_itself(name: str, path: str) -> bool:
    """Whether the operation acts on the link `to-f` or `to-new` of `x`, which may be written."""
    return path.endswith(("to-f", "to-new")) and name.startswith(("remove", "move"))


@requirement("AP-15")
@pytest.mark.parametrize("name", CHANGING)
def test_a_later_rule_opens_no_way_into_an_earlier_read_only_one(
    name: str, resolver: str, ws: Path, nested: Nested
) -> None:
    """E17: neither by name, nor through `..`, nor through a link."""
    with _open(ws, resolver, RW, *nested.rules) as workspace:
        workspace.write(f"{nested.x}/beside", b"new")
        for path in nested.ways_in():
            if _is_about_the_link_itself(name, path):
                continue
            with in_time():
                try:
                    CHANGING[name](workspace, path)
                    allowed = True
                except CarrelError:
                    allowed = False
            nested.require_untouched(f"{name} of {path}")
            assert not allowed or "away" in name or name == "remove by force", f"{name} of {path} was allowed"


@pytest.mark.parametrize("way", ["sub", "sub/", "./sub", "a/../sub", "up/sub", "sub/../sub", "to-sub/../sub"])
@pytest.mark.parametrize(
    "name",
    [
        "remove",
        "remove with content",
        "move away",
        "move a directory over it",
        "move a file over it",
        "mkdir",
    ],
)
def test_the_directory_of_an_earlier_rule_cannot_be_taken_away_through_a_later_one(
    name: str, way: str, resolver: str, ws: Path, nested: Nested
) -> None:
    """E17."""
    with _open(ws, resolver, RW, *nested.rules) as workspace:
        with pytest.raises(CarrelError):
            CHANGING[name](workspace, f"{nested.x}/{way}")
        with pytest.raises(CarrelError):
            workspace.move(f"{nested.x}/{way}", f"{nested.x}/elsewhere")
        assert workspace.read(f"{nested.sub}/f") == b"in"
    nested.require_untouched(name)


@pytest.mark.parametrize("depth", [1, 2, 50])
def test_what_holds_the_directory_of_an_earlier_rule_cannot_be_taken_away_either(
    depth: int, resolver: str, ws: Path
) -> None:
    """E17: or the next one to open the rules would find another directory there, or none."""
    x = ws.parent / "x"
    way = "/".join(["n"] * depth)
    sub = tree(x / way / "sub", "f")
    rules = (PathRule(str(sub), RO), PathRule(str(x), RW))
    before = look(sub)
    with _open(ws, resolver, RW, *rules) as workspace:
        workspace.write(f"{x}/n/beside", b"new")
        attempts: list[Callable[[], None]] = [
            lambda: workspace.remove(f"{x}/n", recursive=True),
            lambda: workspace.move(f"{x}/n", f"{x}/elsewhere"),
            lambda: workspace.move(f"{x}/n", "taken"),
            lambda: workspace.move("d", f"{x}/n", overwrite=True),
        ]
        for attempt in attempts:
            with pytest.raises(CarrelError):
                attempt()
            assert sub.is_dir(), "it is gone"
            assert look(sub) == before


@pytest.mark.parametrize("way", ["sub", "a/../sub", "to-sub", "by-a", "up/sub"])
def test_a_read_only_rule_holds_for_a_directory_that_does_not_exist_yet(
    way: str, resolver: str, ws: Path
) -> None:
    """E17."""
    x = tree(ws.parent / "x", "a/", "to-sub => sub", "by-a => a/../sub", "up => a/..", "mine")
    rules = (PathRule(str(x / "sub"), RO), PathRule(str(x), RW))
    with _open(ws, resolver, RW, *rules) as workspace:
        workspace.write(f"{x}/beside", b"new")
        path = f"{x}/{way}"
        attempts: list[Callable[[], object]] = [
            lambda: workspace.write(f"{path}/new", b"new"),
            lambda: workspace.mkdir(f"{path}/new"),
            lambda: workspace.mkdir(path),
            lambda: workspace.write(path, b"new"),
            lambda: workspace.copy("f", f"{path}/new"),
            lambda: workspace.copy("d", f"{path}/new", recursive=True),
        ]
        for attempt in attempts:
            with pytest.raises(CarrelError):
                attempt()
            assert not (x / "sub").exists(), "it was made through the later rule"


def test_the_workspace_is_not_written_through_a_rule_around_it(resolver: str, place: Path) -> None:
    """E17: the first rule is the workspace's own, be it read-only, wherever it lies."""
    x = tree(place / "x", "ws/f", "a/", "to-ws => ws")
    before = look(x / "ws")
    with _open(x / "ws", resolver, RO, PathRule(str(x), RW)) as workspace:
        for way in ("ws", "a/../ws", "to-ws", "./ws", "ws/../ws"):
            for name, operation in CHANGING.items():
                with pytest.raises(CarrelError):
                    operation(workspace, f"{x}/{way}/f")
                assert look(x / "ws") == before, f"{name} of {way}/f changed the workspace"


@requirement("AP-15")
def test_an_earlier_read_only_rule_is_not_widened_by_a_later_one_inside_it(resolver: str, ws: Path) -> None:
    """E17: the first match wins, though the second is closer."""
    x = tree(ws.parent / "x", "sub/f")
    before = look(x)
    with _open(ws, resolver, RW, PathRule(str(x), RO), PathRule(str(x / "sub"), RW)) as workspace:
        for operation in CHANGING.values():
            for path in (f"{x}/sub/f", f"{x}/sub/new"):
                try:
                    operation(workspace, path)
                except CarrelError:
                    continue
    assert look(x) == before
