"""A script has a `/tmp` of its own, which is gone with it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House, error_name, said


def test_what_lies_in_tmp_is_gone_with_the_script(sandbox: BaseSandbox, files: Path) -> None:
    result = sandbox.execute("import os\nopen('/tmp/mine', 'w').write('x')\nprint(os.listdir('/tmp'))")
    assert said(result) == "['mine']\n"
    assert (result.files_created, os.listdir(files)) == ([], [])
    assert said(sandbox.execute("import os; print(os.listdir('/tmp'))")) == "[]\n"


def test_it_is_not_that_of_the_host(sandbox: BaseSandbox) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp") as secret:
        assert error_name(sandbox.execute(f"open({secret.name!r})")) == "FileNotFoundError"


def test_it_is_bounded(house: House) -> None:
    sandbox = house.new(tmp_bytes=100_000)
    code = """
import errno
open("/tmp/a", "wb").write(bytes(90_000))
try:
    with open("/tmp/b", "wb") as file:
        file.write(bytes(90_000))
except OSError as error:
    print(errno.errorcode[error.errno])
print(len(open("/tmp/a", "rb").read()))
"""
    assert said(sandbox.execute(code)) == "ENOSPC\n90000\n"


def test_names_without_content_are_bounded_too(house: House) -> None:
    sandbox = house.new(tmp_bytes=100_000)
    code = "n = 0\nwhile True:\n    open(f'/tmp/{n}', 'w').close()\n    n += 1"
    assert error_name(sandbox.execute(code)) == "OSError"


def test_there_may_be_none(house: House) -> None:
    sandbox = house.new(tmp_bytes=0)
    assert error_name(sandbox.execute("open('/tmp/a', 'w')")) == "OSError"
    assert said(sandbox.execute("import os; print(os.listdir('/tmp'))")) == "[]\n"


def test_its_place_cannot_be_taken_away(sandbox: BaseSandbox) -> None:
    for code in ("os.rmdir('/tmp')", "os.rename('/tmp', '/app/tmp')", "os.rename('/app', '/tmp/app')"):
        assert error_name(sandbox.execute(f"import os\n{code}")) == "OSError"
