"""The service answers as its description says, whatever it is asked."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from carrel.fronts.http.openapi import describe
from carrel.fronts.http.routes import ROUTES
from tests.fronts.http.front import Front

DOCUMENT = describe(ROUTES, "0")
OPERATIONS = [
    (method, path)
    for path, item in DOCUMENT["paths"].items()
    for method in item
    if not method.startswith("x-")
]
CHECKS = [
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]
"""Not that all data which fits is accepted: no schema says which texts are paths, patterns or archives."""
EXAMPLES = 4


@pytest.fixture(scope="module")
def described(front: Front) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{front.url}/openapi.json")


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_the_service_answers_as_it_is_described(
    front: Front, described: schemathesis.BaseSchema, method: str, path: str
) -> None:
    operation = described[path][method]
    session_id = front.session().id
    ask(operation, schemathesis.GenerationMode.POSITIVE, session_id)
    if can_be_wrong(DOCUMENT["paths"][path][method]):
        ask(operation, schemathesis.GenerationMode.NEGATIVE, session_id)


def can_be_wrong(document: dict[str, Any]) -> bool:
    """Whether something can be asked that does not fit; any text does for a path or a header."""
    in_query = any(each["in"] == "query" for each in document["parameters"])
    return in_query or "application/json" in document.get("requestBody", {}).get("content", {})


def ask(
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    mode: schemathesis.GenerationMode,
    session_id: str,
) -> None:
    @given(case=operation.as_strategy(mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def asked(case: schemathesis.Case[Any]) -> None:
        if mode is schemathesis.GenerationMode.POSITIVE and "session_id" in (case.path_parameters or {}):
            # Otherwise nearly all answers would be that there is no such session.
            case.path_parameters["session_id"] = session_id
        case.call_and_validate(checks=CHECKS)

    asked()
