"""A TypeScript program calls the service through types generated from its description, which lints clean."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engines import unavailable
from tests.fronts.http.front import Front

HERE = Path(__file__).parent / "typescript"
PINS = ("package.json", "package-lock.json")
CACHE = Path(__file__).parents[3] / ".cache"
COMPILER_OPTIONS = (
    *("--strict", "--noUncheckedIndexedAccess"),
    *("--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"),
    *("--outDir", "out"),
)


@pytest.fixture(scope="module")
def packages() -> Path:
    """A directory with the pinned packages of npm, installed once; without them the tests are skipped."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        unavailable("needs Node.js and npm")
    pins = b"".join((HERE / name).read_bytes() for name in PINS)
    directory = CACHE / f"npm-{hashlib.sha256(pins).hexdigest()[:16]}"
    if not directory.exists():
        _install(directory)
    return directory / "node_modules"


def _install(directory: Path) -> None:
    made = directory.with_name(f"{directory.name}.{os.getpid()}")
    made.mkdir(parents=True)
    try:
        for name in PINS:
            shutil.copy(HERE / name, made)
        command = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            unavailable(f"npm cannot install its packages: {done.stderr.strip()[-300:]}")
        # Another process may have been faster.
        if not directory.exists():
            made.rename(directory)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def program(packages: Path, front: Front, tmp_path: Path) -> Path:
    """A directory with the description of the service, the packages and the program."""
    (tmp_path / "openapi.json").write_bytes(front.client.get("/openapi.json").content)
    (tmp_path / "node_modules").symlink_to(packages)
    for name in ("package.json", "client.ts"):
        shutil.copy(HERE / name, tmp_path)
    return tmp_path


def run(directory: Path, *command: str) -> str:
    """What the program of a package printed."""
    environ = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    done = subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_typed_program_calls_a_tool(program: Path, front: Front) -> None:
    run(program, "node_modules/.bin/openapi-typescript", "openapi.json", "--output", "api.ts")
    run(program, "node_modules/.bin/tsc", *COMPILER_OPTIONS, "client.ts")
    said = json.loads(run(program, "node", "out/client.js", front.url, f"typed-{os.getpid()}"))
    assert said == {
        "limit": 10,
        "written": True,
        "outside": "path.escape",
        "sizes": [6],
        "printed": "hello\n",
        "code": "path.missing",
    }


def test_the_description_lints_clean(program: Path) -> None:
    found = json.loads(run(program, "node_modules/.bin/redocly", "lint", "openapi.json", "--format", "json"))
    assert [each["message"] for each in found["problems"]] == []
