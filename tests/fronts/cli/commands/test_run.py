"""`carrel run` runs Python in a session, with the streams, arguments and exit status of `python`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from carrel.fronts.cli.commands.run import MAX_MEMORY_MB, MIN_MEMORY_MB
from carrel.policy.execution import MAX_MEMORY_BYTES, MEMORY_BYTES
from carrel.values import MIB
from tests.fronts.cli.conftest import Carrel


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


# The script


def test_code_runs_on_the_files_of_the_session(carrel: Carrel, session: str) -> None:
    answer = carrel("run", session, "-c", "print(open('a.txt').read(), end=''); open('new', 'w').write('x')")
    assert (answer.status, answer.out, answer.err) == (0, b"one\ntwo\nthree\n", "")
    assert (carrel.workspace(session) / "new").read_text() == "x"


def test_a_session_is_made_if_it_is_missing(carrel: Carrel) -> None:
    assert carrel("run", "new", "-c", "open('a', 'w')").status == 0
    assert (carrel.workspace("new") / "a").exists()


def test_a_file_of_this_machine_runs_by_its_name(carrel: Carrel, session: str) -> None:
    (carrel.here / "script.py").write_text("import sys\nprint(sys.argv, __name__)\n1 / 0")
    answer = carrel("run", session, "script.py", "one", "--two", "-c")
    assert (answer.status, answer.out) == (1, b"['script.py', 'one', '--two', '-c'] __main__\n")
    assert 'File "script.py", line 3, in <module>\n    1 / 0\n' in answer.err
    assert not (carrel.workspace(session) / "script.py").exists()


def test_a_file_of_the_session_runs_and_finds_its_neighbours(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "sub" / "helper.py").write_text("name = 'helper'")
    (carrel.workspace(session) / "sub" / "script.py").write_text(
        "import helper; print(helper.name, __file__)"
    )
    for start in ("/workspace", "/app"):
        answer = carrel("run", session, f"{start}/sub/script.py")
        assert (answer.status, answer.out.decode()) == (0, f"helper {start}/sub/script.py\n")


def test_a_script_may_come_by_standard_input(carrel: Carrel, session: str) -> None:
    answer = carrel("run", session, "-", "one", stdin=b"import sys; print(sys.argv, repr(sys.stdin.read()))")
    assert (answer.status, answer.out) == (0, b"['-', 'one'] ''\n")


def test_arguments_follow_code(carrel: Carrel, session: str) -> None:
    answer = carrel("run", session, "-c", "import sys; print(sys.argv)", "one", "--timeout", "x")
    assert answer.out == b"['-c', 'one', '--timeout', 'x']\n"


# Streams and status


def test_standard_input_is_read_when_the_script_reads(carrel: Carrel, session: str) -> None:
    child = carrel.start("run", session, "-c", "print('name?', flush=True); print('hello', input())")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"name?\n"
    child.stdin.write(b"you\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"hello you\n"
    assert child.wait(60) == 0
    child.communicate()


def test_streams_are_kept_apart_and_bytes_are_kept(carrel: Carrel, session: str) -> None:
    code = "import sys; sys.stdout.buffer.write(b'\\xff\\0'); print('wrong', file=sys.stderr)"
    answer = carrel("run", session, "-c", code)
    assert (answer.status, answer.out, answer.err) == (0, b"\xff\0", "wrong\n")


@pytest.mark.parametrize(
    ("code", "status"), [("", 0), ("import sys; sys.exit(3)", 3), ("raise SystemExit('no')", 1), ("(", 1)]
)
def test_the_exit_status_is_the_script_s(carrel: Carrel, session: str, code: str, status: int) -> None:
    assert carrel("run", session, "-c", code).status == status


def test_ctrl_c_stops_the_script(carrel: Carrel, session: str) -> None:
    child = carrel.start("run", session, "-c", "print('on', flush=True)\nwhile True: pass")
    assert child.stdout is not None
    assert child.stdout.readline() == b"on\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    assert child.communicate() == (b"", b"")


def test_a_reader_that_goes_away_stops_the_script(carrel: Carrel, session: str) -> None:
    with carrel.start("run", session, "-c", "while True: print('on')") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.wait(60) == 141


def test_json_is_the_whole_result_but_nothing_of_the_host(carrel: Carrel, session: str) -> None:
    answer = carrel("run", session, "--json", "-c", "print('out'); open('new', 'w')")
    document = answer.json
    assert (answer.status, answer.err) == (0, "")
    assert (document["stdout"], document["files_created"]) == ("out\n", ["new"])
    assert "workspace_path" not in document
    assert str(carrel.sessions) not in answer.out.decode()


# Limits


@pytest.mark.parametrize(
    ("options", "code", "status", "word"),
    [
        (("--timeout", "0.3"), "while True: pass", 124, "Timeout"),
        (("--memory-mb", "60"), "bytearray(10**8)", 4, "MemoryLimit"),
        (("--fuel", "100000"), "print(1)", 4, "OutOfFuel"),
        ((), "import os; os.abort()", 134, "Aborted"),
    ],
)
def test_a_limit_has_its_status_and_its_word(
    carrel: Carrel, session: str, options: tuple[str, ...], code: str, status: int, word: str
) -> None:
    answer = carrel("run", session, *options, "-c", code)
    assert answer.status == status
    assert answer.err.splitlines()[-1].startswith(f"carrel: {word}: ")


def test_variables_are_given_one_by_one(carrel: Carrel, session: str) -> None:
    code = "import os; print(os.environ['A'], os.environ['B'], 'HOST' in os.environ)"
    answer = carrel("run", session, "-e", "A=1", "--env", "B=x=y", "-c", code, env={"HOST": "1"})
    assert answer.out == b"1 x=y False\n"


def test_a_policy_may_come_from_a_file(carrel: Carrel, session: str) -> None:
    (carrel.here / "policy.toml").write_text("timeout_seconds = 0.3\n[env]\nA = 'file'\n")
    code = "import os; print(os.environ['A'], flush=True)\nwhile True: pass"
    answer = carrel("run", session, "--policy", "policy.toml", "-c", code)
    assert (answer.status, answer.out) == (124, b"file\n")


# What makes no sense


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("run",), 2, "Missing argument 'SESSION'"),
        (("run", "s1"), 2, "Missing script"),
        (("run", "s1", "missing.py"), 1, "cannot read 'missing.py': No such file or directory"),
        (("run", "s1", "."), 1, "cannot read '.': Is a directory"),
        (("run", "s1", "/workspace/missing.py"), 1, "no such file or directory"),
        (("run", "../x", "-c", "1"), 2, "session id"),
        (("run", "s1", "--memory-mb", "1", "-c", "1"), 2, "--memory-mb': 1 is not in the range 40<=x<=4096"),
        (("run", "s1", "--timeout", "-1", "-c", "1"), 2, "timeout_seconds must be"),
        (("run", "s1", "--env", "A", "-c", "1"), 2, "'A' is not NAME=VALUE"),
        (("run", "s1", "--policy", "missing.toml", "-c", "1"), 1, "no such file: 'missing.toml'"),
    ],
)
def test_what_cannot_run_is_told_in_one_line(
    carrel: Carrel, session: str, words: tuple[str, ...], status: int, said: str
) -> None:
    answer = carrel(*words)
    assert (answer.status, answer.out) == (status, b"")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_a_script_that_cannot_be_read_makes_no_session(carrel: Carrel) -> None:
    carrel("run", "new", "missing.py")
    assert not carrel.workspace("new").exists()


def test_code_that_is_switched_off_does_not_run(carrel: Carrel, session: str) -> None:
    answer = carrel("run", session, "-c", "print(1)", env={"CARREL_SANDBOX": "0"})
    assert (answer.status, answer.out) == (3, b"")
    assert answer.err == "carrel: guest code is switched off: sandbox.enabled\n"


def test_the_option_allows_the_memory_that_a_policy_allows() -> None:
    assert (MEMORY_BYTES, MAX_MEMORY_BYTES) == (MIN_MEMORY_MB * MIB, MAX_MEMORY_MB * MIB)
