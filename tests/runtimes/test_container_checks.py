"""What is read from the control groups of a container, of either version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from carrel.runtimes.container.probes import OOM_KILLS

VERSION_1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
VERSION_2 = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 1\n"


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("memory/memory.oom_control", VERSION_1, "3"),
        ("memory.events", VERSION_2, "3"),
        ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", ""),
        ("other", VERSION_1, ""),
    ],
    ids=["version 1", "version 2", "an old kernel", "none"],
)
def test_the_processes_that_were_ended_for_want_of_memory_are_counted(
    tmp_path: Path, file: str, content: str, told: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    script = OOM_KILLS.replace("/sys/fs/cgroup", str(tmp_path))
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == told
