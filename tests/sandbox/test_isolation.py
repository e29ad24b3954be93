"""A script reaches the files of its session and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.sandbox.house import House, error_name, said

LOST = ("FileNotFoundError", "PermissionError", "OSError")


@requirement("I-01", "I-02")
def test_each_session_has_its_own_file_of_one_name(house: House) -> None:
    one, two = house.new(), house.new()
    for sandbox, text in ((one, "one"), (two, "two")):
        sandbox.execute(f"open('data.txt', 'w').write({text!r})\nopen('file_{text}', 'w').close()")
    code = "import os; print(open('data.txt').read(), sorted(os.listdir('/app')))"
    assert said(one.execute(code)) == "one ['data.txt', 'file_one']\n"
    assert said(two.execute(code)) == "two ['data.txt', 'file_two']\n"


@requirement("I-03", "I-10")
@pytest.mark.parametrize("start", ["/app/..", "..", "/workspace/..", "/app/../..", "/", "/app/sub/../../.."])
def test_another_session_is_not_there(house: House, start: str) -> None:
    house.new("victim").execute("open('secret.txt', 'w').write('BREACH')")
    for path in (f"{start}/victim/secret.txt", f"{house.root}/victim/secret.txt"):
        result = house.new().execute(f"import os; print(open({path!r}).read())")
        assert error_name(result) in LOST
        assert result.stdout == ""
    assert "victim" not in house.new().execute(f"import os; print(os.listdir({start!r}))").stdout


@requirement("I-04", "I-05")
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/null",
        "../README.md",
        "../../../../../../etc/passwd",
        "/app/../etc/passwd",
        "/tmp/../etc/passwd",
        "//etc/passwd",
        "/app/\\..\\..\\etc\\passwd",
        "/usr/local/lib/../../../etc/passwd",
        __file__,
    ],
)
@pytest.mark.parametrize(
    "action", ["open({!r})", "open({!r}, 'w')", "os.stat({!r})", "os.remove({!r})", "os.listdir({!r})"]
)
def test_no_file_of_the_host_is_there(sandbox: BaseSandbox, files: Path, path: str, action: str) -> None:
    result = sandbox.execute(f"import os\n{action.format(path)}\nprint('BREACH')")
    assert error_name(result) in LOST
    assert result.stdout == ""
    assert os.listdir(files) == []


@requirement("I-09")
def test_what_we_keep_about_a_session_is_out_of_reach(house: House, sandbox: BaseSandbox) -> None:
    sandbox.execute("open('a', 'w').write('x')")
    everything = "import os; print(sorted(os.path.join(p, n) for p, d, f in os.walk('/') for n in d + f))"
    assert said(sandbox.execute(everything)) == "['/app', '/app/a', '/tmp', '/workspace', '/workspace/a']\n"
    assert sorted(os.listdir(house.files(sandbox))) == ["a"]


def test_nothing_of_the_host_is_told(house: House, sandbox: BaseSandbox, files: Path) -> None:
    code = """
import os, sys, platform
print(sys.path, sys.executable, sys.prefix, os.getcwd(), platform.node(), sys.argv, dict(os.environ))
for action in (lambda: open("missing"), lambda: open("/etc/passwd", "w"), lambda: os.rmdir("/app")):
    try:
        action()
    except OSError as error:
        print(error, error.filename)
"""
    told = said(sandbox.execute(code))
    assert str(house.root) not in told
    assert str(files) not in told
    assert os.uname().nodename not in told


# Links


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside/secret", "/", "..", "{outside}/secret"])
def test_a_link_of_the_host_that_leads_out_is_refused(
    sandbox: BaseSandbox, files: Path, outside: Path, target: str
) -> None:
    os.symlink(target.format(outside=outside), files / "link")
    for code in (
        "open('link')",
        "open('link', 'w')",
        "open('link', 'a')",
        "os.listdir('link')",
        "os.stat('link')",
    ):
        assert error_name(sandbox.execute(f"import os\n{code}")) in (*LOST, "NotADirectoryError")
    assert (outside / "secret").read_bytes() == b"secret data"
    assert said(sandbox.execute("import os; print(os.listdir())")) == "['link']\n"
    assert sandbox.execute("import os; os.remove('link')").files_deleted == ["link"]
    assert (outside / "secret").exists()


def test_a_link_of_the_host_that_stays_inside_is_followed(sandbox: BaseSandbox, files: Path) -> None:
    (files / "dir").mkdir()
    (files / "dir" / "a").write_text("content")
    os.symlink("dir/a", files / "file")
    os.symlink("dir", files / "door")
    code = """
import os
print(open("file").read(), os.listdir("door"), open("door/a").read())
print(sorted((entry.name, entry.is_dir(), entry.is_file()) for entry in os.scandir()))
"""
    assert said(sandbox.execute(code)) == (
        "content ['a'] content\n[('dir', True, False), ('door', False, True), ('file', False, True)]\n"
    )


@requirement("E-44")
@pytest.mark.parametrize(
    "code",
    [
        "os.symlink('/etc/passwd', '/app/l')",
        "os.symlink('a', 'l')",
        "os.symlink('/app/a', '/tmp/l')",
        "os.link('a', 'l')",
        "pathlib.Path('l').symlink_to('a')",
    ],
)
def test_a_script_makes_no_links(sandbox: BaseSandbox, files: Path, code: str) -> None:
    result = sandbox.execute(f"import os, pathlib\nopen('a', 'w').close()\n{code}")
    assert error_name(result) == "OSError"
    assert os.listdir(files) == ["a"]


# Everything else


@requirement("E-45")
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
        "import subprocess; subprocess.run(['ls'])",
        "import os; os.system('ls')",
        "import os; os.fork()",
        "import os; os.kill(1, 9)",
        "import threading; threading.Thread(target=print).start()",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import ctypes; ctypes.CDLL(None)",
        "import mmap; mmap.mmap(-1, 10)",
        "import signal; signal.alarm(1)",
        "import os; os.mkfifo('f')",
        "import os; os.chroot('/app')",
    ],
)
def test_what_there_is_not_fails_cleanly(sandbox: BaseSandbox, files: Path, code: str) -> None:
    result = sandbox.execute(f"{code}\nprint('BREACH')")
    assert error_name(result)
    assert result.stdout == ""
    assert os.listdir(files) == []
    assert result.trap_reason is None
