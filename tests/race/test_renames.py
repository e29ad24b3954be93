"""Renames that come while a path with `..` is resolved."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from carrel.errors import BusyError, CarrelError, EscapeError, MissingError, NotDirectoryError
from carrel.fs import syscalls
from carrel.fs.local import resolve as resolve_module
from carrel.workspace.workspace import Workspace
from tests.depth import rounds
from tests.race.arena import Arena, attack, quiet
from tests.race.fight import passes
from tests.race.swapper import Trap
from tests.requirements import requirement

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.deeper]

ROUNDS = rounds(20_000)
SWAPS = 1000
LEVELS = 12


@requirement("P-21")
@pytest.mark.parametrize("confinement", ["kernel", "walk"])
def test_a_directory_renamed_away_meanwhile_never_shows_the_file_above(place: Path, confinement: str) -> None:
    """Go down `a/a/a...` and up again, while the second `a` moves to the top and back.

    Whoever answers `..` by asking the directory for its parent comes out one level too high.
    """
    (place / "f").write_bytes(b"secret")
    base = place / "base"
    (base / "/".join("a" * LEVELS)).mkdir(parents=True)
    (base / "a" / "f").write_bytes(b"public")
    path = "/".join(["a"] * LEVELS + [".."] * (LEVELS - 1) + ["f"])
    outcomes: Counter[str] = Counter()
    # Exchanged with an empty directory, `a/a` is at one time the chain and at another nothing to go through.
    (base / "b").mkdir()
    trap = Trap(os.fsencode(base / "a/a"), os.fsencode(base / "b"), b"", honest_file=False)
    with (
        Workspace.open(base, confinement=confinement, logger=quiet()) as workspace,
        attack(place, [trap]) as attacker,
    ):
        for _ in passes(lambda: range(ROUNDS), lambda: attacker.swaps > SWAPS and outcomes["ok"] > 0):
            try:
                content = workspace.read(path)
            except (EscapeError, MissingError, NotDirectoryError, BusyError) as error:
                outcomes[error.code] += 1
            else:
                assert content == b"public"
                outcomes["ok"] += 1
        print(confinement, f"{attacker.swaps} swaps", dict(outcomes))


def test_the_kernel_is_asked_again_a_bounded_number_of_times(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`openat2` answers EAGAIN when a rename comes while it resolves `..`; that ends, and soon."""
    arena = Arena(place, "kernel")
    asked = 0
    really = syscalls.openat2_unchecked

    def counted(base: int, path: bytes, flags: int, resolve: int) -> int:
        nonlocal asked
        asked += 1
        return really(base, path, flags, resolve)

    monkeypatch.setattr(syscalls, "openat2_unchecked", counted)
    retries: list[int] = []
    with attack(place, arena.traps().values()):
        for _ in passes(lambda: range(ROUNDS), lambda: max(retries) > 0):
            asked = 0
            try:
                arena.workspace.read("m/../d/../m/../tree/../d/f")
            except CarrelError as error:
                if not isinstance(error, EscapeError | BusyError):
                    raise
            retries.append(asked - 1)
    arena.require_untouched()
    arena.close()
    retries.sort()
    shown = {percent: retries[int(len(retries) * percent / 100) - 1] for percent in (50, 90, 99, 99.9, 100)}
    print("retries by percentile:", shown)
    assert retries[-1] < resolve_module.RETRIES
