"""A write that is refused where the script does not look is told in the result."""

from __future__ import annotations

import pytest

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.sandbox.sandbox import BaseSandbox
from carrel.values import Limits
from tests.sandbox.house import House


@pytest.fixture
def small(house: House) -> BaseSandbox:
    """A sandbox on a session that may hold very little."""
    return house.new(limits=Limits(disk_bytes=1_000))


def lost(result: SandboxResult) -> list[tuple[str, str]]:
    """Paths and errors of the writes that were lost."""
    told = result.metadata["lost_writes"]
    assert isinstance(told, list)
    return [(one["path"], one["error"]) for one in told]


@pytest.mark.parametrize(
    "code",
    [
        "open('big', 'w').write('x' * 2000)",
        "f = open('big', 'w')\nf.write('x' * 2000)",
        "f = open('big', 'w')\nf.write('x' * 2000)\ndel f",
        "f = open('big', 'w')\nf.write('x' * 2000)\nf.flush()",
        "f = open('big', 'wb', 0)\nf.write(b'x' * 2000)",
        "import os\nfd = os.open('big', os.O_CREAT | os.O_WRONLY)\nos.write(fd, b'x' * 2000)",
        "f = open('big', 'a')\nf.write('x' * 2000)",
        "class C: pass\nc = C()\nc.c = c\nc.f = open('big', 'w')\nc.f.write('x' * 2000)",
    ],
)
def test_a_write_that_nobody_saw_fail_is_told(small: BaseSandbox, code: str) -> None:
    result = small.execute(code)
    assert not result.success
    assert result.trap_reason is TrapReason.LOST_WRITE
    assert set(lost(result)) == {("/app/big", "EDQUOT")}
    assert "carrel: the write of '/app/big' was lost: EDQUOT\n" in result.stderr
    assert not result.metadata["trapped"]


@pytest.mark.parametrize(
    "code",
    [
        "f = open('big', 'w')\nf.write('x' * 2000)\ntry: f.close()\nexcept OSError: print('seen')",
        "try:\n    with open('big', 'w') as f: f.write('x' * 2000)\nexcept OSError: print('seen')",
        "f = open('big', 'ab', 0)\ntry: f.write(b'x' * 2000)\nexcept OSError: print('seen')",
        "from pathlib import Path\ntry: Path('big').write_text('x' * 2000)\nexcept OSError: print('seen')",
    ],
)
def test_a_write_that_the_script_saw_fail_is_its_own_business(small: BaseSandbox, code: str) -> None:
    result = small.execute(code)
    assert (result.success, result.stdout, result.trap_reason) == (True, "seen\n", None)
    assert lost(result) == []


def test_an_uncaught_refusal_is_an_exception_as_any_other(small: BaseSandbox) -> None:
    result = small.execute("with open('big', 'w') as f: f.write('x' * 2000)")
    assert (result.exit_code, result.trap_reason) == (1, None)
    assert "OSError: " in result.stderr
    assert lost(result) == []


def test_a_lost_write_of_a_stateful_sandbox_is_told_at_once(house: House) -> None:
    sandbox = house.new(limits=Limits(disk_bytes=1_000), stateful=True)
    result = sandbox.execute("f = open('big', 'w')\nf.write('x' * 2000)")
    assert result.trap_reason is TrapReason.LOST_WRITE
    assert lost(result) == [("/app/big", "EDQUOT")]
    assert sandbox.execute("x = 1").success
