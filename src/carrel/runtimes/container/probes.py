"""Checks of a container around a run: its directory, memory limit and OOM kills."""

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
"""Prints the OOM kill count of cgroup v1 or v2, with shell builtins only."""


def has_directory(container: Container, access: UnmediatedAccess) -> bool:
    """Whether the container sees a marker file created in the host directory."""
    with access.marker_file() as name:
        return run_script(container, '[ -e "$0" ] && echo yes', f"{WORKSPACE}/{name}").strip() == "yes"


def killed_for_memory(container: Container) -> int:
    """Return how many of its processes the OOM killer has ended since it was started."""
    try:
        count = run_script(container, OOM_KILLS).strip()
    except ContainerError:
        return 0
    return int(count) if count.isdigit() else 0


def limit_memory(container: Container, memory_bytes: int) -> None:
    """Change the memory limit of the container, if it differs."""
    if container.state().memory_bytes == memory_bytes:
        return
    try:
        container.limit_memory(memory_bytes)
    except ContainerError:
        # Its `/tmp` holds more than the new limit; a restart empties it.
        container.restart()
        container.limit_memory(memory_bytes)
