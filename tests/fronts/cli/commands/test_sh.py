"""`carrel sh` with one command line: words, streams, status, and where it works."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import Answer
from tests.fronts.cli.conftest import Carrel
from tests.requirements import requirement

# Words


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "s1", "cat sub/b.txt a.txt"),
        ("sh", "s1", "cat", "sub/b.txt", "a.txt"),
        ("sh", "s1", "-c", "cat sub/b.txt a.txt"),
        ("sh", "-c", "cat sub/b.txt a.txt", "s1"),
        ("sh", "s1", "--", "cat", "sub/b.txt", "a.txt"),
        ("sh", "--", "s1", "cat", "sub/b.txt", "a.txt"),
        ("sh", "s1", "--timeout", "9", "--no-pipelines", "cat", "sub/b.txt", "a.txt"),
        ("sh", "--timeout", "9", "s1", "cat", "sub/b.txt", "a.txt"),
        ("sh", "--timeout=9", "s1", "--no-pipelines", "cat sub/b.txt a.txt"),
    ],
)
def test_a_command_is_one_line_or_its_words_and_options_stand_on_both_sides_of_the_session(
    carrel: Carrel, session: str, words: tuple[str, ...]
) -> None:
    answer = carrel(*words)
    assert (answer.status, answer.out, answer.err) == (0, b"bone\ntwo\nthree\n", "")


def test_one_word_is_a_line_and_several_are_each_themselves(carrel: Carrel, session: str) -> None:
    name = "a b; $HOME *"
    (carrel.workspace(session) / name).write_text("odd")
    assert carrel("sh", session, "cat", name).out == b"odd"
    assert carrel("sh", session, f"cat '{name}'").out == b"odd"
    assert carrel("sh", session, "--pipelines", "pwd; cd sub; pwd").lines == ["/workspace", "/workspace/sub"]


def test_options_of_the_command_are_the_command_s(carrel: Carrel, session: str) -> None:
    assert carrel("sh", session, "head", "-n", "1", "a.txt").out == b"one\n"
    assert carrel("sh", session, "head", "--help").out.startswith(b"Usage: head ")
    answer = carrel("sh", session, "head", "--json", "a.txt")
    assert (answer.status, answer.out) == (2, b"")
    assert answer.err.startswith("head: unrecognized option '--json'")


def test_pipelines_are_read_if_asked_for_or_configured(carrel: Carrel, session: str) -> None:
    line = "cat a.txt | head -n 1"
    assert carrel("sh", session, line).status == 2
    assert carrel("sh", session, "--pipelines", line).out == b"one\n"
    configured = {"CARREL_SHELL_PIPELINES": "1"}
    assert carrel("sh", session, line, env=configured).out == b"one\n"
    assert carrel("sh", session, "--no-pipelines", line, env=configured).status == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sh", "s1", "--nope", "pwd"), "No such option '--nope'"),
        (("sh", "--nope", "s1", "pwd"), "No such option '--nope'"),
        (("sh", "s1", "-c", "pwd", "pwd"), "COMMAND is given twice"),
        (("sh", "s1", "--timeout", "0", "pwd"), "the timeout must be greater than 0"),
        (("sh", "s1", "--timeout", "nan", "pwd"), "the timeout must be greater than 0"),
        (("sh", "s1", "--timeout", "x", "pwd"), "'x' is not a valid float"),
        (("sh", "../x", "pwd"), "invalid session id '../x'"),
        (("sh", "", "pwd"), "session id"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line_and_makes_nothing(
    carrel: Carrel, words: tuple[str, ...], said: str
) -> None:
    answer = carrel(*words)
    assert (answer.status, answer.out) == (2, b"")
    assert answer.err.startswith("carrel: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert not carrel.workspace("s1").exists()


def test_help_tells_all_options_and_what_a_status_means(carrel: Carrel) -> None:
    answer = carrel("sh", "--help")
    assert answer.status == 0
    text = " ".join(answer.out.decode().split())
    for words in (
        "Usage: carrel sh [SESSION] [OPTIONS] [COMMAND]...",
        "124 on timeout",
        "130 after Ctrl-C",
        "4 when another limit is reached",
        "-c COMMAND",
        "--pipelines / --no-pipelines",
        "--timeout SECONDS",
        "--json",
    ):
        assert words in text
    assert "--session" not in text
    assert carrel("sh", "s1", "--help").out == answer.out


# Streams and status


def test_a_session_is_made_if_it_is_missing(carrel: Carrel) -> None:
    assert carrel("sh", "new", "--pipelines", "pwd > a; cat a").out == b"/workspace\n"
    assert (carrel.workspace("new") / "a").exists()


@pytest.mark.parametrize(
    ("line", "status"),
    [("pwd", 0), ("cat missing", 1), ("head --nope", 2), ("nothing", 127), ("exit 3", 3), ("cat '", 2)],
)
def test_the_status_is_the_command_s(carrel: Carrel, session: str, line: str, status: int) -> None:
    assert carrel("sh", session, line).status == status


def test_streams_are_kept_apart_and_bytes_are_kept(carrel: Carrel, session: str) -> None:
    content = bytes(range(256)) * 4096
    (carrel.workspace(session) / "bytes").write_bytes(content)
    answer = carrel("sh", session, "cat bytes missing")
    assert (answer.status, answer.out) == (1, content)
    assert answer.err == "cat: missing: No such file or directory\n"


def test_standard_input_is_the_command_s(carrel: Carrel, session: str) -> None:
    content = bytes(range(256)) * 4096
    assert carrel("sh", session, "cat", stdin=content).out == content
    assert carrel("sh", session, "--pipelines", "cat - > made", stdin=b"x\0").out == b""
    assert (carrel.workspace(session) / "made").read_bytes() == b"x\0"


def test_standard_input_may_be_nothing(carrel: Carrel, session: str) -> None:
    done = subprocess.run(
        carrel.argv("sh", session, "cat"), stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert done.stdout == b""


def test_a_closed_standard_input_is_told(carrel: Carrel, session: str) -> None:
    words = " ".join(f"'{word!s}'" for word in carrel.argv("sh", session, "cat"))
    done = subprocess.run(f"{words} <&-", shell=True, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"carrel: standard input, output and error must be open\n"


def test_what_is_typed_is_answered_at_once(carrel: Carrel, session: str) -> None:
    child = carrel.start("sh", session, "cat")
    assert child.stdin is not None
    assert child.stdout is not None
    for line in (b"one\n", b"two\n"):
        child.stdin.write(line)
        child.stdin.flush()
        assert child.stdout.readline() == line
    child.communicate()
    assert child.returncode == 0


def test_a_reader_that_goes_away_ends_the_command_quietly(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "big").write_bytes(b"x\n" * 2**21)
    with carrel.start("sh", session, "cat big") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"x\n"
        child.stdout.close()
        assert child.wait(60) == 141
        assert child.stderr.read() == b""


@pytest.mark.parametrize("line", ["sleep 60", "cat", "cat | head -n 1", "sleep 60 | cat"])
def test_ctrl_c_stops_the_command(carrel: Carrel, session: str, line: str) -> None:
    with running(carrel, session, line) as child:
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr is not None
        assert child.stderr.read() == b"Command cancelled\n"


def test_a_signal_to_end_ends_it(carrel: Carrel, session: str) -> None:
    with running(carrel, session, "sleep 60") as child:
        child.terminate()
        assert child.wait(60) == -signal.SIGTERM
        assert child.stderr is not None
        assert child.stderr.read() == b""


def running(carrel: Carrel, session: str, line: str) -> subprocess.Popen[bytes]:
    """A shell that is about to run *line*, after it printed something."""
    child = carrel.start("sh", session, "--pipelines", f"head -n 1 a.txt; {line}")
    assert child.stdout is not None
    assert child.stdout.readline() == b"one\n"
    return child


# Limits


@pytest.mark.parametrize("line", ["sleep 60", "cat"])
def test_a_command_that_takes_too_long_is_stopped_also_while_it_waits_for_input(
    carrel: Carrel, session: str, line: str
) -> None:
    with carrel.start("sh", session, "--timeout", "0.3", line) as child:
        assert child.wait(60) == 124
        assert child.stderr is not None
        assert child.stderr.read() == b"Command timed out after 0.3s\n"


def test_the_configured_time_is_a_ceiling(carrel: Carrel, session: str) -> None:
    answer = carrel("sh", session, "sleep 60", env={"CARREL_SHELL_TIMEOUT_SECONDS": "1"})
    assert (answer.status, answer.err) == (124, "Command timed out after 1s\n")


def test_no_time_is_too_long_to_be_given(carrel: Carrel, session: str) -> None:
    for seconds in ("1e300", "inf"):
        answer = carrel("sh", session, "--pipelines", "--timeout", seconds, "cat a.txt | head -n 1")
        assert (answer.status, answer.out, answer.err) == (0, b"one\n", "")


def test_output_that_is_not_kept_has_no_ceiling(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "big").write_bytes(bytes(3 * 2**20))
    configured = {"CARREL_SHELL_OUTPUT_MB": "1"}
    assert len(carrel("sh", session, "cat big", env=configured).out) == 3 * 2**20
    answer = carrel("sh", session, "--json", "cat big", env=configured)
    assert answer.status == 4
    assert (answer.json["truncated"], answer.json["error_code"]) == (True, "limit.output_bytes")
    assert len(answer.json["stdout"]) == 2**20


# JSON


def test_json_is_the_whole_result(carrel: Carrel, session: str) -> None:
    answer = carrel("sh", session, "--json", "--pipelines", "cd sub; cat b.txt missing")
    assert (answer.status, answer.err) == (1, "")
    document = answer.json
    assert document.pop("duration_ms") > 0
    assert document == {
        "success": False,
        "exit_code": 1,
        "stdout": "b",
        "stderr": "cat: missing: No such file or directory\n",
        "encoding": "utf-8",
        "error_code": None,
        "message": None,
        "cwd": "/workspace/sub",
        "ended": False,
        "truncated": False,
    }


def test_json_has_bytes_that_are_no_text_in_base64(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "bytes").write_bytes(b"\xff\0")
    document = carrel("sh", session, "--json", "cat bytes missing").json
    assert document["encoding"] == "base64"
    assert base64.b64decode(document["stdout"]) == b"\xff\0"
    assert base64.b64decode(document["stderr"]) == b"cat: missing: No such file or directory\n"


def test_json_says_why_a_line_was_refused(carrel: Carrel, session: str) -> None:
    document = carrel("sh", session, "--json", "cat a.txt | cat").json
    assert (document["exit_code"], document["error_code"]) == (2, "shell.metacharacter")
    assert document["stderr"] == document["message"] + "\n"


def test_json_has_its_errors_as_json(carrel: Carrel) -> None:
    answer = carrel("sh", "s1", "--json")
    assert (answer.status, answer.out, answer.error["code"]) == (2, b"", "cli.usage")
    assert answer.error["message"].startswith("--json requires a COMMAND.")
    assert not carrel.sessions.exists()
    answer = carrel("sh", "../x", "--json", "pwd")
    assert (answer.status, answer.out) == (2, b"")
    assert answer.error["code"] == "session.invalid_id"


# Scripts


def test_lines_come_from_standard_input_if_there_is_no_command(carrel: Carrel, session: str) -> None:
    answer = carrel("sh", session, stdin=b"cd sub\n\n  \npwd\ncat b.txt")
    assert (answer.status, answer.out, answer.err) == (0, b"/workspace/sub\nb", "")


def test_a_command_of_a_script_reads_the_rest_of_it(carrel: Carrel, session: str) -> None:
    assert carrel("sh", session, stdin=b"cat\none\ntwo\n").out == b"one\ntwo\n"


def test_a_script_ends_with_its_last_status_or_that_of_exit(carrel: Carrel, session: str) -> None:
    assert carrel("sh", session, stdin=b"pwd\ncat missing\n").status == 1
    answer = carrel("sh", session, stdin=b"exit 3\npwd\n")
    assert (answer.status, answer.out) == (3, b"")
    assert carrel("sh", session, stdin=b"").status == 0


def test_a_script_may_hold_any_bytes(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / os.fsdecode(b"\xff")).write_text("odd")
    answer = carrel("sh", session, stdin=b"cat \xff\n")
    assert (answer.status, answer.out, answer.err) == (0, b"odd", "")


# Without a session: the operator's workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory, in which nothing is."""
    made = tmp_path / "home"
    made.mkdir()
    return made


def operator(carrel: Carrel, home: Path, line: str, *, config: str | None = None, **env: str) -> Answer:
    """Run *line* without a session, in an environment with these variables and this configuration."""
    variables = {"HOME": str(home), **env}
    if config is not None:
        (home / "config.toml").write_text(config)
        variables["CARREL_CONFIG"] = str(home / "config.toml")
    return carrel("sh", "--pipelines", "-c", line, env=variables)


def status(answer: Answer) -> list[str]:
    """The lines of `workspace`, which succeeded."""
    assert (answer.status, answer.err) == (0, "")
    return answer.lines


@requirement("AP-01", "AP-05")
def test_by_default_it_is_a_read_only_directory_at_home_that_is_made(carrel: Carrel, home: Path) -> None:
    root = home / ".local/share/carrel/workspace"
    assert status(operator(carrel, home, "workspace")) == [
        "Workspace sandbox: enabled",
        f"Root: /workspace ({root} on the host)",
        "Allowed paths:",
        "  /workspace [ro] (workspace)",
    ]
    assert root.is_dir()
    answer = operator(carrel, home, "pwd > a")
    assert (answer.status, answer.err) == (
        1,
        "sandbox: write access denied for 'a': read-only workspace\n",
    )
    assert not carrel.sessions.exists()


@requirement("AP-02")
@pytest.mark.parametrize("variable", ["CARREL_WORKSPACE", "SWEBASH_WORKSPACE"])
def test_a_variable_goes_before_the_file_and_makes_it_writable(
    carrel: Carrel, home: Path, variable: str
) -> None:
    config = f"[workspace]\nroot = '{home}/file'\nmode = 'ro'\n"
    lines = status(operator(carrel, home, "workspace", config=config))
    assert lines[1] == f"Root: /workspace ({home}/file on the host)"
    assert lines[3] == "  /workspace [ro] (workspace)"
    given = {variable: f"{home}/given"}
    lines = status(operator(carrel, home, "workspace", config=config, **given))
    assert lines[1] == f"Root: /workspace ({home}/given on the host)"
    assert lines[3] == "  /workspace [rw] (workspace)"
    assert operator(carrel, home, "pwd > a", config=config, **given).status == 0
    assert (home / "given/a").read_text() == "/workspace\n"


def test_our_variable_goes_before_its_alias(carrel: Carrel, home: Path) -> None:
    both = {"CARREL_WORKSPACE": f"{home}/ours", "SWEBASH_WORKSPACE": f"{home}/alias"}
    assert status(operator(carrel, home, "workspace", **both))[1].startswith(
        f"Root: /workspace ({home}/ours "
    )
    assert not (home / "alias").exists()


@requirement("AP-10", "AP-11")
def test_the_file_allows_other_directories(carrel: Carrel, home: Path) -> None:
    for name in ("read", "write"):
        (home / name).mkdir()
        (home / name / "f").write_text(name)
    config = f"""
[workspace]
root = "~/root"
mode = "rw"
[[workspace.allow]]
path = "~/read"
mode = "ro"
[[workspace.allow]]
path = "{home}/write"
mode = "rw"
"""
    lines = status(operator(carrel, home, "workspace", config=config))
    assert lines[3:] == ["  /workspace [rw] (workspace)", f"  {home}/read [ro]", f"  {home}/write [rw]"]
    line = f"cat {home}/read/f {home}/write/f; pwd > {home}/write/made; pwd > {home}/read/made"
    answer = operator(carrel, home, line, config=config)
    assert (answer.status, answer.out) == (1, b"readwrite")
    assert answer.err == f"sandbox: write access denied for '{home}/read/made': read-only path\n"
    assert (home / "write/made").exists()
    assert not (home / "read/made").exists()


@requirement("AP-12")
def test_the_file_switches_the_rules_off(carrel: Carrel, home: Path) -> None:
    (home / "secret").write_text("secret data")
    config = f"[workspace]\nroot = '{home}/root'\nenabled = false\n"
    line = f"workspace; cat {home}/secret; workspace enable; cat {home}/secret"
    answer = operator(carrel, home, line, config=config)
    assert answer.lines[0] == "Workspace sandbox: disabled"
    assert answer.lines[-1] == "secret dataWorkspace sandbox: enabled"
    assert answer.err == f"sandbox: read access denied for '{home}/secret': outside workspace\n"


@pytest.mark.parametrize(
    "config", ["[workspace\n", "[workspace]\nroot = 3\n", "[workspace]\nenabled = 'off'\n"]
)
def test_a_file_that_is_wrong_warns_and_the_strict_defaults_hold(
    carrel: Carrel, home: Path, config: str
) -> None:
    answer = operator(carrel, home, "workspace", config=config)
    assert answer.status == 0
    assert answer.lines[1:] == [
        f"Root: /workspace ({home}/.local/share/carrel/workspace on the host)",
        "Allowed paths:",
        "  /workspace [ro] (workspace)",
    ]
    assert answer.err.startswith(f"carrel: {home}/config.toml:")
    assert answer.err.endswith("; the file is not used\n")
    assert answer.err.count("\n") == 1


def test_a_file_that_is_wrong_opens_no_session(carrel: Carrel, session: str, home: Path) -> None:
    (home / "config.toml").write_text("[workspace\n")
    answer = carrel("sh", session, "pwd", env={"CARREL_CONFIG": str(home / "config.toml")})
    assert (answer.status, answer.out) == (2, b"")


def test_what_an_operator_changes_is_gone_with_the_shell(carrel: Carrel, home: Path) -> None:
    assert operator(carrel, home, f"workspace rw; workspace allow {home} rw; workspace disable").status == 0
    assert status(operator(carrel, home, "workspace"))[3:] == ["  /workspace [ro] (workspace)"]


def test_the_operator_may_change_the_rules_in_a_session_too(carrel: Carrel, session: str) -> None:
    (carrel.here / "f").write_text("of the host")
    line = f"workspace allow {carrel.here} ro; cat {carrel.here}/f"
    answer = carrel("sh", session, "--pipelines", line)
    assert answer.out.decode() == f"Allowed path added: {carrel.here} [ro]\nof the host"
    assert carrel("sh", session, f"cat {carrel.here}/f").status == 1


def test_without_a_home_directory_there_is_no_place_for_it(carrel: Carrel) -> None:
    answer = carrel("sh", "-c", "pwd", env={"HOME": ""})
    assert (answer.status, answer.out) == (2, b"")
    assert answer.err == "carrel: workspace.root is not set, and there is no home directory for a default\n"


def test_a_workspace_that_cannot_be_made_is_told(carrel: Carrel, home: Path) -> None:
    (home / "file").write_text("")
    answer = operator(carrel, home, "pwd", CARREL_WORKSPACE=f"{home}/file/sub")
    assert (answer.status, answer.out) != (0, b"/workspace\n")
    assert answer.err == "carrel: cannot create the operator's workspace 'sub': Not a directory\n"


# Guest code


def test_python_runs_in_the_guest(
    carrel: Carrel, session: str, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    code = "import sys; print(sys.argv, sys.stdin.read(), open('sub/b.txt').read()); sys.exit(7)"
    answer = carrel("sh", session, "python", "-c", code, "a b", stdin=b"in")
    assert (answer.status, answer.out, answer.err) == (7, b"['-c', 'a b'] in b\n", "")


def test_python_answers_what_is_typed(
    carrel: Carrel, session: str, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    child = carrel.start("sh", session, "python", "-c", "print('name?', flush=True); print('hello', input())")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"name?\n"
    child.stdin.write(b"you\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"hello you\n"
    child.communicate()
    assert child.returncode == 0


def test_ctrl_c_and_a_reader_that_goes_away_stop_python(
    carrel: Carrel, session: str, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    child = carrel.start("sh", session, "python", "-c", "print('on', flush=True)\nwhile True: pass")
    assert child.stdout is not None
    assert child.stdout.readline() == b"on\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60) == (b"", b"Command cancelled\n")
    assert child.returncode == 130
    with carrel.start("sh", session, "python", "-c", "while True: print('on')") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.wait(60) == 141
        assert child.stderr.read() == b""
