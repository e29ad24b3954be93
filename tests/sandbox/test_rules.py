"""Quotas, read-only rules, allowed paths and mounted data hold for a script as for everybody."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import CarrelError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sandbox.factory import create_sandbox
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

TRY = """
import errno, os
def attempt(action):
    try:
        action()
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
def write(path, size=1, mode="wb"):
    with open(path, mode) as file:
        file.write(bytes(size))
"""


# Quotas


def test_the_quota_is_an_error_of_the_script(house: House) -> None:
    sandbox = house.new(limits=Limits(disk_bytes=100_000))
    code = f"""{TRY}
attempt(lambda: write("a", 90_000))
attempt(lambda: write("b", 90_000))
attempt(lambda: write("a", 20_000, "ab"))
attempt(lambda: write("a", 100_001))
attempt(lambda: write("c", 10_000))
"""
    assert said(sandbox.execute(code)).split() == ["done", "EDQUOT", "EDQUOT", "EDQUOT", "done"]
    sizes = {path.name: path.stat().st_size for path in house.files(sandbox).iterdir()}
    assert sum(sizes.values()) <= 100_000
    assert sizes["c"] == 10_000


def test_an_append_that_is_refused_is_none(house: House) -> None:
    sandbox = house.new(limits=Limits(disk_bytes=1_000))
    code = f"""{TRY}
file = open("log", "ab", 0)
attempt(lambda: file.write(bytes(900)))
attempt(lambda: file.write(bytes(900)))
attempt(lambda: file.write(bytes(100)))
print(os.path.getsize("log"))
"""
    assert said(sandbox.execute(code)).split() == ["done", "EDQUOT", "done", "1000"]


def test_the_number_of_entries_has_a_quota(house: House) -> None:
    sandbox = house.new(limits=Limits(entries=5))
    code = f"{TRY}for n in range(7): attempt(lambda: os.mkdir(str(n)) if n % 2 else write(str(n)))"
    assert said(sandbox.execute(code)).split() == ["done"] * 5 + ["EDQUOT"] * 2
    assert len(os.listdir(house.files(sandbox))) == 5


def test_the_size_of_a_file_has_a_ceiling(house: House) -> None:
    sandbox = house.new(limits=Limits(file_bytes=1_000))
    assert said(sandbox.execute(f"{TRY}attempt(lambda: write('a', 1_001))")) == "EFBIG\n"


# Rules


@pytest.mark.parametrize(
    "code",
    [
        "open('kept', 'w')",
        "open('kept', 'a')",
        "open('kept', 'r+')",
        "open('new', 'w')",
        "os.mkdir('new')",
        "os.remove('kept')",
        "os.rename('kept', 'new')",
        "os.rmdir('dir')",
    ],
)
def test_a_workspace_that_is_read_only_is_not_written(directory: Path, code: str) -> None:
    (directory / "kept").write_text("kept")
    (directory / "dir").mkdir()
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    with Workspace.open(directory, policy=policy) as workspace:
        sandbox = create_sandbox(workspace=workspace)
        assert said(sandbox.execute("print(open('kept').read())")) == "kept\n"
        result = sandbox.execute(f"import os\n{code}")
        assert error_name(result) == "PermissionError"
        assert result.files_created == result.files_modified == result.files_deleted == []
    assert sorted(os.listdir(directory)) == ["dir", "kept"]
    assert (directory / "kept").read_text() == "kept"


@pytest.fixture
def away() -> Iterator[Path]:
    """A directory of the host that is not beneath `/tmp`, where the guest has its own."""
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir="/var/tmp") as name:
        yield Path(name)


def test_allowed_paths_are_at_their_own_place_with_their_mode(directory: Path, away: Path) -> None:
    shelf, desk = away / "shelf", away / "desk"
    for place in (shelf, desk):
        place.mkdir()
        (place / "book").write_text("words")
    (away / "secret").write_text("secret")
    rules = [PathRule(str(shelf), AccessMode.READ_ONLY), PathRule(str(desk), AccessMode.READ_WRITE)]
    policy = SandboxPolicy.for_workspace(directory, allow=rules)
    code = f"""{TRY}
os.chdir("{away}")
print(open("shelf/book").read(), os.listdir("desk"), os.listdir())
attempt(lambda: write("shelf/book"))
attempt(lambda: write("shelf/book", mode="ab"))
attempt(lambda: os.remove("shelf/book"))
attempt(lambda: write("desk/new"))
attempt(lambda: write("new"))
attempt(lambda: open("secret"))
attempt(lambda: os.rename("desk/book", "/app/book"))
"""
    with Workspace.open(directory, policy=policy) as workspace:
        result = create_sandbox(workspace=workspace).execute(code)
    assert said(result).splitlines() == [
        "words ['book'] ['desk', 'shelf']",
        *["EACCES"] * 3,
        "done",
        "EROFS",
        "ENOENT",
        "done",
    ]
    assert (shelf / "book").read_text() == "words"
    assert (desk / "new").exists()
    assert (directory / "book").exists()


def test_what_is_allowed_in_the_host_s_tmp_goes_before_the_guest_s(directory: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name, "book").write_text("words")
        policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(name, AccessMode.READ_WRITE)])
        code = f"""
import os
print(open("{name}/book").read(), os.path.isdir("/tmp"))
open("{name}/new", "w").write("x")
open("/tmp/own", "w").write("x")
"""
        with Workspace.open(directory, policy=policy) as workspace:
            assert said(create_sandbox(workspace=workspace).execute(code)) == "words True\n"
        assert Path(name, "new").read_text() == "x"
    assert not Path("/tmp/own").exists()


# Data


@requirement("I-08")
def test_mounted_data_is_read_and_never_written(house: House, tmp_path: Path) -> None:
    data = tmp_path / "datasets"
    (data / "sub").mkdir(parents=True)
    (data / "payload").write_text("payload")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in data.rglob("*"))
    code = f"""{TRY}
print(open("/data/payload").read(), sorted(os.listdir("/data")))
attempt(lambda: write("/data/new.txt"))
attempt(lambda: write("/data/payload"))
attempt(lambda: write("/data/payload", mode="r+b"))
attempt(lambda: os.remove("/data/payload"))
attempt(lambda: os.mkdir("/data/x"))
attempt(lambda: os.rmdir("/data/sub"))
attempt(lambda: os.rename("/data/payload", "/app/x"))
write("/app/mine")
attempt(lambda: os.rename("/app/mine", "/data/mine"))
attempt(lambda: os.rename("/data/payload", "/data/x"))
"""
    result = house.new(mount_data_dir=data).execute(code)
    assert said(result) == "payload ['payload', 'sub']\n" + "EROFS\n" * 9
    assert result.files_created == ["mine"]
    assert sorted((str(path), path.stat().st_mtime_ns) for path in data.rglob("*")) == before


@requirement("I-07")
def test_packages_are_shared_and_nobody_can_change_them(house: House, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "sharedpkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("word = 'clean'")
    policy: dict[str, Any] = {  # the fields of a policy are of many types
        "mount_data_dir": tmp_path / "site-packages",
        "guest_data_path": "/data/site-packages",
        "env": {"PYTHONPATH": "/data/site-packages"},
    }
    attack = "open('/data/site-packages/sharedpkg/__init__.py', 'w').write(\"word = 'evil'\")"
    assert error_name(house.new(**policy).execute(attack)) == "OSError"
    own = "import sharedpkg; sharedpkg.word = 'evil'; print(sharedpkg.word)"
    assert said(house.new(**policy).execute(own)) == "evil\n"
    assert said(house.new(**policy).execute("import sharedpkg; print(sharedpkg.word)")) == "clean\n"
    assert os.listdir(package) == ["__init__.py"]


def test_data_that_is_not_there_is_an_error_of_the_caller(house: House, tmp_path: Path) -> None:
    sandbox = house.new(mount_data_dir=tmp_path / "missing")
    with pytest.raises(CarrelError) as caught:
        sandbox.execute("pass")
    assert str(tmp_path) not in str(caught.value)


def test_links_in_the_data_lead_nowhere_else(house: House, tmp_path: Path, outside: Path) -> None:
    data = tmp_path / "datasets"
    data.mkdir()
    os.symlink(outside / "secret", data / "link")
    sandbox = house.new(mount_data_dir=data)
    assert error_name(sandbox.execute("open('/data/link')")) == "PermissionError"


def test_a_directory_of_the_host_can_be_the_workspace(directory: Path) -> None:
    with create_sandbox(workspace=directory, policy=ExecutionPolicy()) as sandbox:
        assert sandbox.execute("open('a', 'w').write('x')").files_created == ["a"]
    assert (directory / "a").read_text() == "x"
