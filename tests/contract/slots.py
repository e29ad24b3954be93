"""Places in containers for tests: one container a process and kind, in it a directory for each place in use.

The directory is one of the host, so that a test can fill it and look at it without asking who is tested.
What works there for `ContainerFiles` is started once a directory and goes to the next test with it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from uuid import uuid4
from weakref import finalize

from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.files import ContainerFiles, open_primitives
from carrel.containers.manager import Containers
from carrel.containers.spec import WAIT, WORKSPACE, Bind, ContainerSpec
from tests.engines import BUSYBOX, PYTHON, STATIC, require_engine

IMAGES = {"container": BUSYBOX, "archive": STATIC, "debian": PYTHON}
"""What the containers are made of; the second has no shell and is never started."""

_numbers = count()
_free: dict[str, list[_Directory]] = {kind: [] for kind in IMAGES}


class _Directory:
    """A directory of the shared container, and what works in it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        shared, self.container = _shared(kind)
        self.base = shared / str(next(_numbers))
        self.outer = f"{WORKSPACE}/{self.base.name}"
        self.root = f"{self.outer}/ws"
        (self.base / "ws").mkdir(parents=True)
        self.steps = open_primitives(self.container, self.root)

    def empty(self) -> None:
        """Take away all but the directory that is the root, which is held open."""
        others = (place for place in self.base.iterdir() if place.name != "ws")
        for place in (*others, *(self.base / "ws").iterdir()):
            if not place.is_symlink() and place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        (self.base / "ws").chmod(0o755)


class Slot:
    """A directory for one place; it can be had again when that is forgotten."""

    def __init__(self, directory: _Directory) -> None:
        directory.empty()
        self._directory = directory
        self.base = directory.base
        self.container = directory.container
        self.root = directory.root
        self.outer = directory.outer
        """Where `base` is in the container."""
        finalize(self, _free[directory.kind].append, directory).atexit = False

    def open(self) -> ContainerFiles:
        """The files there."""
        return ContainerFiles(self.container, self.root, primitives=self._directory.steps)


def take_slot(kind: str) -> Slot:
    """A place that is empty; skips the test if there is no engine."""
    require_engine()
    free = _free[kind]
    return Slot(free.pop() if free else _Directory(kind))


@cache
def _shared(kind: str) -> tuple[Path, Container]:
    """A directory of the host, and the container that has it at `/workspace`."""
    base = Path(tempfile.mkdtemp(prefix="carrel-test-"))
    base.chmod(0o755)
    (base / "shared").mkdir()
    engine = Engine.connect(require_engine())
    keeper = Containers(engine, base / "holds")
    key = uuid4().hex
    user = f"{os.getuid()}:{os.getgid()}"
    command = None if kind == "archive" else WAIT
    mount = Bind(source=str(base / "shared"))
    keeper.register(key, ContainerSpec(image=IMAGES[kind], user=user, mount=mount, command=command))

    def end() -> None:
        keeper.remove(key)
        keeper.close()
        engine.close()
        shutil.rmtree(base)

    atexit.register(end)
    return base / "shared", keeper.ensure(key)
