"""Errors as an agent sees them: what is wrong, what to do next, and nothing that it cannot do."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from carrel.errors import (
    CarrelError,
    ChangedError,
    EscapeError,
    ExistsError,
    LimitError,
    MissingError,
    QuotaError,
    ToolError,
)
from carrel.tools.core.advice import ADVICE, AdvisedError, Adviser
from carrel.tools.core.spec import Profile, Purpose, Tool
from carrel.tools.core.table import TOOLS

AGENT = TOOLS[Profile.AGENT]
ALL = Adviser(AGENT)
PATH = "notes/a.txt"


def without(*names: str) -> Mapping[str, Tool]:
    """The tools for agents but those with these *names*."""
    return {name: tool for name, tool in AGENT.items() if name not in names}


def test_a_missing_file_is_reported_with_the_tool_that_helps() -> None:
    found = ALL.failure(MissingError("'data.txt' does not exist", path="data.txt"))
    assert found.to_dict() == {
        "success": False,
        "error": "File not found: data.txt. Use file_list to see what is there.",
        "metadata": {
            "code": "path.missing",
            "path": "data.txt",
            "next": "Use file_list to see what is there.",
        },
    }


def test_a_tool_that_the_role_does_not_have_is_not_recommended() -> None:
    found = Adviser(without("file_list")).failure(MissingError("'a' does not exist", path="a"))
    assert found.error == "File not found: a. Check the path."


def test_the_first_tool_of_a_purpose_is_recommended() -> None:
    found = Adviser(TOOLS[Profile.MCP]).failure(ChangedError("changed", path=PATH))
    assert found.error == (
        "Path was changed in the meantime, nothing was done: notes/a.txt."
        " Use read_text_file again and continue from its version."
    )


@pytest.mark.parametrize(("name", "doing"), [("file_read", "Reading"), ("file_write", "Writing")])
def test_a_path_that_leads_out_is_refused_as_what_was_tried(name: str, doing: str) -> None:
    found = ALL.failure(EscapeError("'../x' leads out", path="../x"), AGENT[name])
    assert found.error == f"{doing} ../x is not allowed. Use session workspace."


def test_a_limit_reports_its_numbers() -> None:
    error = LimitError("file_bytes", limit=10, asked=11, message="too large", path=PATH)
    found = ALL.failure(error)
    assert found.error == "File too large: 11 bytes (max 10). Write less at once."
    assert (found.metadata["limit"], found.metadata["asked"]) == (10, 11)


def test_a_limit_that_does_not_know_its_numbers_says_what_it_knows() -> None:
    error = LimitError("file_bytes", limit=10, asked=None, message="the file is too large", path=PATH)
    assert ALL.failure(error).error == "The file is too large. Write less at once."


def test_the_words_about_a_quota_are_a_promise_and_the_advice_is_beside_them() -> None:
    error = QuotaError("bytes", limit=10, asked=11, message="Session quota exceeded: 11 bytes used, limit 10")
    found = ALL.failure(error)
    assert found.error == "Session quota exceeded: 11 bytes used, limit 10"
    assert found.metadata["next"] == "Delete what is no longer needed, or write less."


def test_an_error_without_advice_says_what_it_says() -> None:
    found = ALL.failure(CarrelError("something is amiss."))
    assert found.error == "Something is amiss"
    assert found.metadata == {"code": CarrelError.code}


def test_a_question_is_not_followed_by_a_full_stop() -> None:
    found = ALL.failure(ToolError("arguments", "there is no argument 'pth'; did you mean 'path'?"))
    assert found.error == (
        "There is no argument 'pth'; did you mean 'path'? Correct the arguments and call it again."
    )


def test_a_tool_of_several_purposes_is_recommended_for_each() -> None:
    found = Adviser(TOOLS[Profile.EDITOR]).failure(MissingError("'a' does not exist", path="a"))
    assert found.error == "File not found: a. Use str_replace_based_edit_tool to see what is there."


def test_a_tool_may_word_an_error_itself() -> None:
    error = AdvisedError("path.missing", "no such thing", next="Use {search} for it.", path=PATH)
    found = ALL.failure(error)
    assert found.error == "No such thing. Use file_search for it."
    assert found.code == "path.missing"


@pytest.mark.parametrize("quoted", ["{0}", "{", "{read.__class__}", "{unknown}", "%s"])
def test_what_a_caller_wrote_is_quoted_and_not_filled_in(quoted: str) -> None:
    error = AdvisedError("path.missing", f"no {quoted}", next=f"Use {{list}} without {quoted}.", path=quoted)
    found = ALL.failure(error)
    assert found.error == f"No {quoted}. Use file_list without {quoted}."
    assert ALL.failure(MissingError("no", path=quoted)).error == (
        f"File not found: {quoted}. Use file_list to see what is there."
    )


def test_a_lost_update_reports_the_version_that_is_there() -> None:
    error = ChangedError("changed", path=PATH)
    assert "version" in ALL.failure(error).metadata


def test_every_code_with_advice_is_one_that_is_raised() -> None:
    known = {error.code for error in _all(CarrelError)}
    made = {"edit", "limit", "quota", "tool"}  # by one class each, for every problem
    assert [code for code in ADVICE if code not in known and code.partition(".")[0] not in made] == []


@pytest.mark.parametrize("code", ADVICE)
def test_advice_names_only_purposes_that_there_are(code: str) -> None:
    advice = ADVICE[code]
    asked = set(re.findall(r"{(\w+)}", advice.next))
    assert asked <= {str(purpose) for purpose in Purpose}
    assert set(re.findall(r"{(\w+)}", advice.problem)) <= {"path", "doing", "asked", "limit"}
    assert advice.next.endswith(".")
    has_condition = bool(asked or advice.needs)
    assert bool(advice.fallback) == has_condition, "a role without such a tool gets other advice"


def test_something_else_in_the_way_is_reported_by_its_path() -> None:
    found = ALL.failure(ExistsError("there is one", path=PATH), TOOLS[Profile.FILES]["write_file"])
    assert found.error == "Path already exists: notes/a.txt. Choose another name, or overwrite it."


def test_an_argument_that_the_tool_does_not_have_is_not_recommended() -> None:
    found = ALL.failure(ExistsError("there is one", path=PATH), TOOLS[Profile.MCP]["move_file"])
    assert found.error == "Path already exists: notes/a.txt. Choose another name."


def _all(kind: type[CarrelError]) -> set[type[CarrelError]]:
    return {kind, *(each for below in kind.__subclasses__() for each in _all(below))}
