"""A place for worlds, reachable for every user, and an engine for guests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.runtimes.wasm.pool import Pool, PoolSettings
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.values import Limits
from tests.attack.privilege import IS_ROOT, User
from tests.attack.served import Served
from tests.attack.special import discard, mount_memory, unbind
from tests.attack.world import DEFAULT, Door, MakeWorld, Variant, World
from tests.conformance.http_door import Http
from tests.conformance.server import Server
from tests.conftest import OWN_MOUNTS


@pytest.fixture(scope="session")
def places(pytestconfig: pytest.Config) -> Iterator[Path]:
    """A directory that anyone may enter; pytest's own are shut to other users.

    In memory where that can be had, because the suite makes a hundred thousand small trees; `TMPDIR` says
    where else.
    """
    top = Path(tempfile.mkdtemp(prefix="attack-"))
    in_memory = "TMPDIR" not in os.environ and pytestconfig.stash[OWN_MOUNTS] and mount_memory(top)
    top.chmod(0o755)
    yield top
    if in_memory:
        unbind(top)
    discard(top)


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def place(places: Path, _numbers: Iterator[int]) -> Path:
    """An empty directory."""
    directory = places / str(next(_numbers))
    directory.mkdir()
    return directory


@pytest.fixture
def world(places: Path, _numbers: Iterator[int]) -> MakeWorld:
    """Make a `World`, to be entered by `with`."""

    def make(layout: str, variant: Variant, limits: Limits = DEFAULT) -> World:
        return World(places / str(next(_numbers)), layout, variant, limits)

    return make


@pytest.fixture(scope="session")
def engine(guest_cache: Path) -> Iterator[PythonRuntime]:
    """Runs guests in one process, and keeps none ready, so that nothing is opened behind a test's back."""
    guest = CompiledGuest(guest_cache)
    runtime = PythonRuntime(guest, Pool(str(guest.directory), PoolSettings(workers=1, ready=0)))
    runtime.validate(b"")  # its process is there from now on
    yield runtime
    runtime.close()


@pytest.fixture(scope="module")
def served(places: Path, _numbers: Iterator[int]) -> Iterator[Served]:
    """A service on a world, for all attacks through its doors."""
    user = User.ROOT if IS_ROOT else User.NOBODY
    place = places / str(next(_numbers))
    with World(place, "—", Variant("kernel", user, Door.SESSION)) as here, Server(here.parent) as server:
        yield Served(here, server)


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[Http]:
    """A connection to it."""
    with Http(served.server.port) as connection:
        connection.request("GET", "/healthz")  # it is open from now on
        yield connection
