"""Checks of a container before and after a program runs in it: its directory, memory and OOM kills."""

from __future__ import annotations

from carrel.containers.container import Container
from carrel.containers.kill import run_script
from carrel.containers.spec import WORKSPACE
from carrel.errors import ContainerError
from carrel.fs.local.external_changes import UnmediatedAccess

OOM_KILLS = (
    "for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do"
    ' [ -r "$f" ] && while read -r name count; do [ "$name" = oom_kill ] && echo "$count"; done <"$f";'
    " done; :"
)
"""Of both kinds of control groups; only the shell itself is needed."""


def has_directory(container: Container, bypass: UnmediatedAccess) -> bool:
    """Whether the container sees a file that is put into the directory of the host now."""
    with bypass.marker_file() as name:
        return run_script(container, '[ -e "$0" ] && echo yes', f"{WORKSPACE}/{name}").strip() == "yes"


def killed_for_memory(container: Container) -> int:
    """How many of its processes the kernel ended for want of memory since it was started."""
    try:
        told = run_script(container, OOM_KILLS).strip()
    except ContainerError:
        return 0
    return int(told) if told.isdigit() else 0


def limit_memory(container: Container, memory_bytes: int) -> None:
    """Give it another ceiling for memory, if it has not that one."""
    if container.state().memory_bytes == memory_bytes:
        return
    try:
        container.limit_memory(memory_bytes)
    except ContainerError:
        # Its `/tmp` holds more than that.
        container.restart()
        container.limit_memory(memory_bytes)
