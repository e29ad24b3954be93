"""Python and commands in a container, on the files of a session."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import carrel
from carrel.containers import usage_lock
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.errors import (
    AccessError,
    EscapeError,
    MissingError,
    NotDirectoryError,
    OutsideError,
    PolicyValidationError,
    QuotaError,
    RuntimeMissingError,
)
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode, PathRule
from carrel.runtimes.container import binding, quota_watch
from carrel.runtimes.result import TrapReason
from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.workspace_source import OpenWorkspaceSource
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB, Limits
from tests.contained import Contained, Shared, said
from tests.engines import BUSYBOX, PYTHON, STATIC, require_engine
from tests.requirements import requirement

# Python


def test_code_runs_as_the_main_module_in_the_workspace(box: ContainerSandbox) -> None:
    code = "import os, sys; print(__name__, os.getcwd(), sys.argv, sys.path[0] == '')"
    assert said(box.execute(code, argv=["a"])) == "__main__ /workspace ['-c', 'a'] True\n"


def test_the_namespace_of_code_holds_nothing_of_ours(box: ContainerSandbox) -> None:
    names = "sorted(name for name in globals() if not name.startswith('__'))"
    assert said(box.execute(f"print({names})")) == "[]\n"


def test_code_longer_than_an_argument_may_be_runs(box: ContainerSandbox) -> None:
    code = "x = 1\n" + "# filler\n" * 100_000 + "print(x)"
    assert said(box.execute(code)) == "1\n"


def test_standard_input_is_the_codes_own_after_its_source(box: ContainerSandbox) -> None:
    assert said(box.execute("print(repr(input()), repr(input()))", stdin="one\ntwo\n")) == "'one' 'two'\n"


def test_a_traceback_shows_the_codes_own_lines_only(box: ContainerSandbox) -> None:
    result = box.execute("def f():\n    raise KeyError('x')\nf()", name="job.py")
    assert result.stderr.splitlines() == [
        "Traceback (most recent call last):",
        '  File "job.py", line 3, in <module>',
        '  File "job.py", line 2, in f',
        "KeyError: 'x'",
    ]
    assert (result.success, result.exit_code) == (False, 1)


def test_a_mistake_in_the_syntax_is_told_as_python_does(box: ContainerSandbox) -> None:
    result = box.execute("x = (")
    assert result.stderr.startswith('  File "<string>", line 1\n')
    assert "SyntaxError" in result.stderr
    assert "_begin" not in result.stderr


def test_the_exit_status_is_the_codes_own(box: ContainerSandbox) -> None:
    assert box.execute("import sys; sys.exit(7)").exit_code == 7


def test_a_file_of_the_workspace_runs_as_a_script(box: ContainerSandbox, box_files: Path) -> None:
    (box_files / "lib.py").write_text("NAME = 'lib'")
    (box_files / "-odd name.py").write_text("import sys, lib; print(__file__, sys.argv[1:], lib.NAME)")
    result = box.execute_file("-odd name.py", argv=["-rf", "a\nb"])
    assert said(result) == "/workspace/-odd name.py ['-rf', 'a\\nb'] lib\n"


def test_a_file_that_is_not_there_is_an_error(box: ContainerSandbox) -> None:
    with pytest.raises(MissingError):
        box.execute_file("none.py")


def test_only_what_python_can_compile_is_valid(box: ContainerSandbox, box_files: Path) -> None:
    assert box.validate_code("import os; open('/workspace/made', 'w')")
    assert not box.validate_code("x = (")
    assert not box.validate_code(b"\xff\xfe\x00")
    assert list(box_files.iterdir()) == []


def test_awaited_code_hands_its_output_to_the_loop(box: ContainerSandbox) -> None:
    async def main() -> list[bytes]:
        pieces: list[bytes] = []
        result = await box.aexecute("print('x')", on_output=lambda name, data: pieces.append(data))
        ran = await box.arun(["echo", "y"])
        await asyncio.sleep(0)
        return [*pieces, result.stdout.encode(), ran.stdout.encode()]

    assert asyncio.run(main()) == [b"x\n", b"x\n", b"y\n"]


# Commands


def test_arguments_reach_a_command_as_they_are(box: ContainerSandbox) -> None:
    words = ["-rf", "two words", "it's", '"', "a\nb", "$HOME", "*", "", "é", "\\"]
    assert said(box.run(["printf", "%s|", *words])) == "".join(f"{word}|" for word in words)


def test_a_text_is_no_list_of_arguments(box: ContainerSandbox) -> None:
    with pytest.raises(TypeError, match="not one string"):
        box.run("ls -la")
    with pytest.raises(ValueError, match="no program"):
        box.run([])
    with pytest.raises(ValueError, match="without NUL"):
        box.run(["echo", "a\0b"])
    with pytest.raises(TypeError, match="no option 'argv'"):
        box.run(["ls"], argv=["x"])


def test_a_command_that_is_not_there_ends_as_in_a_shell(box: ContainerSandbox) -> None:
    streamed: list[bytes] = []
    result = box.run(["no-such-program"], on_output=lambda name, data: streamed.append(data))
    assert (result.exit_code, result.stdout) == (127, "")
    assert result.stderr == "carrel: 'no-such-program': not found in the image\n"
    assert b"".join(streamed) == result.stderr.encode()
    assert box.run(["/etc/passwd"]).exit_code == 126
    assert "too long" in box.run(["echo", "x" * 3_000_000]).stderr


def test_what_a_command_prints_like_the_engine_is_its_own(box: ContainerSandbox) -> None:
    text = "OCI runtime exec failed: really not found"
    assert said(box.run(["sh", "-c", f"echo '{text}'"])) == f"{text}\n"


def test_bytes_stream_through_a_command(box: ContainerSandbox) -> None:
    data = os.urandom(2**20)
    result = box.run(["sha256sum"], stdin=data)
    import hashlib

    assert said(result).split()[0] == hashlib.sha256(data).hexdigest()


def test_an_open_file_is_read_as_the_command_reads(box: ContainerSandbox, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"from a file\n")
    with (tmp_path / "in").open("rb") as source:
        assert said(box.run(["cat"], stdin=source)) == "from a file\n"
    assert said(box.run(["cat"], stdin=io.BytesIO(b"from memory\n"))) == "from memory\n"


def test_a_pipe_that_says_nothing_does_not_keep_a_command(box: ContainerSandbox) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb"):
        assert said(box.run(["echo", "done"], stdin=source)) == "done\n"


def test_input_that_nobody_reads_does_not_keep_a_command(box: ContainerSandbox) -> None:
    assert said(box.run(["echo", "done"], stdin=b"x" * 10_000_000)) == "done\n"


def test_what_reading_the_input_raises_comes_to_the_caller(box: ContainerSandbox) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        box.run(["cat"], stdin=Broken())  # type: ignore[arg-type]  # as good as any source
    assert said(box.run(["echo", "next"])) == "next\n"


@requirement("CT-7")
def test_variables_are_those_of_the_policy_and_of_the_call(box: ContainerSandbox) -> None:
    text = "import os; print(os.environ['A'], os.environ['HOME'], 'SECRET' in os.environ)"
    os.environ["SECRET"] = "host"
    assert said(box.execute(text, env={"A": "x = 'y'\n"})) == "x = 'y'\n /tmp False\n"


@requirement("CT-6")
def test_a_command_begins_where_the_gate_allows(box: ContainerSandbox, box_files: Path) -> None:
    (box_files / "d").mkdir()
    (box_files / "f").write_text("")
    (box_files / "inside").symlink_to("d")
    (box_files / "outside").symlink_to("/etc")
    for cwd, found in {"d": "/workspace/d", "/workspace/d": "/workspace/d", "/app/d": "/workspace/d"}.items():
        assert said(box.run(["pwd"], cwd=cwd)).strip() == found
    assert said(box.run(["pwd"], cwd="/tmp")).strip() == "/tmp"
    assert said(box.run(["pwd"], cwd="inside")).strip().startswith("/workspace/")
    for cwd, error in {
        "none": MissingError,
        "f": NotDirectoryError,
        "outside": EscapeError,
        "..": EscapeError,
        "/etc": OutsideError,
    }.items():
        with pytest.raises(error):
            box.run(["pwd"], cwd=cwd)


def test_a_directory_that_another_rule_allows_is_not_in_the_container(
    contained: Contained, tmp_path: Path
) -> None:
    sandbox = contained.new()
    rule = PathRule(str(tmp_path), AccessMode.READ_WRITE)
    with contained.manager.open(str(sandbox.session_id), allow=[rule]) as workspace:
        assert workspace.stat(str(tmp_path)).is_directory
        seeing = ContainerSandbox(OpenWorkspaceSource(workspace), engine=contained.runtime)
        with pytest.raises(OutsideError, match="not in the container"):
            seeing.run(["pwd"], cwd=str(tmp_path))


# Output


def test_output_comes_as_it_is_written(box: ContainerSandbox) -> None:
    came = threading.Event()
    reading, writing = os.pipe()

    def take(name: str, data: bytes) -> None:
        if b"first" in data and not came.is_set():
            came.set()
            os.write(writing, b"go\n")
            os.close(writing)

    with os.fdopen(reading, "rb") as source:
        result = box.run(["sh", "-c", "echo first; read word; echo $word"], stdin=source, on_output=take)
    assert said(result) == "first\ngo\n"


def test_both_streams_are_kept_apart(box: ContainerSandbox) -> None:
    result = box.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)


def test_output_that_is_not_kept_is_still_handed_on(box: ContainerSandbox) -> None:
    pieces: list[bytes] = []
    result = box.run(["echo", "x"], keep_output=False, on_output=lambda name, data: pieces.append(data))
    assert (result.stdout, b"".join(pieces)) == ("", b"x\n")


def test_an_exception_of_the_taker_ends_the_program(box: ContainerSandbox) -> None:
    def take(name: str, data: bytes) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        box.run(["sh", "-c", "echo x; sleep 1000"], on_output=take)
    assert said(box.run(["echo", "next"])) == "next\n"


# Files


def test_what_a_program_does_to_files_is_told_and_recorded(
    box: ContainerSandbox, box_files: Path, shared_container: Shared
) -> None:
    for name in ("kept", "changed", "gone", "moved"):
        (box_files / name).write_text(name)
    (box_files / "old").mkdir()
    (box_files / "old" / "f").write_text("f")
    with shared_container.contained.open(box) as workspace:
        since = max((event.sequence for event in workspace.changes(0)), default=0)
    script = (
        "echo more >>changed; rm gone; mv moved new; rm -r old; mkdir -p a/b; echo x >a/b/f; ln -s f a/b/l"
    )
    result = box.run(["sh", "-c", script])
    said(result)
    assert result.files_created == ["a/b/f", "a/b/l", "new"]
    assert result.files_modified == ["changed"]
    assert result.files_deleted == ["gone", "moved", "old/f"]
    with shared_container.contained.open(box) as workspace:
        events = [
            (
                event.actor,
                event.operation,
                event.path,
                event.other_path,
                event.before_bytes,
                event.after_bytes,
            )
            for event in workspace.changes(since)
        ]
        assert workspace.read_text("a/b/f") == "x\n"
        workspace.write("changed", "by the gate")
        workspace.remove("new")
    assert events == [
        ("guest", "remove", "old/f", None, 1, None),
        ("guest", "remove", "old", None, 0, None),
        ("guest", "remove", "moved", None, 5, None),
        ("guest", "remove", "gone", None, 4, None),
        ("guest", "mkdir", "a", None, None, None),
        ("guest", "mkdir", "a/b", None, None, None),
        ("guest", "write", "a/b/f", None, None, 2),
        ("guest", "link", "a/b/l", "f", None, None),
        ("guest", "write", "changed", None, 7, 12),
        ("guest", "write", "new", None, None, 5),
    ]
    assert said(box.run(["cat", "changed"])) == "by the gate"


def test_a_change_that_keeps_size_and_time_is_seen(box: ContainerSandbox, box_files: Path) -> None:
    (box_files / "f").write_text("aaa")
    code = "import os; s = os.stat('f'); open('f', 'r+').write('bbb'); os.utime('f', ns=(0, s.st_mtime_ns))"
    assert box.execute(code).files_modified == ["f"]


def test_what_others_write_through_the_gate_meanwhile_is_theirs(
    box: ContainerSandbox, shared_container: Shared
) -> None:
    def take(name: str, data: bytes) -> None:
        with shared_container.contained.open(box) as workspace:
            workspace.write("theirs", "x")

    with shared_container.contained.open(box) as workspace:
        since = max((event.sequence for event in workspace.changes(0)), default=0)
    result = box.run(["sh", "-c", "echo now; read x; echo y >ours"], on_output=take, stdin="x\n")
    with shared_container.contained.open(box) as workspace:
        paths = [(event.actor, event.path) for event in workspace.changes(since)]
    assert result.files_created == ["ours"]
    assert sorted(paths) == [("guest", "ours"), ("host", "theirs")]


def test_odd_names_are_told_as_they_are(box: ContainerSandbox) -> None:
    code = "import os\nfor n in (b'a\\nb', b'-rf', b'\\xff', 'é'.encode()): open(n, 'w').close()"
    result = box.execute(code)
    said(result)
    assert result.files_created == sorted(["a\nb", "-rf", "\udcff", "é"])
    assert carrel.SandboxResult.from_json(result.to_json()) == result


# Limits


def test_one_file_reaches_the_limit_of_a_file_and_no_byte_more(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(file_bytes=MIB))
    result = sandbox.execute(f"f = open('f', 'wb', 0); f.write(b'x' * {MIB}); f.write(b'y')")
    assert "File too large" in result.stderr
    assert (contained.files(sandbox) / "f").stat().st_size == MIB
    sparse = sandbox.execute(f"f = open('g', 'wb'); f.truncate({MIB} + 1)")
    assert "File too large" in sparse.stderr


def test_a_session_that_holds_too_much_runs_nothing_until_something_goes(contained: Contained) -> None:
    sandbox = contained.new(limits=Limits(disk_bytes=1000))
    (contained.files(sandbox) / "f").write_bytes(b"x" * 1001)
    with contained.open(sandbox) as workspace:
        workspace.recount()
        with pytest.raises(QuotaError, match=r"1001 bytes > 1000 bytes limit.*remove something first"):
            sandbox.run(["true"])
        workspace.remove("f")
    said(sandbox.run(["true"]))


def test_what_passes_the_quota_between_two_looks_is_told(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_watch, "_MIN_PAUSE_SECONDS", 3600)  # no look comes before the end
    sandbox = contained.new(limits=Limits(disk_bytes=1000))
    result = sandbox.run(["sh", "-c", "for i in 1 2 3; do head -c 400 /dev/zero >f$i; done"])
    assert result.trap_reason is TrapReason.QUOTA
    assert "1200 bytes > 1000 bytes limit" in str(result.metadata["message"])


def test_the_smaller_of_both_ceilings_for_memory_holds(contained: Contained) -> None:
    sandbox = contained.new(memory_bytes=64 * MIB)
    result = sandbox.execute("x = bytearray(90_000_000)")
    assert (result.trap_reason, result.exit_code) == (TrapReason.MEMORY, None)
    assert str(64 * MIB) in result.stderr
    assert result.metadata["memory_limit_bytes"] == 64 * MIB
    roomy = contained.get(str(sandbox.session_id), memory_bytes=1024 * MIB)
    assert roomy.execute("x = bytearray(90_000_000)").success
    assert roomy.execute("x = bytearray(200_000_000)").trap_reason is TrapReason.MEMORY


def test_a_program_that_kills_itself_did_not_run_out_of_memory(box: ContainerSandbox) -> None:
    result = box.run(["sh", "-c", "kill -9 $$"])
    assert (result.exit_code, result.trap_reason) == (137, None)


def test_more_output_than_is_kept_is_dropped_and_told(
    box: ContainerSandbox, shared_container: Shared
) -> None:
    sandbox = shared_container.contained.get(str(box.session_id), stdout_max_bytes=10)
    result = sandbox.run(["printf", "0123456789abc"])
    assert (result.stdout, result.metadata["stdout_truncated"]) == ("0123456789", True)


def test_what_a_container_has_not_is_refused(box: ContainerSandbox, shared_container: Shared) -> None:
    contained = shared_container.contained
    for policy in (ExecutionPolicy(fuel_budget=1), ExecutionPolicy(mount_data_dir="/etc")):
        place = box._source
        sandbox = ContainerSandbox(place, engine=contained.runtime, policy=policy)
        with pytest.raises(PolicyValidationError, match="not supported in a container"):
            sandbox.run(["true"])
    with pytest.raises(ValueError, match="tools are not supported"):
        box.execute("print(1)", tools={"now": lambda: 1})
    with pytest.raises(ValueError, match="stateful is not supported"):
        ContainerSandbox(box._source, engine=contained.runtime, stateful=True)


@pytest.mark.attack
def test_a_view_of_some_files_gives_no_program_the_rest(contained: Contained) -> None:
    sandbox = contained.new()
    with contained.open(sandbox) as workspace:
        workspace.mkdir("part")
        for view in (workspace.narrowed(within=["part"]), workspace.narrowed(mode=AccessMode.READ_ONLY)):
            seeing = ContainerSandbox(OpenWorkspaceSource(view), engine=contained.runtime)
            with pytest.raises(AccessError):
                seeing.run(["true"])


# One container


def test_calls_share_a_container_and_its_temporary_files(box: ContainerSandbox) -> None:
    said(box.run(["sh", "-c", "echo x >/tmp/kept"]))
    assert said(box.run(["cat", "/tmp/kept"])) == "x\n"
    assert box.reset()
    assert box.run(["cat", "/tmp/kept"]).exit_code == 1


def test_nothing_is_there_to_reset_before_the_first_call(contained: Contained) -> None:
    assert not contained.new().reset()


def test_calls_of_one_session_run_one_after_another_in_all_runtimes(
    box: ContainerSandbox, shared_container: Shared
) -> None:
    other = ContainerSandbox(box._source, engine=shared_container.contained.another())
    code = (
        "import os\nopen('busy', 'x').close()\nfor number in range(1000): os.stat('busy')\nos.remove('busy')"
    )
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda each=each: results.append(each.execute(code).success))
        for each in (box, other, box, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other._engine.close()
    assert results == [True] * 4


def test_a_call_waits_for_one_that_runs_in_another_runtime(
    box: ContainerSandbox, box_files: Path, shared_container: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, refused = threading.Event(), threading.Semaphore(0)
    really = usage_lock.exclusive_usage_lock

    @contextmanager
    def watched(path: Path) -> Iterator[object]:
        with really(path) as taken:
            if taken is None:
                refused.release()
            yield taken

    monkeypatch.setattr(binding, "exclusive_usage_lock", watched)
    other = ContainerSandbox(box._source, engine=shared_container.contained.another())
    found: list[bool] = []

    def first() -> None:
        line = "touch busy; echo x; until test -e go; do sleep 0.1; done; rm busy"
        box.run(["sh", "-c", line], on_output=lambda name, data: begun.set())

    def second() -> None:
        found.append(other.run(["test", "-e", "busy"]).success)
        refused.release(2)

    threads = [threading.Thread(target=each) for each in (first, second)]
    threads[0].start()
    begun.wait()
    threads[1].start()
    # Until it was refused a second time, or did not wait at all.
    refused.acquire()
    refused.acquire()
    (box_files / "go").touch()
    for thread in threads:
        thread.join()
    other._engine.close()
    assert found == [False]


def test_waiting_for_a_turn_counts_as_time(box: ContainerSandbox) -> None:
    begun, results = threading.Event(), []

    def first() -> None:
        run = box.run(["sh", "-c", "echo x; sleep 1000"], on_output=lambda name, data: begun.set())
        results.append(run.trap_reason)

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait()
    assert box.run(["true"], timeout_seconds=0.1).trap_reason is TrapReason.TIMEOUT
    assert box.cancel() == 1
    thread.join()
    assert results == [TrapReason.CANCELLED]


def test_a_session_made_again_has_no_files_of_the_earlier_one(contained: Contained) -> None:
    sandbox = contained.new("same")
    said(sandbox.run(["sh", "-c", "echo old >f"]))
    # By a process that does not reach the engine, so that the container stays.
    with WorkspaceManager(contained.root) as other:
        other.delete_workspace("same")
    again = contained.new("same")
    assert said(again.run(["ls"])) == ""
    said(again.run(["sh", "-c", "echo new >g"]))
    assert (contained.files(again) / "g").read_text() == "new\n"


def test_containers_that_were_not_used_for_long_go(
    contained: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.runtimes.container.runtime._MAX_CONTAINERS", 2)
    sandboxes = [contained.new(name) for name in ("one", "two", "three")]
    for sandbox in (sandboxes[0], sandboxes[1], sandboxes[0], sandboxes[2]):
        said(sandbox.run(["true"]))
    with Engine.connect(contained.address) as engine:
        kept = Containers(engine, contained.root / ".carrel" / "containers")
        assert kept.known() == ["one", "three"]
    said(sandboxes[1].run(["true"]))


def test_a_forked_child_begins_anew_and_leaves_the_container_to_its_parent(contained: Contained) -> None:
    sandbox = contained.new()
    said(sandbox.run(["sh", "-c", "echo x >/tmp/kept"]))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            contained.runtime.abandon()
            code = 0 if sandbox.run(["cat", "/tmp/kept"]).stdout == "x\n" else 2
            contained.runtime.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert said(sandbox.run(["cat", "/tmp/kept"])) == "x\n"


# How it is had


def test_the_factory_gives_it_by_name(contained: Contained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_CONTAINER_IMAGE", PYTHON)
    monkeypatch.setenv("CARREL_CONTAINER_ENGINE", require_engine())
    session_id, made = carrel.create_session_sandbox("container", workspace_root=contained.root)
    found = carrel.get_session_sandbox(session_id, "container", workspace_root=contained.root)
    assert isinstance(made, carrel.ContainerSandbox)
    assert isinstance(found, carrel.ContainerSandbox)
    assert said(found.run(["echo", "hi"])) == "hi\n"
    with pytest.raises(ValueError, match="stateful is not supported"):
        carrel.get_session_sandbox(session_id, "container", workspace_root=contained.root, stateful=True)
    found._engine.close()


def test_a_directory_has_a_container_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contained: Contained
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("CARREL_CONTAINER_IMAGE", PYTHON)
    monkeypatch.setenv("CARREL_CONTAINER_ENGINE", require_engine())
    (tmp_path / "work").mkdir()
    sandbox = carrel.create_sandbox("container", workspace=tmp_path / "work")
    assert isinstance(sandbox, carrel.ContainerSandbox)
    assert sandbox.run(["sh", "-c", "echo x >f"]).files_created == ["f"]
    assert (tmp_path / "work" / "f").read_text() == "x\n"
    sandbox._engine.close()


def test_without_an_image_it_says_which_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(RuntimeMissingError, match=r"no image for containers: .* containers\.image"):
        carrel.create_sandbox("container", workspace=tmp_path)


def test_an_image_without_python_is_named(tmp_path: Path) -> None:
    contained = Contained(tmp_path, image=BUSYBOX)
    try:
        sandbox = contained.new()
        with pytest.raises(RuntimeMissingError, match=f"'{BUSYBOX}' has no python3"):
            sandbox.execute("1")
        with pytest.raises(RuntimeMissingError, match=f"'{BUSYBOX}' has no python3"):
            sandbox.validate_code("1")
        assert said(sandbox.run(["echo", "x"])) == "x\n"
    finally:
        contained.close()


def test_an_image_without_a_shell_is_named(tmp_path: Path) -> None:
    contained = Contained(tmp_path, image=STATIC)
    try:
        with pytest.raises(carrel.CarrelError, match=f"'{STATIC}' has no sh") as raised:
            contained.new().run(["/true"])
        assert raised.value.code == "container.program"
    finally:
        contained.close()
