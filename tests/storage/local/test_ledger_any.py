"""Any changes in any order: ledger, directory and journal tell the same, and the ceilings hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.errors import CarrelError
from carrel.policy.rules import Access
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.faults.inject import in_memory
from tests.race.arena import quiet
from tests.storage.ledgers import count, page, require_agreement
from tests.workspace.archives import file, tar

LIMITS = Limits(disk_bytes=100, entries=8)

FILES = st.sampled_from(["f", "g", "a/f", "a/g", "a/b/f", "c/f"])
TREES = st.sampled_from(["a", "a/b", "c"])


class Step(NamedTuple):
    """One change that is tried."""

    name: str
    act: Callable[[Workspace], object]

    def __repr__(self) -> str:
        return self.name


def step(
    name: str, act: Callable[..., object], *values: st.SearchStrategy[object]
) -> st.SearchStrategy[Step]:
    """Steps that call *act* with the workspace and one of each of *values*."""

    def bound(arguments: tuple[object, ...]) -> Step:
        return Step(f"{name}{arguments}", lambda workspace: act(workspace, *arguments))

    return st.tuples(*values).map(bound)


def make_link(workspace: Workspace, path: str, target: str) -> None:
    files, where = workspace.gate.permit(Access.WRITE, path)
    files.link(where, target)


def content(size: int) -> bytes:
    return b"n" * size


SIZES = st.sampled_from([0, 1, 30, 60, 101]).map(content)
FLAGS = st.booleans()
STEPS = st.one_of(
    step("write", lambda w, path, data, over: w.write(path, data, overwrite=over), FILES, SIZES, FLAGS),
    step("chunks", lambda w, path, data: w.write_chunks(path, [data, data]), FILES, SIZES),
    step("append", lambda w, path, data: w.append(path, data), FILES, SIZES),
    step("edit", lambda w, path: w.edit(path, "n", "mm", replace_all=True), FILES),
    step("mkdir", lambda w, path: w.mkdir(path), TREES),
    step("link", make_link, FILES, st.sampled_from(["f", "g"])),
    step("remove", lambda w, path, all_: w.remove(path, recursive=all_), FILES | TREES, FLAGS),
    step("move", lambda w, path, to, over: w.move(path, to, overwrite=over), FILES, FILES, FLAGS),
    step("move tree", lambda w, path, to, over: w.move(path, to, overwrite=over), TREES, TREES, FLAGS),
    step("copy", lambda w, path, to, over: w.copy(path, to, overwrite=over), FILES, FILES, FLAGS),
    step(
        "copy tree",
        lambda w, path, to, over: w.copy(path, to, overwrite=over, recursive=True),
        *(TREES, TREES, FLAGS),
    ),
    step(
        "extract",
        lambda w, path, data, over: w.extract(tar(file("f", data), file("b/f")), path, overwrite=over),
        *(TREES, SIZES, FLAGS),
    ),
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_after_any_changes_the_books_agree(steps: list[Step], in_two: bool) -> None:
    with (
        in_memory() as place,
        WorkspaceManager(place / "sessions", limits=LIMITS, logger=quiet()) as sessions,
        sessions.create("one") as workspace,
        sessions.open("one") as other,
    ):
        for number, one in enumerate(steps):
            with suppress(CarrelError):
                one.act(other if in_two and number % 2 else workspace)
            found = workspace.usage()
            assert found == count(sessions.root / "one") == other.usage()
            assert found.disk_bytes <= 100
            assert found.entries <= 8
        assert page(sessions, "one").recounts == 0
        require_agreement(sessions, workspace)
