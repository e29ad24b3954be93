"""The table of operations says what the methods of a workspace say, and reads arguments strictly."""

from __future__ import annotations

import inspect
import json
from typing import Any

import jsonschema
import pytest

from carrel.errors import RequestError, UnknownRequestError
from carrel.fronts.http.openapi import describe
from carrel.fronts.http.routes import ROUTES
from carrel.policy.roles import WRITING
from carrel.remote.json_codec import render
from carrel.service.operations import OPERATIONS, Operation, find_operation
from carrel.service.service import Service
from carrel.workspace.workspace import Workspace
from tests.service.conftest import OPERATOR, READER, WRITER, House

STREAMS = {"read", "read_with_info", "read_chunks", "read_tree", "write_chunks", "archive", "extract", "walk"}
"""Have ways of their own through each front."""
ELSEWHERE = {"changes", "close", "open"}
LOCAL = {"explain", "host_path", "list_names", "narrowed", "reader"}
"""Speak of the host, take functions, hand out open files, or are made from others by the client."""

DOCUMENT = describe(ROUTES, "0")
GOOD: dict[str, dict[str, Any]] = {
    "append": {"path": "a.txt", "data": "more"},
    "copy": {"source": "a.txt", "target": "b.txt"},
    "edit": {"path": "a.txt", "old": "one", "new": "two"},
    "exists": {"path": "a.txt"},
    "glob": {"pattern": "*.txt"},
    "list": {"path": "."},
    "list_files": {},
    "mkdir": {"path": "d"},
    "move": {"source": "a.txt", "target": "c.txt"},
    "read_lines": {"path": "a.txt", "start": 1, "count": 1},
    "read_text": {"path": "a.txt"},
    "recount": {},
    "remove": {"path": "a.txt"},
    "search": {"query": "one", "include": ["*.txt"], "budget": {"matches": 5}},
    "stat": {"path": "a.txt"},
    "touch": {"path": "a.txt"},
    "usage": {},
    "write": {"path": "new.txt", "data": "new"},
}

every_operation = pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)


def test_every_method_of_a_workspace_is_an_operation_a_stream_or_only_local() -> None:
    methods = {name for name, _ in inspect.getmembers(Workspace, inspect.isroutine) if name[0] != "_"}
    assert methods == set(OPERATIONS) | STREAMS | ELSEWHERE | LOCAL


@every_operation
def test_an_operation_answers_as_its_schema_says(row: Operation, house: House) -> None:
    described = DOCUMENT["paths"][f"/api/v1/sessions/{{session_id}}/operations/{row.name}"]["post"]
    arguments = described["requestBody"]["content"]["application/json"]["schema"]
    result = described["responses"]["200"]["content"]["application/json"]["schema"]
    document = {"components": DOCUMENT["components"]}
    jsonschema.validate(GOOD[row.name], {**document, **arguments})

    async def work(service: Service) -> Any:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a.txt", "data": "one\n"})
        return await service.call(OPERATOR, "s1", row.name, GOOD[row.name])

    answer = render(house.run(work))
    jsonschema.validate(json.loads(json.dumps(answer)), {**document, **result})


@every_operation
@pytest.mark.parametrize(
    "change",
    [{"unheard_of": 1}, {"path": 1}, {"path": None}, {"wants": "x"}, {"budget": 7}],
    ids=lambda change: next(iter(change)),
)
def test_arguments_that_do_not_fit_are_refused_by_name(row: Operation, change: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        row.parse({**GOOD[row.name], **change})
    assert str(caught.value).startswith(f"{row.name}: ")
    assert next(iter(change)) in str(caught.value)


@pytest.mark.parametrize("arguments", [None, [], "path", 1, {1: "path"}])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    with pytest.raises(RequestError):
        OPERATIONS["stat"].parse(arguments)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(RequestError, match="missing required field `target`"):
        OPERATIONS["move"].parse({"source": "a"})


def test_an_operation_nobody_offers_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownRequestError, match="'host_path'; there are: append, copy"):
        find_operation("host_path")


@every_operation
def test_a_role_that_may_only_read_does_only_what_reads(row: Operation, house: House) -> None:
    async def work(service: Service) -> str | None:
        await service.sessions.ensure(WRITER, "s1")
        await service.call(WRITER, "s1", "write", {"path": "a.txt", "data": "one"})
        try:
            await service.call(READER, "s1", row.name, GOOD[row.name])
        except OSError as error:
            return str(error.code)  # type: ignore[attr-defined]  # those of carrel have one
        return None

    expected = "access.role" if row.tool == WRITING else None
    assert house.run(work) == expected


def test_a_value_that_makes_no_sense_is_a_mistake_of_the_request(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a.txt", "data": "one\n"})
        await service.call(OPERATOR, "s1", "read_lines", {"path": "a.txt", "start": 0})

    with pytest.raises(RequestError, match="read_lines: a window starts at line 1"):
        house.run(work)
