"""Functions that guest code may call: their schemas, and what is checked before they are called."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pytest

from carrel.runtimes.host_tools import MESSAGE_BYTES, HostTool, HostTools, tool_schemas


def lookup(key: str, count: int = 1, *, unit: Literal["mm", "cm"] | None = None) -> str:
    """Look up a measurement.

    It is rounded.
    """
    return f"{key} {count} {unit}"


def taking(kind: Any) -> Callable[..., Any]:
    """A function whose one argument has the type hint *kind*."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": kind}
    return take


def answered(tools: HostTools, request: object) -> dict[str, Any]:
    """The answer to a request: bytes, or what JSON can hold."""
    text = request if isinstance(request, bytes) else json.dumps(request).encode()
    answer = tools.start(text).wait(60)
    assert answer is not None
    document: dict[str, Any] = json.loads(answer)
    return document


def test_a_schema_comes_from_signature_and_docstring() -> None:
    assert tool_schemas({"lookup": lookup}) == [
        {
            "title": "lookup",
            "description": "Look up a measurement.\n\nIt is rounded.",
            "type": "object",
            "properties": {
                "key": {"type": "string"},
                "count": {"type": "integer"},
                "unit": {"anyOf": [{"enum": ["mm", "cm"]}, {"type": "null"}]},
            },
            "required": ["key"],
            "additionalProperties": False,
        }
    ]


def test_what_has_no_type_hints_takes_anything() -> None:
    (schema,) = tool_schemas({"plain": lambda value, more=None: value})
    assert schema["properties"] == {"value": {}, "more": {}}
    assert answered(HostTools({"f": lambda value: value}), ["f", [[1, {"a": None}]], {}]) == {
        "value": [1, {"a": None}]
    }


@pytest.mark.parametrize(
    ("kind", "schema", "good", "bad"),
    [
        (str, {"type": "string"}, ["", "é"], [1, None, []]),
        (int, {"type": "integer"}, [0, -5, 10**30], [1.0, True, "1"]),
        (float, {"type": "number"}, [0.5, 3], [True, "1"]),
        (bool, {"type": "boolean"}, [True], [0, "true"]),
        (None, {"type": "null"}, [None], [0, ""]),
        (list, {"type": "array"}, [[], [1, "a"]], [{}, "a"]),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [[], [1]], [["1"], 1]),
        (dict, {"type": "object"}, [{}, {"a": 1}], [[]]),
        (
            dict[str, list[float]],
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
            [{"a": [1.5]}],
            [{"a": 1.5}, {"a": ["b"]}],
        ),
        (Literal["a", 1], {"enum": ["a", 1]}, ["a", 1], ["b", True, 1.0]),
        (
            int | list[str] | None,
            {
                "anyOf": [
                    {"type": "integer"},
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "null"},
                ]
            },
            [1, ["a"], None],
            ["a", 1.5],
        ),
        (list[int] | list[str], None, [[1], ["a"]], [[1.5]]),
        (Any, {}, [1, "a", [None]], []),
    ],
    ids=str,
)
def test_an_argument_must_fit_its_type_hint(kind: Any, schema: Any, good: list[Any], bad: list[Any]) -> None:
    function = taking(kind)
    tools = HostTools({"take": function})
    if schema is not None:
        assert HostTool("take", function).schema()["properties"]["value"] == schema
    for value in good:
        assert answered(tools, ["take", [value], {}]) == {"value": value}
        assert answered(tools, ["take", [], {"value": value}]) == {"value": value}
    for value in bad:
        answer = answered(tools, ["take", [value], {}])
        assert answer["error"] == "TypeError"
        assert "take(): 'value' must fit" in answer["message"]


def test_an_integer_for_a_float_arrives_as_one() -> None:
    tools = HostTools({"kind": partial(_kind_of)})
    assert answered(tools, ["kind", [3], {}]) == {"value": "float"}


def _kind_of(value: float) -> str:
    return type(value).__name__


@pytest.mark.parametrize("kind", [bytes, tuple, object, dict[int, str], Callable, complex], ids=str)
def test_a_type_that_json_cannot_hold_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"f\(\): 'value' has the type .* cannot be passed as JSON"):
        HostTools({"f": taking(kind)})


@pytest.mark.parametrize("name", ["", "a b", "a.b", "1a", "class"])
def test_a_name_that_code_could_not_use_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be an identifier"):
        HostTools({name: lookup})


def test_what_is_no_function_is_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match="the tool 'lookup' must be a function, not int"):
        HostTools({"lookup": 3})  # type: ignore[dict-item]  # that is the point


def test_any_number_of_arguments_has_no_schema() -> None:
    for function in (lambda *args: None, lambda **kwargs: None):
        with pytest.raises(TypeError, match="any number of arguments"):
            HostTools({"f": function})


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_timeout_must_be_a_number_above_0(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        HostTools({"lookup": lookup}, timeout_seconds=seconds)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (["lookup", [], {}], "TypeError"),
        (["lookup", ["a"], {"key": "b"}], "TypeError"),
        (["lookup", ["a", 1, "mm"], {}], "TypeError"),
        (["lookup", ["a"], {"more": 1}], "TypeError"),
        (["__class__", [], {}], "NameError"),
        (["call", ["a"], {}], "NameError"),
        (["lookup"], "ValueError"),
        (["lookup", {}, []], "ValueError"),
        ([["lookup"], [], {}], "ValueError"),
        ("lookup", "ValueError"),
        (b"", "JSONDecodeError"),
        (b"\xff", "UnicodeDecodeError"),
        (b"[" * 10**6, "RecursionError"),
        (b" " * (MESSAGE_BYTES + 1), "ValueError"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_request_that_does_not_fit_calls_nothing(request_: object, error: str) -> None:
    calls = []

    def watched(key: str, count: int = 1, *, unit: Literal["mm", "cm"] | None = None) -> None:
        calls.append(key)

    assert answered(HostTools({"lookup": watched}), request_)["error"] == error
    assert calls == []


def test_an_exception_of_the_function_is_an_answer_with_its_name_and_message() -> None:
    def fail(error: str) -> None:
        raise {"key": KeyError("k"), "two": OSError(2, "gone")}.get(error, RuntimeError())

    tools = HostTools({"fail": fail})
    assert answered(tools, ["fail", ["key"], {}]) == {"error": "KeyError", "message": "k"}
    assert answered(tools, ["fail", ["two"], {}]) == {
        "error": "FileNotFoundError",
        "message": "[Errno 2] gone",
    }
    assert answered(tools, ["fail", ["none"], {}]) == {"error": "RuntimeError", "message": ""}


def test_a_result_that_cannot_be_passed_is_an_error() -> None:
    tools = HostTools({"thing": object, "much": lambda: "x" * MESSAGE_BYTES})
    assert answered(tools, ["thing", [], {}])["error"] == "TypeError"
    assert answered(tools, ["much", [], {}])["error"] == "ValueError"


def test_the_end_of_every_call_is_reported_once() -> None:
    ends: list[tuple[str, str | None]] = []
    may_return = threading.Event()
    tools = HostTools(
        {"lookup": lookup, "wait": lambda: may_return.wait(60)},
        timeout_seconds=0.001,
        on_call=lambda name, error, duration_ms: ends.append((name, error)),
    )
    patient = HostTools({"lookup": lookup}, on_call=lambda name, error, _: ends.append((name, error)))
    assert "value" in answered(patient, ["lookup", ["a"], {}])
    assert answered(patient, ["x" * 1000, [], {}])["error"] == "NameError"
    assert answered(tools, ["wait", [], {}]) == {
        "error": "TimeoutError",
        "message": "the tool did not answer within 0.001 s",
    }
    tools.start(b'["wait", [], {}]').abandon()
    may_return.set()
    assert ends == [
        ("lookup", None),
        ("x" * 100, "NameError"),
        ("wait", "TimeoutError"),
        ("wait", "CancelledError"),
    ]


def test_functions_that_hang_do_not_pile_up_threads() -> None:
    may_return = threading.Event()
    used: set[int] = set()

    def wait() -> None:
        used.add(threading.get_ident())
        may_return.wait(60)

    tools = HostTools({"wait": wait}, timeout_seconds=0.001)
    for _ in range(10):
        assert answered(tools, ["wait", [], {}])["error"] == "TimeoutError"
    assert len(used) <= 1
    may_return.set()


def test_who_waits_for_a_call_can_look_at_other_things_now_and_then() -> None:
    may_return = threading.Event()
    call = HostTools({"wait": lambda: may_return.wait(60)}).start(b'["wait", [], {}]')
    assert call.wait(0) is None
    assert call.wait(0.001) is None
    may_return.set()
    assert call.wait(60) == b'{"value": true}'
