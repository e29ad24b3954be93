"""The engine goes away while a program runs."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from carrel.errors import EngineError
from tests.contained import Contained, said
from tests.containers.test_hostile import COMMANDS
from tests.containers.test_restart import private, script
from tests.engines import BUSYBOX

__all__ = ["private"]


@pytest.mark.root
@pytest.mark.slow
# The client leaves the socket behind that it could not connect.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_call_fails_clearly_and_the_next_one_works(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    directory: Path = request.getfixturevalue("private")
    contained = Contained(tmp_path, image=BUSYBOX, address=script("start", directory, "busybox"))
    sandbox = contained.new()

    def kill(name: str, data: bytes) -> None:
        script("kill", directory)

    with pytest.raises(EngineError):
        sandbox.run(["sh", "-c", "echo on; while :; do echo x >>log; done"], on_output=kill)
    with pytest.raises(EngineError):
        sandbox.run(["true"])
    script("start", directory, "busybox")
    # What went on while the engine was away has ended.
    assert "log" not in said(sandbox.run(["sh", "-c", COMMANDS]))
    with contained.open(sandbox) as workspace:
        assert workspace.usage().disk_bytes == (contained.files(sandbox) / "log").stat().st_size
    contained.close()
    gc.collect()
