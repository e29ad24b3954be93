"""The engine itself goes away and comes back."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec, Volume
from carrel.errors import EngineError
from tests.containers.test_container import run
from tests.engines import BUSYBOX, unavailable

SCRIPT = Path(__file__).parents[2] / "scripts/engine"


def script(*arguments: str | Path) -> str:
    found = subprocess.run([SCRIPT, *arguments], check=True, capture_output=True, text=True, timeout=120)
    return found.stdout.strip()


def problem_of(containers: Containers) -> str:
    with pytest.raises(EngineError) as caught:
        containers.ensure("one")
    return caught.value.code


@pytest.fixture
def private() -> Iterator[Path]:
    """The directory of an engine that a test may kill; its sockets want a short path."""
    if os.getuid() != 0 or shutil.which("dockerd") is None:
        unavailable("an engine that may be killed needs root and dockerd")
    directory = Path(tempfile.mkdtemp())
    yield directory
    script("stop", directory)


@pytest.mark.root
@pytest.mark.slow
# The client leaves the socket behind that it could not connect.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_an_engine_that_restarts_is_a_clear_error_and_then_works_again(private: Path, tmp_path: Path) -> None:
    with Engine.connect(script("start", private, "busybox")) as engine:
        containers = Containers(engine, tmp_path / "holds")
        containers.register("one", ContainerSpec(image=BUSYBOX, mount=Volume(name="kept")))
        container = containers.ensure("one")
        run(container, "sh", "-c", "echo kept >/workspace/file")
        stream = container.exec(["cat"])
        script("kill", private)
        with pytest.raises((EngineError, EOFError)):
            stream.receive(time.monotonic() + 30)
        stream.close()
        for _ in range(2):
            assert problem_of(containers) in ("engine.missing", "engine.failed")
        script("start", private, "busybox")
        again = containers.ensure("one")
        assert run(again, "cat", "/workspace/file") == (0, b"kept\n", b"")
        containers.close()
        assert containers.known() == []
    gc.collect()
