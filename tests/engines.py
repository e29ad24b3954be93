"""The Docker engine that the tests use: the one that `CARREL_TEST_ENGINE` names, or that of the machine.

Without one the tests that need it are skipped on a user's machine, with the reason, and fail under CI.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NoReturn

import pytest

from carrel.containers.engine import Engine
from carrel.errors import EngineError

BUSYBOX = "carrel-test-busybox"
"""Nothing but a static busybox."""
STATIC = "carrel-test-static"
"""No shell, and one program that does nothing: `/true`."""
PYTHON = "carrel-test-python"
"""Debian's Python and coreutils, with `sh` and without `bash`."""

_TESTS = (
    "tests/containers/",
    "tests/fronts/cli/doctor/test_doctor_containers.py",
    "tests/fronts/cli/commands/test_run_container.py",
    "tests/sandbox/test_container.py",
    "tests/tools/test_containers.py",
    "tests/workspace/test_container_workspaces.py",
    "tests/sessions/test_containers.py",
)
_QUICK = (
    "tests/containers/test_container.py",
    "tests/containers/test_engine.py",
    "tests/containers/test_docker_errors.py",
    "tests/fronts/cli/doctor/test_doctor_containers.py",
    "tests/fronts/cli/commands/test_run_container.py",
    "tests/tools/test_containers.py",
)
"""Of these, what `make test` runs; the others are slow, because every step is a request to the engine."""


def is_quick(item: pytest.Item) -> bool:
    """Whether `make test` runs a test that works in containers."""
    return item.nodeid.startswith(_QUICK)


def needs_engine(item: pytest.Item) -> bool:
    """Whether a test works in containers."""
    call = getattr(item, "callspec", None)
    kind = None if call is None else call.params.get("place")
    return item.nodeid.startswith(_TESTS) or kind in ("container", "archive")


@cache
def missing() -> str | None:
    """Why there is no engine for tests; `None` if there is."""
    try:
        with Engine.connect(_named()) as engine:
            lacking = [image for image in (BUSYBOX, STATIC, PYTHON) if not engine.has_image(image)]
            address = engine.address
    except EngineError as error:
        return f"{error}; `scripts/engine start DIRECTORY` starts one for tests, CARREL_TEST_ENGINE names it"
    if lacking:
        return f"the engine lacks {', '.join(lacking)}; `scripts/engine images {address}` makes them"
    return None


def require_engine() -> str:
    """The address of the engine; skips the test if there is none, and fails it under CI."""
    reason = missing()
    if reason is not None:
        unavailable(reason)
    with Engine.connect(_named()) as engine:
        return engine.address


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it under CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _named() -> str | None:
    return os.environ.get("CARREL_TEST_ENGINE")
