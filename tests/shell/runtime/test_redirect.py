"""Redirections with `<`, `>` and `>>`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.shell.budget import Budget
from carrel.shell.runtime.shell import BareShell
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    (directory / "f").write_bytes(b"one\ntwo\n")
    return BareShell(workspace, pipelines=True)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert not [each for each in threading.enumerate() if each not in before]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def pieces(count: int, piece: bytes = b"x" * 2**16) -> Iterator[bytes]:
    for _ in range(count):
        yield piece


@pytest.mark.parametrize(
    ("line", "content"),
    [
        ("cat f > g", b"one\ntwo\n"),
        ("> g cat f", b"one\ntwo\n"),
        ("cat f >| g", b"one\ntwo\n"),
        ("cat < f > g", b"one\ntwo\n"),
        ("cat f >> g", b"oldone\ntwo\n"),
        ("> g", b""),
        (">> g", b"old"),
        ("cat x > g", b""),
        ("cat x 2> g", b"cat: x: No such file or directory\n"),
        ("cat x 2>> g", b"oldcat: x: No such file or directory\n"),
        ("cat f x > g 2>&1", b"one\ntwo\ncat: x: No such file or directory\n"),
        ("cat x f > g 2>&1", b"cat: x: No such file or directory\none\ntwo\n"),
        ("cat x f &> g", b"cat: x: No such file or directory\none\ntwo\n"),
        ("cat f x &>> g", b"oldone\ntwo\ncat: x: No such file or directory\n"),
        ("cat f x 2>&1 > g", b"one\ntwo\n"),
        ("cat x 2> g >&2", b"cat: x: No such file or directory\n"),
        ("cat f 2> g >&2", b"one\ntwo\n"),
        ("cat f > other > g", b"one\ntwo\n"),
        ("cat f > g > other", b""),
        ("cat f | cat > g", b"one\ntwo\n"),
        ("nothing 2> g", b"nothing: command not found: programs of the host are not allowed; try 'help'\n"),
        ("cat -z 2> g", b"cat: invalid option -- 'z'\nTry 'cat --help' for more information.\n"),
    ],
)
def test_streams_go_where_they_are_sent(shell: BareShell, directory: Path, line: str, content: bytes) -> None:
    (directory / "g").write_bytes(b"old")
    shell.run(line)
    assert (directory / "g").read_bytes() == content


def test_standard_error_joins_standard_output_in_the_order_of_writing(shell: BareShell) -> None:
    result = shell.run("cat f x f 2>&1")
    assert result.stdout == b"one\ntwo\ncat: x: No such file or directory\none\ntwo\n"
    assert result.stderr == b""


def test_standard_output_joins_standard_error(shell: BareShell) -> None:
    result = shell.run("cat f >&2")
    assert (result.stdout, result.stderr) == (b"", b"one\ntwo\n")


def test_standard_error_can_go_through_a_pipe(shell: BareShell) -> None:
    assert shell.run("cat x 2>&1 | cat").stdout == b"cat: x: No such file or directory\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cat < x > g", b"x: No such file or directory\n"),
        ("cat < d > g", b"d: Is a directory\n"),
        ("cat f > d", b"d: Is a directory\n"),
        ("cat f > x/y", b"x/y: No such file or directory\n"),
        ("cat f > f/y", b"f/y: Not a directory\n"),
        ("cat f > ''", b"'': No such file or directory\n"),
        ("cat f > 'x y/z'", b"'x y/z': No such file or directory\n"),
    ],
)
def test_a_file_that_cannot_be_opened_keeps_the_command_from_running(
    shell: BareShell, directory: Path, line: str, message: bytes
) -> None:
    (directory / "d").mkdir()
    result = shell.run(f"{line}; pwd")
    assert (result.stdout, result.stderr) == (b"/workspace\n", message)
    assert shell.run(line).exit_code == 1
    assert names(directory) == ["d", "f"]


def test_the_message_goes_to_standard_error_as_it_is_then(shell: BareShell, directory: Path) -> None:
    assert shell.run("cat 2> g < x").stderr == b""
    assert (directory / "g").read_bytes() == b"x: No such file or directory\n"
    assert shell.run("cat < x 2> h").stderr == b"x: No such file or directory\n"
    assert not (directory / "h").exists()


def test_the_name_of_a_file_is_expanded_but_not_split_or_matched(shell: BareShell, directory: Path) -> None:
    shell.run("V='a b'; cat f > $V; cat f > *; cat f > ~/h")
    assert names(directory) == ["*", "a b", "f", "h"]


# Rules


def test_a_read_only_workspace_is_not_written_and_the_attempt_is_recorded(directory: Path) -> None:
    for name in "ef":
        (directory / name).write_bytes(b"one\n")
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    with Workspace.open(directory, policy=policy) as workspace:
        shell = BareShell(workspace, pipelines=True)
        for line in ("cat f > g", "cat f >> h", "cat f > f", "cat f >> e", "cat x 2> i"):
            result = shell.run(line)
            assert result.exit_code == 1
            assert result.stderr.startswith(b"sandbox: write access denied for ")
            assert result.stdout == b""
        events = list(workspace.changes())
    assert [(event.path, event.error) for event in events] == [
        (name, "access.denied") for name in ("g", "h", "f", "e", "i")
    ]
    assert names(directory) == ["e", "f"]
    assert [(directory / name).read_bytes() for name in "ef"] == [b"one\n"] * 2


def test_a_file_outside_is_neither_read_nor_written(
    shell: BareShell, workspace: Workspace, directory: Path, outside: Path
) -> None:
    (directory / "link").symlink_to(outside / "secret")
    for target in (f"{outside}/secret", "../outside/secret", "link", f"{outside}/new", "../new"):
        for line in (f"cat < {target}", f"cat f > {target}", f"cat f >> {target}"):
            result = shell.run(line)
            assert result.exit_code == 1
            assert (result.stdout, b"secret data" in result.stderr) == (b"", False)
    assert (outside / "secret").read_bytes() == b"secret data"
    assert names(outside) == ["secret"]
    assert len(list(workspace.changes())) == 15


def test_a_read_only_path_beside_the_workspace_can_be_read(directory: Path, outside: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(outside))])
    with Workspace.open(directory, policy=policy) as workspace:
        shell = BareShell(workspace, pipelines=True)
        assert shell.run(f"cat < {outside}/secret > g").exit_code == 0
        assert shell.run(f"cat g > {outside}/secret").exit_code == 1
    assert (directory / "g").read_bytes() == b"secret data"
    assert (outside / "secret").read_bytes() == b"secret data"


# All or nothing


def test_a_file_can_be_read_and_replaced_by_one_command(shell: BareShell, directory: Path) -> None:
    shell.run("cat f f > f")
    assert (directory / "f").read_bytes() == b"one\ntwo\n" * 2
    shell.run("cat < f | head -n 1 > f")
    assert (directory / "f").read_bytes() == b"one\n"


def test_a_large_file_can_be_read_and_replaced_too(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * (3 * MIB))
    assert shell.run("cat f f > f").exit_code == 0
    assert (directory / "f").read_bytes() == b"x" * (6 * MIB)
    assert names(directory) == ["f"]


@pytest.mark.parametrize("count", [1, 16, 17, 100])
def test_output_of_any_size_goes_into_a_file(shell: BareShell, directory: Path, count: int) -> None:
    result = shell.run("cat > g", stdin=pieces(count))
    assert (result.stdout, result.stderr, result.exit_code) == (b"", b"", 0)
    assert (directory / "g").read_bytes() == b"x" * 2**16 * count


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("line", ["cat - missing > g", "cat > g", "cat | cat > g", "cat &> g"])
def test_a_command_that_is_stopped_leaves_the_old_content(
    shell: BareShell, directory: Path, line: str, count: int
) -> None:
    (directory / "g").write_bytes(b"old")

    def then_cancel() -> Iterator[bytes]:
        yield from pieces(count)
        shell.cancel()
        yield b"more"

    result = shell.run(line, stdin=then_cancel())
    assert result.error_code == "shell.cancelled"
    assert (directory / "g").read_bytes() == b"old"
    assert names(directory) == ["f", "g"]


@pytest.mark.parametrize("count", [1, 100])
def test_a_stop_after_the_last_byte_but_before_the_end_leaves_the_old_content(
    shell: BareShell, directory: Path, count: int
) -> None:
    (directory / "g").write_bytes(b"old")

    def until_cancelled() -> Iterator[bytes]:
        yield from pieces(count)
        shell.cancel()

    result = shell.run("cat > g", stdin=until_cancelled())
    assert result.error_code == "shell.cancelled"
    assert (directory / "g").read_bytes() == b"old"


@pytest.mark.parametrize("count", [1, 100])
def test_an_output_limit_leaves_the_old_content(shell: BareShell, directory: Path, count: int) -> None:
    (directory / "g").write_bytes(b"old")
    result = shell.run("cat - missing > g", stdin=pieces(count), budget=Budget(output_bytes=3))
    assert result.error_code == "limit.output_bytes"
    assert (directory / "g").read_bytes() == b"old"
    assert names(directory) == ["f", "g"]


@pytest.mark.parametrize("count", [2, 100])
@pytest.mark.parametrize("line", ["cat > g", "cat | cat > g", "cat 2> h > g"])
def test_a_quota_that_is_exceeded_is_reported_and_leaves_the_old_content(
    directory: Path, line: str, count: int
) -> None:
    (directory / "g").write_bytes(b"old")
    with Workspace.open(directory, limits=Limits(disk_bytes=100_000)) as workspace:
        result = BareShell(workspace, pipelines=True).run(f"{line}; pwd", stdin=pieces(count))
        errors = [event.error for event in workspace.changes() if event.error]
    assert result.stdout == b"/workspace\n"
    assert result.stderr.startswith(b"g: ")
    assert b"quota exceeded" in result.stderr
    assert errors == ["quota.bytes"]
    assert (directory / "g").read_bytes() == b"old"


@pytest.mark.parametrize("count", [2, 100])
def test_the_status_of_a_command_whose_output_does_not_fit_is_one(directory: Path, count: int) -> None:
    with Workspace.open(directory, limits=Limits(disk_bytes=100_000)) as workspace:
        shell = BareShell(workspace, pipelines=True)
        assert shell.run("cat > g", stdin=pieces(count)).exit_code == 1
        assert shell.run("cat >> g", stdin=pieces(count)).exit_code == 1
        assert (directory / "g").stat().st_size <= 100_000


@pytest.mark.parametrize("size", [50_000, 2 * MIB])
@pytest.mark.parametrize("line", ["sort -o g big", "uniq big g", "sed -i -n 'p;p' big"])
def test_a_command_whose_own_file_does_not_fit_reports_the_quota(
    directory: Path, line: str, size: int
) -> None:
    content = b"".join(b"%09d\n" % number for number in range(size // 10))
    (directory / "big").write_bytes(content)
    with Workspace.open(directory, limits=Limits(disk_bytes=size + 10_000)) as workspace:
        shell = BareShell(workspace, pipelines=True, budget=Budget(seconds=None))
        result = shell.run(line)
    assert result.exit_code in (1, 2)
    assert b"quota exceeded" in result.stderr
    assert (directory / "big").read_bytes() == content


def test_input_without_end_into_a_file_ends_with_the_quota(directory: Path) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 2**16

    with Workspace.open(directory, limits=Limits(disk_bytes=5 * MIB)) as workspace:
        shell = BareShell(workspace, pipelines=True, budget=Budget(seconds=None))
        assert shell.run("cat > g", stdin=endless()).exit_code == 1
        assert shell.run("cat >> h", stdin=endless()).exit_code == 1
        assert workspace.usage().disk_bytes <= 5 * MIB


def test_a_file_that_is_too_large_is_refused(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(file_bytes=10)) as workspace:
        result = BareShell(workspace, pipelines=True).run("cat > g", stdin=b"x" * 11)
    assert result.exit_code == 1
    assert (directory / "g").read_bytes() == b""
