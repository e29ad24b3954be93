"""The numbers of system calls are those of the kernel's own headers."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

import pytest

from carrel.fs import syscalls
from carrel.runtimes.wasm.worker import lockdown
from carrel.runtimes.wasm.worker.system_calls import ALLOWED, ARCHITECTURES, NEWEST, _checked

HEADERS = {
    "x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"),
    "aarch64": ("asm-generic/unistd.h",),
}
"""Beneath `/usr/include`; the kernel numbers the calls of aarch64 by its generic table."""
ROWS: list[tuple[str, tuple[int | None, int | None]]] = [
    *ALLOWED.items(),
    *((name, row.numbers) for name, row in _checked(0).items()),
    # Made by the worker itself and by `fs`, with these numbers.
    ("capset", (lockdown._CAPSET["x86_64"], lockdown._CAPSET["aarch64"])),
    ("landlock_create_ruleset", (lockdown._CREATE_RULESET,) * 2),
    ("landlock_add_rule", (lockdown._ADD_RULE,) * 2),
    ("landlock_restrict_self", (lockdown._RESTRICT_SELF,) * 2),
    ("openat2", (syscalls._NR_OPENAT2,) * 2),
    # The newest that is refused with EPERM, and the oldest with ENOSYS.
    ("pidfd_open", (NEWEST,) * 2),
    ("clone3", (NEWEST + 1,) * 2),
]
_DEFINED = re.compile(r"^#define[ \t]+(__NR(?:3264)?_\w+)[ \t]+(\w+)", re.MULTILINE)


@cache
def defined(machine: str) -> dict[str, str]:
    """What the header of *machine* defines: numbers, or other names."""
    for name in HEADERS[machine]:
        header = Path("/usr/include", name)
        if header.exists():
            return dict(_DEFINED.findall(header.read_text()))
    if os.environ.get("CI") == "true" and machine in ("aarch64", platform.machine()):
        pytest.fail("the kernel's headers are missing: install linux-libc-dev")
    pytest.skip(f"needs the kernel's header for {machine}, of linux-libc-dev")


def number(machine: str, name: str) -> int | None:
    """The number of a call; `None` if the machine has none of that name."""
    found = defined(machine)
    value = found.get(f"__NR_{name}")
    while value is not None and not value.isdecimal():
        value = found.get(value)
    return None if value is None else int(value)


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize(("name", "numbers"), ROWS)
def test_the_number_of_a_call_is_that_of_the_kernel(
    machine: str, name: str, numbers: tuple[int | None, int | None]
) -> None:
    """Also that a machine without such a call has none: `None` forbids it there."""
    assert numbers[list(ARCHITECTURES).index(machine)] == number(machine, name)
