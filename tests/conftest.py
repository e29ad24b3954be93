"""Places to test in: a bare host, a workspace, a directory outside, a user without rights, and a guest."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from carrel.config.load import load
from carrel.config.table import CONFIG_VARIABLE, KEYS
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.workspace.workspace import Workspace
from tests.attack.special import discard, separate_mounts
from tests.depth import IS_THOROUGH
from tests.engines import is_quick, needs_engine, unavailable

NOBODY = 65534
PR_SET_DUMPABLE = 4
OWN_MOUNTS = pytest.StashKey[bool]()
"""Whether tests may mount file systems that vanish with this process."""
_FINISHED = itertools.count(1)
_DIRECTORIES = itertools.count()
ENVIRON = dict(os.environ)
"""As it was before the settings were hidden."""

# Clocks lie on busy machines; what took how long decides nothing here.
settings.register_profile("carrel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("carrel")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--everything",
        action="store_true",
        help="also run the tests that only `make thorough` runs, at the usual depth",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give this process mounts of its own before a thread is started."""
    config.stash[OWN_MOUNTS] = separate_mounts()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a Docker engine, and leave out what only `make thorough` runs."""
    for item in items:
        if needs_engine(item):
            item.add_marker("engine")
            if not is_quick(item):
                item.add_marker("thorough")
    if not IS_THOROUGH and not config.getoption("--everything"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through tens of thousands of tests again and again."""
    _freeze()


def pytest_runtest_logfinish() -> None:
    """The same for what pytest keeps of tests that have run: many collect garbage to count descriptors."""
    if next(_FINISHED) % 100 == 0:
        _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what has not begun when the time of `make check` is over."""
    until = os.environ.get("CHECK_UNTIL")
    if until and time.monotonic() > float(until):
        pytest.skip("left to `make test`: the time of `make check` is over")


@pytest.fixture(autouse=True, scope="session")
def unconfigured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the settings of whoever runs the tests, from the programs that the tests start as well."""
    with pytest.MonkeyPatch.context() as patch:
        # Where services of the tests keep their local tokens, and clients look for them.
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv(CONFIG_VARIABLE, os.devnull)
        for name in (name for key in KEYS for name in key.variables):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty directory, removed after the test.

    pytest's own stays, with a link to it, and looks through all that are there for the next free name: in a
    run of this size that is a tenth of the time.
    """
    if request.node.get_closest_marker("disk") is None:
        made = tmp_path_factory.mktemp(str(next(_DIRECTORIES)), numbered=False)
    else:
        made = Path(tempfile.mkdtemp(prefix="carrel-test-"))
        if made.stat().st_dev != Path("/").stat().st_dev:
            made.rmdir()
            unavailable("needs a directory for temporary files on the file system of /")
    yield made
    discard(made)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of the host that is the workspace."""
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the workspace that nothing in it may touch."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret").write_bytes(b"secret data")
    return made


@pytest.fixture
def workspace(directory: Path) -> Iterator[Workspace]:
    """The open gate to `directory`."""
    with Workspace.open(directory, session_id="abc-123") as opened:
        yield opened


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of a user without rights, who runs the test, also where root runs the tests."""
    place = Path(tempfile.mkdtemp(prefix="carrel-test-"))
    if os.geteuid() != 0:
        yield place
        shutil.rmtree(place, ignore_errors=True)
        return
    groups, group = os.getgroups(), os.getegid()
    os.chown(place, NOBODY, NOBODY)
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    _keep_proc_readable()
    try:
        yield place
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
        _keep_proc_readable()
        shutil.rmtree(place)


def _keep_proc_readable() -> None:
    """Let the process see its own /proc, as a fresh one would; a change of user hides it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture(scope="session")
def guest_cache() -> Path:
    """The cache in which `carrel setup --fuel` compiled the guest; it is only read."""
    cache = load(ENVIRON).python.cache
    guest = CompiledGuest(cache)
    if not (guest.is_there() and guest.is_there(metered=True)):
        if ENVIRON.get("CI") == "true":
            pytest.fail("the guest is not compiled: carrel setup --fuel")
        pytest.skip("needs the compiled guest: carrel setup --fuel")
    return guest.directory.parent
