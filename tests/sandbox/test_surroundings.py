"""What a script finds around it: its arguments, its variables, its directory and its modules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import EscapeError, MissingError, PolicyValidationError
from carrel.policy.execution import DEFAULT_ENVIRONMENT
from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

ARGV = "import sys, json; print(json.dumps(sys.argv))"
ENVIRON = "import os, json; print(json.dumps(dict(os.environ)))"
CWD = "import os; print(os.getcwd())"


# Arguments


def test_arguments_are_those_of_python(house: House) -> None:
    sandbox = house.new(argv=("a", "--b"))
    assert json.loads(said(sandbox.execute(ARGV))) == ["-c", "a", "--b"]
    assert json.loads(said(sandbox.execute(ARGV, argv=["ü", ""]))) == ["-c", "ü", ""]
    assert json.loads(said(sandbox.execute(ARGV, argv=[]))) == ["-c"]


# Variables


@requirement("I-06")
def test_the_environment_is_that_of_the_policy_and_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "secret")
    assert json.loads(said(house.new(env={}).execute(ENVIRON))) == {}
    assert json.loads(said(house.new(env={"A": "1", "ü": "名"}).execute(ENVIRON))) == {"A": "1", "ü": "名"}
    assert json.loads(said(house.new().execute(ENVIRON))) == dict(DEFAULT_ENVIRONMENT)


@requirement("E-29")
def test_a_variable_of_the_policy_is_seen(house: House) -> None:
    sandbox = house.new(env={"DEMO_GREETING": "Hello from custom policy"})
    result = sandbox.execute("import os; print(os.getenv('DEMO_GREETING'))")
    assert said(result) == "Hello from custom policy\n"


def test_a_call_adds_variables(house: House) -> None:
    sandbox = house.new(env={"A": "1", "B": "2"})
    assert json.loads(said(sandbox.execute(ENVIRON, env={"B": "3", "C": "4"}))) == {
        "A": "1",
        "B": "3",
        "C": "4",
    }
    assert json.loads(said(sandbox.execute(ENVIRON))) == {"A": "1", "B": "2"}


def test_a_variable_names_directories_of_modules(sandbox: BaseSandbox, files: Path) -> None:
    (files / "lib").mkdir()
    (files / "lib" / "shelf.py").write_text("books = 3")
    result = sandbox.execute("import shelf; print(shelf.books)", env={"PYTHONPATH": "/app/none:/app/lib"})
    assert said(result) == "3\n"


@pytest.mark.parametrize("option", [{"env": {"A=": ""}}, {"argv": ["\0"]}, {"timeout_seconds": -1}])
def test_an_option_that_cannot_be_is_refused(sandbox: BaseSandbox, option: dict[str, object]) -> None:
    with pytest.raises(PolicyValidationError):
        sandbox.execute("", **option)  # type: ignore[arg-type]  # that is the point


# The directory


@pytest.mark.parametrize("place", ["/app", "/workspace", "/tmp", "/", "/app/sub", "/workspace/sub/deep"])
def test_a_script_begins_where_it_is_told(sandbox: BaseSandbox, files: Path, place: str) -> None:
    (files / "sub" / "deep").mkdir(parents=True)
    assert said(sandbox.execute(CWD, cwd=place)) == f"{place}\n"


def test_it_begins_at_the_mount_path(house: House) -> None:
    sandbox = house.new(guest_mount_path="/home/project")
    assert said(sandbox.execute(CWD)) == "/home/project\n"
    assert said(sandbox.execute("import os; print(os.listdir('/'))")) == "['home', 'workspace', 'tmp']\n"
    assert sandbox.execute("open('a', 'w').close(); open('/workspace/b', 'w').close()").files_created == [
        "a",
        "b",
    ]


def test_both_names_of_the_workspace_lead_to_the_same_files(sandbox: BaseSandbox) -> None:
    code = "open('/app/a', 'w').write('1')\nprint(open('/workspace/a').read(), open('a').read())"
    assert said(sandbox.execute(code)) == "1 1\n"


# Scripts that are files


def test_a_script_in_the_workspace_knows_its_place(sandbox: BaseSandbox, files: Path) -> None:
    (files / "sub").mkdir()
    (files / "sub" / "main.py").write_text(
        "import os, sys\nprint(__name__, __file__, sys.argv, os.getcwd(), sys.path[0])"
    )
    said_of_it = "__main__ /app/sub/main.py ['/app/sub/main.py', 'x'] /app /app/sub\n"
    assert said(sandbox.execute_file("sub/main.py", argv=["x"])) == said_of_it
    assert "/workspace/sub/main.py" in said(sandbox.execute_file("/workspace/sub/main.py"))


def test_a_script_imports_its_neighbours_and_leaves_nothing(sandbox: BaseSandbox, files: Path) -> None:
    (files / "pack").mkdir()
    (files / "pack" / "__init__.py").write_text("from pack import inner")
    (files / "pack" / "inner.py").write_text("value = 41")
    (files / "neighbour.py").write_text("import pack\nvalue = pack.inner.value + 1")
    (files / "main.py").write_text("import neighbour; print(neighbour.value)")
    result = sandbox.execute_file("main.py")
    assert said(result) == "42\n"
    assert said(sandbox.execute("import neighbour; print(neighbour.__file__)")) == "/app/neighbour.py\n"
    assert (result.files_created, result.files_modified) == ([], [])
    assert sorted(os.listdir(files)) == ["main.py", "neighbour.py", "pack"]
    assert sorted(os.listdir(files / "pack")) == ["__init__.py", "inner.py"]


def test_a_module_that_fails_is_shown_with_its_lines(sandbox: BaseSandbox, files: Path) -> None:
    (files / "broken.py").write_text("def f():\n    raise ValueError('deep')\n")
    result = sandbox.execute("import broken\nbroken.f()")
    assert error_name(result) == "ValueError"
    assert "  File \"/app/broken.py\", line 2, in f\n    raise ValueError('deep')\n" in result.stderr


def test_a_script_that_is_not_there_is_an_error_of_the_caller(sandbox: BaseSandbox) -> None:
    with pytest.raises(MissingError):
        sandbox.execute_file("missing.py")
    with pytest.raises(EscapeError):
        sandbox.execute_file("../missing.py")


# Its own compiler


@requirement("E-25")
@pytest.mark.parametrize(
    ("code", "is_valid"),
    [
        ("print('x')", True),
        ("", True),
        ("print('Missing", False),
        ("def f():\nreturn 1", False),
        ("open('made', 'w')", True),
        ("type X[T = int] = list[T]", True),
        ("while True: pass", True),
        ("x = \0", False),
    ],
)
def test_the_guest_judges_whether_a_text_is_python(
    sandbox: BaseSandbox, files: Path, code: str, is_valid: bool
) -> None:
    assert sandbox.validate_code(code) is is_valid
    assert os.listdir(files) == []


@pytest.mark.parametrize("place", ["/app/missing", "/etc", "/app/file", "relative"])
def test_a_directory_to_begin_in_must_be_there(sandbox: BaseSandbox, files: Path, place: str) -> None:
    (files / "file").touch()
    with pytest.raises(FileNotFoundError, match=f"no such directory: '{place}'"):
        sandbox.execute("open('made', 'w')", cwd=place)
    assert not (files / "made").exists()


def test_text_that_utf_8_cannot_have_is_refused(sandbox: BaseSandbox) -> None:
    with pytest.raises(ValueError, match="the code has characters"):
        sandbox.execute("'\ud800'")
    with pytest.raises(ValueError, match="standard input has characters"):
        sandbox.execute("", stdin="\ud800")


def test_what_is_no_option_is_named(sandbox: BaseSandbox) -> None:
    options: dict[str, Any] = {"timeout": 5}
    with pytest.raises(TypeError, match="there is no option 'timeout'"):
        sandbox.execute("", **options)


def test_what_is_no_code_and_no_input_is_refused(sandbox: BaseSandbox) -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="the code must be str or bytes, not int"):
        sandbox.execute(wrong)
    with pytest.raises(TypeError, match="stdin must be bytes, str or an open file, not int"):
        sandbox.execute("", stdin=wrong)
