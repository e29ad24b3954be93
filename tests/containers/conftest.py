"""An engine, and containers that go when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec, Volume
from tests.contained import Contained, Shared
from tests.engines import BUSYBOX, require_engine

Make = Callable[..., Container]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine for tests."""
    with Engine.connect(require_engine()) as found:
        yield found


@pytest.fixture
def containers(engine: Engine, tmp_path: Path) -> Iterator[Containers]:
    """A keeper of its own; what it made is removed."""
    keeper = Containers(engine, tmp_path / "holds")
    yield keeper
    for key in keeper.known():
        keeper.remove(key)
    keeper.close()


@pytest.fixture
def make(containers: Containers) -> Make:
    """Makes a running container; the options are those of `ContainerSpec`."""

    def make(**options: object) -> Container:
        key = uuid4().hex
        spec = ContainerSpec(**{"image": BUSYBOX, **options})  # type: ignore[arg-type]  # it checks itself
        containers.register(key, spec)
        return containers.ensure(key)

    return make


@pytest.fixture(scope="session")
def busybox(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A container that all tests of this process share, with a volume in memory at `/workspace`."""
    keeper = Containers(engine, tmp_path_factory.mktemp("shared") / "holds")
    name = f"carrel-test-{uuid4().hex}"
    keeper.register("shared", ContainerSpec(image=BUSYBOX, mount=Volume(name=name, memory_bytes=2**28)))
    yield keeper.ensure("shared")
    keeper.remove("shared")
    keeper.close()
    engine.api.remove_volume(name, force=True)


@pytest.fixture(scope="module")
def shared_container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A session in a container, for all tests of a module."""
    contained = Contained(tmp_path_factory.mktemp("contained"))
    yield Shared(contained)
    contained.close()


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[Contained]:
    """Sessions whose programs run in containers."""
    made = Contained(tmp_path)
    yield made
    made.close()
