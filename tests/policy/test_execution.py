"""The policy of a run of guest code: what it may be, and what a file makes of it."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import re
from collections import UserDict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import PolicyValidationError
from carrel.policy.execution import DEFAULT_ENVIRONMENT, ExecutionPolicy
from tests.requirements import requirement

ENV = {
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONHASHSEED": "0",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
}
DEFAULTS = {
    "memory_bytes": 128_000_000,
    "timeout_seconds": 60.0,
    "stdout_max_bytes": 2_000_000,
    "stderr_max_bytes": 1_000_000,
    "fuel_budget": None,
    "open_files": 256,
    "file_operations": 100_000,
    "tmp_bytes": 64 * 2**20,
    "env": ENV,
    "argv": (),
    "guest_mount_path": "/app",
    "mount_data_dir": None,
    "guest_data_path": None,
    "preserve_logs": False,
}


def policy(**fields: object) -> ExecutionPolicy:
    """A policy with some fields, whatever their types."""
    return ExecutionPolicy(**fields)  # type: ignore[arg-type]  # wrong ones are what is tested


def refusal(**fields: object) -> str:
    """What is wrong with a policy with these fields."""
    with pytest.raises(PolicyValidationError) as caught:
        policy(**fields)
    assert caught.value.code == "policy.invalid"
    assert caught.value.field in fields
    assert caught.value.message.startswith(f"{caught.value.field} ")
    assert len(caught.value.message) < 250
    return caught.value.message


def values(given: ExecutionPolicy) -> dict[str, object]:
    """All fields of a policy."""
    return {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}


# Defaults


@requirement("E-00")
def test_a_policy_has_the_known_defaults() -> None:
    assert values(ExecutionPolicy()) == DEFAULTS


# Numbers

LOWEST = {
    "memory_bytes": 41_943_040,
    "stdout_max_bytes": 1,
    "stderr_max_bytes": 1,
    "fuel_budget": 1,
    "open_files": 1,
    "file_operations": 1,
    "tmp_bytes": 0,
}
HIGHEST = dict.fromkeys(LOWEST, 2**63 - 1) | {"memory_bytes": 4 * 2**30, "open_files": 1024}


@requirement("E-36")
@pytest.mark.parametrize("name", LOWEST)
def test_a_number_below_its_floor_is_refused_by_name(name: str) -> None:
    low = LOWEST[name]
    assert values(policy(**{name: low}))[name] == low
    for value in (low - 1, -1, -(2**70)):
        assert refusal(**{name: value}).startswith(f"{name} must be a whole number of at least {low}")
    for value in (0, -1):
        assert value >= low or refusal(**{name: value}).endswith(f", not {value}")


@pytest.mark.parametrize("name", HIGHEST)
def test_a_number_above_its_ceiling_is_refused_by_name(name: str) -> None:
    high = HIGHEST[name]
    assert values(policy(**{name: high}))[name] == high
    for value in (high + 1, 10**6000):
        assert refusal(**{name: value}).startswith(f"{name} must be a whole number of at most {high}")


@pytest.mark.parametrize("name", LOWEST)
@pytest.mark.parametrize("value", [True, False, 5e8, "500000000", b"1", [], float("nan")])
def test_what_is_no_whole_number_is_refused_by_name(name: str, value: object) -> None:
    assert refusal(**{name: value}).startswith(f"{name} must be a whole number")


@pytest.mark.parametrize("name", [name for name in LOWEST if name != "fuel_budget"])
def test_only_the_fuel_may_be_without_a_ceiling(name: str) -> None:
    assert policy(fuel_budget=None).fuel_budget is None
    assert refusal(**{name: None}).startswith(f"{name} must be a whole number")


@requirement("E-36")
def test_a_message_tells_what_was_given() -> None:
    assert refusal(memory_bytes=-1) == "memory_bytes must be a whole number of at least 41943040, not -1"
    assert refusal(fuel_budget=0) == "fuel_budget must be a whole number of at least 1 or None, not 0"


# Time


@requirement("E-36")
@pytest.mark.parametrize("value", [0, 0.0, 0.001, 1, 365 * 86_400])
def test_a_timeout_may_be_anything_from_nothing_to_a_year(value: float) -> None:
    timeout = ExecutionPolicy(timeout_seconds=value).timeout_seconds
    assert (timeout, type(timeout)) == (value, float)


@requirement("E-36")
@pytest.mark.parametrize(
    "value", [-1, -0.001, float("nan"), float("inf"), float("-inf"), 1e300, 10**400, True, "60"]
)
def test_a_timeout_that_is_none_of_these_is_refused(value: object) -> None:
    assert refusal(timeout_seconds=value).startswith("timeout_seconds must be a number from 0 to ")


@requirement("E-00")
def test_there_is_no_way_to_have_no_timeout() -> None:
    assert refusal(timeout_seconds=None) == "timeout_seconds must be a number, not None: a call always ends"


# Variables and arguments


def test_variables_replace_the_default_ones() -> None:
    assert ExecutionPolicy(env={"A": "", "b c": "d=e\n"}).env == {"A": "", "b c": "d=e\n"}
    assert ExecutionPolicy(env=UserDict(A="1")).env == {"A": "1"}
    assert ExecutionPolicy(env={}).env == {}


@pytest.mark.parametrize("name", ["", "A=B", "=", "A\0", "caf\udce9", 1, None, b"A"])
def test_a_name_that_no_variable_can_have_is_refused(name: object) -> None:
    assert refusal(env={"A": "1", name: "x"}).startswith("env must have names that are text")


@pytest.mark.parametrize("value", ["secret\0", "secret\udce9", 12345, None, b"secret", ["secret"]])
def test_a_value_that_no_variable_can_have_is_refused_and_not_told(value: object) -> None:
    message = refusal(env={"TOKEN": value})
    assert message == "env must have texts without NUL as values, which that of 'TOKEN' is not"


@pytest.mark.parametrize("value", [None, "A=1", [("A", "1")], 5])
def test_variables_that_are_no_mapping_are_refused(value: object) -> None:
    assert refusal(env=value).startswith("env must be a mapping of names to texts, not ")


def test_no_text_of_a_policy_tells_the_values_of_its_variables() -> None:
    made = ExecutionPolicy(env={"TOKEN": "secret"})
    assert "TOKEN" in repr(made)
    assert "secret" not in repr(made) + str(made) + str(made.env)


@pytest.mark.parametrize("given", [["-v", "ä", ""], ("-v", "ä", "")])
def test_arguments_are_kept_as_a_tuple(given: object) -> None:
    assert policy(argv=given).argv == ("-v", "ä", "")


@pytest.mark.parametrize("value", [None, "-v", b"-v", {"-v"}, 5])
def test_arguments_that_are_no_list_are_refused(value: object) -> None:
    assert refusal(argv=value).startswith("argv must be a list of texts, not ")


@pytest.mark.parametrize("value", ["a\0b", "\ud800", 5, None, b"x"])
def test_an_argument_that_is_no_text_is_refused(value: object) -> None:
    message = refusal(argv=["-v", value])
    assert message == "argv must be a list of texts without NUL, which number 1 is not"


@pytest.mark.parametrize("value", [None, 0, 1, "yes"])
def test_logs_are_preserved_or_not(value: object) -> None:
    assert ExecutionPolicy(preserve_logs=True).preserve_logs is True
    assert refusal(preserve_logs=value).startswith("preserve_logs must be True or False, not ")


# Paths


@pytest.mark.parametrize("path", ["/app", "/workspace", "/a/b", "/usrlocal", "/tmpx", "/ä b", "/..."])
def test_the_workspace_may_be_at_any_plain_place(path: str) -> None:
    assert ExecutionPolicy(guest_mount_path=path).guest_mount_path == path


BAD_PATHS = {
    "": "must be an absolute path below /",
    "/": "must be an absolute path below /",
    "app": "must be an absolute path below /",
    "./app": "must be an absolute path below /",
    "/app\0": "must be an absolute path below /",
    "/\udce9": "must be an absolute path below /",
    "//app": "must be written without '.', '..' and empty names",
    "///": "must be written without",
    "/app/": "must be written without",
    "/a//b": "must be written without",
    "/./app": "must be written without",
    "/app/..": "must be written without",
    "/..": "must be written without",
    "/app/../tmp": "must be written without",
    "/tmp": "must not lie in /tmp",
    "/tmp/app": "must not lie in /tmp",
    "/usr/lib": "must not lie in /usr",
    "/dev": "must not lie in /dev",
    "/proc/self": "must not lie in /proc",
    "/workspace/app": "must not lie in /workspace",
}


@pytest.mark.parametrize(("path", "reason"), BAD_PATHS.items())
def test_a_path_in_the_guest_that_cannot_be_is_refused(path: str, reason: str) -> None:
    assert refusal(guest_mount_path=path).startswith(f"guest_mount_path {reason}")
    message = refusal(mount_data_dir="d", guest_data_path=path)
    assert message.startswith(f"guest_data_path {reason}")


@pytest.mark.parametrize("path", [None, 5, b"/app", Path("/app")])
def test_a_path_in_the_guest_is_text(path: object) -> None:
    assert refusal(guest_mount_path=path).startswith(
        "guest_mount_path must be an absolute path below /, not "
    )


@given(st.text(alphabet="/.a\0 ", max_size=12))
def test_any_text_is_a_good_path_in_the_guest_or_refused(path: str) -> None:
    parts = path.split("/")
    is_good = len(parts) > 1 and parts[0] == "" and "\0" not in path and not {"", ".", ".."} & set(parts[1:])
    if is_good:
        assert ExecutionPolicy(guest_mount_path=path).guest_mount_path == path
    else:
        refusal(guest_mount_path=path)


@requirement("E-37")
@pytest.mark.parametrize("given", ["datasets", Path("datasets"), os.curdir + "/datasets"])
def test_data_lies_at_data_unless_another_place_is_given(given: str | Path) -> None:
    made = ExecutionPolicy(mount_data_dir=given)
    assert (made.mount_data_dir, made.guest_data_path) == (os.fspath(given), "/data")
    assert type(made.mount_data_dir) is str
    assert ExecutionPolicy(mount_data_dir=given, guest_data_path="/d/e").guest_data_path == "/d/e"


@requirement("E-37")
def test_a_place_for_data_without_data_is_refused() -> None:
    message = refusal(guest_data_path="/data")
    assert message == "guest_data_path is given without mount_data_dir; give both or none"


@pytest.mark.parametrize(
    ("mount", "data"),
    [
        ("/app", "/app"),
        ("/app", "/app/data"),
        ("/a/b", "/a"),
        ("/app", "/workspace"),
        ("/app", "/workspace/data"),
        ("/data", None),
        ("/data/x", None),
    ],
)
def test_data_and_workspace_do_not_lie_in_each_other(mount: str, data: str | None) -> None:
    fields: dict[str, object] = {"guest_mount_path": mount, "guest_data_path": data}
    message = refusal(mount_data_dir="d", **fields)
    assert message.startswith("guest_data_path must ")


@pytest.mark.parametrize("value", ["", "/srv/secret\0", b"/srv/secret", 5, ["/srv/secret"]])
def test_a_directory_that_is_no_path_is_refused_and_not_told(value: object) -> None:
    message = refusal(mount_data_dir=value)
    assert message.startswith("mount_data_dir must be a path")
    assert "secret" not in message


def test_a_path_of_bytes_is_refused() -> None:
    class Odd:
        def __fspath__(self) -> bytes:
            return b"d"

    assert refusal(mount_data_dir=Odd()).startswith("mount_data_dir must be a path")


# Nothing changes


@requirement("E-40")
def test_what_a_policy_was_made_from_is_neither_changed_nor_shared() -> None:
    env, argv = {"A": "1"}, ["x"]
    made = policy(env=env, argv=argv, mount_data_dir="d")
    assert (env, argv) == ({"A": "1"}, ["x"])
    env["A"] = "2"
    argv.append("y")
    assert (made.env, made.argv) == ({"A": "1"}, ("x",))


@requirement("E-40")
def test_a_policy_cannot_be_changed() -> None:
    made = ExecutionPolicy()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.memory_bytes = 1  # type: ignore[misc]  # that it cannot is the test
    with pytest.raises(TypeError):
        made.env["A"] = "1"  # type: ignore[index]  # that it cannot is the test
    assert values(ExecutionPolicy()) == DEFAULTS
    assert DEFAULT_ENVIRONMENT == ENV


@requirement("E-40")
def test_another_policy_is_made_of_one_and_leaves_it_as_it_was() -> None:
    made = ExecutionPolicy(mount_data_dir="d", env={"A": "1"})
    other = dataclasses.replace(made, timeout_seconds=1)
    assert values(other) == {**values(made), "timeout_seconds": 1.0}
    assert dataclasses.replace(made, guest_data_path="/d").guest_data_path == "/d"
    assert dataclasses.replace(made, mount_data_dir=None, guest_data_path=None).guest_data_path is None
    assert made.timeout_seconds == 60
    with pytest.raises(PolicyValidationError):
        dataclasses.replace(made, timeout_seconds=-1)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_policy_can_travel(again: Callable[[ExecutionPolicy], ExecutionPolicy]) -> None:
    made = ExecutionPolicy(env={"A": "1"}, argv=("x",), mount_data_dir="d")
    assert again(made) == made
    assert hash(again(made)) == hash(made)
    assert made != ExecutionPolicy(env={"A": "2"}, argv=("x",), mount_data_dir="d")
    assert dataclasses.asdict(made)["env"] == {"A": "1"}


# Files


def load(directory: Path, text: str) -> ExecutionPolicy:
    """The policy in a file."""
    (directory / "policy.toml").write_text(text, encoding="utf-8")
    return ExecutionPolicy.load(directory / "policy.toml")


def load_error(directory: Path, text: str) -> PolicyValidationError:
    """What is wrong with a file."""
    with pytest.raises(PolicyValidationError) as caught:
        load(directory, text)
    assert str(directory) not in caught.value.message
    assert caught.value.message.startswith("invalid execution policy in policy.toml")
    return caught.value


WHOLE = """
memory_bytes = 64_000_000
timeout_seconds = 5
stdout_max_bytes = 1
stderr_max_bytes = 2
fuel_budget = 3
open_files = 4
file_operations = 5
tmp_bytes = 6
argv = ["-v"]
guest_mount_path = "/work"
mount_data_dir = "datasets"
guest_data_path = "/d"
preserve_logs = true
[{}env]
A = "1"
"""
READ = {
    "memory_bytes": 64_000_000,
    "timeout_seconds": 5.0,
    "stdout_max_bytes": 1,
    "stderr_max_bytes": 2,
    "fuel_budget": 3,
    "open_files": 4,
    "file_operations": 5,
    "tmp_bytes": 6,
    "env": {**ENV, "A": "1"},
    "argv": ("-v",),
    "guest_mount_path": "/work",
    "mount_data_dir": "datasets",
    "guest_data_path": "/d",
    "preserve_logs": True,
}


@requirement("E-38")
def test_every_field_is_read_from_the_whole_file_or_from_its_table(tmp_path: Path) -> None:
    assert list(READ) == list(DEFAULTS)
    assert values(load(tmp_path, WHOLE.format(""))) == READ
    assert values(load(tmp_path, "[execution]" + WHOLE.format("execution."))) == READ


def test_beside_its_table_a_file_may_hold_anything(tmp_path: Path) -> None:
    text = "memory_bytes = 'all'\n[execution]\nopen_files = 4\n[other]\nx = 1"
    assert values(load(tmp_path, text)) == {**DEFAULTS, "open_files": 4}


@requirement("E-38")
def test_variables_in_a_file_are_added_to_the_default_ones(tmp_path: Path) -> None:
    made = load(tmp_path, "[env]\nDEMO = 'x'\nHOME = '/app'")
    assert made.env == {**ENV, "DEMO": "x", "HOME": "/app"}
    assert DEFAULT_ENVIRONMENT == ENV


@requirement("E-38")
@pytest.mark.parametrize("path", ["missing.toml", "missing/policy.toml"])
def test_a_file_that_is_not_there_gives_the_defaults(tmp_path: Path, path: str) -> None:
    assert ExecutionPolicy.load(tmp_path / path) == ExecutionPolicy()
    assert ExecutionPolicy.load(str(tmp_path / path)) == ExecutionPolicy()


@pytest.mark.parametrize("text", ["", "# nothing\n", "[execution]", "\ufeff", "env = {}"])
def test_a_file_that_says_nothing_gives_the_defaults(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == ExecutionPolicy()


BAD_FILES = {
    "fuel_budget = -1000": (
        "fuel_budget",
        ":1: fuel_budget must be a whole number of at least 1 or None, not -1000",
    ),
    "\n\nmemory_bytes = 1": ("memory_bytes", ":3: memory_bytes must be a whole number of at least 41943040"),
    "x = 1\n[execution]\n\ntimeout_seconds = 'long'": ("timeout_seconds", ":4: timeout_seconds must be"),
    "[env]\nTOKEN = 5": ("env", ":1: env must have texts without NUL as values, which that of 'TOKEN'"),
    "env = 5": ("env", ":1: env must be a mapping of names to texts, not int"),
    "argv = '-v'": ("argv", ":1: argv must be a list of texts, not str"),
    "guest_mount_path = 1979-05-27": ("guest_mount_path", ":1: guest_mount_path must be an absolute path"),
    "guest_data_path = '/d'": ("guest_data_path", ":1: guest_data_path is given without mount_data_dir"),
    "\nfuel = 5": ("fuel", ":2: 'fuel' is not a known key; did you mean fuel_budget?"),
    "[execution]\nmem = 5": ("mem", ":2: 'mem' is not a known key; did you mean memory_bytes?"),
    "'qq\\n' = 5": ("qq\\n", ":1: 'qq\\\\n' is not a known key"),
    "execution = 5": ("execution", ":1: execution must be a table, not 5"),
    "[[execution]]": ("execution", ":1: execution must be a table, not a list"),
    "open_files = [": (None, ":1: is not TOML that can be read: "),
    "\n[execution": (None, ":2: is not TOML that can be read: "),
    "x = 1\nx = 2": (None, ":2: is not TOML that can be read: "),
    "x = " + "[" * 10_000: (None, ": is not TOML that can be read: it is nested too deeply"),
}


@requirement("E-38")
@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_what_is_wrong_in_a_file_is_told_with_its_name_line_and_field(tmp_path: Path, text: str) -> None:
    field, message = BAD_FILES[text]
    error = load_error(tmp_path, text)
    assert error.message.startswith(f"invalid execution policy in policy.toml{message}")
    assert error.field == field


def test_a_file_that_cannot_be_read_is_named_without_its_place(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").mkdir()
    with pytest.raises(PolicyValidationError) as caught:
        ExecutionPolicy.load(tmp_path / "policy.toml")
    assert caught.value.message == "invalid execution policy in policy.toml: is a directory"
    (tmp_path / "bytes").write_bytes(b"\n\xff")
    with pytest.raises(PolicyValidationError, match=re.escape("in bytes:2: is not UTF-8 text")):
        ExecutionPolicy.load(tmp_path / "bytes")


STATEMENTS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "[execution]\n", *(f"{name} = " for name in DEFAULTS), "execution = "]),
    st.sampled_from(["5", "-1", "'/a'", "['a']", "{ A = 'b' }", "true", "nan", "x = 1", ""]),
)


@given(st.one_of(st.text(), st.lists(STATEMENTS, max_size=4).map("\n".join)))
def test_any_text_is_a_policy_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    refused = None
    try:
        ExecutionPolicy.load(file)
    except PolicyValidationError as error:
        refused = error.message
    assert refused is None or refused.startswith("invalid execution policy in any.toml:")
