"""Operations on files in a container while a program in it swaps directories and files for links.

The program is the attacker of the other races, run by the Python of the image on the same names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.containers.stream import ExecStream
from tests.containers.worlds import ContainerArena
from tests.depth import rounds
from tests.race import swapper
from tests.race.fight import fight
from tests.race.operations import OPERATIONS, Operation
from tests.race.swapper import Trap

pytestmark = [pytest.mark.race]

ROUNDS = rounds(400, 10)
OTHER_ROUNDS = rounds(200, 10)
SWAPS = rounds(100)
"""An attack with fewer exchanges than this proves nothing."""
PACE = "20"
"""How much longer a state lasts than in the races on the host, where an operation takes microseconds."""
CHANGING = (
    "write",
    "write_without_overwriting",
    "append",
    "remove_recursive",
    "copy_to",
    "move_to",
    "mkdir",
    "read",
    "walk",
)
DEADLINE_SECONDS = 30


@pytest.mark.parametrize(
    "operation",
    [row for row in OPERATIONS if row.name in CHANGING],
    ids=lambda operation: operation.name,
)
def test_a_program_in_the_container_never_leads_an_operation_outside(operation: Operation) -> None:
    arena = ContainerArena("debian")
    with swapping(arena, operation) as counter:
        fight(
            arena,
            operation,
            (ROUNDS, OTHER_ROUNDS),
            lambda: int.from_bytes(counter.read_bytes()[:8], "little"),
            SWAPS,
        )
    arena.require_untouched()
    arena.close()


@contextmanager
def swapping(arena: ContainerArena, operation: Operation) -> Iterator[Path]:
    """Let a program in the container swap the traps for the time of the block; gives where it counts."""
    counter = arena.top / "counter"
    counter.write_bytes(bytes(8))
    inside = f"{arena.slot.outer}/arena"
    traps = arena.traps()
    arguments = [_moved(traps[name], str(arena.top), inside).render() for name in operation.traps]
    script = f'echo $$; exec env PACE={PACE} python3 -I -S -c "$0" "$@"'
    source = Path(swapper.__file__).read_text()
    container = arena.slot.container
    stream = container.exec(["sh", "-c", script, source, f"{inside}/counter", *arguments])
    try:
        pid = _said(stream, b"ready\n").split()[0].decode()
        yield counter
        assert stream.exit_code() is None, "the attacker gave up"
    finally:
        killer = container.exec(["sh", "-c", 'kill -9 "$0"', pid])
        assert killer.wait(time.monotonic() + DEADLINE_SECONDS) == 0
        killer.close()
        stream.close()


def _moved(trap: Trap, host: str, inside: str) -> Trap:
    """The same names as the container has them; the links lead to the same places."""
    name, spare, link = (
        text.replace(host.encode(), inside.encode()) for text in (trap.name, trap.spare, trap.link)
    )
    return replace(trap, name=name, spare=spare, link=link)


def _said(stream: ExecStream, end: bytes) -> bytes:
    said = b""
    while not said.endswith(end):
        piece = stream.receive(time.monotonic() + DEADLINE_SECONDS)
        assert piece is not None, said
        said += piece[1]
    return said
