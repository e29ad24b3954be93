"""The tree of errors: as drawn, catchable as builtins, and able to travel."""

from __future__ import annotations

import errno
import inspect
import pickle
import re
from collections import Counter

import pytest

from carrel import errors
from carrel.errors import (
    CarrelError,
    ChangedError,
    ContainerError,
    EditError,
    EngineError,
    LimitError,
    PolicyValidationError,
    QuotaError,
    ToolError,
)

ROW = re.compile(r"^ *[│ ]*[├└]── (?P<name>\w+) +(?P<rest>.*)$", re.MULTILINE)


def classes() -> list[type[CarrelError]]:
    """Every class of the tree but its root."""
    return [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, CarrelError) and kind is not CarrelError
    ]


def make(kind: type[CarrelError], message: str = "it went wrong", path: str = "a/b") -> CarrelError:
    """An error of that kind."""
    if kind is LimitError:
        return LimitError("file_bytes", limit=10, asked=20, message=message, path=path)
    if kind is QuotaError:
        return QuotaError("bytes", limit=10, asked=20, message=message, path=path)
    if kind is ChangedError:
        return ChangedError(message, path=path, version="1a-2-3")
    if kind in (ContainerError, EditError, EngineError):
        return kind("ambiguous", message, path=path)
    if kind is ToolError:
        return ToolError("arguments", message, path=path)
    return kind(message, path=path)


def drawn() -> dict[str, str]:
    """The rows of the tree in the docstring."""
    return {found["name"]: found["rest"] for found in ROW.finditer(errors.__doc__ or "")}


def test_the_drawing_has_every_class_and_no_other() -> None:
    assert sorted(drawn()) == sorted(kind.__name__ for kind in classes())


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_a_class_derives_from_the_builtins_drawn_beside_it(kind: type[CarrelError]) -> None:
    words = re.findall(r"\b[A-Z]\w*Error\b", drawn()[kind.__name__])
    builtins = [getattr(__import__("builtins"), word) for word in words]
    assert builtins
    assert all(issubclass(kind, builtin) for builtin in builtins)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_a_class_has_the_code_drawn_beside_it(kind: type[CarrelError]) -> None:
    code = make(kind).code
    pattern = next(word for word in drawn()[kind.__name__].split() if re.fullmatch(r"\w+\.[\w*]+", word))
    assert re.fullmatch(pattern.replace(".", r"\.").replace("*", r"\w+"), code)


def test_indentation_in_the_drawing_is_the_base_class() -> None:
    parents: list[tuple[int, str]] = [(-1, "CarrelError")]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.search(r"[├└]── (\w+)", line):
            depth = found.start()
            while parents[-1][0] >= depth:
                parents.pop()
            kind = getattr(errors, found[1])
            assert getattr(errors, parents[-1][1]) in kind.__bases__, line
            parents.append((depth, found[1]))


def test_codes_are_unique_and_read_area_dot_problem() -> None:
    codes = Counter(make(kind).code for kind in classes())
    assert [code for code, count in codes.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", code) for code in codes)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_an_error_survives_a_pickle(kind: type[CarrelError]) -> None:
    error = make(kind, "no 'ä' here", "sub/ä")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.path, again.code) == (str(error), error.path, error.code)
    assert again.__dict__ == error.__dict__
    for name in ("errno", "strerror", "filename"):
        assert getattr(again, name, None) == getattr(error, name, None)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_the_text_of_an_error_is_its_message(kind: type[CarrelError]) -> None:
    assert str(make(kind, "plain words")) == "plain words"


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_an_error_that_is_an_os_error_has_an_errno_and_the_path_as_asked(kind: type[CarrelError]) -> None:
    error = make(kind)
    if isinstance(error, OSError):
        assert error.errno in errno.errorcode
        assert error.filename == "a/b"
        assert error.strerror == "it went wrong"
    else:
        assert kind.number is None


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_the_errno_is_one_that_python_gives_the_same_builtin(kind: type[CarrelError]) -> None:
    if kind.number is not None:
        plain = OSError(kind.number, "x")
        assert isinstance(make(kind), type(plain))


def test_a_limit_tells_what_was_asked_and_what_is_allowed() -> None:
    error = LimitError("depth", limit=3, asked=5, message="too deep", path="a")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.limit, again.asked) == ("limit.depth", 3, 5)


def test_a_wrong_policy_tells_the_field() -> None:
    again = pickle.loads(pickle.dumps(PolicyValidationError("argv is wrong", field="argv")))
    assert (again.code, again.field, str(again)) == ("policy.invalid", "argv", "argv is wrong")
    assert PolicyValidationError("it is not TOML").field is None


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_class_says_what_it_means(kind: type[CarrelError]) -> None:
    assert kind.__doc__
    assert kind.__doc__.endswith(".")
