"""A traceback of the guest reads as one of `python`, and has no frame of ours."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement

CASES = {
    "a call": "def f(x):\n    return g(x)\n\ndef g(x):\n    raise ValueError(x)\n\nf('text')\n",
    "a cause": "try:\n    {}['key']\nexcept KeyError as error:\n    raise ValueError('no') from error\n",
    "a context": "try:\n    {}['key']\nexcept KeyError:\n    raise ValueError('no')\n",
    "a note": "e = ValueError('no')\ne.add_note('more')\nraise e\n",
    "a group": "raise ExceptionGroup('all', [ValueError(1), TypeError(2)])\n",
    "no text": "raise ValueError\n",
    "an assertion": "assert 1 == 2, 'unequal'\n",
    "text of others": "raise ValueError('ошибка 名')\n",
    "a wrong text": "print('before')\nx = = 1\n",
    "an open bracket": "print((1,\n",
    "a bad indent": "def f():\nreturn 1\n",
    "exec": "exec('1/0')\n",
}


@requirement("E-05", "E-06")
@pytest.mark.parametrize("case", CASES)
def test_a_traceback_is_that_of_python(sandbox: BaseSandbox, files: Path, tmp_path: Path, case: str) -> None:
    script = tmp_path / "script.py"
    for place in (script, files / "script.py"):
        place.write_text(CASES[case], "utf-8")
    real = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", check=False)
    result = sandbox.execute_file("script.py")
    assert result.exit_code == real.returncode == 1
    assert result.stdout == real.stdout
    assert plain(result.stderr) == plain(real.stderr.replace(str(script), "/app/script.py"))


def plain(text: str) -> list[str]:
    """The lines without the marks under them, which differ from version to version."""
    return [line for line in text.splitlines() if not re.fullmatch(r"[\s|~^]*[~^][\s~^]*", line)]


@requirement("E-06")
def test_a_wrong_text_is_pointed_out(sandbox: BaseSandbox) -> None:
    result = sandbox.execute("if True\n    print('x')")
    assert (result.success, result.exit_code) == (False, 1)
    assert result.stderr == (
        "  File \"<string>\", line 1\n    if True\n           ^\nSyntaxError: expected ':'\n"
    )


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("open('/nothing/there')", "open('/nothing/there')"),
        ("open('nothing', 'rb', 0)", "open('nothing', 'rb', 0)"),
        ("import io; io.open('nothing')", "import io; io.open('nothing')"),
    ],
)
def test_a_file_that_is_missing_is_the_business_of_one_frame(
    sandbox: BaseSandbox, code: str, place: str
) -> None:
    lines = sandbox.execute(code).stderr.splitlines()
    assert lines[:3] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 1, in <module>',
        f"    {place}",
    ]
    assert [line for line in lines if line.startswith("  File")] == lines[1:2]
    assert lines[-1].startswith("FileNotFoundError: ")


def test_a_script_that_looks_sees_only_its_own_frames(sandbox: BaseSandbox) -> None:
    code = "import traceback\ntry:\n    open('nothing')\nexcept OSError:\n    traceback.print_exc()"
    assert sandbox.execute(code).stderr.count("  File") == 1


def test_code_in_another_encoding_says_so(sandbox: BaseSandbox) -> None:
    code = "# coding: latin-1\nprint('é')\n".encode("latin-1")
    assert sandbox.execute(code).stdout == "é\n"
    assert "SyntaxError" in sandbox.execute("print('é')".encode("latin-1")).stderr
    assert "null bytes" in sandbox.execute(b"print(1)\0").stderr
