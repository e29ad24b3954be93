"""`scripts/check.py` chooses tests by what changed, and reports those that pass only when run again."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "check.py"
CONFTEST = "def pytest_addoption(parser):\n    parser.addoption('--everything', action='store_true')\n"
UNSTEADY = """
from pathlib import Path

def test_passes_the_second_time():
    seen = Path("seen")
    before = seen.exists()
    seen.touch()
    assert before
"""


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = spec_from_file_location("check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["check"] = module  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("src/carrel/paths/glob.py", "tests/paths/test_glob.py"),
        ("tests/paths/test_parsed_path.py", "tests/paths/test_parsed_path.py"),
        ("tests/spec/case.py", "tests/shell/test_spec.py"),
        ("docs/index.md", "tests/docs/test_pages.py"),
    ],
)
def test_the_tests_of_what_changed_are_selected_once(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, changed: str, first: str
) -> None:
    monkeypatch.chdir(ROOT)
    touched, quick = check._selected([changed])
    assert first in touched
    assert first not in quick
    assert check.QUICK[0] in quick


def test_every_quick_test_is_there(check: ModuleType) -> None:
    assert all((ROOT / path).exists() for path in check.QUICK)


def test_an_unknown_mode_shows_the_usage() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "slow"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "check.py MODE" in done.stderr


def test_every_file_is_in_one_share_and_adapters_are_apart(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    files = check._files(["tests"])
    monkeypatch.setattr(check, "_seconds", lambda: {files[0]: 0.0})
    shares = check._divided(files)
    assert sorted(file for share in shares for file in share) == files
    assert check.WORKERS < len(shares) <= 2 * check.SHARES
    assert all(len({file.startswith(check.ADAPTERS) for file in share}) == 1 for share in shares)


@pytest.mark.thorough
@pytest.mark.parametrize(("test", "status"), [(UNSTEADY, 0), ("def test_fails():\n    assert False\n", 1)])
def test_what_passes_only_when_run_again_is_written_down(tmp_path: Path, test: str, status: int) -> None:
    (tmp_path / "tests" / "adapters").mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "test_it.py").write_text(test)
    (tmp_path / "tests" / "adapters" / "test_other.py").write_text("def test_passes():\n    pass\n")
    unsteady = tmp_path / "unsteady"
    environment = {**os.environ, "UNSTEADY_FILE": str(unsteady)}
    done = subprocess.run([sys.executable, SCRIPT, "core"], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == status
    written = unsteady.read_text() if unsteady.exists() else ""
    assert written == ("tests/test_it.py::test_passes_the_second_time\n" if status == 0 else "")
